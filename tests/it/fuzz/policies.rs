//! Policies: parsed, resolved against a table with a column of every type, their levels applied.

use std::collections::BTreeMap;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_kanon::internals::policy::{ColumnSpec, PolicySpec};

use super::columns::{agree, extremes, types};
use super::random::{NUMBERS, Random};
use super::{Target, blameless, shows_no_cell};

pub(super) struct Policies {
    schema: Schema,
    values: BTreeMap<String, ArrayRef>,
    files: BTreeMap<String, String>,
}

impl Policies {
    pub(super) fn new() -> Self {
        let fields = types().into_iter().map(|(name, of)| Field::new(name, of, true));
        let values = types().into_iter().map(|(name, of)| (name, extremes(&of)));
        let file =
            "zqxj1,zqxj-a,*\nzqxj2,zqxj-a,*\n0,zqxj-b,*\n1,zqxj-b,*\ntrue,zqxj-c,*\n1970-01-01,zqxj-c,*\n";
        let files = [
            ("good.csv", file.to_owned()),
            ("no_top.csv", "zqxj1;zqxj-a\n5;b\n".to_owned()),
            ("no_tree.csv", "zqxj1,zqxj-a,zqxj-b\nzqxj2,zqxj-a,zqxj-c\n".to_owned()),
            ("twice.csv", format!("{file}zqxj1,zqxj-a,*\n")),
            ("empty.csv", String::new()),
        ];
        Self {
            schema: Schema::new(fields.collect::<Vec<_>>()),
            values: values.collect(),
            files: files.map(|(name, text)| (name.to_owned(), text)).into(),
        }
    }
}

const TOP: &[&str] = &[
    "suppression_limit = 0.05",
    "suppression_limit = 1",
    "objective = \"precision_loss\"",
    "objective = \"classification_metric\"",
    "method = \"anytime\"\neffort = { seconds = 30 }",
    "method = \"optimal\"",
    "method = \"mondrian\"",
    "method = { mondrian = { split = \"loss\" } }",
    "method = { mondrian = { split = \"entropy\" } }",
    "rows_are_individuals = true",
    "accept_homogeneity = [\"c12\"]",
    "objective = \"height\"",
];
const TABLES: &[&str] = &[
    "[[require]]\nmodel = \"l_diversity\"\nl = 2\n",
    "[[require]]\nmodel = \"l_diversity\"\nl = 3\nsensitive = \"c12\"\n",
    "[[require]]\nmodel = \"k_anonymity\"\nk = 7\n",
    "[input]\ndelimiter = \";\"\nnulls = [\"\", \"?\"]\n",
    "[input]\nheader = false\n",
    "[output]\nends = \"closed\"\n",
];
const ROLES: &[&str] =
    &["quasi", "quasi", "quasi", "quasi", "identifier", "sensitive", "individual", "text", "insensitive"];
const PERIODS: &[&str] = &["day", "week", "month", "quarter", "year", "decade", "century", "hour"];
const STEPS: &[&str] =
    &["1", "2", "4", "5", "10", "20", "100", "1000", "0.1", "0.5", "0.25", "4000000000000000", "0.000001"];

/// A list for a hierarchy: mostly one that nests.
fn list(random: &mut Random, key: &str) -> String {
    let mut all: Vec<String> = match key {
        "date" => (0..=random.below(3)).map(|_| format!("{:?}", random.pick(PERIODS))).collect(),
        _ => (0..=random.below(3)).map(|_| random.pick(STEPS).to_owned()).collect(),
    };
    if key != "date" && !random.once_in(4) {
        all.sort_by(|a, b| a.parse::<f64>().unwrap().total_cmp(&b.parse().unwrap()));
        all.dedup();
        if key == "prefix" {
            all.reverse();
        }
    }
    if random.once_in(6) {
        all.push(random.pick(NUMBERS).to_owned());
    }
    format!("[{}]", all.join(", "))
}

fn hierarchy(random: &mut Random, of: &DataType) -> String {
    let fitting: &[&str] = match of {
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => &["date", "date", "file"],
        other if other.is_numeric() => &["floor", "range", "range", "floor", "file", "prefix"],
        _ => &["prefix", "file"],
    };
    match if random.once_in(8) {
        random.pick(&["floor", "range", "date", "prefix", "file"])
    } else {
        random.pick(fitting)
    } {
        "file" => format!(
            "{{ file = {:?} }}",
            random.pick(&[
                "good.csv",
                "good.csv",
                "no_top.csv",
                "no_tree.csv",
                "twice.csv",
                "empty.csv",
                "none"
            ])
        ),
        key => format!("{{ {key} = {} }}", list(random, key)),
    }
}

impl Target for Policies {
    const NAME: &'static str = "policy";
    const TOKENS: &'static [&'static str] = &[
        "role = \"quasi\"",
        "role = \"sensitive\"",
        "role = \"individual\"",
        "hierarchy = { prefix = [2, 1] }",
        "hierarchy = { floor = [10] }",
        "hierarchy = { range = [5, 10] }",
        "hierarchy = { date = [\"month\"] }",
        "hierarchy = { file = \"good.csv\" }",
        "min_level = 1",
        "max_level = 0",
        "weight = 2.0",
        "relative_to = \"c16\"",
        "[columns]",
        "others = \"drop\"",
        "k = 5",
        "[[require]]",
        "[input]",
        "allow_unique = true",
        "c1",
        "c12",
        "\"",
        "{",
        "}",
        "[",
        "]",
        "=",
        "'''",
        "1979-05-27T07:32:00Z",
        "\n",
        "#",
        ".",
        "inf",
        "true",
    ];

    fn random(&self, random: &mut Random) -> Vec<u8> {
        let k = if random.once_in(10) { random.pick(NUMBERS) } else { "5" };
        let mut text = format!("k = {k}\n");
        if !random.once_in(10) {
            text += "others = \"drop\"\n";
        }
        for _ in 0..random.below(3) {
            text += &format!("{}\n", random.pick(TOP));
        }
        if random.once_in(3) {
            text += random.pick(TABLES);
        }
        text += "[columns]\n";
        let fields = self.schema.fields();
        let start = random.below(fields.len());
        for at in 0..=random.below(6) {
            let field = &fields[(start + at * 7) % fields.len()];
            let role = random.pick(ROLES);
            let mut keys = vec![format!("role = {role:?}")];
            if role == "quasi" && !random.once_in(4) {
                keys.push(format!("hierarchy = {}", hierarchy(random, field.data_type())));
            }
            for (rarely, key) in [
                (8, format!("weight = {}", random.pick(NUMBERS))),
                (8, format!("min_level = {}", random.below(3))),
                (8, format!("max_level = {}", random.below(4))),
                (9, "allow_unique = true".to_owned()),
                (9, format!("relative_to = \"{}\"", random.pick(&["c16", "c17", "c35", "c1"]))),
            ] {
                if random.once_in(rarely) {
                    keys.push(key);
                }
            }
            text += &format!("{} = {{ {} }}\n", field.name(), keys.join(", "));
        }
        text.into_bytes()
    }

    fn attempt(&mut self, input: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(input);
        let said = match PolicySpec::parse(&text) {
            Ok(said) => said,
            Err(error) => return blameless(&error, &text),
        };
        shows_no_cell(&format!("{said:?}"), &text)?;
        for name in said.columns().iter().map(ColumnSpec::name).chain(["none"]) {
            said.csv_type(name);
        }
        if let Err(error) = said.relative_columns(&self.schema) {
            blameless(&error, &text)?;
        }
        let policy = match said.resolve(&self.schema, &self.files) {
            Ok(policy) => policy,
            Err(error) => return blameless(&error, &text),
        };
        shows_no_cell(&format!("{policy:?}"), &text)?;
        for quasi in &policy.quasi {
            if quasi.levels.is_empty()
                || *quasi.levels.end() > quasi.hierarchy.height()
                || quasi.weight.is_nan()
            {
                return Err(format!("`{}`: levels or weight that are none", quasi.name));
            }
            let values = self.values.get(&quasi.name).ok_or("a quasi-identifier that is no column")?;
            agree(&quasi.hierarchy, values)?;
        }
        Ok(())
    }
}
