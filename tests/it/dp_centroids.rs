//! Releases of means with noise: what they hold, and forgeries of rows, of the record and of the key. `kanon
//! verify` must refuse them.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use arrow::array::{AsArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type};
use arrow::record_batch::RecordBatch;
use datafusion_kanon::internals::generalize::Centroid;
use datafusion_kanon::internals::release::publish::record::{CentroidColumn, PublicRecord, RecodingRecord};

use crate::command::Place;
use crate::mutants::Must::{self, Pass, Refuse};
use crate::mutants::verify;
use crate::releases::{Lab, OUT, PART, forge, people, read_parquet, record, seal, with};

pub(crate) const POLICY: &str = r#"
k = 5
method = { dp_centroids = { epsilon = 300.0 } }
rows_are_individuals = true
[columns]
ssn       = { role = "identifier" }
dob       = { role = "text" }
zip       = { role = "text" }
age       = { role = "quasi", clip = [25, 60], weight = 2 }
sex       = { role = "text" }
marital   = { role = "text" }
diagnosis = { role = "text" }
ward      = { role = "insensitive" }
stay      = { role = "quasi", clip = [0, 10] }
weight    = { role = "quasi", clip = [0, 100.5] }
notes     = { role = "text" }
"#;

const QUASI: [&str; 3] = ["age", "stay", "weight"];

fn released() -> Lab {
    let lab = Lab::new(&people(1));
    fs::write(lab.path("policy.toml"), POLICY).unwrap();
    lab.release("policy.toml", OUT).exit(0, "each class shows centroids: mean of age clip:25,60, off by ");
    lab
}

fn written(lab: &Lab) -> RecordBatch {
    read_parquet(&lab.out().join(PART))
}

fn means(rows: &RecordBatch, name: &str) -> Vec<f64> {
    rows.column_by_name(name).unwrap().as_primitive::<Float64Type>().values().to_vec()
}

/// The rows of each cluster, by what it shows.
fn clusters(rows: &RecordBatch) -> BTreeMap<[u64; 3], Vec<usize>> {
    let columns = QUASI.map(|name| means(rows, name));
    let mut clusters: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    let [ages, stays, weights] = &columns;
    for (row, ((age, stay), weight)) in ages.iter().zip(stays).zip(weights).enumerate() {
        clusters.entry([age, stay, weight].map(|mean| mean.to_bits())).or_default().push(row);
    }
    clusters
}

#[test]
fn a_release_holds_means_with_noise_and_nothing_else() {
    let lab = released();
    let (rows, input) = (written(&lab), read_parquet(&lab.path("people.parquet")));
    let names: Vec<&str> = rows.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, QUASI);
    assert!(rows.columns().iter().all(|column| *column.data_type() == DataType::Float64));
    assert!(rows.columns().iter().all(|column| column.null_count() == 0));
    assert_eq!(rows.num_rows(), input.num_rows());
    for (name, bounds) in QUASI.into_iter().zip([25.0..=60.0, 0.0..=10.0, 0.0..=100.5]) {
        assert!(means(&rows, name).iter().all(|mean| bounds.contains(mean)), "{name}");
    }
    let mut sizes: Vec<usize> = clusters(&rows).into_values().map(|rows| rows.len()).collect();
    sizes.sort_unstable();
    let count = input.num_rows() / 5;
    assert_eq!(sizes[..count - 1], vec![5; count - 1]);
    assert_eq!(sizes[count - 1], 5 + input.num_rows() % 5);

    let RecodingRecord::Centroids(columns) = record(&lab).recoding else { panic!("no centroids") };
    assert!(columns.iter().all(|column| column.centroid == Centroid::NoisyMean));
    let noise = columns.iter().map(|column| column.noise.as_ref().unwrap());
    let shares: Vec<&str> = noise.clone().map(|noise| noise.epsilon.as_str()).collect();
    assert_eq!(shares, ["150", "75", "75"]);
    for (noise, (range, share)) in noise.zip([(35.0, 150.0), (10.0, 75.0), (100.5, 75.0)]) {
        // For more than one range, and fewer than one in each cluster.
        let ranges = noise.scale.parse::<f64>().unwrap() / (range / 5.0 / share);
        assert!(ranges > 2.0 && ranges < count as f64, "{noise:?} of {count}");
    }
    verify(&lab, "as it is", Pass, Pass);

    // Noise is drawn anew each time, and the second release replaces the first.
    let again = ["release", "people.parquet", "--policy", "policy.toml", "--to", OUT, "--overwrite"];
    lab.run(&again).exit(0, "");
    assert!(clusters(&written(&lab)).keys().ne(clusters(&rows).keys()));
    verify(&lab, "released again", Pass, Pass);
}

/// Changes the age of the rows of one cluster, or of one row.
fn forge_age(lab: &Lab, of_one_row: bool, age: impl Fn(f64) -> f64) {
    let rows = written(lab);
    let all = clusters(&rows);
    let members = all.values().find(|members| {
        let age = means(&rows, "age")[members[0]];
        age > 26.0 && age < 59.0
    });
    let members = members.unwrap();
    let members = if of_one_row { &members[..1] } else { &members[..] };
    let ages = means(&rows, "age").into_iter().enumerate();
    let ages: Float64Array =
        ages.map(|(row, old)| Some(if members.contains(&row) { age(old) } else { old })).collect();
    forge(lab, &with(&rows, "age", Arc::new(ages)));
}

fn forged(what: &str, forgery: impl FnOnce(&Lab), alone: Must, against: Must) {
    let lab = released();
    forgery(&lab);
    verify(&lab, what, alone, against);
}

#[test]
fn rows_that_are_not_the_means_with_the_noise() {
    let other = || Refuse("do not show the means of the input's clusters with the noise of the recorded key");
    forged("the same rows", |lab| forge(lab, &written(lab)), Pass, Pass);
    forged("a mean that is 1 off", |lab| forge_age(lab, false, |age| age + 1.0), Pass, other());
    forged("a mean that is a trifle off", |lab| forge_age(lab, false, |age| age + 1e-9), Pass, other());
    let beyond = || Refuse("a row shows a number beyond the bounds of its column");
    for (what, age) in [("beyond", 61.0), ("infinite", f64::INFINITY), ("no number", f64::NAN)] {
        forged(what, |lab| forge_age(lab, false, |_| age), beyond(), other());
    }
    forged(
        "one row",
        |lab| forge_age(lab, true, |age| age + 1.0),
        Refuse("the rows are not those of clusters of k rows"),
        other(),
    );
    let cut = |lab: &Lab| forge(lab, &written(lab).slice(0, written(lab).num_rows() - 5));
    forged("a cluster less", cut, Refuse("verification refused: "), Refuse("verification refused: "));
}

/// A forger who could choose the noise could explain any rows.
#[test]
fn the_key_is_needed_and_must_be_right() {
    let lab = released();
    let path = lab.path("out.private.json");
    let text = fs::read_to_string(&path).unwrap();
    let key = text.split("\"noise_key\": \"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(key.len(), 64);
    fs::write(&path, text.replace(key, &"0".repeat(64))).unwrap();
    verify(&lab, "another key", Pass, Refuse("with the noise of the recorded key"));
    fs::write(&path, text.replace(key, "short")).unwrap();
    verify(&lab, "no key", Pass, Refuse("the private record is damaged"));
    fs::remove_file(&path).unwrap();
    let ran = lab.run(&["verify", OUT, "--input", "people.parquet", "--policy", "policy.toml"]);
    ran.exit(2, "its private record is needed, whose key tells the noise");
    fs::write(&path, &text).unwrap();
    let ran = lab.run(&["release", "people.parquet", "--recoding", "out.private.json", "--to", "again"]);
    ran.exit(2, "shows centroids of the rows of its own input");
}

/// Less noise, or none, is no secret that a record may keep.
#[test]
fn records_that_contradict_their_noise() {
    type Edit = fn(&mut Vec<CentroidColumn>);
    let edits: [(&str, Edit); 9] = [
        ("the type of the values", |columns| columns[0].value_type = "Int64".into()),
        ("an epsilon with more digits", |columns| {
            columns[0].noise.as_mut().unwrap().epsilon = "150.0000001".into();
        }),
        ("a smaller epsilon", |columns| columns[0].noise.as_mut().unwrap().epsilon = "50".into()),
        ("an epsilon of none", |columns| columns[0].noise.as_mut().unwrap().epsilon = "0".into()),
        ("another scale", |columns| columns[1].noise.as_mut().unwrap().scale = "1".into()),
        ("no noise of one column", |columns| columns[1].noise = None),
        ("means", |columns| {
            for column in columns {
                (column.centroid, column.noise) = (Centroid::Mean, None);
            }
        }),
        ("other bounds", |columns| columns[2].clip = Some([Some("0".into()), Some("50".into())])),
        ("another type", |columns| columns[0].value_type = "Utf8".into()),
    ];
    for (what, edit) in edits {
        let lab = released();
        let mut edited = record(&lab);
        match &mut edited.recoding {
            RecodingRecord::Centroids(columns) => edit(columns),
            _ => panic!("the release has no centroids"),
        }
        seal(&lab, edited);
        verify(&lab, what, Refuse("verification refused: "), Refuse("verification refused: "));
    }
    let lab = released();
    let mut edited = record(&lab);
    edited.statement.as_mut().unwrap().method = "mdav".into();
    seal(&lab, edited);
    let why = Refuse("verification refused: ");
    verify(&lab, "another method", why, why);
}

/// Another policy asks for other clusters or other noise.
#[test]
fn a_policy_of_another_mechanism() {
    let lab = released();
    for (of, other) in [
        ("epsilon = 300.0", "epsilon = 200.0"),
        ("epsilon = 300.0", "epsilon = 300.0, order = \"distance\""),
        ("k = 5", "k = 6"),
        ("clip = [25, 60]", "clip = [25, 61]"),
        ("weight = 2", "weight = 1"),
        ("{ dp_centroids = { epsilon = 300.0 } }", "\"mdav\""),
    ] {
        let policy = POLICY.replace(of, other);
        assert_ne!(policy, POLICY);
        fs::write(lab.path("other.toml"), policy).unwrap();
        let ran = lab.run(&["verify", OUT, "--input", "people.parquet", "--policy", "other.toml"]);
        ran.exit(1, "verification refused: ");
    }
}

#[test]
fn policies_that_noise_cannot_serve() {
    let lab = Lab::new(&people(1));
    for (of, other, why) in [
        (
            "diagnosis = { role = \"text\" }",
            "diagnosis = { role = \"sensitive\" }",
            "columns.diagnosis: `dp_centroids` releases no value without noise",
        ),
        (
            "dob       = { role = \"text\" }",
            "dob = { role = \"quasi\" }",
            "columns.dob: `dp_centroids` adds noise to numbers, found Date32; leave the column out; of a date",
        ),
        (
            "sex       = { role = \"text\" }",
            "sex = { role = \"quasi\" }",
            "columns.sex: `dp_centroids` adds noise to numbers, found text",
        ),
        ("clip = [25, 60]", "hierarchy = { range = [5] }", "columns.age: `dp_centroids` needs both bounds"),
        (
            "clip = [0, 10]",
            "clip = [0, 10], min_level = 1",
            "columns.stay.min_level: `dp_centroids` shows a centroid",
        ),
        ("epsilon = 300.0", "epsilon = 0", "method.dp_centroids.epsilon: expected a number above 0, found 0"),
        (
            "epsilon = 300.0",
            "order = \"hilbert\"",
            "method.dp_centroids: the parameter `epsilon` is missing; write method = { dp_centroids = { epsilon = 1.0 } }",
        ),
        (
            "epsilon = 300.0",
            "epsilon = 1e-7",
            "method.dp_centroids.epsilon: expected at most 6 digits after the point",
        ),
        (
            "{ dp_centroids = { epsilon = 300.0 } }",
            "\"dp_centroids\"",
            "method: `dp_centroids` needs its parameter; write method = { dp_centroids = { epsilon = 1.0 } }",
        ),
        (
            "k = 5",
            "k = 5\n[[require]]\nmodel = \"average_risk\"\nr = 0.1\n",
            "method: `dp_centroids` takes only `k`, over all quasi-identifiers",
        ),
        ("k = 5", "k = 9999", "the input has only"),
    ] {
        let policy = POLICY.replace(of, other);
        assert_ne!(policy, POLICY);
        // Tables come after the other keys.
        let policy = match policy.split_once("\n[[require]]\nmodel = \"average_risk\"\nr = 0.1\n") {
            Some((before, after)) => format!("{before}{after}")
                .replace("[columns]", "[[require]]\nmodel = \"average_risk\"\nr = 0.1\n[columns]"),
            None => policy,
        };
        fs::write(lab.path("policy.toml"), policy).unwrap();
        let ran = lab.run(&["release", "people.parquet", "--policy", "policy.toml", "--to", OUT]);
        assert!(matches!(ran.code, Some(1 | 2)) && ran.said.contains(why), "no `{why}` in {ran:?}");
        assert!(!lab.out().exists() && !lab.path("out.private.json").exists());
    }
}

/// The record lists columns in the order of the policy; that of the input is no reason to refuse them.
#[test]
fn the_recoding_of_noise_is_refused_for_what_it_is() {
    let place = Place::new();
    let column = |name: &str| format!("{name} = {{ role = \"quasi\", clip = [0, 100] }}\n");
    let policy =
        "k = 2\nrows_are_individuals = true\nmethod = { dp_centroids = { epsilon = 50 } }\n[columns]\n";
    place.write("policy.toml", policy.to_owned() + &column("stay") + &column("age"));
    place.write("in.csv", "age,stay\n1,2\n2,4\n90,96\n80,98\n");
    place.run("release in.csv --policy policy.toml --to out").exit(0);
    let ran = place.run("release in.csv --recoding out.private.json --to again").exit(2);
    ran.says("centroids of the rows of its own input");
}

/// The noise covers one row of each individual.
#[test]
fn an_individual_with_two_rows_is_refused() {
    let place = Place::new();
    place.write(
        "policy.toml",
        "k = 2\nmethod = { dp_centroids = { epsilon = 50 } }\n[columns]\nwho = { role = \"individual\" }\n\
         age = { role = \"quasi\", clip = [0, 100] }\n",
    );
    let csv = |first: &str, second: &str| format!("who,age\n{first},1\n{second},2\nc,30\nd,40\n");
    place.write("in.csv", csv("a", "b"));
    place.run("release in.csv --policy policy.toml --to out").exit(0);
    assert!(
        place
            .run("verify out --input in.csv")
            .exit(0)
            .out
            .contains("the means of all 4 rows, with the noise")
    );
    // Each individual has one row, so the rows alone tell the risks.
    place.run("verify out").exit(0);
    let honest = PublicRecord::read(&place.path("out")).unwrap();
    let mut forged = honest.clone();
    forged.risk.insert("prosecutor_risk_mean".to_owned(), 0.4);
    place.write("out/_kanon.json", forged.sealed().unwrap().to_json().unwrap());
    place.run("verify out").exit(1).says("risks or homogeneous classes differ from the record");
    place.write("out/_kanon.json", honest.to_json().unwrap());
    for other in [csv("a", "a"), csv("", "b")] {
        place.write("other.csv", other);
        let ran = place.run("verify out --input other.csv").exit(1);
        ran.says("an individual has several rows, or a row has none");
        let ran = place.run("release other.csv --policy policy.toml --to again").exit(2);
        ran.says("takes one row for each individual");
    }
}

/// Numbers of every type, with values beyond the bounds, NULLs and what is no number.
#[test]
fn numbers_of_every_type() {
    let lab = Lab::new(&people(1));
    let copy = "COPY (SELECT age, CAST(stay AS TINYINT UNSIGNED) AS small, CAST(weight AS FLOAT) AS float, \
                CAST(age AS DECIMAL(9, 3)) / 7 AS exact, arrow_cast(age, 'Decimal256(50, 2)') AS wide, \
                CAST(age AS DOUBLE) * 1e300 AS far FROM 'people.parquet') TO 'numbers.parquet'";
    lab.run(&["sql", "-c", copy]).exit(0, "");
    let policy = "k = 10\nmethod = { dp_centroids = { epsilon = 100, order = \"distance\" } }\nrows_are_individuals = true\n\
                  [columns]\nage = { role = \"quasi\", clip = [-5, 200] }\nsmall = { role = \"quasi\", clip = [0, 4] }\n\
                  float = { role = \"quasi\", clip = [0.5, 60] }\nexact = { role = \"quasi\", clip = [2.5, 7] }\n\
                  wide = { role = \"quasi\", clip = [30, 40] }\nfar = { role = \"quasi\", clip = [-0.000001, 0.25] }\n";
    fs::write(lab.path("policy.toml"), policy).unwrap();
    lab.run(&["release", "numbers.parquet", "--policy", "policy.toml", "--to", OUT])
        .exit(0, "k_anonymity 10 required");
    lab.run(&["verify", OUT]).exit(0, "");
    lab.run(&["verify", OUT, "--input", "numbers.parquet"]).exit(0, "against the input");
    let rows = written(&lab);
    assert!(means(&rows, "far").iter().all(|mean| (-0.000001..=0.25).contains(mean)));
    assert_eq!(rows.num_columns(), 6);
}

/// With very little noise the means are those of the rows: computed here from the rows in the order of one column.
#[test]
fn without_much_noise_means_are_those_of_the_ordered_rows() {
    let place = Place::new();
    let mut csv = String::from("x\n");
    for row in 0..103u32 {
        csv += &format!("{}\n", row * 37 % 103);
    }
    place.write("in.csv", csv);
    place.write(
        "policy.toml",
        "k = 10\nmethod = { dp_centroids = { epsilon = 1000000 } }\nrows_are_individuals = true\n[columns]\n\
         x = { role = \"quasi\", clip = [0, 200] }\n",
    );
    place.run("release in.csv --policy policy.toml --to out").exit(0);
    let rows = read_parquet(&place.path("out/part-00000.parquet"));
    let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
    means(&rows, "x").iter().for_each(|mean| *sizes.entry(format!("{mean:.1}")).or_default() += 1);
    let mut expected: BTreeMap<String, usize> =
        (0..9).map(|at| (format!("{:.1}", f64::from(at * 10) + 4.5), 10)).collect();
    expected.insert("96.0".into(), 13);
    assert_eq!(sizes, expected);
}

#[test]
fn a_query_returns_rows_that_were_verified() {
    let lab = Lab::new(&people(1));
    fs::write(lab.path("policy.toml"), POLICY).unwrap();
    let call = "anonymize('people.parquet', 'policy.toml')";
    let rows = read_parquet(&lab.path("people.parquet")).num_rows();
    let answer = |query: &str| lab.run(&["sql", "--output", "csv", "-c", query]);
    let query = format!(
        "SELECT count(*) AS n, count(DISTINCT age) > 5 AS varied, min(age) >= 25 AND max(age) <= 60 AS within FROM {call}"
    );
    answer(&query).exit(0, &format!("{rows},true,true"));
    // A query that reads a call twice sees the same means; another call is another release.
    let distinct = |of: &str| format!("(SELECT DISTINCT age, stay, weight FROM {of})");
    let same = |a: &str, b: &str| {
        format!(
            "SELECT count(*) > 20 AS same FROM {} AS a JOIN {} AS b USING (age, stay, weight)",
            distinct(a),
            distinct(b)
        )
    };
    answer(&format!("WITH r AS (SELECT * FROM {call}) {}", same("r", "r"))).exit(0, "true");
    answer(&same(call, call)).exit(0, "false");
    let view = format!("CREATE VIEW r AS SELECT * FROM {call}");
    let first = "CREATE TABLE a AS SELECT * FROM r";
    let ran = lab.run(&["sql", "--output", "csv", "-c", &view, "-c", first, "-c", &same("a", "r")]);
    ran.exit(0, "true");
    // Rows that changed would be a second release.
    let table = "CREATE TABLE t AS SELECT * FROM 'people.parquet'";
    let view = "CREATE VIEW v AS SELECT * FROM anonymize(t, 'policy.toml')";
    let (read, more) = ("SELECT count(*) AS n FROM v", "INSERT INTO t SELECT * FROM 'people.parquet'");
    let ran = lab.run(&["sql", "-c", table, "-c", view, "-c", read, "-c", read, "-c", more, "-c", read]);
    let is_refused = ran.said.contains("the table has changed since the rows of this call");
    assert!(ran.code != Some(0) && is_refused, "{ran:?}");
}

/// Which columns JSON lines have, and in which order, one person's line can decide.
#[test]
fn json_lines_are_refused() {
    let place = Place::new();
    place.write("in.jsonl", "{\"y\":1}\n{\"x\":1,\"y\":2}\n");
    place.write(
        "policy.toml",
        "others = \"drop\"\nk = 2\nmethod = { dp_centroids = { epsilon = 1 } }\nrows_are_individuals = true\n[columns]\n\
         x = { role = \"quasi\", clip = [0, 9] }\ny = { role = \"quasi\", clip = [0, 9] }\n",
    );
    let ran = place.run("release in.jsonl --policy policy.toml --to out").exit(2);
    ran.says("method: `dp_centroids` does not take JSON lines");
    // Where nothing is recorded, the policy alone decides the columns and their order.
    place.write("other.jsonl", "{\"x\":1,\"more\":true}\n{\"x\":1,\"y\":2}\n");
    for file in ["in.jsonl", "other.jsonl"] {
        for of in [format!("(SELECT x, y FROM '{file}')"), format!("'{file}'")] {
            let query = format!("SELECT * FROM anonymize({of}, 'policy.toml')");
            let ran = place.command("sql").args(["--output", "csv", "-c", &query]).output().unwrap();
            let out = String::from_utf8(ran.stdout).unwrap();
            assert!(out.starts_with("x,y\n"), "{file}: {out} {}", String::from_utf8_lossy(&ran.stderr));
        }
    }
}
