//! The examples that papers and teaching texts print, with the results that they print.
//!
//! The tables are data/papers/*.csv; what must come out stands in data/README.md. Each goes through a policy,
//! the profile and the lattice, as a release does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use arrow::util::display::array_value_to_string;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion_kanon::internals::class::{Budget, ClassSizes, Unlimited};
use datafusion_kanon::internals::input::{Input, PolicySource};
use datafusion_kanon::internals::method::Recoding;
use datafusion_kanon::internals::model::k_anonymity::KAnonymity;
use datafusion_kanon::internals::model::l_diversity::LDiversity;
use datafusion_kanon::internals::model::{Quantity, Requirement};
use datafusion_kanon::internals::policy::{Folder, PolicySpec};
use datafusion_kanon::internals::release::{self};
use datafusion_kanon::internals::verify::groups::GroupTables;

use crate::shared::{self, Node, Opened};

fn papers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/papers")
}

/// One of the tables, opened under a policy of these lines and these quasi-identifiers.
fn open(file: &str, lines: &str, quasi: &[&str]) -> Opened {
    shared::open(&papers().join(file), &policy(lines, quasi), &Folder(papers()))
}

fn policy(lines: &str, quasi: &[&str]) -> String {
    let mut text = format!("{lines}\nothers = \"drop\"\nrows_are_individuals = true\n[columns]\n");
    for column in quasi {
        let (name, rest) = column.split_once(' ').unwrap_or((column, ""));
        let comma = if rest.is_empty() { "" } else { ", " };
        writeln!(text, "{name} = {{ role = \"quasi\"{comma}{rest} }}").unwrap();
    }
    text
}

/// Classes as a map, from their labels separated by spaces.
fn classes<const N: usize>(of: [(&str, u64); N]) -> BTreeMap<Vec<String>, u64> {
    let classes: BTreeMap<_, _> =
        of.iter().map(|(labels, rows)| (labels.split(' ').map(str::to_owned).collect(), *rows)).collect();
    assert_eq!(classes.len(), N);
    classes
}

/// The anonymous nodes below which no node is anonymous, found by comparing each with each.
fn minimal(nodes: &BTreeMap<Vec<usize>, Node>, limit: u64) -> BTreeSet<Vec<usize>> {
    let anonymous: Vec<&Vec<usize>> =
        nodes.iter().filter(|(_, node)| node.suppressed <= limit).map(|(levels, _)| levels).collect();
    let below = |low: &[usize], high: &[usize]| low != high && low.iter().zip(high).all(|(l, h)| l <= h);
    anonymous
        .iter()
        .filter(|levels| !anonymous.iter().any(|low| below(low, levels)))
        .copied()
        .cloned()
        .collect()
}

/// What the searches for levels find under the policy, by height: its least height, at a node that is minimal.
fn the_searches_agree(opened: &Opened, lines: &str, quasi: &[&str], minimal: &BTreeSet<Vec<usize>>) {
    let least = minimal.iter().map(|levels| levels.iter().sum::<usize>()).min().unwrap();
    for name in ["exhaustive", "optimal", "incognito", "samarati"] {
        let lines = format!("{lines}\nobjective = \"height\"\nmethod = \"{name}\"");
        let said = PolicySpec::parse(&policy(&lines, quasi)).unwrap();
        let policy = said.resolve(&opened.schema, &Folder(papers())).unwrap();
        let (method, outcome) = opened.search(&policy, 1);
        assert_eq!((method, outcome.proven, outcome.best.len()), (name, true, 1));
        let levels = outcome.best[0].recoding.levels().unwrap();
        assert!(minimal.contains(levels), "{name}: {:?} of {minimal:?}", outcome.best[0]);
        assert_eq!(levels.iter().sum::<usize>(), least, "{name}");
    }
}

/// Near & Abuah, "Programming Differential Privacy", chapter on k-anonymity: five people and their scores.
#[test]
fn near_abuah_scores() {
    let floor = "hierarchy = { floor = [10, 100] }";
    let columns = ["age", "preTestScore", "postTestScore"].map(|name| format!("{name} {floor}"));
    let opened = open("scores.csv", "k = 2", &columns.each_ref().map(String::as_str));
    let nodes = opened.nodes(1);
    // As is, tens, hundreds, suppressed; three times.
    assert_eq!(nodes.len(), 64);
    let as_is = [("42 4 25", 1), ("52 24 94", 1), ("36 31 57", 1), ("24 2 62", 1), ("73 3 70", 1)];
    assert_eq!(nodes[&vec![0, 0, 0]].kept, classes(as_is));
    assert_eq!(nodes[&vec![0, 0, 0]].k(), 1);
    let tens = [("40 0 20", 1), ("50 20 90", 1), ("30 30 50", 1), ("20 0 60", 1), ("70 0 70", 1)];
    assert_eq!(nodes[&vec![1, 1, 1]].kept, classes(tens));
    assert_eq!(nodes[&vec![1, 1, 1]].k(), 1);
    assert_eq!(nodes[&vec![2, 2, 2]].kept, classes([("0 0 0", 5)]));
    assert_eq!(nodes[&vec![2, 2, 2]].k(), 5);
}

/// The same chapter on UCI Adult: age and education-num rounded down to tens. Its first 100 rows
/// have k = 1. It says that all 32,561 rows fail k = 2 as well; they have k = 21.
#[test]
fn near_abuah_adult_rounded_to_tens() {
    let Some(shared) = shared::folder("near_abuah_adult_rounded_to_tens") else { return };
    let adult = shared.join("data/adult_full/adult.csv");
    let rows = ["age hierarchy = { floor = [10] }", "education-num hierarchy = { floor = [10] }"];
    let policy = policy("k = 2", &rows);

    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first_100.csv");
    let text = std::fs::read_to_string(&adult).unwrap();
    std::fs::write(&first, text.split_inclusive('\n').take(101).collect::<String>()).unwrap();
    let opened = shared::open(&first, &policy, &Folder(papers()));
    assert_eq!(opened.classes.total_rows(), 100);
    assert_eq!(opened.nodes(1)[&vec![1, 1]].k(), 1);

    let opened = shared::open(&adult, &policy, &Folder(papers()));
    assert_eq!(opened.classes.total_rows(), 32_561);
    assert_eq!(opened.nodes(1)[&vec![1, 1]].k(), 21);
}

/// The same chapter: the first 500 rows with age clipped to [10, 60] and education-num to 3 and more before
/// rounding have k = 7.
#[test]
fn near_abuah_adult_clipped() {
    let Some(shared) = shared::folder("near_abuah_adult_clipped") else { return };
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first_500.csv");
    let text = std::fs::read_to_string(shared.join("data/adult_full/adult.csv")).unwrap();
    std::fs::write(&first, text.split_inclusive('\n').take(501).collect::<String>()).unwrap();
    let columns = [
        "age clip = [10, 60], hierarchy = { floor = [10] }",
        "education-num clip = { from = 3 }, hierarchy = { floor = [10] }",
    ];
    let opened = shared::open(&first, &policy("k = 2", &columns), &Folder(papers()));
    assert_eq!(opened.classes.total_rows(), 500);
    let nodes = opened.nodes(1);
    assert_eq!(nodes[&vec![1, 1]].k(), 7);
    // The same partition with intervals and open ends, and the leaves are those after the clip.
    let columns = columns.map(|column| column.replace("floor", "range"));
    let opened =
        shared::open(&first, &policy("k = 2", &columns.each_ref().map(String::as_str)), &Folder(papers()));
    let age = &opened.classes.columns()[0];
    assert_eq!(age.leaves(), age.level(0).labels().len() as u64);
    assert!(age.values().len() as u64 > age.leaves());
    assert_eq!(age.level(1).leaves().iter().sum::<u64>(), age.leaves());
    assert_eq!(opened.nodes(1)[&vec![1, 1]].sizes().iter().sum::<u64>(), 500);
}

const PATIENTS: [&str; 3] =
    ["dob hierarchy = { date = [\"month\", \"year\"] }", "sex", "zip hierarchy = { prefix = [3, 2] }"];

/// De Capitani di Vimercati et al., "k-Anonymity: From Theory to Applications", Trans. Data Privacy
/// 16 (2023), Fig. 1 to 5: date of birth, sex and ZIP of ten patients.
#[test]
fn de_capitani_di_vimercati_2023_patients() {
    let opened = open("patients.csv", "k = 3\nsuppression_limit = 0.1", &PATIENTS);
    assert_eq!(opened.limit(), 1);
    let (as_is, of_three) = (opened.nodes(1), opened.nodes(3));
    assert_eq!(as_is[&vec![0, 0, 0]].sizes(), [1; 10]);

    // Dates of birth to the month and ZIP to two digits; then to the year and to three digits. Both
    // times Luke Lane, born in December 1945, is alone.
    let month = [("1940-08-01 F 98*", 3), ("1950-02-01 M 99*", 3), ("1950-07-01 M 99*", 3)];
    let year = [("1940-01-01 F 985*", 3), ("1950-01-01 M 993*", 3), ("1950-01-01 M 994*", 3)];
    let luke_lane = ["1945-12-01 M 98*", "1945-01-01 M 983*"];
    for ((node, expected), alone) in [(vec![1, 0, 2], month), (vec![2, 0, 1], year)].iter().zip(luke_lane) {
        let expected = classes(*expected);
        assert_eq!(of_three[node], Node { suppressed: 1, kept: expected.clone() }, "{node:?}");
        assert_eq!(of_three[node].k(), 3);
        let mut all = expected;
        all.extend(classes([(alone, 1)]));
        assert_eq!(as_is[node], Node { suppressed: 0, kept: all }, "{node:?}");
    }
}

/// The same patients, released: 9 rows under each of the two generalizations, Luke Lane gone, read back from
/// the Parquet files with a reader of another house.
#[test]
fn de_capitani_di_vimercati_2023_patients_released() {
    // Labels of the class, and its diseases.
    type Classes = [(&'static str, [&'static str; 3]); 3];
    let month: Classes = [
        ("1940-08-01 F 98*", ["Cardiomyopathy", "Heart attack", "Pericarditis"]),
        ("1950-02-01 M 99*", ["COVID-19", "COVID-19", "COVID-19"]),
        ("1950-07-01 M 99*", ["Cough", "Dermatitis", "Short breath"]),
    ];
    let year: Classes = [
        ("1940-01-01 F 985*", ["Cardiomyopathy", "Heart attack", "Pericarditis"]),
        ("1950-01-01 M 993*", ["COVID-19", "COVID-19", "Short breath"]),
        ("1950-01-01 M 994*", ["COVID-19", "Cough", "Dermatitis"]),
    ];
    for (levels, labels, expected) in
        [([1, 2], ["date:month", "prefix:2"], month), ([2, 1], ["date:year", "prefix:3"], year)]
    {
        let text = format!(
            r#"
            k = 3
            suppression_limit = 0.1
            rows_are_individuals = true
            accept_homogeneity = ["disease"]
            [columns]
            ssn        = {{ role = "identifier" }}
            last_name  = {{ role = "identifier" }}
            first_name = {{ role = "identifier" }}
            dob = {{ role = "quasi", hierarchy = {{ date = ["month", "year"] }}, min_level = {dob}, max_level = {dob} }}
            sex = {{ role = "quasi", max_level = 0 }}
            zip = {{ role = "quasi", hierarchy = {{ prefix = [3, 2] }}, min_level = {zip}, max_level = {zip} }}
            disease    = {{ role = "sensitive", allow_unique = true }}
            "#,
            dob = levels[0],
            zip = levels[1],
        );
        let said = PolicySpec::parse(&text).unwrap();
        let input = Input::find(papers().join("patients.csv").to_str().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let out = release::Place::beside(&folder.path().join("out")).unwrap();
        let source = PolicySource { spec: &said, files: &Folder(papers()) };
        let released =
            shared::with_run(async |run| release::release(run, &input, &source, &out, false).await);
        let released = released.unwrap();
        assert_eq!((released.public.rows(), released.public.classes), (9, 3));
        let private = &released.private;
        assert_eq!((private.input_rows, private.suppressed_rows, private.suppression_limit), (10, 1, 1));
        assert_eq!(released.before, std::iter::repeat_n(1, 10).collect::<ClassSizes>());
        assert_eq!(released.after, std::iter::repeat_n(3, 3).collect::<ClassSizes>());
        let [k] = released.public.models.as_slice() else { panic!("one model") };
        assert_eq!((k.model.as_str(), k.required, k.reached), ("k_anonymity", 3.0, Some(3.0)));

        // What lies there: data files as the record says, and the record.
        let mut names: Vec<String> = std::fs::read_dir(out.out().local().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        let mut recorded: Vec<String> = released.public.files().map(|file| file.name.clone()).collect();
        recorded.push("_kanon.json".to_owned());
        recorded.sort_unstable();
        assert_eq!(names, recorded);

        let mut rows: Vec<Vec<String>> = Vec::new();
        for file in released.public.files() {
            let file = std::fs::File::open(out.out().local().unwrap().join(&file.name)).unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            let columns: Vec<(&str, Option<&str>)> = reader
                .schema()
                .fields()
                .iter()
                .map(|f| (f.name().as_str(), f.metadata().get("kanon.generalized").map(String::as_str)))
                .collect();
            let generalized = [
                ("dob", Some(labels[0])),
                ("sex", Some("as_is")),
                ("zip", Some(labels[1])),
                ("disease", None),
            ];
            assert_eq!(columns, generalized);
            assert_eq!(reader.schema().field(0).data_type(), &DataType::Date32);
            for batch in reader.build().unwrap() {
                let batch = batch.unwrap();
                rows.extend((0..batch.num_rows()).map(|row| {
                    batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap()).collect()
                }));
            }
        }
        // Class after class in the order of their labels; within a class the order says nothing.
        let order: Vec<String> = rows.iter().map(|row| row[..3].join(" ")).collect();
        let classes: Vec<&str> = expected.iter().flat_map(|(class, _)| [*class; 3]).collect();
        assert_eq!(order, classes);
        let expected = expected
            .iter()
            .flat_map(|(class, diseases)| diseases.iter().map(move |disease| format!("{class} {disease}")));
        let mut rows: Vec<String> = rows.iter().map(|row| row.join(" ")).collect();
        rows.sort_unstable();
        assert_eq!(rows, expected.collect::<Vec<_>>());
    }
}

/// The same, Fig. 9: microaggregation of the ages of nine patients, k = 3.
#[test]
fn de_capitani_di_vimercati_2023_microaggregation() {
    for method in ["mdav", "ona", "mona"] {
        let lines = format!("k = 3\nmethod = \"{method}\"");
        let opened = open("patients_age.csv", &lines, &["age hierarchy = { range = [10] }"]);
        let (_, outcome) = opened.search(&opened.policy, 1);
        let Recoding::Classes(released) = &outcome.best[0].recoding else { panic!("levels") };
        let mut shown: BTreeMap<&str, u64> = BTreeMap::new();
        for (base, class) in released.class_of_base().iter().enumerate() {
            let age = released.centroid(class.unwrap() as usize, 0).unwrap().unwrap();
            *shown.entry(age).or_default() += opened.classes.base().rows_of(base);
        }
        assert_eq!(shown, BTreeMap::from([("35", 3), ("50", 3), ("65", 3)]), "{method}");
    }
}

const VOTERS: [&str; 3] =
    ["dob hierarchy = { date = [\"year\"] }", "sex", "zip hierarchy = { prefix = [3] }"];

/// A teaching notebook on linking attacks: date of birth, sex and ZIP name every row of the health
/// data in the voter list.
/// The same, Fig. 8: the diseases of three groups, printed with their counts. Each group has two different ones, which
/// is all that the figure asks; what Anatomy promises, that none is that of more than 1 in 2, one of them breaks.
#[test]
fn de_capitani_di_vimercati_2023_anatomy() {
    let groups = [
        &["Heart attack", "Cardiomyopathy", "Pericarditis"][..],
        &["COVID-19", "Dermatitis", "Cough"],
        &["Short breath", "COVID-19", "COVID-19"],
    ];
    let (mut of_rows, mut of_lines, mut diseases, mut counts) = (vec![], vec![], vec![], vec![]);
    for (number, group) in (1i64..).zip(groups) {
        of_rows.extend(group.iter().map(|_| number));
        for disease in group.iter().collect::<BTreeSet<_>>() {
            of_lines.push(number);
            diseases.push(*disease);
            counts.push(i64::try_from(group.iter().filter(|other| *other == disease).count()).unwrap());
        }
    }
    let numbers = |numbers: Vec<i64>| Arc::new(Int64Array::from(numbers)) as ArrayRef;
    let rows: ArrayRef = Arc::new(Int64Array::from_iter_values(0..9));
    let quasi = RecordBatch::try_from_iter([("row", rows), ("group_id", numbers(of_rows))]).unwrap();
    let diseases: ArrayRef = Arc::new(StringArray::from(diseases));
    let values = [("group_id", numbers(of_lines)), ("disease", diseases), ("count", numbers(counts))];
    let values = RecordBatch::try_from_iter(values).unwrap();
    let requirements = [
        Requirement::of_sizes(KAnonymity::new(3).unwrap()),
        Requirement::new(Box::new(LDiversity::new(2).unwrap()), Some("disease".into())),
    ];
    let judged = |l: u64| {
        shared::with_run(async |run| {
            let session =
                run.resources.session(datafusion_kanon::internals::engine::counting_rules()).unwrap();
            let tables = GroupTables {
                quasi: session.read_batch(quasi.clone()).unwrap(),
                values: session.read_batch(values.clone()).unwrap(),
                names: &["row".to_owned()],
                sensitive: "disease",
                own: ["group_id", "count"],
                individual: None,
                requirements: &requirements,
                l,
            };
            let budget: Arc<dyn Budget> = Arc::new(Unlimited);
            tables.verify(None, &budget, &run.stop).await.map_err(|error| error.to_string())
        })
    };
    let found = judged(1).unwrap();
    assert_eq!((found.rows, found.groups), (9, 3));
    assert_eq!(found.reached, [Some(Quantity::Count(3)), Some(Quantity::Count(2))]);
    let why = "verification refused: a sensitive value is more frequent in a group than its models allow";
    assert_eq!(judged(2).unwrap_err(), why);
}

#[test]
fn notebook_linking_names_all_ten() {
    let nodes = ["health.csv", "voter.csv"].map(|file| open(file, "k = 2", &VOTERS).nodes(1));
    let [health, voters] = nodes.each_ref().map(|nodes| &nodes[&vec![0, 0, 0]]);
    assert_eq!(health.sizes(), [1; 10]);
    assert_eq!(health, voters);
}

/// The same notebook: voters by year of birth, sex and three digits of the ZIP are classes of 4, 3,
/// 2 and 1, so k = 1; with that one row suppressed k = 2.
#[test]
fn notebook_voters() {
    let opened = open("voter.csv", "k = 2\nsuppression_limit = 0.1", &VOTERS);
    assert_eq!(opened.limit(), 1);
    let node = vec![1, 0, 1];
    let four = [("1996-01-01 Female 213*", 4), ("1995-01-01 Male 213*", 3), ("1995-01-01 Male 214*", 2)];
    let of_two = &opened.nodes(2)[&node];
    assert_eq!(*of_two, Node { suppressed: 1, kept: classes(four) });
    assert_eq!((of_two.k(), of_two.suppressed <= opened.limit()), (2, true));
    let as_is = &opened.nodes(1)[&node];
    let mut all = classes(four);
    all.extend(classes([("1996-01-01 Female 214*", 1)]));
    assert_eq!(*as_is, Node { suppressed: 0, kept: all });
    assert_eq!((as_is.k(), as_is.sizes()), (1, vec![1, 2, 3, 4]));
}

/// Race (as is, person) and ZIP (94138, 9413*, 941**) in both papers of Samarati.
const RACE_ZIP: [&str; 2] =
    ["race hierarchy = { file = \"race.csv\" }", "zip hierarchy = { prefix = [4, 3] }, max_level = 2"];

/// Samarati & Sweeney 1998: k at each of the six nodes, and the minimal nodes for k = 2 and 3.
#[test]
fn samarati_sweeney_1998_nodes() {
    let expected = [([0, 0], 1), ([0, 1], 2), ([0, 2], 4), ([1, 0], 3), ([1, 1], 6), ([1, 2], 12)];
    let opened = open("samarati_race_zip.csv", "k = 2", &RACE_ZIP);
    let k_of: Vec<(Vec<usize>, u64)> =
        opened.nodes(1).into_iter().map(|(levels, node)| (levels, node.k())).collect();
    assert_eq!(k_of, expected.map(|(levels, k)| (levels.to_vec(), k)));

    let top = &opened.nodes(1)[&vec![1, 2]];
    assert_eq!(top.kept, classes([("person 941*", 12)]));

    for (k, expected) in [(2, [[0, 1], [1, 0]]), (3, [[0, 2], [1, 0]])] {
        let lines = format!("k = {k}");
        let opened = open("samarati_race_zip.csv", &lines, &RACE_ZIP);
        let minimal = minimal(&opened.nodes(k), opened.limit());
        assert_eq!(minimal, BTreeSet::from(expected.map(|levels| levels.to_vec())), "k = {k}");
        the_searches_agree(&opened, &lines, &RACE_ZIP, &minimal);
    }
}

/// Samarati 2001: minimal nodes for k = 2 when MaxSup of the eight rows may be suppressed.
#[test]
fn samarati_2001_minimal_nodes_with_suppression() {
    let expected: [&[[usize; 2]]; 9] = [
        &[[1, 1]],
        &[[0, 2], [1, 0]],
        &[[0, 1], [1, 0]],
        &[[0, 1], [1, 0]],
        &[[0, 0]],
        &[[0, 0]],
        &[[0, 0]],
        &[[0, 0]],
        &[[0, 0]],
    ];
    let limits = ["0", "0.125", "0.25", "0.375", "0.5", "0.625", "0.75", "0.875", "1"];
    for ((max_sup, expected), limit) in expected.iter().enumerate().zip(limits) {
        let lines = format!("k = 2\nsuppression_limit = {limit}");
        let opened = open("samarati_suppression.csv", &lines, &RACE_ZIP);
        assert_eq!(opened.classes.total_rows(), 8);
        assert_eq!(opened.limit(), max_sup as u64);
        let minimal = minimal(&opened.nodes(2), opened.limit());
        let expected: BTreeSet<Vec<usize>> = expected.iter().map(|levels| levels.to_vec()).collect();
        assert_eq!(minimal, expected, "MaxSup {max_sup}");
        the_searches_agree(&opened, &lines, &RACE_ZIP, &minimal);
    }
}
