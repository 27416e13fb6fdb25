//! French.

use super::Words;

pub(super) const WORDS: Words = Words {
    person: "id|num|numero|no|code|identifiant patient|personne|individu|client, \
             id|num|numero|no|code|identifiant assure|adherent|beneficiaire, \
             id|num|numero|no|code|identifiant participant|sujet|usager|salarie|employe|etudiant|eleve, \
             id|numero|num|identifiant membre|utilisateur, \
             num|numero|no secu|securite|insee|ss|nir|ipp|fiscal, nir patient|assure, =NIR, =IPP, nss, \
             securite sociale, carte vitale|identite, dossier medical, cle patient, matricule, passeport*, \
             permis conduire",
    person_alone: "patient, patiente, assure, adherent, beneficiaire, participant, usager, individu",
    contact: "courriel*, tel, num|numero portable|mobile, num|numero compte|carte, compte bancaire, \
              carte bancaire|credit, adresse mail|ip, plaque immatriculation, immatriculation, =RIB",
    person_name: "prenom*, nom famille|usage|usuel|marital|complet|prenom|naissance|patronymique, \
                  nom jeune fille, nom jf, \
                  nom patient|assure|client|medecin|utilisateur|conjoint|epoux|mere|pere, patronyme",
    birth_place: "pays|lieu|ville|commune|departement|dept|region|insee naissance, \
                  naissance pays|lieu|ville|commune",
    birth: "naiss*, ddn, date|dt|annee|jour nais*",
    postal: "=CP, cp patient|residence|domicile|ville|commune, code post|postal",
    sex: "sexe, genre patient, civilite",
    race: "ethnie, ethnique*, ethnicite, couleur peau",
    age: "tranche*|classe*|groupe age",
    place: "ville, villes, commune, communes, departement, departements, canton, quartier, arrondissement, \
            code insee, =pays, pays residence|domicile|origine|patient|client, code|nom pays, \
            lieu residence|habitation",
    family: "situation matrimoniale|familiale|famille, statut|etat matrimonial, etat civil, enfant*, \
             nb|nombre enfants|enf, menage, taille foyer, =conjoint, conjointe, personnes charge",
    education: "niveau etude*|instruction|scolaire|formation, diplome*, scolarite, scolarisation, ecole, \
                universite",
    occupation: "metier, metiers, emploi, emplois, employeur*, categorie socio*, socioprofessionnel*, =CSP, \
                 secteur activite, chomage, chomeur*, intitule poste",
    nationality: "citoyen*, langue, langues, immigre*, titre sejour",
    religion: "confession relig*",
    event: "date|dt entree|sortie|hospitalisation|hosp|passage|sejour|venue, \
            date|dt visite|consultation|consult|rdv|soin*, \
            date|dt deces|mort|acte|intervention|operation|chirurgie|embauche|achat|inscription, \
            date debut|fin sejour, debut|fin sejour, =deces, decede, decedee, decedes",
    notes: "remarque*, texte libre, compte rendu, observations medic*|clinique*",
    health: "maladie*, pathologie*, traitement*, medicament*, ordonnance, ordonnances, \
             antecedent medic*|chir*|famil*, antecedents medic*|chir*|famil*, grossesse*, vih, =ALD, \
             affection longue, cause deces, motif hospitalisation|consultation|venue, groupe sanguin, \
             handicape*, diag principal|associe, ccam, =cim, code cim",
    money: "revenu, revenus, salaire*, dette, dettes, quotient familial, patrimoine",
    private: "sexuel*, opinion|parti|affiliation politique, syndicat, syndicats, syndical, syndicale, \
              condamn*, casier judiciaire",
    address: "adresse*, =rue, num|numero|nom rue, rue patient|domicile, num|numero|nom|type voie, lieu dit",
    name: "=nom, =noms",
    record: "num|numero|no sejour|dossier|venue|visite|passage|consultation|episode|acte|iep, \
             num|numero|no facture|commande|enregistrement|ligne, identifiant, identifiants, \
             cle primaire|unique",
    counts: "",
    links: "de, du, des, d, la, le, les, l, au, aux",
    missing: "#valeur!, #nom?, #nombre!, n.d., n/d, n.c., n.r., nr, inconnu, inconnue, non connu, non connue, non renseigné, \
              non renseignée, non renseigne, non disponible, non précisé, non communiqué, manquant, manquante, sans objet, \
              sans réponse, aucune réponse, vide",
};

#[cfg(test)]
mod tests {
    use super::super::tests::mean;

    #[test]
    fn what_french_names_mean() {
        mean(
            "a person's number",
            "id_patient, N° patient, Numéro d'assuré, num_secu, n° sécu, numero_securite_sociale",
        );
        mean("a person's number", "NIR, IPP, Code client, identifiant du patient, matricule, Passeport");
        mean("a record number", "num_sejour, Numéro de dossier, n° de facture, identifiant, id_visite");
        mean(
            "a person's name",
            "prénom, Prenom, nom de famille, nom_usuel, nom_naissance, Nom du patient, NOM PRENOM",
        );
        mean("a name", "nom, NOM");
        mean("a place of birth", "pays_naissance, Lieu de naissance, commune_de_naissance");
        mean(
            "a date of birth",
            "date_naissance, Date de naissance, DateNaissance, date_naiss, année de naissance, DDN",
        );
        mean("a postal code", "code_postal, Code postal, CodePostal, CP, cp_ville");
        mean("sex or gender", "sexe, SEXE, civilité");
        mean("race or origin", "ethnie, origine ethnique");
        mean("an age", "âge, age_patient, tranche d'âge");
        mean("a place", "ville, Commune, département, région, pays, PAYS, code_insee, pays_de_residence");
        mean(
            "family and marriage",
            "situation_matrimoniale, état civil, nb_enfants, Nombre d'enfants, ménage",
        );
        mean("education", "niveau_etudes, niveau d'études, diplôme, scolarité");
        mean("an occupation", "profession, métier, emploi, Catégorie socioprofessionnelle, CSP, employeur");
        mean("nationality or language", "nationalité, langue_maternelle, citoyenneté");
        mean("a religion, which can be sensitive as well", "religion");
        let event = "the date of an event that others may have witnessed";
        mean(event, "date_entree, Date d'entrée, date de sortie, date_admission, date_deces, Décès");
        mean("free text", "commentaire, Commentaires, remarques, texte_libre, compte rendu");
        mean(
            "health data",
            "diagnostic, Diagnostic principal, maladie, traitement, médicaments, cause_deces, CIM10",
        );
        mean("financial data", "revenu, revenus_annuels, salaire, Salaire brut");
        mean("private life", "orientation sexuelle, opinion_politique, syndicat");
        mean("an address", "adresse, Adresse du patient, rue, num_rue");
        mean("contact or payment data", "téléphone, tel_portable, courriel, adresse mail, numéro de compte");
        mean("", "nombre_visites, poids, taille, date_creation, genre, voie_administration, paysage, payee");
    }
}
