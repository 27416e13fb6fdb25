//! German. A compound is listed as its parts, which stand apart or joined: `geburts datum`.

use super::Words;

pub(super) const WORDS: Words = Words {
    person: "patienten nummer|nr|id|kennung|pseudonym, patient nummer, pat nr|nummer, \
             versicherten|versicherungs nummer|nr|id, kranken versicherten|versicherungs nummer|nr, \
             sozialversicherungs|rentenversicherungs nummer|nr, vers nr, kv|sv|ahv nr|nummer, kvnr, \
             steuer id|nummer|nr, steueridentifikationsnummer, personen|person nummer|nr|kennung, \
             personen id, personal|mitarbeiter|mitglieds|mitglieder nummer|nr, mitarbeiter|mitglieds id, \
             kunden|klienten nummer|nr|id, kd nr, \
             teilnehmer|probanden|studenten|schuler|schueler nummer|nr|id, proband id|nr|nummer, \
             versuchsperson*, matrikel nummer|nr, ausweis nummer|nr, personalausweis*, reisepass*, \
             fuhrerschein*, fuehrerschein*",
    person_alone: "patient, patientin, versicherter, versicherte, kunde, klient, proband, probandin, mitglied, pat",
    contact: "telefon*, tel, handy nummer|nr, =handy, mobil nummer|nr|telefon, mobilfunk*, ruf nummer, \
              fax nummer|nr, email|mail adresse*, ip adresse, konto|kto nummer|nr, bank verbindung, \
              kreditkarte*, karten nummer|nr, kfz kennzeichen, autokennzeichen, nummernschild",
    person_name: "vorname*, nachname*, familienname*, geburtsname*, zuname*, rufname*, madchenname*, \
                  maedchenname*, patienten|kunden|benutzer|mitarbeiter name, ansprechpartner*",
    birth_place: "geburts ort|land|stadt|staat, geb ort|land",
    birth: "geburts dat*|tag|jahr|monat, =geburt, datum|tag|jahr geburt, geb dat*|tag|jahr|am, =geb, \
            geboren*, jahrgang",
    postal: "plz, postleitzahl*, wohn plz",
    sex: "geschlecht, geschl, anrede",
    race: "ethnie, ethnisch*, ethnizitat, ethnizitaet, =herkunft, ethnische herkunft, abstammung, hautfarbe, \
           migrationshintergrund",
    age: "=alter, alter jahr|jahre|jahren|monate|monaten, alter in jahren|monaten|tagen, \
          alter aufnahme|diagnose|erstdiagnose|einschluss|entlassung|tod, patienten|pat|lebens alter, \
          altersgr*, alters klasse*|kategorie*|stufe*",
    place: "=ort, wohn ort*|land|sitz|gemeinde, orts name|teil, =land, land iso, herkunfts|aufenthalts land, \
            lander code, laender code, stadt, stadtteil, ortschaft, gemeinde*, kreis, landkreis*, \
            bundesland*, bezirk*, kanton, provinz*, =staat, breitengrad, langengrad, laengengrad",
    family: "familien|fam|zivil|personen|ehe stand, verheiratet, kinder, kinder zahl|anzahl, anzahl kinder, \
             haushalt, haushalte, haushalts gro*|typ|form|mitglied*|vorstand, familien grosse|groesse|status",
    education: "bildung*, ausbildung*, schul abschluss*|bildung*|form|art|typ, schule, =abschluss, \
                hochschul*, universitat, universitaet, studium, studien gang|fach",
    occupation: "beruf*, tatigkeit*, taetigkeit*, arbeitgeber*, branche, beschaftigung*, beschaeftigung*, \
                 erwerbst*, erwerbsstatus, wirtschaftszweig*, arbeitslos*",
    nationality: "staatsangeh*, staatsburg*, staatsbuerg*, muttersprache, sprache*, aufenthaltsstatus, \
                  einwander*",
    religion: "konfession*, bekenntnis, glaube, glaubens*",
    event: "aufnahme|entlassungs|entlass|besuchs|todes|sterbe dat*, \
            behandlungs|untersuchungs|operations|op|eingriffs dat*, \
            datum aufnahme|entlassung|besuch|behandlung|untersuchung|operation|tod, aufn|entl dat*, \
            =aufnahme, =entlassung, aufnahme|entlassungs|todes|sterbe tag|zeitpunkt, termin, verstorben*, \
            gestorben*, eintritts|austritts|einstellungs|kauf|bestell|reise|buchungs|transaktions dat*",
    notes: "bemerkung*, anmerkung*, kommentar*, notiz, notizen, freitext*, hinweis*, epikrise*, arztbrief*",
    health: "krankheit*, erkrankung*, grund|vor|begleit erkrankung*, \
             haupt|neben|aufnahme|entlass|entlassungs|einweisungs diagnos*, befund*, anamnese*, behandlung, \
             behandlungen, behandlungs art|form|grund|methode*, medika*, arznei*, wirkstoff*, rezept, \
             verordnung*, schwanger*, behinder*, schwerbehinder*, todes ursache*, blutgruppe, \
             pflege grad|stufe, prozedur*, ops code|kode, drogen*, komorbid*, laborwert*",
    money: "einkommen*, brutto|netto|monats|jahres|haushalts einkommen, haushalts netto|brutto einkommen, \
            gehalt, gehalts gruppe|klasse|stufe, brutto|netto|monats|jahres gehalt, lohn, lohn gruppe|stufe, \
            brutto|netto|stunden lohn, schulden, bonitat*, bonitaet*, schufa*",
    private: "sexuell*, politisch*, partei zugehorigkeit|zugehoerigkeit|mitglied*, gewerkschaft*, vorstraf*, \
              straftat*, verurteil*",
    address: "adresse*, wohn adresse*|anschrift*, anschrift*, strasse, strassen name|nr|nummer, str nr, \
              haus nummer|nr, postfach",
    name: "",
    record: "fall nummer|nr|kennung|id, aufnahme|besuchs|aufenthalts|behandlungs|op nummer|nr, \
             auftrags|rechnungs|beleg|vorgangs|bestell nummer|nr, datensatz|satz|proben nummer|nr, \
             laufende nummer, lauf|lfd nummer|nr, aktenzeichen, =schlussel, =schluessel",
    counts: "anzahl, typ",
    links: "der, des, vom, von, zum, zur, im, bei",
    missing: "#nv, #wert!, #bezug!, #zahl!, ka, k. a., k.a, k/a, o.a., o. a., n.b., n. b., n.v., n. v., s.o., k.w., \
              keine angabe, keine angaben, ohne angabe, nicht angegeben, unbekannt, unbek., nicht bekannt, nicht erhoben, \
              nicht vorhanden, nicht verfügbar, nicht ermittelt, fehlt, fehlend, entfällt, leer",
};

#[cfg(test)]
mod tests {
    use super::super::tests::mean;

    #[test]
    fn what_german_names_mean() {
        mean(
            "a person's number",
            "PatientenNr, Patienten-ID, patientennummer, Versichertennr, Versicherten-Nr.",
        );
        mean(
            "a person's number",
            "KVNR, Krankenversichertennummer, Kundennummer, steuer_id, Personalausweisnr",
        );
        mean(
            "a record number",
            "Fallnummer, FallNr, fall_id, Aufnahmenummer, Rechnungsnr, lfd. Nr., Aktenzeichen",
        );
        mean("a person's name", "Vorname, NACHNAME, Familienname, Geburtsname, Mädchenname, patientenname");
        mean("a name", "Name, Name des Arztes");
        mean("a place of birth", "Geburtsort, geburtsland, Geb.-Ort");
        mean(
            "a date of birth",
            "Geburtsdatum, geb_datum, GebDat, GEBDAT, Geburtsjahr, geb_am, Tag der Geburt, Jahrgang",
        );
        mean("a postal code", "PLZ, Postleitzahl, plz_wohnort");
        mean("sex or gender", "Geschlecht, geschlecht_kurz");
        mean("race or origin", "Ethnie, Herkunft, Migrationshintergrund");
        mean("an age", "Alter, alter_jahre, Alter bei Aufnahme, Altersgruppe, Alter in Jahren");
        mean("a place", "Ort, Wohnort, Stadt, Land, Bundesland, Landkreis, Gemeindeschlüssel, Kanton");
        mean("family and marriage", "Familienstand, Zivilstand, Anzahl Kinder, Haushaltsgröße");
        mean("education", "Schulabschluss, höchster Bildungsabschluss, Ausbildung");
        mean("an occupation", "Beruf, Tätigkeit, taetigkeit, Arbeitgeber, Erwerbsstatus");
        mean(
            "nationality or language",
            "Staatsangehörigkeit, staatsangehoerigkeit, Nationalität, Muttersprache",
        );
        mean("a religion, which can be sensitive as well", "Religion, Konfession");
        let event = "the date of an event that others may have witnessed";
        mean(
            event,
            "Aufnahmedatum, Entlassungsdatum, Datum der Entlassung, OP-Datum, Sterbedatum, Todesdatum",
        );
        mean("free text", "Bemerkung, Bemerkungen, Anmerkungen, Kommentar, Freitext");
        mean(
            "health data",
            "Diagnose, Hauptdiagnose, Entlassungsdiagnose, Krankheit, Medikament, Todesursache, Therapie",
        );
        mean("financial data", "Einkommen, Bruttogehalt, Gehalt, Lohngruppe");
        mean("private life", "sexuelle_orientierung, Gewerkschaft, Vorstrafen");
        mean("an address", "Adresse, Anschrift, Straße, strasse_nr, Hausnummer");
        mean("contact or payment data", "Telefon, Tel., E-Mail-Adresse, Handynummer, IBAN, Kontonr");
        // Landing, alternation, a birth weight, counts, the bank's branch code.
        mean(
            "",
            "Landung, Alternative, Geburtsgewicht, Typ der Fallnummer, Fallzahl, Bankleitzahl, Schulter",
        );
    }
}
