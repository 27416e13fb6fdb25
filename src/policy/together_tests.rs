//! Tests of a policy in which several things are wrong: one run says all of them, and where to write what it
//! proposes.

use super::resolve_tests::resolve;

/// What later checks need is looked at first; within a stage everything that is wrong is said.
#[test]
fn one_run_says_everything_that_is_wrong() {
    let lines = |text: &str| -> Vec<String> {
        let error = resolve(text).unwrap_err();
        error.each().map(|error| error.message().split(&[';', ','][..]).next().unwrap().to_owned()).collect()
    };
    // The shape of the file.
    assert_eq!(
        lines(
            "k = 0\nmethods = 1\nobjective = \"speed\"\nsuppression_limit = 2\n[columns]\nzip = { role = \"?\", wieght = 1 }\n\
             age = { role = \"quasi\", weight = 0, min_level = -1 }\ndob = { role = \"text\", weight = 1, clip = [0, 1] }\n\
             [[require]]\nmodel = \"magic\"\n[[require]]\nmodel = \"l_diversity\"\nl = 0\n[input]\nheader = 3\n"
        ),
        [
            "methods: unknown key",
            "k: expected an integer of at least 1",
            "require[0].model: unknown model `magic`",
            "require[1].l: expected an integer of at least 1",
            "suppression_limit: expected a share from 0 to 1",
            "objective: unknown loss measure `speed`",
            "columns.zip.wieght: unknown key",
            "columns.zip.role: found `?`",
            "columns.age.weight: expected a number above 0",
            "columns.age.min_level: expected the number of a level",
            "columns.dob.clip: only a column with the role `quasi` can have this key",
            "columns.dob.weight: only a column with the role `quasi` can have this key",
            "input.header: expected true or false",
        ]
    );
    // Columns and roles.
    assert_eq!(
        lines(
            "objective = \"discernibility\"\naccept_homogeneity = [\"zip\"]\n[columns]\nage = { role = \"quasi\" }\n\
             zipp = { role = \"quasi\" }\nbirth = { role = \"text\" }\nmarital = { role = \"sensitive\" }\n\
             diagnosis = { role = \"sensitive\" }\n[[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = \"age\"\n"
        ),
        [
            "columns.zipp: the input has no column `zipp`",
            "columns.birth: the input has no column `birth`",
            "columns: 3 columns of the input without a role: notes",
            "require[0].sensitive: the role of `age` is `quasi`",
        ]
    );
    assert_eq!(
        lines(
            "k = 5\nothers = \"drop\"\n[columns]\nage = { role = \"quasi\" }\n\
             marital = { role = \"sensitive\" }\ndiagnosis = { role = \"sensitive\" }\n"
        ),
        [
            "columns.marital: no model protects this sensitive column: when all rows of a class share one value of it",
            "columns.diagnosis: no model protects this sensitive column: when all rows of a class share one value of it",
        ]
    );
    // Types, then levels.
    assert_eq!(
        lines(
            "k = 5\nothers = \"drop\"\n[columns]\nage = { role = \"quasi\" }\nnotes = { role = \"quasi\" }\nzip = { role = \"preference\" }"
        ),
        [
            "columns.notes: a list cannot have the role `quasi`",
            "columns.zip: expected integers for the role `preference`",
        ]
    );
    assert_eq!(
        lines(
            "k = 5\nothers = \"drop\"\n[columns]\nage = { role = \"quasi\", max_level = 7 }\n\
             zip = { role = \"quasi\", hierarchy = { file = \"zips.csv\" } }"
        ),
        [
            "columns.age.max_level: expected a level from 0 to 1",
            "columns.zip.hierarchy.file: hierarchy file `zips.csv` is not in the record",
        ]
    );
}

/// The line that a message proposes is right where the message says.
#[test]
fn advice_names_a_right_place() {
    let text = "k = 7\n[[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = \"marital\"\n[input]\nheader = true\n[columns]\n\
                age = { role = \"quasi\" }\nmarital = { role = \"sensitive\" }\ndiagnosis = { role = \"sensitive\" }\nzip = { role = \"text\" }\n\
                dob = { role = \"text\" }\nnotes = { role = \"text\" }\n";
    let said = resolve(text).unwrap_err().to_string();
    let line = "accept_homogeneity = [\"diagnosis\"]";
    assert!(
        said.contains(&format!("the line `{line}` above all tables, for instance below `k = 7`")),
        "{said}"
    );
    resolve(&text.replace("k = 7\n", &format!("k = 7\n{line}\n"))).unwrap();
    // Where the message said before, the key belongs to `[input]`; it says so.
    let lost = resolve(&text.replace("[columns]", &format!("{line}\n[columns]"))).unwrap_err().to_string();
    assert_eq!(
        lost,
        "input.accept_homogeneity: unknown key; it is a key of the policy itself: write it above all tables, for instance below `k = ...`"
    );
    // A second such line would not be TOML.
    let one = text.replace("k = 7\n", "accept_homogeneity = [\"marital\"]\n");
    let said = resolve(&one).unwrap_err().to_string();
    let line = "accept_homogeneity = [\"marital\", \"diagnosis\"]";
    assert!(said.contains(&format!("the line `{line}` in place of the one that is there")), "{said}");
    resolve(&one.replace("accept_homogeneity = [\"marital\"]", line)).unwrap();
    let open = "[[require]]\nmodel = \"k_anonymity\"\nk = 5\n[columns]\nage = { role = \"quasi\" }";
    let said = resolve(open).unwrap_err().to_string();
    assert!(said.ends_with("with the line `others = \"drop\"` above all tables"), "{said}");
}
