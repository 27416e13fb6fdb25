//! Dutch. A compound is listed as its parts, which stand apart or joined: `geboorte datum`.

use super::Words;

pub(super) const WORDS: Words = Words {
    person: "patient|patienten nummer|nr|id, persoons|persoon nummer|nr|id, client|klant|lid nummer|nr, \
             klant|lid id, =bsn, bsn nummer|nr|patient, burgerservicenummer, sofinummer, \
             verzekerden|verzekerde|verzekerings|polis nummer|nr, \
             lidmaatschaps|personeels|werknemer|medewerker nummer|nr, \
             deelnemer|respondent|student|leerling nummer|nr, \
             deelnemer|werknemer|medewerker|gebruikers|gebruiker id, proefpersoon*, rijksregister*, insz, \
             zis nummer|nr, paspoort*, rijbewijs*",
    person_alone: "patient, client, klant, deelnemer, verzekerde, proefpersoon",
    contact: "telefoon*, tel, mobiel*, gsm nummer|nr, mail|email adres, ip adres, rekening nummer|nr, \
              bankrekening*, creditcard*, kenteken*",
    person_name: "voornaam, voornamen, achternaam, achternamen, familienaam, geboorte naam, meisjesnaam, \
                  roepnaam, voorletters, initialen, tussenvoegsel*, voorvoegsel*, volledige naam, \
                  patient|client|klant|gebruikers|medewerker naam",
    birth_place: "geboorte plaats|land|gemeente|stad",
    birth: "geboorte, geboorte dat*|jaar|maand|dag, geb dat*|jaar, geboren*",
    postal: "postcode gebied|cijfers, postkode",
    sex: "geslacht, sekse",
    race: "etni*, afkomst, =herkomst, migratieachtergrond, huidskleur",
    age: "leeftijd*",
    place: "woon plaats*|land|gemeente, plaats, plaatsnaam, gemeente*, stad, provincie*, wijk, buurt, \
            gewest, streek, regio, =land, land naam|herkomst, herkomst land, landcode, breedtegraad, \
            lengtegraad",
    family: "burgerlijke|burg staat, burgerlijke stand, kinderen, aantal kinderen, huishoud*, gezin, \
             gezins*, gezinnen, gehuwd, huwelijk*",
    education: "opleiding*, onderwijs*, hoogste diploma, diploma niveau, universiteit, studierichting*",
    occupation: "beroep*, =functie, functie titel|naam, werkgever*, arbeids status|situatie|markt*, \
                 bedrijfstak, werkloos*, dienstverband",
    nationality: "staatsburger*, taal, moedertaal, voertaal, verblijfs status|vergunning",
    religion: "religie*, geloof, geloofs*, levensbeschouwing, kerkgenootschap",
    event: "opname|ontslag|bezoek|consult|behandel|operatie|overlijdens|sterf dat*, \
            datum opname|ontslag|bezoek|consult|behandeling|operatie|overlijden, =opname, =ontslag, \
            afspraak*, overleden*, =overlijden, aankoop|bestel|transactie|reis dat*, indiensttreding*",
    notes: "opmerking*, toelichting*, aantekening*, notitie*, vrije tekst",
    health: "ziekte, ziektes, ziekten, ziektebeeld*, aandoening*, hoofd klacht*, behandeling*, medicijn*, \
             medicatie*, geneesmiddel*, recept, recepten, zwanger*, doods|overlijdens oorzaak, bloedgroep, \
             voorgeschiedenis, hoofd|neven|opname|ontslag diagnos*, verrichting*, comorbiditeit*",
    money: "inkomen, inkomens*, bruto|netto|jaar inkomen, =loon, bruto|netto|uur|maand|jaar loon, schuld, \
            schulden, uitkering*",
    private: "seksue*, politieke*, partijvoorkeur, stemgedrag, vakbond*, strafblad, veroordeel*",
    address: "adres, adressen, adres regel|gegevens, woon adres, straat*, huis nummer|nr",
    name: "naam, namen",
    record: "opname|bezoek|consult|dossier|zaak|factuur|order|bestel|volg|record|regel nummer|nr, =sleutel",
    counts: "aantal, soort",
    links: "de, het, der, van, bij",
    missing: "#waarde!, #verw!, #naam?, #getal!, #n/b, n.n.b., n.v.t., nvt, n.b., onbekend, niet bekend, niet ingevuld, \
              niet beschikbaar, niet van toepassing, geen opgave, geen gegevens, ontbreekt, ontbrekend, leeg",
};

#[cfg(test)]
mod tests {
    use super::super::tests::mean;

    #[test]
    fn what_dutch_names_mean() {
        mean(
            "a person's number",
            "patientnummer, Patiëntnr, patient_id, BSN, burgerservicenummer, clientnummer, klant_id",
        );
        mean("a person's number", "rijksregisternummer, INSZ, polisnummer, paspoortnummer, personeelsnr");
        mean("a record number", "opnamenummer, dossiernummer, factuurnr, volgnummer, zaak_id");
        mean("a person's name", "voornaam, achternaam, Familienaam, tussenvoegsel, voorletters, meisjesnaam");
        mean("a name", "naam, Naam arts");
        mean("a place of birth", "geboorteplaats, geboorteland");
        mean("a date of birth", "geboortedatum, GeboorteDatum, geboortejaar, geb_datum, datum_geboorte");
        mean("a postal code", "postcode, PostCode, postcodegebied");
        mean("sex or gender", "geslacht, sekse");
        mean("race or origin", "etniciteit, afkomst, migratieachtergrond");
        mean("an age", "leeftijd, leeftijdsgroep, Leeftijd bij opname");
        mean("a place", "woonplaats, plaats, gemeente, gemeentecode, provincie, land, wijk, regio");
        mean("family and marriage", "burgerlijke_staat, aantal_kinderen, huishoudgrootte, gezinssituatie");
        mean("education", "opleiding, opleidingsniveau, hoogste diploma");
        mean("an occupation", "beroep, functie, werkgever, arbeidsstatus");
        mean("nationality or language", "nationaliteit, staatsburgerschap, moedertaal");
        mean("a religion, which can be sensitive as well", "religie, geloof");
        let event = "the date of an event that others may have witnessed";
        mean(
            event,
            "opnamedatum, ontslagdatum, datum_opname, Datum van ontslag, overlijdensdatum, overleden",
        );
        mean("free text", "opmerking, Opmerkingen, toelichting, commentaar");
        mean(
            "health data",
            "diagnose, hoofddiagnose, ontslagdiagnose, ziekte, medicatie, doodsoorzaak, behandeling",
        );
        mean("financial data", "inkomen, brutoloon, salaris, uitkering");
        mean("private life", "seksuele_geaardheid, politieke_voorkeur, vakbond");
        mean("an address", "adres, woonadres, straat, straatnaam, huisnummer");
        mean("contact or payment data", "telefoonnummer, mobiel, e-mailadres, rekeningnummer, kenteken");
        mean("", "datum, gewicht, lengte, aantal, landing, functionaris, vermogen, rente, soort_id");
    }
}
