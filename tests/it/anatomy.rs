//! Releases in groups (Anatomy): what the two tables hold, and forgeries of them. `kanon verify` must refuse
//! these.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion_kanon::internals::release::publish::record::{
    ColumnRecord, FOLDERS, FileRecord, PublicRecord, RecodingRecord,
};
use datafusion_kanon::internals::release::publish::write;
use siphasher::sip::SipHasher13;

use crate::command::Place;
use crate::mutants::Must::{self, Pass, Refuse};
use crate::mutants::verify;
use crate::releases::{Lab, OUT, PART, as_kanon_writes, people, read_parquet, record, seal, write_parquet};

pub(crate) const POLICY: &str = r#"
method = "anatomy"
rows_are_individuals = true
[[require]]
model = "l_diversity"
l = 3
[columns]
ssn       = { role = "identifier" }
dob       = { role = "quasi", hierarchy = { date = ["month", "year"] } }
zip       = { role = "quasi", hierarchy = { prefix = [3] } }
age       = { role = "quasi", hierarchy = { range = [10] } }
sex       = { role = "quasi" }
marital   = { role = "quasi" }
diagnosis = { role = "sensitive" }
ward      = { role = "insensitive" }
stay      = { role = "insensitive" }
weight    = { role = "quasi" }
notes     = { role = "text" }
"#;

const QUASI: [&str; 6] = ["dob", "zip", "age", "sex", "marital", "weight"];
const FOOTER: [(&str, &str); 1] = [("kanon.models", "l_diversity(3, diagnosis)")];

fn released() -> Lab {
    let lab = Lab::new(&people(1));
    fs::write(lab.path("policy.toml"), POLICY).unwrap();
    lab.release("policy.toml", OUT).exit(0, "diagnosis by group, no value in more than 1 of 3 rows of one");
    lab
}

fn path(lab: &Lab, table: usize) -> PathBuf {
    lab.out().join(FOLDERS[table]).join(PART)
}

/// Both tables.
fn tables(lab: &Lab) -> [RecordBatch; 2] {
    [0, 1].map(|table| read_parquet(&path(lab, table)))
}

fn numbers(rows: &RecordBatch, name: &str) -> Vec<i64> {
    rows.column_by_name(name).unwrap().as_primitive::<Int64Type>().values().to_vec()
}

/// The bytes of each row in these columns; equal for equal rows.
fn keys(rows: &RecordBatch, names: &[&str]) -> Vec<Vec<u8>> {
    let columns: Vec<ArrayRef> = names
        .iter()
        .map(|name| {
            datafusion_kanon::internals::engine::functions::canonical(rows.column_by_name(name).unwrap())
        })
        .collect();
    let fields = columns.iter().map(|one| arrow::row::SortField::new(one.data_type().clone())).collect();
    let keys = arrow::row::RowConverter::new(fields).unwrap().convert_columns(&columns).unwrap();
    keys.iter().map(|key| key.data().to_vec()).collect()
}

fn counted(keys: impl IntoIterator<Item = (Vec<u8>, i64)>) -> BTreeMap<Vec<u8>, i64> {
    let mut counts = BTreeMap::new();
    keys.into_iter().for_each(|(key, count)| *counts.entry(key).or_default() += count);
    counts
}

/// Joining the tables gives back every row's group, as many rows of each value as the input has, and no
/// value in more than a third of a group.
#[test]
fn the_tables_hold_the_rows_of_the_input() {
    let lab = released();
    verify(&lab, "as it was released", Pass, Pass);
    let input = read_parquet(&lab.path("people.parquet"));
    let [quasi, values] = tables(&lab);
    let names = |rows: &RecordBatch| -> Vec<String> {
        rows.schema().fields().iter().map(|field| field.name().clone()).collect()
    };
    assert_eq!(names(&quasi), [&QUASI[..], &["group_id"]].concat());
    assert_eq!(names(&values), ["group_id", "diagnosis", "count"]);
    let once = |keys: Vec<Vec<u8>>| counted(keys.into_iter().map(|key| (key, 1)));
    assert_eq!(once(keys(&quasi, &QUASI)), once(keys(&input, &QUASI)));
    let counts = numbers(&values, "count");
    let of_values = counted(keys(&values, &["diagnosis"]).into_iter().zip(counts.iter().copied()));
    assert_eq!(of_values, once(keys(&input, &["diagnosis"])));

    let (mut sizes, mut most, mut rows) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (group, count) in numbers(&values, "group_id").into_iter().zip(counts) {
        *sizes.entry(group).or_insert(0) += count;
        let most = most.entry(group).or_insert(0);
        *most = count.max(*most);
    }
    numbers(&quasi, "group_id").into_iter().for_each(|group| *rows.entry(group).or_insert(0) += 1);
    assert_eq!(rows, sizes);
    assert!(sizes.keys().copied().eq(1..=i64::try_from(sizes.len()).unwrap()));
    assert!(sizes.iter().all(|(group, size)| most[group] * 3 <= *size), "{sizes:?} {most:?}");
    let public = record(&lab);
    assert_eq!(public.classes, sizes.len() as u64);
    let left_out = &public.statement.unwrap().left_out;
    assert_eq!(left_out["insensitive"].columns, 2);
}

/// The rows as kanon orders them: by group, then by a hash of the other columns.
fn ordered(rows: &RecordBatch) -> RecordBatch {
    let schema = rows.schema();
    let others: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .filter(|name| *name != "group_id")
        .collect();
    let hash =
        |key: Vec<u8>| SipHasher13::new_with_keys(0x6b61_6e6f_6e2d_6f72, 0x6465_722d_6f66_2d72).hash(&key);
    let hashes: Vec<u64> = keys(rows, &others).into_iter().map(hash).collect();
    let groups = numbers(rows, "group_id");
    let mut order: Vec<u32> = (0..u32::try_from(rows.num_rows()).unwrap()).collect();
    order.sort_by_key(|row| (groups[*row as usize], hashes[*row as usize]));
    picked(rows, &order)
}

fn picked(rows: &RecordBatch, order: &[u32]) -> RecordBatch {
    let order = arrow::array::UInt32Array::from(order.to_vec());
    let columns = rows.columns().iter().map(|column| take(column, &order, None).unwrap()).collect();
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

/// The settings of the writer of a table: only that of the sensitive values names the models.
fn properties(table: usize) -> WriterProperties {
    as_kanon_writes(if table == 0 { &[] } else { &FOOTER }, write::CREATED_BY)
}

/// Replaces a table, ordered, and makes the record say so.
fn forge(lab: &Lab, table: usize, rows: &RecordBatch) {
    write_parquet(&path(lab, table), &ordered(rows), properties(table));
    let mut public = record(lab);
    let folder = lab.out().join(FOLDERS[table]);
    let rows = rows.num_rows() as u64;
    public.tables[table].files = vec![FileRecord::of(&folder, PART, rows).unwrap()];
    public.tables[table].rows = rows;
    seal(lab, public);
}

/// A table with other numbers in a column.
fn with_numbers(rows: &RecordBatch, name: &str, numbers: Vec<i64>) -> RecordBatch {
    let at = rows.schema().index_of(name).unwrap();
    let mut columns = rows.columns().to_vec();
    columns[at] = Arc::new(Int64Array::from(numbers));
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

#[test]
fn forged_tables_are_refused() {
    let lab = released();
    let before = lab.files();
    let [quasi, values] = tables(&lab);
    let check = |what: &str, table: usize, rows: &RecordBatch, alone: Must, against: Must| {
        lab.restore(&before);
        forge(&lab, table, rows);
        verify(&lab, what, alone, against);
    };
    check("the same tables", 0, &quasi, Pass, Pass);
    check("the same tables", 1, &values, Pass, Pass);

    let groups = numbers(&quasi, "group_id");
    let other = groups.iter().position(|group| *group != groups[0]).unwrap();
    let mut exchanged = groups.clone();
    exchanged.swap(0, other);
    let why = Refuse("not those that the input has for its sensitive values");
    check("two rows exchange their groups", 0, &with_numbers(&quasi, "group_id", exchanged), Pass, why);
    let mut moved = groups.clone();
    moved[0] = groups[other];
    let why = Refuse("a group has other numbers of rows in both tables");
    check("a row goes to another group", 0, &with_numbers(&quasi, "group_id", moved), why, why);
    let mut nowhere = groups.clone();
    nowhere[0] = i64::MAX;
    let why = Refuse("verification refused: a");
    check("a row is in no group", 0, &with_numbers(&quasi, "group_id", nowhere), why, why);
    let ages = numbers(&quasi, "age").into_iter().enumerate().map(|(row, age)| age + i64::from(row == 0));
    let older = with_numbers(&quasi, "age", ages.collect());
    check("somebody is a year older", 0, &older, Pass, Refuse("not those that the input has"));
    let all: Vec<u32> = (0..u32::try_from(quasi.num_rows()).unwrap()).collect();
    let why = Refuse("a group has other numbers of rows in both tables");
    check("a row is missing", 0, &picked(&quasi, &all[1..]), why, why);
    let twice = concat_batches(&quasi.schema(), [&quasi, &quasi.slice(0, 1)]).unwrap();
    check("a row is there twice", 0, &twice, why, why);

    // The values of two groups are exchanged: as many rows of each value, and of each group.
    let of_group = |number: i64| -> Vec<u32> {
        let groups = numbers(&values, "group_id");
        (0u32..).zip(groups).filter(|(_, group)| *group == number).map(|(row, _)| row).collect()
    };
    let sizes = |rows: &[u32]| rows.iter().map(|row| numbers(&values, "count")[*row as usize]).sum::<i64>();
    let texts = keys(&values, &["diagnosis"]);
    let shows = |rows: &[u32]| -> Vec<Vec<u8>> {
        let mut all: Vec<_> = rows.iter().map(|row| texts[*row as usize].clone()).collect();
        all.sort();
        all
    };
    let last = *numbers(&values, "group_id").last().unwrap();
    let all: Vec<Vec<u32>> = (1..=last).map(of_group).collect();
    let pairs = all.iter().flat_map(|first| all.iter().map(move |second| (first, second)));
    let is_alike = |(first, second): &(&Vec<u32>, &Vec<u32>)| {
        sizes(first) == sizes(second) && shows(first) != shows(second)
    };
    let (first, second) = pairs.into_iter().find(is_alike).expect("two groups of one size with other values");
    let mut groups = numbers(&values, "group_id");
    let [number_of_first, number_of_second] = [first, second].map(|rows| groups[rows[0] as usize]);
    first.iter().for_each(|row| groups[*row as usize] = number_of_second);
    second.iter().for_each(|row| groups[*row as usize] = number_of_first);
    check(
        "two groups exchange their values",
        1,
        &with_numbers(&values, "group_id", groups.clone()),
        Pass,
        Refuse("not those that the input has for its sensitive values"),
    );
    let counts = numbers(&values, "count");
    let mut more = counts.clone();
    more[0] += 100;
    let why = Refuse("a sensitive value is more frequent in a group than its models allow");
    check("a count is raised", 1, &with_numbers(&values, "count", more), why, why);
    let tripled: Vec<i64> = counts.iter().map(|count| count * 3).collect();
    let why = Refuse("a group has other numbers of rows in both tables");
    let of_input = Refuse("the sensitive values are not those of the input");
    check("all counts are raised", 1, &with_numbers(&values, "count", tripled), why, of_input);
    for wrong in [0, -1] {
        let mut counts = counts.clone();
        counts[0] = wrong;
        let why = Refuse("a number of a group, or a count, is not above 0");
        check("a count below 1", 1, &with_numbers(&values, "count", counts), why, why);
    }
    let gap = numbers(&values, "group_id").into_iter().map(|group| group + i64::from(group > 1));
    let why = Refuse("the groups are not numbered from 1");
    check("a group is missing", 1, &with_numbers(&values, "group_id", gap.collect()), why, why);
    let twice = concat_batches(&values.schema(), [&values, &values.slice(0, 1)]).unwrap();
    let why = Refuse("a group has a sensitive value twice");
    check("a value is there twice", 1, &twice, why, why);
}

#[test]
fn forged_records_and_folders_are_refused() {
    let lab = released();
    let before = lab.files();
    let edit = |what: &str, edit: &dyn Fn(&mut PublicRecord), why: &'static str| {
        lab.restore(&before);
        let mut public = record(&lab);
        edit(&mut public);
        seal(&lab, public);
        verify(&lab, what, Refuse(why), Refuse(why));
    };
    let groups = |public: &mut PublicRecord, l: u64| {
        let RecodingRecord::Groups(groups) = &mut public.recoding else {
            panic!("the release has no groups")
        };
        groups.l = l;
    };
    edit("more is promised", &|public| groups(public, 4), "how frequent a sensitive value may be");
    edit("less is promised", &|public| groups(public, 2), "how frequent a sensitive value may be");
    edit("another number of groups", &|public| public.classes += 1, "the number of rows or classes differs");
    edit("a smaller risk", &|public| *public.risk.get_mut("sample_uniqueness").unwrap() = 0.0, "risks");
    edit("nobody is unique", &|public| public.unique.count = 0, "unique share");
    edit("one table", &|public| drop(public.tables.pop()), "does not list the tables of its recoding");
    edit("tables the other way round", &|public| public.tables.reverse(), "does not list the tables");
    edit(
        "a column of another role",
        &|public| public.tables[1].columns[2].role = "group".into(),
        "the columns are not those of the record",
    );
    edit(
        "another method",
        &|public| public.statement.as_mut().unwrap().method = "optimal".into(),
        "the record's statement is",
    );

    lab.restore(&before);
    fs::write(lab.out().join("part-00000.parquet"), "").unwrap();
    let why = Refuse("a file or a folder that the record does not list");
    verify(&lab, "a file beside the tables", why, why);
    fs::remove_file(lab.out().join("part-00000.parquet")).unwrap();
    fs::create_dir(lab.out().join("more")).unwrap();
    verify(&lab, "a folder beside the tables", why, why);
    fs::remove_dir(lab.out().join("more")).unwrap();
    fs::write(lab.out().join(FOLDERS[1]).join("note.txt"), "").unwrap();
    verify(&lab, "a file in a table", why, why);
}

/// A record states no model that groups cannot promise, even if the groups satisfy it.
#[test]
fn models_of_something_else_are_refused() {
    let lab = released();
    let mut public = record(&lab);
    let mut over_age = public.models[0].clone();
    (over_age.model, over_age.required, over_age.reached) = ("k_anonymity".into(), 3.0, Some(3.0));
    (over_age.sensitive, over_age.quasi) = (None, Some(vec!["age".into()]));
    over_age.parameters = [("k".to_owned(), "3".to_owned())].into();
    public.models.push(over_age);
    seal(&lab, public);
    let why = Refuse("`anatomy` takes only models of the size of a class");
    verify(&lab, "k over a column whose values are exact", why, why);
}

/// The roles of the columns of groups are those of no other release.
#[test]
fn other_releases_have_no_columns_of_groups() {
    let lab = Lab::released();
    let mut public = record(&lab);
    let column = public.tables[0].columns[0].clone();
    let column = ColumnRecord { name: "anything".into(), role: "group".into(), ..column };
    public.tables[0].columns.push(column);
    seal(&lab, public);
    let why = Refuse("the record contradicts itself on the role of a column");
    verify(&lab, "a column that no file has", why, why);
}

/// Columns of any name, and left-out ones that may be unique.
#[test]
fn columns_may_have_any_name() {
    let place = Place::new();
    for (quasi, sensitive) in [
        ("kanon_rank", "kanon_order_a"),
        ("kanon_group", "kanon_hash"),
        ("kanon_written_0", "kanon_group"),
        ("q", "kanon_rows"),
    ] {
        place.write("in.csv", format!("{quasi},{sensitive},ward\n1,a,x\n2,b,y\n3,a,x\n4,b,z\n"));
        let policy = format!(
            "method = \"anatomy\"\nrows_are_individuals = true\n[[require]]\nmodel = \"l_diversity\"\nl = 2\n[columns]\n\
             {quasi} = {{ role = \"quasi\" }}\n{sensitive} = {{ role = \"sensitive\", allow_unique = true }}\n\
             ward = {{ role = \"insensitive\", allow_unique = true }}\n"
        );
        place.write("policy.toml", policy);
        place.run("release in.csv --policy policy.toml --to out --overwrite").exit(0);
        place.run("verify out").exit(0);
        assert!(place.run("verify out --input in.csv").exit(0).out.contains("all 4 rows come from it"));
    }
    for name in ["group_id", "count"] {
        let policy = fs::read_to_string(place.path("policy.toml")).unwrap();
        place.write("named.toml", policy.replace("\nq =", &format!("\n{name} =")));
        place.write("named.csv", format!("{name},kanon_rows,ward\n1,a,x\n2,b,y\n"));
        let ran = place.run("search named.csv --policy named.toml").exit(2);
        ran.says("the release has a column of this name already");
    }
}

/// Groups of every model of counts are found, hold and are verified. NULLs find room in larger groups.
#[test]
fn every_model_of_counts_is_satisfied() {
    let place = Place::new();
    let mut csv = String::from("age,disease\n");
    for row in 0..90 {
        // Too many NULLs for groups of three.
        let disease = if row % 10 < 3 { "" } else { ["flu", "gout", "HIV", "asthma", "angina"][row % 5] };
        csv += &format!("{row},{disease}\n");
    }
    place.write("in.csv", csv);
    for (model, l) in [
        ("model = \"l_diversity\"\nl = 3", 3),
        ("model = \"entropy_l_diversity\"\nl = 2.5", 3),
        ("model = \"alpha_k_anonymity\"\nalpha = 0.4", 3),
        ("model = \"recursive_l_diversity\"\nc = 2\nl = 2", 2),
    ] {
        let policy = format!(
            "k = 2\nmethod = \"anatomy\"\nrows_are_individuals = true\n[[require]]\n{model}\n[columns]\n\
             age = {{ role = \"quasi\" }}\ndisease = {{ role = \"sensitive\" }}\n"
        );
        place.write("policy.toml", policy);
        let ran = place.run("release in.csv --policy policy.toml --to out --overwrite").exit(0);
        assert!(ran.out.contains(&format!("no value in more than 1 of {l} rows of one")), "{ran:?}");
        assert!(place.run("verify out --input in.csv").exit(0).out.contains("all 90 rows come from it"));
    }
}

/// The verification counts the rows of each individual in the input.
#[test]
fn an_individual_with_two_rows_is_refused() {
    let place = Place::new();
    let policy = "method = \"anatomy\"\n[[require]]\nmodel = \"l_diversity\"\nl = 2\n[columns]\n\
                  who = { role = \"individual\" }\nage = { role = \"quasi\" }\n\
                  disease = { role = \"sensitive\", allow_unique = true }\n";
    place.write("policy.toml", policy);
    let csv = |first: &str, second: &str| {
        format!("who,age,disease\n{first},1,flu\n{second},2,gout\nc,3,flu\nd,4,gout\n")
    };
    place.write("in.csv", csv("a", "b"));
    place.run("release in.csv --policy policy.toml --to out").exit(0);
    place.run("verify out --input in.csv").exit(0);
    for other in [csv("a", "a"), csv("", "b")] {
        place.write("other.csv", other);
        let ran = place.run("verify out --input other.csv").exit(1);
        ran.says("an individual has several rows, or a row has none");
        let ran = place.run("release other.csv --policy policy.toml --to again").exit(2);
        ran.says("takes one row for each individual");
    }
    let ran = place.run("release in.csv --recoding out.private.json --to again").exit(2);
    ran.says("deals the rows of its own input to groups");
}

/// Without the key of the private record, even the publisher cannot tell which row is in which group.
#[test]
fn the_key_is_needed_and_must_be_right() {
    let lab = released();
    let path = lab.path("out.private.json");
    let text = fs::read_to_string(&path).unwrap();
    let key = text.split("\"dealing_key\": \"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(key.len(), 128);
    fs::write(&path, text.replace(key, &"0".repeat(128))).unwrap();
    verify(&lab, "another key", Pass, Refuse("not those that the input has for its sensitive values"));
    fs::write(&path, text.replace(key, "short")).unwrap();
    verify(&lab, "no key", Pass, Refuse("the private record is damaged"));
    fs::remove_file(&path).unwrap();
    let ran = lab.run(&["verify", OUT, "--input", "people.parquet", "--policy", "policy.toml"]);
    ran.exit(2, "its private record is needed");
    // Two releases deal otherwise, and the second replaces the first.
    fs::write(&path, text).unwrap();
    let first = tables(&lab);
    lab.run(&["release", "people.parquet", "--policy", "policy.toml", "--to", OUT, "--overwrite"])
        .exit(0, "");
    assert!(tables(&lab)[0] != first[0]);
    verify(&lab, "released again", Pass, Pass);
    assert!(!lab.names().iter().any(|name| name.contains("kanon-work")), "{:?}", lab.names());
}
