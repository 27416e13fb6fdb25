//! Italian.

use super::Words;

pub(super) const WORDS: Words = Words {
    person: "id|num|numero|n|no|codice|cod|identificativo paziente|assistito|assicurato, \
             id|num|numero|codice|cod persona|soggetto|cliente|utente, \
             id|num|numero|codice|cod dipendente|studente|socio|partecipante|iscritto|contribuente, \
             paziente|cliente|utente id, codice|cod fiscale, cod fisc, cod paz, \
             cf paziente|assistito|cliente, tessera sanitaria, num|numero tessera|polizza|assicurazione, \
             carta identita, partita iva, matricola, passaporto*, patente guida, numero patente",
    person_alone: "paziente, assistito, assicurato, cliente, utente, soggetto, partecipante, iscritto",
    contact: "posta elettronica, telefono*, tel, cellulare, num|numero conto|carta|cellulare, \
              conto corrente, carta credito, indirizzo mail|ip, targa",
    person_name: "cognome*, nome cognome|completo|battesimo, \
                  nome paziente|assistito|cliente|utente|dipendente, nome madre|padre|coniuge|medico, \
                  nominativo*",
    birth_place: "luogo|comune|paese|provincia|prov|stato|nazione|citta|regione nascita",
    birth: "nascita*, data|anno nascita|nasc",
    postal: "=CAP, cap residenza|domicilio|paziente|comune, codice avviamento",
    sex: "sesso, =genere, genere paziente",
    race: "razza, etni*, gruppo etnico",
    age: "=età, =Età, =ETÀ, eta anni|mesi|paziente|diagnosi|ricovero|ingresso|intervento|decesso|compiuta, \
          fascia|fasce|classe|gruppo eta",
    place: "citta, comune, comuni, provincia, province, regione, regioni, paese, paesi, nazione, nazioni, \
            quartiere, localita, stato|prov residenza, stato estero, =residenza, luogo|comune residenza, \
            latitudine, longitudine",
    family: "stato civile, figlio, figli, num|numero figli, nucleo familiare, coniuge*, \
             componenti nucleo|famiglia",
    education: "=istruzione, livello|grado istruzione, titolo|titoli studio, scolarita, scuola, laurea, \
                universita",
    occupation: "professione*, lavoro, mestiere, impiego, occupazione*, condizione professionale|lavorativa, \
                 attivita lavorativa, settore attivita, datore lavoro, disoccupa*",
    nationality: "nazionalita*, cittadinanza*, lingua, lingua madre",
    religion: "credo religioso",
    event: "data ricovero|dimission*|ingresso|uscita|ammissione|accesso, \
            data visita|appuntamento|prestazione|prelievo, \
            data intervento|decesso|morte|ordine|acquisto|assunzione|iscrizione, =ricovero, =dimissione, \
            =decesso, decedut*",
    notes: "osservazion*, annotazion*, testo libero",
    health: "malattia, malattie, patologi*, sintom*, terapi*, trattament*, farmaco, farmaci, ricetta, \
             ricette, anamnesi, gravidanza, invalidita, esenzione*, causa morte|decesso, \
             motivo ricovero|visita, gruppo sanguigno, medicinale, medicinali",
    money: "reddito, redditi, stipendio*, stipendi, retribuzion*, isee",
    private: "sessual*, orientamento|partito politico, sindacato*, sindacale*, condann*, reato, reati, \
              precedenti penali",
    address: "indirizzo*, via residenza|domicilio|numero, nome via, numero civico, =civico, domicilio",
    name: "nome, nomi",
    record: "num|numero|n|no|codice|cod ricovero|episodio|accesso|prestazione|visita|cartella, \
             num|numero|n|no|codice|cod pratica|fattura|ordine|riga, cartella clinica, nosologico, \
             numero progressivo, =progressivo, identificativo, =chiave",
    counts: "quantita",
    links: "di, del, della, dell, dello, dei, degli, delle, da, al, alla, all, il, lo",
    missing: "#valore!, #nome?, #rif!, n.d., n. d., nd, n.p., sconosciuto, sconosciuta, non noto, non nota, ignoto, ignota, \
              non disponibile, non pervenuto, non indicato, non rilevato, non applicabile, mancante, dato mancante, vuoto",
};

#[cfg(test)]
mod tests {
    use super::super::tests::mean;

    #[test]
    fn what_italian_names_mean() {
        mean(
            "a person's number",
            "id_paziente, codice_fiscale, Codice Fiscale, CodFisc, tessera_sanitaria, matricola",
        );
        mean("a person's number", "N. paziente, numero tessera sanitaria, codice_cliente, Passaporto");
        mean("a record number", "numero_ricovero, Cartella clinica, nosologico, num_fattura, id_visita");
        mean("a person's name", "cognome, Nome e cognome, nome_paziente, nominativo");
        mean("a name", "nome, NOME");
        mean("a place of birth", "luogo_nascita, Comune di nascita, stato_nascita");
        mean("a date of birth", "nascita, data_nascita, Data di nascita, DataNascita, anno_nascita");
        mean("a postal code", "CAP, cap_residenza, codice_postale, codice avviamento postale");
        mean("sex or gender", "sesso, genere");
        mean("race or origin", "etnia, razza, gruppo etnico");
        mean("an age", "età, Età, eta_anni, eta_al_ricovero, fascia_eta, Fascia d'età, classe di età");
        mean("a place", "città, comune, provincia, regione, paese, nazione, comune_residenza, Residenza");
        mean("family and marriage", "stato_civile, figli, Numero di figli, nucleo_familiare");
        mean("education", "titolo_di_studio, istruzione, livello_istruzione");
        mean("an occupation", "professione, occupazione, lavoro, condizione_professionale");
        mean("nationality or language", "nazionalità, cittadinanza, lingua");
        mean("a religion, which can be sensitive as well", "religione");
        let event = "the date of an event that others may have witnessed";
        mean(event, "data_ricovero, Data di ricovero, data dimissione, data_visita, data_decesso, deceduto");
        mean("free text", "note, commenti, osservazioni, testo_libero");
        mean(
            "health data",
            "diagnosi, diagnosi_dimissione, malattia, patologia, terapia, farmaco, causa_morte",
        );
        mean("financial data", "reddito, stipendio, salario, ISEE");
        mean("private life", "orientamento_sessuale, partito_politico, sindacato");
        mean("an address", "indirizzo, indirizzo_residenza, domicilio, numero_civico");
        mean(
            "contact or payment data",
            "telefono, cellulare, posta_elettronica, conto_corrente, indirizzo_email",
        );
        mean(
            "",
            "data, data_creazione, stato, via_somministrazione, peso, altezza, eta, importo, quantita_id",
        );
    }
}
