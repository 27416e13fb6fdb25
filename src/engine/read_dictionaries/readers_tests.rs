//! Files that Parquet's writer encodes in different ways, and the metadata that readers hand out for them.

use std::io::Cursor;

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, LargeStringArray, RecordBatch, StringArray, StringViewArray,
};
use arrow::compute::cast;
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::arrow::{ArrowWriter, ParquetRecordBatchStreamBuilder};
use datafusion::parquet::file::metadata::ParquetMetaDataReader;
use datafusion::parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use futures::TryStreamExt;

use super::*;

/// The columns of [`rows`].
const ALL: &[&str] = &["sex", "name", "city", "age"];

/// Five hundred rows: three columns of text in all its types, one of them with so many different `names`, and numbers.
fn rows(names: i64) -> RecordBatch {
    let numbers = || 0..500i64;
    let sex = |n: i64| (n % 5 > 0).then_some(if n % 2 == 0 { "f" } else { "m" });
    let sex: StringArray = numbers().map(sex).collect();
    let name = StringViewArray::from_iter_values(numbers().map(|n| format!("name {}", n % names)));
    let city = LargeStringArray::from_iter_values(numbers().map(|n| (n % 3).to_string()));
    let age = Int64Array::from_iter_values(numbers().map(|n| n % 90));
    let columns: [(&str, ArrayRef); 4] =
        [("sex", Arc::new(sex)), ("name", Arc::new(name)), ("city", Arc::new(city)), ("age", Arc::new(age))];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// A file with a row group of each batch.
fn file_with(options: ArrowWriterOptions, groups: &[RecordBatch]) -> Bytes {
    let mut writer =
        ArrowWriter::try_new_with_options(Vec::<u8>::new(), groups[0].schema(), options).unwrap();
    for group in groups {
        writer.write(group).unwrap();
        writer.flush().unwrap();
    }
    Bytes::from(writer.into_inner().unwrap())
}

fn file(properties: WriterPropertiesBuilder, groups: &[RecordBatch]) -> Bytes {
    file_with(ArrowWriterOptions::new().with_properties(properties.build()), groups)
}

/// A writer that gives up dictionaries of more than 200 bytes, after 50 rows at the earliest.
fn giving_up() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_dictionary_page_size_limit(200).set_write_batch_size(50)
}

fn metadata_of(file: &Bytes) -> ParquetMetaData {
    ParquetMetaDataReader::new().parse_and_finish(file).unwrap()
}

fn names(columns: &[&str]) -> BTreeSet<String> {
    columns.iter().copied().map(str::to_owned).collect()
}

/// The columns that the changed metadata of a file calls dictionaries; `None` if it is not changed.
fn packed(file: &Bytes, columns: &[&str]) -> Option<BTreeSet<String>> {
    let before = metadata_of(file);
    let after = with_dictionaries(&before, &names(columns)).unwrap().metadata?;
    let [before, after] = [&before, &after].map(|metadata| {
        let file = metadata.file_metadata();
        parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata()).unwrap()
    });
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let mut packed = BTreeSet::new();
    for (before, after) in before.fields().iter().zip(after.fields()) {
        assert_eq!((before.name(), before.is_nullable()), (after.name(), after.is_nullable()));
        if before.data_type() != after.data_type() {
            assert_eq!(after.data_type(), &dictionary, "{}", after.name());
            packed.insert(after.name().clone());
        }
    }
    Some(packed)
}

#[test]
fn texts_whose_pages_have_dictionaries_are_dictionaries() {
    let groups = [rows(500), rows(500)];
    let of_version = |version| file(WriterProperties::builder().set_writer_version(version), &groups);
    // Other writers say nothing of Arrow's types.
    let of_others = file_with(ArrowWriterOptions::new().with_skip_arrow_metadata(true), &groups);
    for file in [
        file(WriterProperties::builder(), &groups),
        of_version(WriterVersion::PARQUET_1_0),
        of_version(WriterVersion::PARQUET_2_0),
        of_others,
    ] {
        assert_eq!(packed(&file, ALL), Some(names(&["sex", "name", "city"])));
        assert_eq!(packed(&file, &["age", "city", "of another file"]), Some(names(&["city"])));
        assert_eq!(packed(&file, &["age", "of another file"]), None);
        assert_eq!(packed(&file, &[]), None);
    }
}

#[test]
fn texts_without_dictionaries_stay_texts() {
    let plain = WriterProperties::builder().set_dictionary_enabled(false);
    assert_eq!(packed(&file(plain, &[rows(500)]), ALL), None);
    let one_is_plain = WriterProperties::builder().set_column_dictionary_enabled("city".into(), false);
    assert_eq!(packed(&file(one_is_plain, &[rows(500)]), ALL), Some(names(&["sex", "name"])));
}

#[test]
fn texts_whose_dictionary_was_given_up_stay_texts() {
    let given_up = file(giving_up(), &[rows(500)]);
    let metadata = metadata_of(&given_up);
    let name = metadata.row_group(0).column(1);
    assert_eq!(name.column_path().parts(), ["name"]);
    // The first pages are numbers of a dictionary, the others texts.
    let pages = name.page_encoding_stats_mask().unwrap();
    assert!(pages.is_set(Encoding::RLE_DICTIONARY) && pages.is_set(Encoding::PLAIN), "{pages:?}");
    assert!(name.dictionary_page_offset().is_some());
    assert_eq!(packed(&given_up, ALL), Some(names(&["sex", "city"])));
    assert_eq!(packed(&given_up, &["name"]), None);
    // In one row group of two, be it the first or the last.
    let (few, many) = (rows(3), rows(500));
    for groups in [[few.clone(), many.clone()], [many, few.clone()]] {
        assert_eq!(packed(&file(giving_up(), &groups), ALL), Some(names(&["sex", "city"])));
    }
    let few = file(giving_up(), &[few.clone(), few]);
    assert_eq!(packed(&few, ALL), Some(names(&["sex", "name", "city"])));
}

#[test]
fn all_else_in_the_metadata_stays() {
    let of_user = KeyValue::new("of".to_owned(), "a user".to_owned());
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![of_user.clone()]));
    let before = metadata_of(&file(properties, &[rows(500), rows(3)]));
    let after = with_dictionaries(&before, &names(ALL)).unwrap().metadata.unwrap();
    assert_eq!(after.row_groups(), before.row_groups());
    let [before, after] = [&before, &after].map(ParquetMetaData::file_metadata);
    assert_eq!(
        (after.version(), after.num_rows(), after.created_by()),
        (before.version(), 1_000, before.created_by())
    );
    assert_eq!(after.schema_descr(), before.schema_descr());
    assert_eq!(after.column_orders(), before.column_orders());
    // Arrow's types are said once, in new words.
    let (of_arrow, others): (Vec<&KeyValue>, Vec<&KeyValue>) =
        after.key_value_metadata().unwrap().iter().partition(|pair| pair.key == ARROW_SCHEMA_META_KEY);
    assert_eq!((of_arrow.len(), others), (1, vec![&of_user]));
    assert!(before.key_value_metadata().unwrap().iter().all(|pair| pair != of_arrow[0]));
}

#[tokio::test]
async fn dictionaries_arrive_as_they_are_in_the_file() {
    let rows = rows(500);
    let file = file(WriterProperties::builder(), std::slice::from_ref(&rows));
    let columns = names(&["sex", "city"]);
    let reader = DictionaryReader { reader: Box::new(Cursor::new(file)), columns, counted: None };
    let stream = ParquetRecordBatchStreamBuilder::new(reader).await.unwrap();
    let stream = stream.with_batch_size(rows.num_rows()).build().unwrap();
    let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
    assert_eq!(batches.len(), 1);
    let column = |of: &RecordBatch, name: &str| Arc::clone(of.column_by_name(name).unwrap());
    for (name, entries) in [("sex", 2), ("city", 3)] {
        let (read, written) = (column(&batches[0], name), column(&rows, name));
        assert_eq!(read.as_any_dictionary().values().len(), entries, "{name}");
        assert_eq!(&cast(&read, written.data_type()).unwrap(), &written, "{name}");
    }
    for name in ["name", "age"] {
        assert_eq!(&column(&batches[0], name), &column(&rows, name));
    }
}
