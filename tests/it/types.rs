//! Every type of column that people have, in Parquet and in Arrow files, as a quasi-identifier and
//! as it is: what is released is compared with what was written down here by hand.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::*;

use crate::command::{Place, table, texts};

/// A column of a value twice, another twice and NULL twice.
struct Case {
    name: &'static str,
    values: ArrayRef,
    /// The two values as they are released; NULL is `-`.
    as_is: [&'static str; 2],
    /// A hierarchy, and both values at its first level.
    levels: Vec<(&'static str, [&'static str; 2])>,
}

/// Each of the values twice, between rows that are cut away: a slice, as engines hand them on.
fn twice<T: Clone, A: FromIterator<Option<T>> + Array + 'static>(a: T, b: T) -> ArrayRef {
    let rows = [&a, &a, &b, &a, &b].map(|value| Some(value.clone()));
    let rows = rows.into_iter().chain([None, None, Some(b.clone())]);
    Arc::new(rows.collect::<A>()).slice(1, 6)
}

fn cast(values: &ArrayRef, data_type: &DataType) -> ArrayRef {
    arrow::compute::cast(values, data_type).unwrap()
}

fn case(
    name: &'static str,
    values: ArrayRef,
    as_is: [&'static str; 2],
    levels: &[(&'static str, [&'static str; 2])],
) -> Case {
    Case { name, values, as_is, levels: levels.to_vec() }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let integers = twice::<i64, Int64Array>(39, 7);
    let levels = [
        ("floor = [10]", ["30", "0"]),
        ("range = [10]", ["[30,40)", "[00,10)"]),
        ("prefix = [1]", ["3*", "7*"]),
        ("file = \"numbers.csv\"", ["high", "low"]),
    ];
    use DataType::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    for (name, data_type) in [
        ("int8", Int8),
        ("int16", Int16),
        ("int32", Int32),
        ("int64", Int64),
        ("uint8", UInt8),
        ("uint16", UInt16),
        ("uint32", UInt32),
        ("uint64", UInt64),
    ] {
        cases.push(case(name, cast(&integers, &data_type), ["39", "7"], &levels));
    }
    let floats = twice::<f64, Float64Array>(39.5, -0.25);
    let levels = [
        ("floor = [10]", ["30.0", "-10.0"]),
        ("range = [10]", ["[30,40)", "[-10,00)"]),
        ("file = \"numbers.csv\"", ["high", "low"]),
    ];
    for (name, data_type) in
        [("float16", DataType::Float16), ("float32", DataType::Float32), ("float64", DataType::Float64)]
    {
        cases.push(case(name, cast(&floats, &data_type), ["39.5", "-0.25"], &levels));
    }
    let decimals = twice::<i128, Decimal128Array>(3_950_000_000_000, -25_000_000_000);
    let levels = [
        ("floor = [10]", ["390.00", "-10.00"]),
        ("floor = [0.5]", ["395.00", "-2.50"]),
        ("range = [100]", ["[300,400)", "[-100,000)"]),
        ("file = \"numbers.csv\"", ["high", "low"]),
    ];
    for (name, data_type) in [
        ("decimal32", DataType::Decimal32(9, 2)),
        ("decimal64", DataType::Decimal64(18, 2)),
        ("decimal128", DataType::Decimal128(30, 2)),
        ("decimal256", DataType::Decimal256(30, 2)),
        ("large decimal256", DataType::Decimal256(60, 2)),
    ] {
        cases.push(case(name, cast(&decimals, &data_type), ["395.00", "-2.50"], &levels));
    }
    let words = twice::<&str, StringArray>("a word of more than twelve bytes", "b");
    let levels = [("prefix = [2]", ["a *", "b*"]), ("file = \"words.csv\"", ["long", "short"])];
    for (name, data_type) in [
        ("utf8", DataType::Utf8),
        ("large utf8", DataType::LargeUtf8),
        ("utf8 view", DataType::Utf8View),
        ("dictionary", DataType::Dictionary(Box::new(UInt8), Box::new(DataType::Utf8))),
        ("large dictionary", DataType::Dictionary(Box::new(Int64), Box::new(DataType::LargeUtf8))),
    ] {
        let as_is = ["a word of more than twelve bytes", "b"];
        cases.push(case(name, cast(&words, &data_type), as_is, &levels));
    }
    // An entry that no row uses, one that stands twice, and one that is NULL, beside a NULL key.
    let entries = StringArray::from(vec![Some("unused"), Some("a"), Some("a"), Some("b"), None]);
    let keys = Int32Array::from(vec![Some(3), Some(1), Some(2), Some(3), Some(4), None]);
    let awkward = DictionaryArray::<Int32Type>::new(keys, Arc::new(entries));
    let levels = [("prefix = [1]", ["a*", "b*"])];
    cases.push(case("awkward dictionary", Arc::new(awkward), ["a", "b"], &levels));
    let numbers = Int64Array::from(vec![39, 7, 39]);
    let keys = Int8Array::from(vec![Some(0), Some(2), Some(1), Some(1), None, None]);
    let of_numbers = DictionaryArray::<Int8Type>::new(keys, Arc::new(numbers));
    cases.push(case(
        "dictionary of numbers",
        Arc::new(of_numbers),
        ["39", "7"],
        &[("floor = [10]", ["30", "0"])],
    ));
    cases.push(case("boolean", twice::<bool, BooleanArray>(true, false), ["true", "false"], &[]));

    let date32 = twice::<i32, Date32Array>(-1, 19_782);
    let levels = [
        ("date = [\"month\"]", ["1969-12-01", "2024-02-01"]),
        ("period = [\"quarter\"]", ["1969-Q4", "2024-Q1"]),
        ("period = [\"decade\"]", ["1960s", "2020s"]),
    ];
    cases.push(case("date32", date32, ["1969-12-31", "2024-02-29"], &levels));
    let moments = twice::<i64, TimestampSecondArray>(-1, 1_709_247_600); // 2024-02-29T23:00:00Z
    let moment = |unit, zone: Option<&str>| DataType::Timestamp(unit, zone.map(Into::into));
    let plain = ["1969-12-31T23:59:59", "2024-02-29T23:00:00"];
    let months = [("date = [\"month\"]", ["1969-12-01T00:00:00", "2024-02-01T00:00:00"])];
    let date64 = cast(&cast(&moments, &DataType::Date32), &DataType::Date64);
    cases.push(case("date64", date64, ["1969-12-31T00:00:00", "2024-02-29T00:00:00"], &months));
    for (name, unit) in [
        ("seconds", TimeUnit::Second),
        ("milliseconds", TimeUnit::Millisecond),
        ("microseconds", TimeUnit::Microsecond),
        ("nanoseconds", TimeUnit::Nanosecond),
    ] {
        cases.push(case(name, cast(&moments, &moment(unit, None)), plain, &months));
        let zoned = |zone: &str| {
            let moments = moments.as_primitive::<TimestampSecondType>().clone().with_timezone("UTC");
            cast(&(Arc::new(moments) as ArrayRef), &moment(unit, Some(zone)))
        };
        let utc = ["1969-12-31T23:59:59Z", "2024-02-29T23:00:00Z"];
        let months = [("date = [\"month\"]", ["1969-12-01T00:00:00Z", "2024-02-01T00:00:00Z"])];
        cases.push(case(name, zoned("UTC"), utc, &months));
        // In Berlin both are the first hour of the next month.
        let berlin = ["1970-01-01T00:59:59+01:00", "2024-03-01T00:00:00+01:00"];
        let months = [
            ("date = [\"day\"]", ["1970-01-01T00:00:00+01:00", "2024-03-01T00:00:00+01:00"]),
            ("date = [\"year\"]", ["1970-01-01T00:00:00+01:00", "2024-01-01T00:00:00+01:00"]),
        ];
        cases.push(case(name, zoned("Europe/Berlin"), berlin, &months));
        let east = ["1970-01-01T05:29:59+05:30", "2024-03-01T04:30:00+05:30"];
        let months = [("date = [\"month\"]", ["1970-01-01T00:00:00+05:30", "2024-03-01T00:00:00+05:30"])];
        cases.push(case(name, zoned("+05:30"), east, &months));
    }
    cases
}

const FILES: [&str; 3] = ["in.parquet", "in.arrow", "in.arrows"];

fn place(values: &ArrayRef) -> Place {
    let place = Place::new();
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["k"; 6]));
    let rows = table([("x", Arc::clone(values)), ("q", keys)]);
    place.parquet(FILES[0], &rows);
    place.arrow_file(FILES[1], &rows);
    place.arrow_stream(FILES[2], &rows);
    place.write("numbers.csv", "39,high\n7,low\n39.5,high\n-0.25,low\n395.00,high\n-2.50,low\n");
    place.write("words.csv", "a word of more than twelve bytes;long\nb;short\n");
    place
}

/// Releases the input and verifies it; the cells of `x`, sorted.
#[track_caller]
fn released(place: &Place, input: &str, policy: &str) -> Vec<String> {
    place.write("p.toml", policy);
    place.run(&format!("release {input} --policy p.toml --to out --overwrite")).exit(0);
    place.run(&format!("verify out --input {input}")).exit(0);
    place.run("verify out").exit(0);
    let mut cells = texts(&place.released("out"), "x");
    cells.sort();
    cells
}

fn sorted(cells: [&str; 2]) -> Vec<String> {
    let [a, b] = cells;
    let mut cells: Vec<String> = [a, a, b, b, "-", "-"].map(str::to_owned).to_vec();
    cells.sort();
    cells
}

const HEAD: &str = "k = 2\nrows_are_individuals = true\n[columns]\n";

#[test]
fn every_type_is_released_as_it_is_and_generalized() {
    for Case { name, values, as_is, levels } in cases() {
        let place = place(&values);
        let mut bytes = None;
        for input in FILES {
            let what = format!("{name} {} in {input}", values.data_type());
            let insensitive = "x = { role = \"insensitive\" }\nq = { role = \"quasi\" }";
            assert_eq!(released(&place, input, &format!("{HEAD}{insensitive}")), sorted(as_is), "{what}");
            let part = place.files("out").remove("part-00000.parquet").unwrap();
            assert!(bytes.get_or_insert_with(|| part.clone()) == &part, "{what}: other bytes");
            let quasi =
                |levels: &str| format!("{HEAD}x = {{ role = \"quasi\"{levels} }}\nq = {{ role = \"text\" }}");
            assert_eq!(released(&place, input, &quasi("")), sorted(as_is), "{what}");
            if input == FILES[0] {
                // Both values and NULL are a class each, which shows one value.
                let cells = released(&place, input, &format!("method = \"mondrian\"\n{}", quasi("")));
                let pairs: Vec<&[String]> = cells.chunks(2).collect();
                assert!(pairs.iter().all(|pair| pair[0] == pair[1]), "{what}: {cells:?}");
                place.run("verify out").exit(0);
                assert!(cells[0] == "-" && cells[2] != cells[4] && cells[2] != "-", "{what}: {cells:?}");
            }
            for (hierarchy, expected) in levels.iter().filter(|_| input != FILES[2]) {
                let policy = quasi(&format!(", hierarchy = {{ {hierarchy} }}, min_level = 1, max_level = 1"));
                assert_eq!(released(&place, input, &policy), sorted(*expected), "{what}: {hierarchy}");
            }
        }
    }
}

#[test]
fn types_that_are_released_as_they_are_only() {
    let numbers = twice::<i64, Int64Array>(3_661, 7);
    let moments = ["01:01:01", "00:00:07"];
    let seconds = cast(&cast(&numbers, &DataType::Int32), &DataType::Time32(TimeUnit::Second));
    for data_type in [
        DataType::Time32(TimeUnit::Second),
        DataType::Time32(TimeUnit::Millisecond),
        DataType::Time64(TimeUnit::Microsecond),
        DataType::Time64(TimeUnit::Nanosecond),
    ] {
        let place = place(&cast(&seconds, &data_type));
        for input in FILES {
            let policy = format!("{HEAD}x = {{ role = \"insensitive\" }}\nq = {{ role = \"quasi\" }}");
            assert_eq!(released(&place, input, &policy), sorted(moments), "{data_type} in {input}");
            place.run(&format!("check {input} --quasi x --k 2")).exit(2).says("values of type Time");
        }
    }
    // A scale below 0 has zeros that Parquet must see.
    let hundreds = twice::<i128, Decimal128Array>(12, -1);
    let hundreds = hundreds.as_primitive::<Decimal128Type>().clone().with_precision_and_scale(5, -2).unwrap();
    let place = Place::new();
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["k"; 6]));
    place.arrow_file("in.arrow", &table([("x", Arc::new(hundreds) as ArrayRef), ("q", keys)]));
    for (x, q, expected) in [
        ("insensitive", "quasi", ["1200", "-100"]),
        ("quasi", "text", ["1200", "-100"]),
        (
            "quasi\", min_level = 1, max_level = 1, hierarchy = { floor = [1000] } #",
            "text",
            ["1000", "-1000"],
        ),
    ] {
        let policy =
            format!("{HEAD}q = {{ role = \"{q}\" }}\nx = {{ role = \"{x}\" }}").replace("#\" }", "}");
        assert_eq!(released(&place, "in.arrow", &policy), sorted(expected));
    }
}

#[test]
fn columns_without_values() {
    for values in [
        Arc::new(NullArray::new(6)) as ArrayRef,
        Arc::new(Int64Array::from(vec![None; 6])),
        Arc::new(StringArray::from(vec![None::<&str>; 6])),
        Arc::new(DictionaryArray::<Int32Type>::new(
            Int32Array::from(vec![None; 6]),
            Arc::new(StringArray::from(Vec::<&str>::new())),
        )),
        Arc::new(Date32Array::from(vec![None; 6])),
        Arc::new(Decimal128Array::from(vec![None; 6])),
    ] {
        let place = place(&values);
        let untyped = *values.data_type() == DataType::Null;
        for input in FILES {
            let what = format!("{} in {input}", values.data_type());
            for columns in [
                "x = { role = \"insensitive\" }\nq = { role = \"quasi\" }",
                "x = { role = \"quasi\", max_level = 0 }\nq = { role = \"text\" }",
            ] {
                assert_eq!(released(&place, input, &format!("{HEAD}{columns}")), ["-"; 6], "{what}");
            }
            // A column without a type is of the type that its hierarchy wants.
            let levels = ["date = [\"year\"]", "floor = [10]", "range = [10]", "prefix = [1]"];
            for level in levels.iter().filter(|_| untyped) {
                let policy = format!(
                    "{HEAD}x = {{ role = \"quasi\", max_level = 1, hierarchy = {{ {level} }} }}\nq = {{ role = \"text\" }}"
                );
                assert_eq!(released(&place, input, &policy), ["-"; 6], "{what}: {level}");
            }
        }
    }
}

#[test]
fn nested_columns_and_others_can_only_be_dropped() {
    let inner: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5, 6]));
    let field = Arc::new(Field::new("inner", DataType::Int32, true));
    let list =
        ListArray::new(Arc::clone(&field), OffsetBuffer::from_lengths([1; 6]), Arc::clone(&inner), None);
    let a_struct = StructArray::from(vec![(field, Arc::clone(&inner))]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for _ in 0..6 {
        map.keys().append_value("k");
        map.values().append_value(1);
        map.append(true).unwrap();
    }
    let bytes: ArrayRef = Arc::new(BinaryArray::from_iter_values(["a"; 6]));
    let numbers = cast(&inner, &DataType::Int64);
    for (values, kind) in [
        (Arc::new(list) as ArrayRef, "a list"),
        (Arc::new(a_struct), "a struct"),
        (Arc::new(map.finish()), "a map"),
        (Arc::clone(&bytes), "values of type Binary"),
        (cast(&bytes, &DataType::LargeBinary), "values of type LargeBinary"),
        (cast(&numbers, &DataType::Duration(TimeUnit::Microsecond)), "values of type Duration"),
    ] {
        let place = place(&values);
        for input in FILES {
            let what = format!("{} in {input}", values.data_type());
            for role in ["insensitive", "quasi"] {
                place.write(
                    "p.toml",
                    format!("{HEAD}x = {{ role = \"{role}\" }}\nq = {{ role = \"quasi\" }}"),
                );
                place
                    .run(&format!("release {input} --policy p.toml --to out"))
                    .exit(2)
                    .says(&format!("columns.x: {kind}"));
            }
            for x in [
                "[columns]\nx = { role = \"text\" }",
                "[columns]\nx = { role = \"identifier\" }",
                "others = \"drop\"\n[columns]",
            ] {
                let columns = format!("k = 2\nrows_are_individuals = true\n{x}\nq = {{ role = \"quasi\" }}");
                place.write("p.toml", columns);
                place.run(&format!("release {input} --policy p.toml --to out --overwrite")).exit(0);
                assert_eq!(place.released("out").num_columns(), 1, "{what}");
                place.run(&format!("verify out --input {input}")).exit(0);
            }
            std::fs::remove_dir_all(place.path("out")).unwrap();
            std::fs::remove_file(place.path("out.private.json")).unwrap();
        }
    }
}
