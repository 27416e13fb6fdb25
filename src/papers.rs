//! The literature behind the features, cited once.

/// P. Samarati, L. Sweeney: "Protecting privacy when disclosing information: k-anonymity and its
/// enforcement through generalization and suppression", SRI-CSL-98-04, 1998.
pub const SAMARATI_SWEENEY_1998: &str = "Samarati & Sweeney 1998";
/// L. Sweeney: "Datafly: a system for providing anonymity in medical data", Database Security XI,
/// 1998.
pub const SWEENEY_1998: &str = "Sweeney 1998";
/// P. Samarati: "Protecting respondents' identities in microdata release", IEEE TKDE 13(6), 2001.
pub const SAMARATI_2001: &str = "Samarati 2001";
/// K. LeFevre, D. DeWitt, R. Ramakrishnan: "Incognito: efficient full-domain k-anonymity", SIGMOD 2005.
pub const LEFEVRE_2005: &str = "LeFevre et al. 2005";
/// L. Sweeney: "k-anonymity: a model for protecting privacy", IJUFKS 10(5), 2002.
pub const SWEENEY_2002: &str = "Sweeney 2002";
/// V. Iyengar: "Transforming data to satisfy privacy constraints", KDD 2002 (the loss metric).
pub const IYENGAR_2002: &str = "Iyengar 2002";
/// F. Dankar, K. El Emam: "A method for evaluating marketer re-identification risk", PAIS 2010
/// (prosecutor, journalist and marketer risk).
pub const DANKAR_EL_EMAM_2010: &str = "Dankar & El Emam 2010";
/// F. Kohlmayer et al.: "The cost of quality: implementing generalization and suppression for
/// anonymizing biomedical data with minimal information loss", J. Biomedical Informatics 58, 2015
/// (bounds on losses that suppression makes non-monotone).
pub const KOHLMAYER_2015: &str = "Kohlmayer et al. 2015";
/// A. Machanavajjhala et al.: "l-diversity: privacy beyond k-anonymity", ICDE 2006.
pub const MACHANAVAJJHALA_2006: &str = "Machanavajjhala et al. 2006";
/// N. Li, T. Li, S. Venkatasubramanian: "t-closeness: privacy beyond k-anonymity and l-diversity",
/// ICDE 2007.
pub const LI_2007: &str = "Li et al. 2007";
/// L. Sweeney: "Achieving k-anonymity privacy protection using generalization and suppression",
/// IJUFKS 10(5), 2002 (the precision metric).
pub const SWEENEY_2002_PRECISION: &str = "Sweeney 2002 (precision)";
/// R. Bayardo, R. Agrawal: "Data privacy through optimal k-anonymization", ICDE 2005 (the
/// discernibility metric; k-optimize, a search by bounds).
pub const BAYARDO_AGRAWAL_2005: &str = "Bayardo & Agrawal 2005";
/// K. El Emam et al.: "A globally optimal k-anonymity method for the de-identification of health
/// data", JAMIA 16(5), 2009 (discernibility without the penalty of suppression).
pub const EL_EMAM_2009: &str = "El Emam et al. 2009";
/// K. LeFevre, D. DeWitt, R. Ramakrishnan: "Mondrian multidimensional k-anonymity", ICDE 2006
/// (average class size).
pub const LEFEVRE_2006: &str = "LeFevre et al. 2006";
/// A. Gionis, T. Tassa: "k-anonymization with minimal loss of information", IEEE TKDE 21(2), 2009
/// (non-uniform entropy).
pub const GIONIS_TASSA_2009: &str = "Gionis & Tassa 2009";
/// F. Prasser et al.: "Flexible data anonymization using ARX: current status and challenges ahead",
/// Software: Practice and Experience 50(7), 2020 (local recoding by repeated searches).
pub const PRASSER_2020: &str = "Prasser et al. 2020";
/// M. Templ, A. Kowarik, B. Meindl: "Statistical disclosure control for micro-data using the R
/// package sdcMicro", J. Statistical Software 67(4), 2015 (local suppression by the importance of
/// columns).
pub const TEMPL_2015: &str = "Templ et al. 2015";
/// B. Fung, K. Wang, P. Yu: "Top-down specialization for information and privacy preservation", ICDE 2005.
pub const FUNG_2005: &str = "Fung et al. 2005";
/// J.-W. Byun, A. Kamra, E. Bertino, N. Li: "Efficient k-anonymization using clustering
/// techniques", DASFAA 2007 (k-member clustering).
pub const BYUN_2007: &str = "Byun et al. 2007";
/// R. Motwani, Y. Xu: "Efficient algorithms for masking and finding quasi-identifiers", VLDB 2007
/// workshop on secure data management (distinct and separation ratios, greedy search).
pub const MOTWANI_XU_2007: &str = "Motwani & Xu 2007";
/// R. Wong, J. Li, A. Fu, K. Wang: "(α, k)-anonymity: an enhanced k-anonymity model for privacy
/// preserving data publishing", KDD 2006.
pub const WONG_2006: &str = "Wong et al. 2006";
/// J. Brickell, V. Shmatikov: "The cost of privacy: destruction of data-mining utility in
/// anonymized data publishing", KDD 2008.
pub const BRICKELL_SHMATIKOV_2008: &str = "Brickell & Shmatikov 2008";
/// M. Nergiz, M. Atzori, C. Clifton: "Hiding the presence of individuals from shared databases", SIGMOD 2007.
pub const NERGIZ_2007: &str = "Nergiz et al. 2007";
/// B. Gedik, L. Liu: "Protecting location privacy with personalized k-anonymity: architecture and
/// algorithms", IEEE TMC 7(1), 2008.
pub const GEDIK_LIU_2008: &str = "Gedik & Liu 2008";
/// J. Cao, P. Karras: "Publishing microdata with a robust privacy guarantee", PVLDB 5(11), 2012.
pub const CAO_KARRAS_2012: &str = "Cao & Karras 2012";
/// J. Domingo-Ferrer, V. Torra: "Ordinal, continuous and heterogeneous k-anonymity through
/// microaggregation", Data Mining and Knowledge Discovery 11(2), 2005 (MDAV).
pub const DOMINGO_FERRER_TORRA_2005: &str = "Domingo-Ferrer & Torra 2005";
/// J. Soria-Comas, J. Domingo-Ferrer, R. Mulero: "Efficient near-optimal variable-size
/// microaggregation", MDAI 2019 (ONA).
pub const SORIA_COMAS_2019: &str = "Soria-Comas et al. 2019";
/// J. Soria-Comas, J. Domingo-Ferrer, D. Sánchez, S. Martínez: "Enhancing data utility in differential
/// privacy via microaggregation-based k-anonymity", The VLDB Journal 23(5), 2014.
pub const SORIA_COMAS_2014: &str = "Soria-Comas et al. 2014";
/// X. Xiao, Y. Tao: "Anatomy: simple and effective privacy preservation", VLDB 2006.
pub const XIAO_TAO_2006: &str = "Xiao & Tao 2006";
/// F. Thaeter, R. Reischuk: "Scalable k-anonymous microaggregation: exploiting the tradeoff between
/// computational complexity and information loss", SECRYPT 2021 (MONA).
pub const THAETER_REISCHUK_2021: &str = "Thaeter & Reischuk 2021";
