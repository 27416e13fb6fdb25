//! `kanon init` of files with cells that need a question: words for "missing", dates and numbers
//! that are not all of one form, lost zeros, columns that single people out together.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use serde_json::json;

use crate::command::Place;

/// Rows of a table with semicolons: a number, a date of birth, a date of a visit, a sex; `other`
/// replaces the date of birth of every 97th row.
fn visits(rows: usize, other: &str) -> String {
    let mut text = "Nr;Geburtsdatum;Aufnahmedatum;Geschlecht\n".to_owned();
    for n in 0..rows {
        let born = format!("{:02}.{:02}.{}", 1 + n * 7 % 28, 1 + n * 5 % 12, 1935 + n % 60);
        let born = if n % 97 == 11 { other } else { &born };
        text += &format!("{n};{born};{:02}.{:02}.2023;{}\n", 1 + n % 28, 1 + n % 12, ["w", "m"][n % 2]);
    }
    text
}

/// The policy for a file, and the same as one line.
#[track_caller]
fn init(place: &Place, text: &str) -> (String, String) {
    place.write("in.csv", text);
    let policy = place.run("init in.csv").exit(0).out;
    toml::from_str::<toml::Table>(&policy).unwrap_or_else(|error| panic!("{error}\n{policy}"));
    let flowing = policy.replace("\n# ", " ");
    (policy, flowing)
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

const PERIODS: &str = "hierarchy = { period = [\"month\", \"quarter\", \"year\", \"decade\"] }";

/// Words that we know become NULL, and the dates stay dates.
#[test]
fn words_for_missing_among_dates() {
    let place = Place::new();
    for word in [
        "k.A.",
        "#NV",
        "n.a.",
        "unbekannt",
        "keine Angabe",
        "--",
        "99.99.9999",
        "00.00.0000",
        "Inconnu",
        "#N/D",
    ] {
        let (policy, flowing) = init(&place, &visits(367, word));
        has(&policy, &[&format!("nulls = [\"\", {word:?}]"), "date_format = \"%d.%m.%Y\""]);
        has(&policy, &[&format!("Geburtsdatum = {{ role = \"quasi\", {PERIODS} }}")]);
        has(&flowing, &["`nulls` lists those that mean \"missing\"", "are separated by `;`"]);
    }
    // Among words it may be a value: only the errors of spreadsheets are none.
    let rows: String =
        (0..60).map(|n| format!("{},{}\n", ["yes", "unknown", "#N/A"][n % 3], n % 5)).collect();
    let (policy, _) = init(&place, &format!("smoker,ward\n{rows}"));
    has(&policy, &["nulls = [\"\", \"#N/A\"]"]);
}

/// Words that we do not know are asked for, not printed; the dates of the file are found all the same.
#[test]
fn other_cells_among_dates_are_a_question() {
    let place = Place::new();
    for other in ["Canary", "31.02.1950", "k. Ang."] {
        let (policy, flowing) = init(&place, &visits(367, other));
        has(&policy, &["Geburtsdatum = { role = \"?\" }", "date_format = \"%d.%m.%Y\""]);
        has(
            &flowing,
            &[
                "363 of 367 cells are dates (%d.%m.%Y); name what the others write for \"missing\" under [input] nulls",
            ],
        );
        has(
            &policy,
            &[
                &format!("# If it is quasi: {PERIODS}\nGeburtsdatum"),
                "Aufnahmedatum = { role = \"quasi\", hierarchy = { period",
            ],
        );
        assert!(!policy.contains(other), "{policy}");
    }
    // What the comment says works.
    let (policy, _) = init(&place, &visits(367, "Canary"));
    let answered = policy
        .replace(
            "Geburtsdatum = { role = \"?\" }",
            &format!("Geburtsdatum = {{ role = \"quasi\", {PERIODS} }}"),
        )
        .replace("role = \"?\"", "role = \"text\"")
        .replace("# rows_are_individuals", "rows_are_individuals");
    place.write("p.toml", &answered);
    place.run("release in.csv --policy p.toml --to out").exit(3).says("4 rows do not hold a date");
    place.write("p.toml", answered.replace("\n[input]\n", "\n[input]\nnulls = [\"\", \"Canary\"]\n"));
    place.run("release in.csv --policy p.toml --to out").exit(0);
    // Dates in ISO form, numbers, and codes that are mostly numbers.
    let mut text = "birth_date,age,zip,score,diagnosis\n".to_owned();
    for n in 0..200 {
        let (date, age) = if n % 50 == 3 {
            ("Canary".into(), "90+".into())
        } else {
            (format!("19{}-01-02", 20 + n % 70), (n % 80).to_string())
        };
        let (zip, code) = if n % 50 == 3 { ("K1A 0B1", "V58") } else { ("12345", "250") };
        text += &format!("{date},{age},{zip},{},{code}\n", n % 7);
    }
    let (policy, flowing) = init(&place, &text);
    has(
        &policy,
        &[
            "birth_date = { role = \"?\" }",
            "age = { role = \"?\" }",
            "zip = { role = \"quasi\", hierarchy = { prefix",
            "diagnosis = { role = \"sensitive\" }",
        ],
    );
    has(&flowing, &["196 of 200 cells are dates (%Y-%m-%d)", "196 of 200 cells are numbers"]);
    assert!(!policy.contains("Canary") && !policy.contains("90+"), "{policy}");
    // A hierarchy that covers codes with letters, too, explains them.
    let rows: String =
        (0..200).map(|n| format!("{},{}\n", if n % 50 == 3 { "V58" } else { "250" }, n % 60)).collect();
    has(&init(&place, &format!("cause,age\n{rows}")).0, &["known = \"icd9\""]);
    // Half of them is not most.
    let rows: String = (0..60).map(|n| format!("{}\n", ["31.12.2020", "Canary"][n % 2])).collect();
    has(&init(&place, &format!("seen\n{rows}")).1, &["its name does not reveal its meaning"]);
}

#[test]
fn years_of_two_digits_are_a_question() {
    let place = Place::new();
    let text = visits(367, "01.01.1950");
    let short: String = text
        .lines()
        .map(|line| {
            let mut cells: Vec<String> = line.split(';').map(str::to_owned).collect();
            if cells[1].len() == 10 {
                cells[1] = format!("{}{}", &cells[1][..6], &cells[1][8..]);
            }
            cells.join(";") + "\n"
        })
        .collect();
    let (policy, flowing) = init(&place, &short);
    has(
        &policy,
        &["Geburtsdatum = { role = \"?\" }", "Aufnahmedatum = { role = \"quasi\", hierarchy = { period"],
    );
    has(
        &flowing,
        &[
            "367 of 367 cells are dates whose year has two digits, which may be of two centuries: write the years with four digits",
        ],
    );
    let policy = "k = 2\nrows_are_individuals = true\nothers = \"drop\"\n[columns]\nGeburtsdatum = { role = \"quasi\", hierarchy = { \
                  period = [\"year\"] } }\n[input]\ndate_format = \"%d.%m.%Y\"\n";
    place.write("p.toml", policy);
    let refused = place.run("release in.csv --policy p.toml --to out").exit(3).says(
        "367 rows do not hold a date (written as \"%d.%m.%Y\"); 367 have a year of two digits, which may be of two \
         centuries: write the years with four digits",
    );
    assert!(!refused.err.contains("missing"), "{refused:?}");
}

/// `7.196` may be seven thousand in a file with semicolons; in one with commas it is a fraction.
#[test]
fn points_that_may_stand_between_thousands() {
    let place = Place::new();
    let table = |mark: char| -> String {
        let rows = (0..80)
            .map(|n| format!("{}{mark}{}.{:03}{mark}{}\n", 20 + n % 50, 1 + n % 8, n * 37 % 1000, n % 9));
        format!("age{mark}cost{mark}ward\n{}", rows.collect::<String>())
    };
    let (policy, flowing) = init(&place, &table(';'));
    has(
        &flowing,
        &[
            "There are numbers that fit decimal = \".\" as well as decimal = \",\" with thousands = \".\"",
            "until then a point is read as the mark before a fraction",
            "Its cells can be read in two ways",
        ],
    );
    has(&policy, &["cost = { role = \"?\" }"]);
    assert!(!policy.contains("floor"), "{policy}");
    let (policy, flowing) = init(&place, &table(','));
    assert!(!flowing.contains("thousands") && policy.contains("floor"), "{policy}");
}

#[test]
fn postal_codes_that_lost_zeros() {
    let place = Place::new();
    let table = |least: usize| -> String {
        let rows = (0..80).map(|n| format!("{},{}\n", least + n * 997 % 80_000, 20 + n % 50));
        format!("PLZ,Alter\n{}", rows.collect::<String>())
    };
    let (policy, flowing) = init(&place, &table(1_067));
    has(&policy, &["PLZ = { role = \"?\" }"]);
    has(&flowing, &["4 and 5 digits: leading zeros may be lost; load the column as text"]);
    assert!(!policy.contains("prefix"), "{policy}");
    has(&init(&place, &table(10_115)).0, &["PLZ = { role = \"quasi\", hierarchy = { prefix"]);
}

#[test]
fn a_column_of_nothing_is_left_out() {
    let place = Place::new();
    let text: String = visits(60, "01.01.1950").lines().map(|line| format!("{line};\n")).collect();
    let (policy, flowing) = init(&place, &text);
    has(&policy, &["\"\" = { role = \"text\" }"]);
    has(&flowing, &["neither a name nor a value: left out"]);
}

/// Columns that say little each and nearly all together are named together, once.
#[test]
fn undecided_columns_are_tried_together() {
    let place = Place::new();
    let rows: String = (0..400).map(|n| format!("{},{},{},c\n", n % 20, n / 20, n % 3)).collect();
    let (policy, flowing) = init(&place, &format!("v1,v2,v3,v4\n{rows}"));
    has(&flowing, &["The undecided columns v1 and v2 together are unique for 100 % of rows"]);
    assert!(!policy.contains(" 0 %") && !flowing.contains("with so few quasi-identifiers"), "{policy}");
    has(&flowing, &["\"best\" keeps more", "A column that the release does not need gets the role text"]);
    // With a quasi-identifier.
    let rows: String = (0..400).map(|n| format!("{},{},{}\n", n % 20, n / 20 % 4, n / 80)).collect();
    let (policy, flowing) = init(&place, &format!("age,v1,v2\n{rows}"));
    has(
        &flowing,
        &[
            "With the quasi-identifiers, the undecided columns v1 and v2 together are unique for 100 % of rows",
        ],
    );
    assert!(!policy.contains("without it"), "{policy}");
    has(&flowing, &["with so few quasi-identifiers"]);
    // Where the quasi-identifiers name everybody, no column adds to it.
    let rows: String = (0..400).map(|n| format!("{},{},{}\n", n % 20, 10_000 + n / 20, n % 7)).collect();
    let (policy, _) = init(&place, &format!("age,zip,v1\n{rows}"));
    assert!(!policy.contains("without it"), "{policy}");
}

/// The word for the person is the person's number, where the values look like numbers; in doubt it is asked.
#[test]
fn numbers_of_people_who_come_again() {
    let place = Place::new();
    for name in ["Patient", "paciente", "paziente", "klant", "assuré", "PID", "Patientin"] {
        let rows: String = (0..300).map(|n| format!("{},{},x\n", 5_000 + n / 3, 20 + n % 50)).collect();
        let (policy, _) = init(&place, &format!("{name},age,ward\n{rows}"));
        has(&policy, &["= { role = \"individual\" }"]);
        let rows: String = (0..300).map(|n| format!("{},{},x\n", n % 2, 20 + n % 50)).collect();
        assert!(
            !init(&place, &format!("{name},age,ward\n{rows}")).0.contains("= { role = \"individual\" }"),
            "{name}"
        );
    }
    let rows: String = (0..300).map(|n| format!("{},{},x\n", 5_000 + n / 3, 20 + n % 50)).collect();
    let (policy, flowing) = init(&place, &format!("id,age,ward\n{rows}"));
    has(&flowing, &["it repeats, with few rows each: if it is a person's number, its role is individual"]);
    has(&policy, &["id = { role = \"?\" }"]);
    assert!(!policy.contains("# If it is quasi: hierarchy = { range = ["), "{policy}");
}

#[test]
fn merging_is_explained_once_and_the_next_step_goes_on() {
    let place = Place::new();
    let rows: String = (0..300).map(|n| format!("t{},r{},{}\n", n % 7, n % 4, n % 60)).collect();
    let (policy, flowing) = init(&place, &format!("city,race,age\n{rows}"));
    assert_eq!(policy.matches("merge = {").count(), 2, "{policy}");
    assert_eq!(flowing.matches("No hierarchy is known").count(), 1, "{policy}");
    has(&flowing, &["fewer than 5 rows", "neighbours in their order join"]);
    has(&policy, &["#   kanon search in.csv --policy policy.toml\n#   kanon release in.csv"]);
    place.write("p.toml", policy.replace("# rows_are", "rows_are"));
    place.run("check in.csv --policy p.toml").exit(1);
    let ran = place.run("check in.csv --policy p.toml").exit(1);
    has(&ran.out, &["next      kanon search in.csv --policy p.toml shows"]);
}

/// Where people come again in another spelling, their rows are not asserted to be individuals.
#[test]
fn numbers_of_people_in_two_spellings() {
    let place = Place::new();
    let csv = |second: &str| {
        let pair = |n: usize| format!("P{n},{},x\n{second}{n},{},y\n", n % 5, n % 5);
        format!("patient,ward,dx\n{}", (0..50).map(pair).collect::<String>())
    };
    let (policy, _) = init(&place, &csv("Q"));
    assert!(policy.contains("\nrows_are_individuals = true\n"), "{policy}");
    let (policy, flowing) = init(&place, &csv("p"));
    has(&policy, &["\n# rows_are_individuals = true\n"]);
    has(&flowing, &["Is each row a different individual?", "50 "]);
}

/// A discharge may be relative to the admission: 20 numbers of days instead of hundreds of dates. An age
/// at the admission has as many as there are dates of birth; one discharge before its admission, or few
/// rows with both, say nothing.
#[test]
fn dates_that_may_be_relative_to_others() {
    let place = Place::new();
    let day = |n: usize| format!("{}-{:02}-{:02}", 2020 + n / 360, n / 30 % 12 + 1, n % 28 + 1);
    let csv = |discharged: &dyn Fn(usize) -> String| {
        let row = |n: usize| {
            let (born, admitted) = (day(n * 7 % 700), day(1_000 + n * 13 % 360));
            format!("{},{admitted},{},{}\n", born.replace("202", "195"), discharged(n), n % 4)
        };
        format!("birth_date,admission_date,discharge_date,ward\n{}", (0..400).map(row).collect::<String>())
    };
    let later = |n: usize| day(1_000 + n * 13 % 360 + 30 * (n % 5));
    let (policy, flowing) = init(&place, &csv(&later));
    let line = "relative_to = \"admission_date\", hierarchy = { range = [7, 28] }";
    has(&flowing, &[&format!("Never before `admission_date`: `{line}` releases the days between them")]);
    assert_eq!(policy.matches("relative_to").count(), 1, "{policy}");
    let json = place.run("init in.csv --to again.toml --format json").exit(0).json();
    let noted = json["columns"].as_array().unwrap().iter().filter(|column| column["notes"] != json!([]));
    assert_eq!(noted.map(|column| &column["name"]).collect::<Vec<_>>(), ["discharge_date"]);

    place.write(
        "p.toml",
        format!(
            "k = 2\nrows_are_individuals = true\n[columns]\nbirth_date = {{ role = \"identifier\" }}\n\
             admission_date = {{ role = \"identifier\" }}\nward = {{ role = \"quasi\" }}\n\
             discharge_date = {{ role = \"quasi\", {line} }}\n"
        ),
    );
    place.run("release in.csv --policy p.toml --to out").exit(0);

    let one_before = |n: usize| if n == 7 { "2019-01-01".to_owned() } else { later(n) };
    let few_known = |n: usize| if n < 199 { later(n) } else { String::new() };
    for other in [&one_before as &dyn Fn(usize) -> String, &few_known] {
        let (policy, _) = init(&place, &csv(other));
        assert!(!policy.contains("relative_to"), "{policy}");
    }
}
