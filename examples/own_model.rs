//! A model of the program's own: required by a policy, named in the record, and a function in SQL.
//!
//! The model bounds the Gini-Simpson index of a sensitive column (E. H. Simpson: "Measurement of diversity",
//! Nature 163, 1949): two rows drawn from a class, with replacement, have different values with a probability
//! of at least d. Unlike distinct l-diversity it sees how often the values occur.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use datafusion::prelude::{CsvReadOptions, ParquetReadOptions, SessionContext};
use datafusion_kanon::extend::{
    Absent, Class, ClassModel, Counted, Decimal, Doc, Kind, Merge, ModelRow, Needs, Parameter, Quantity,
    Worst, register_model,
};
use datafusion_kanon::{Folder, Input, Place, PolicySource, PolicySpec, Run, register_all, release};

const PATIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/papers/patients.csv");

const DOC: &Doc = &Doc {
    name: "simpson_diversity",
    summary: "two rows of a class have different sensitive values with a probability of at least d",
    parameters: "d",
    example: "simpson_diversity(disease, age, zip)",
    paper: Some("Simpson 1949"),
};

const ROW: ModelRow = ModelRow {
    doc: DOC,
    parameters: &[Parameter {
        name: "d",
        kind: Kind::Share,
        absent: Absent::Refused,
        summary: "the least probability",
    }],
    constants: &[],
    make: |settings| Ok(Box::new(SimpsonDiversity { d: settings.number("d")? })),
};

#[derive(Debug)]
struct SimpsonDiversity {
    d: Decimal,
}

impl ClassModel for SimpsonDiversity {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::SensitiveCounts
    }

    fn merge(&self, counted: Counted) -> Merge {
        match counted {
            // The index is concave: that of a mixture is at least the mean of those that are mixed.
            Counted::Rows => Merge::Both,
            // An individual may be in both classes.
            Counted::Individuals => Merge::None,
        }
    }

    fn min_size(&self) -> u64 {
        // The index of a class of one is 0.
        if self.d.is_positive() { 2 } else { 1 }
    }

    /// 1 minus the sum of the squared shares. NULL is a value like any other.
    fn value(&self, class: &Class<'_>) -> Quantity {
        let square = |count: u64| u128::from(count) * u128::from(count);
        let equal: u128 = class.sensitive.iter().map(|value| square(value.count)).sum();
        Quantity::Ratio(square(class.size).saturating_sub(equal), square(class.size))
    }

    fn worst(&self) -> Worst {
        Worst::Least
    }

    fn holds(&self, value: Quantity) -> bool {
        value.compare(1, self.d).is_some_and(std::cmp::Ordering::is_ge)
    }

    fn required(&self) -> Decimal {
        self.d
    }

    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        vec![("d", self.d)]
    }
}

async fn number(session: &SessionContext, sql: &str) -> datafusion::error::Result<f64> {
    let batches = session.sql(sql).await?.collect().await?;
    let text = arrow::util::display::array_value_to_string(batches[0].column(0), 0)?;
    text.parse().map_err(|error| datafusion::error::DataFusionError::External(Box::new(error)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    register_model(ROW)?;

    let session = SessionContext::new();
    register_all(&session)?;
    session.register_csv("patients", PATIENTS, CsvReadOptions::new()).await?;
    // The three women have three diseases: two draws differ in two of three cases.
    assert_eq!(number(&session, "SELECT simpson_diversity(disease, sex) FROM patients").await?, 2.0 / 3.0);
    // All who were born in February 1950 have COVID-19.
    let sql = "SELECT simpson_diversity(disease, generalize_date(dob, 'month')) FROM patients \
               WHERE dob >= DATE '1950-01-01'";
    assert_eq!(number(&session, sql).await?, 0.0);

    let text = r#"
        k = 2
        suppression_limit = 0.1
        rows_are_individuals = true
        others = "drop"

        [[require]]
        model = "simpson_diversity"
        d = 0.5

        [columns]
        dob = { role = "quasi", hierarchy = { date = ["month", "year"] } }
        sex = { role = "quasi" }
        zip = { role = "quasi", hierarchy = { prefix = [4, 3, 2] } }
        disease = { role = "sensitive", allow_unique = true }
    "#;
    let spec = PolicySpec::parse(text)?;
    let source = PolicySource { spec: &spec, files: &Folder(".".into()) };
    let folder = std::env::temp_dir().join(format!("kanon-own-model-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let place = Place::beside(&folder.join("safe"))?;
    let released = release(&Run::default(), &Input::find(PATIENTS)?, &source, &place, true).await?;
    let record = released.public.models.iter().find(|model| model.model == DOC.name);
    let reached = record.and_then(|model| model.reached).ok_or("the record lacks the model")?;
    println!("released {} rows, the index is at least {reached}", released.public.rows());

    // SQL counts the same on the released rows.
    let safe = folder.join("safe");
    session.register_parquet("safe", safe.to_string_lossy(), ParquetReadOptions::new()).await?;
    let counted = number(&session, "SELECT simpson_diversity(disease, dob, sex, zip) FROM safe").await?;
    std::fs::remove_dir_all(folder)?;
    assert!(reached >= 0.5 && (counted - reached).abs() < 1e-9);
    assert!(released.public.rows() >= 9 && released.after.min() >= Some(2));
    Ok(())
}
