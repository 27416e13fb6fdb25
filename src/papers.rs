//! The literature that the features implement, cited once.

/// P. Samarati, L. Sweeney: "Protecting privacy when disclosing information: k-anonymity and its
/// enforcement through generalization and suppression", SRI-CSL-98-04, 1998.
pub const SAMARATI_SWEENEY_1998: &str = "Samarati & Sweeney 1998";
/// P. Samarati: "Protecting respondents' identities in microdata release", IEEE TKDE 13(6), 2001.
pub const SAMARATI_2001: &str = "Samarati 2001";
/// L. Sweeney: "k-anonymity: a model for protecting privacy", IJUFKS 10(5), 2002.
pub const SWEENEY_2002: &str = "Sweeney 2002";
/// V. Iyengar: "Transforming data to satisfy privacy constraints", KDD 2002 (the loss metric).
pub const IYENGAR_2002: &str = "Iyengar 2002";
/// F. Dankar, K. El Emam: "A method for evaluating marketer re-identification risk", PAIS 2010
/// (prosecutor, journalist and marketer risk).
pub const DANKAR_EL_EMAM_2010: &str = "Dankar & El Emam 2010";
/// F. Kohlmayer et al.: "Flash: efficient, stable and optimal k-anonymity", PASSAT 2012.
pub const KOHLMAYER_2012: &str = "Kohlmayer et al. 2012";
