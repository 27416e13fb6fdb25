//! English.

use super::Words;

pub(super) const WORDS: Words = Words {
    person: "patient id|no|nr|number, person id|no|number, personal id, \
             subject|participant|respondent|beneficiary id, member id|no|number, customer id|no|number, \
             client|student|user id, mrn, medical record, ssn, social security, national id, \
             national insurance, nhs number, tax id|number, tin, passport*, insurance no|number, \
             driver|drivers license, driving licence",
    person_alone: "patient, patients, client, customer, participant, respondent, beneficiary, member, person, pid",
    contact: "email, e mail, mail, phone*, telephone*, mobile, fax, iban, account no|number|id, credit card, \
              card no|number, ip, ip address, mac address, license plate, url",
    person_name: "first|last|full|given|family|middle|maiden|birth name, \
                  patient|customer|user|employee|student|member|client|contact name, \
                  spouse|mother|father|child name, surname, forename, login",
    birth_place: "birth country|state|place, country|state|place of birth",
    birth: "dob, birth*, born",
    postal: "zip, zip code, postal*, post code",
    sex: "sex, gender",
    race: "race, ethnic*, ancestry, caste, tribe",
    age: "age, ages",
    place: "city, town, county, state, province, country, region, district, municipality, neighborhood, lat, \
            latitude, lon, lng, longitude",
    family: "marital*, civil status, relationship, household*, children, dependents, family size",
    education: "educat*, isced, school*, degree, university",
    occupation: "occupation*, job*, profession*, work class, employ*, industry, isco, naics, veteran*, \
                 military",
    nationality: "national*, citizen*, language*, immigra*",
    religion: "religio*",
    event: "visit|encounter date, admission*, admit*, discharge*, appointment*, surgery|procedure date, \
            death*, died, deceased*, hire*, enrol*, travel|purchase|transaction date",
    notes: "note*, comment*, remark*, free text, narrative, memo",
    health: "diagnos*, disease*, icd*, dx, problem*, condition*, illness*, symptom*, treatment*, therap*, \
             procedure*, medication*, drug*, prescription*, hiv, test|lab result*, allerg*, pregnan*, \
             disab*, genotype*, mutation*",
    money: "income*, salar*, wage*, earning*, credit score, debt*",
    private: "sexual*, political*, union member*, crim*, offend*, offens*, offenc*, convict*",
    address: "address*, addr, street*",
    name: "name, names",
    record: "id, ids, uuid, guid, key, row number",
    counts: "of, in, per, count, counts, total, type, kind, status, visits, stays, days",
    links: "",
    missing: "unknown, unk, not known, not available, not recorded, not stated, not applicable, missing, undefined, \
              n/av, n.k., no data, no answer, refused",
};

#[cfg(test)]
mod tests {
    use super::super::tests::mean;

    /// Words of other languages that stand in English names, too.
    #[test]
    fn english_names_are_no_other_language() {
        mean(
            "",
            "data, data_value, cap, cap_gain, market_cap, land_area, alter_ego, alteration, via, \
             pays_tax, pay, art, type_of_art, son, pain, pain_score, fin, nie, die, rate, code, value, \
             cp, genre, tod, tot, hand, handy_index, place, ort_x, I_nom, nir, eta, eta_minutes, cid, \
             cie_lab_l, cim_level, rib, cell, mort, cargo, formation, revenue, rental, rent, portable, \
             gain, capital-gain, hours-per-week, fnlwgt, cost, dose, weight, height, bmi, pulse, ward, \
             triage, length_of_stay, sku, store, quantity, price, unit_price, discount, brand, sensor, \
             temperature, humidity, voltage, status, observation, observed, department, dept, class, \
             civil, parity, gravida, target, label",
        );
    }

    #[test]
    fn what_english_names_mean() {
        mean("a person's number", "patient_no, CustomerID, social_security_no");
        mean("a date of birth", "dob, birth_weight, year_born");
        mean("a place", "state, address_city, country_of_residence");
        mean("an age", "age, age_group, mean_age");
        mean("free text", "notes, comments, Remarks, memo");
        mean("a name", "name, product_name, file name");
        mean("an address", "address, street_no, addr2");
        mean("a record number", "id, pat_id, persona_id, fall_id");
    }
}
