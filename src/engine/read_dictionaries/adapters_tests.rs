//! Class keys over a file whose texts are dictionaries, beside the same keys over the table's columns.

use arrow::array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, StringViewArray,
};
use arrow::datatypes::{Field, Int32Type, Schema};
use datafusion::config::ConfigOptions;
use datafusion::error::DataFusionError;
use datafusion::functions::string::upper;
use datafusion::logical_expr::{Operator, ScalarUDF};
use datafusion::physical_expr::expressions::{binary, col, is_not_null, lit};

use super::*;
use crate::engine::class_key::key_functions;
use crate::generalize::GENERALIZERS;
use crate::sql::codes::takes_dictionaries;
use crate::sql::udf::GeneralizeFunction;

fn schema(columns: [(&str, DataType); 3]) -> SchemaRef {
    Arc::new(Schema::new(columns.map(|(name, of)| Field::new(name, of, true)).to_vec()))
}

fn table() -> SchemaRef {
    schema([("age", DataType::Int64), ("zip", DataType::Utf8View), ("job", DataType::Utf8View)])
}

/// The columns of a file of the table, in another order and of other types.
fn file() -> SchemaRef {
    let packed = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    schema([("zip", packed), ("age", DataType::Int32), ("job", DataType::Utf8)])
}

const ZIPS: [Option<&str>; 4] = [Some("02139"), None, Some("10115"), Some("02139")];
const AGES: [Option<i32>; 4] = [Some(30), Some(30), None, Some(-1)];
const JOBS: [&str; 4] = ["nurse", "nurse", "a text of more than twelve bytes", ""];

/// The same rows as the table and as the file have them.
fn rows() -> [RecordBatch; 2] {
    let of_table: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter(AGES.map(|age| age.map(i64::from)))),
        Arc::new(StringViewArray::from_iter(ZIPS)),
        Arc::new(StringViewArray::from_iter_values(JOBS)),
    ];
    let of_file: Vec<ArrayRef> = vec![
        Arc::new(ZIPS.into_iter().collect::<DictionaryArray<Int32Type>>()),
        Arc::new(Int32Array::from_iter(AGES)),
        Arc::new(StringArray::from_iter_values(JOBS)),
    ];
    [(table(), of_table), (file(), of_file)]
        .map(|(schema, columns)| RecordBatch::try_new(schema, columns).unwrap())
}

fn column(name: &str) -> Arc<dyn PhysicalExpr> {
    col(name, &table()).unwrap()
}

/// A call over columns of the table.
fn call(function: ScalarUDF, arguments: Vec<Arc<dyn PhysicalExpr>>) -> Arc<dyn PhysicalExpr> {
    let options = Arc::new(ConfigOptions::default());
    Arc::new(ScalarFunctionExpr::try_new(Arc::new(function), arguments, &table(), options).unwrap())
}

fn class_key(columns: Vec<Arc<dyn PhysicalExpr>>) -> Arc<dyn PhysicalExpr> {
    let [of_class, _] = key_functions();
    call(of_class, [lit(1u64), lit(2u64)].into_iter().chain(columns).collect())
}

fn prefix() -> GeneralizeFunction {
    let row = GENERALIZERS.iter().find(|row| row.doc.name == "prefix").unwrap();
    GeneralizeFunction::new(row).unwrap()
}

/// The codes of the first two characters.
fn codes(text: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    call(prefix().of_codes().into(), vec![text, lit(2i64)])
}

/// An expression over the file's columns.
fn adapted(expr: &Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    PackedAdapters { adapters: None, takes_dictionaries }
        .create(table(), file())
        .unwrap()
        .rewrite(Arc::clone(expr))
        .unwrap()
}

/// The number of casts in an expression.
fn casts(expr: &Arc<dyn PhysicalExpr>) -> usize {
    let mut casts = 0;
    expr.apply(|part| {
        casts += usize::from(part.is::<CastExpr>());
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    casts
}

/// The number of casts in each argument.
fn casts_of_arguments(expr: &Arc<dyn PhysicalExpr>) -> Vec<usize> {
    expr.children().into_iter().map(casts).collect()
}

/// Checks that a key has one value for a row of the table and the same row of the file.
#[track_caller]
fn agree(key: &Arc<dyn PhysicalExpr>) {
    let [of_table, of_file] = rows();
    let keys = |key: &Arc<dyn PhysicalExpr>, rows: &RecordBatch| -> ArrayRef {
        key.evaluate(rows).unwrap().into_array(rows.num_rows()).unwrap()
    };
    assert_eq!(&keys(&adapted(key), &of_file), &keys(key, &of_table), "{key}");
}

#[test]
fn no_dictionary_is_unpacked_for_a_key() {
    let key = class_key(vec![column("zip"), codes(column("zip"))]);
    let unpacked = DefaultPhysicalExprAdapterFactory.create(table(), file()).unwrap();
    assert_eq!(casts_of_arguments(&unpacked.rewrite(Arc::clone(&key)).unwrap()), [0, 0, 1, 1]);
    let packed = adapted(&key);
    assert_eq!(casts(&packed), 0, "{packed}");
    let mut types = packed.children().into_iter().skip(2).map(|column| column.data_type(&file()).unwrap());
    assert!(types.all(|of| matches!(of, DataType::Dictionary(..))), "{packed}");
    agree(&key);
}

#[test]
fn casts_that_a_key_needs_stay() {
    for argument in [
        // A number, and a text that is no dictionary.
        column("age"),
        column("job"),
        // Functions that take no dictionaries.
        call(ScalarUDF::clone(&upper()), vec![column("zip")]),
        call(prefix().into(), vec![column("zip"), lit(2i64)]),
    ] {
        let key = class_key(vec![column("zip"), argument]);
        assert_eq!(casts_of_arguments(&adapted(&key)), [0, 0, 0, 1], "{key}");
        agree(&key);
    }
}

#[test]
fn casts_outside_of_keys_stay() {
    let zip = column("zip");
    assert!(adapted(&zip).is::<CastExpr>());
    assert_eq!(casts(&adapted(&codes(Arc::clone(&zip)))), 1);
    let key = class_key(vec![Arc::clone(&zip), codes(Arc::clone(&zip))]);
    let [key, zip] = [key, zip].map(|expr| is_not_null(expr).unwrap());
    let both = binary(key, Operator::And, zip, &table()).unwrap();
    assert_eq!(casts_of_arguments(&adapted(&both)), [0, 1]);
}

/// Adapters that refuse every file.
#[derive(Debug)]
struct Refusing;

impl PhysicalExprAdapterFactory for Refusing {
    fn create(&self, _: SchemaRef, _: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        Err(DataFusionError::Plan("refused".into()))
    }
}

#[test]
fn adapters_of_others_are_asked_first() {
    let refused = PackedAdapters { adapters: Some(Arc::new(Refusing)), takes_dictionaries }
        .create(table(), file())
        .unwrap_err();
    assert_eq!(refused.message(), "refused");
}
