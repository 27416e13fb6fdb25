//! Hierarchy files: read, made into levels, applied.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use datafusion_kanon::internals::generalize::{Hierarchy, hierarchy};

use super::columns::agree;
use super::random::{NUMBERS, Random};
use super::{Target, blameless, shows_no_cell};

pub(super) struct HierarchyFiles;

/// The column's name; a file may begin with it.
const COLUMN: &str = "marital";

impl Target for HierarchyFiles {
    const NAME: &'static str = "hierarchy";
    const TOKENS: &'static [&'static str] =
        &[COLUMN, ",", ";", "\n", "*", "\"", ",*\n", ";*\n", "zqxj1", "zqxj2", "1990-01-01", "true"];

    fn random(&self, random: &mut Random) -> Vec<u8> {
        let (rows, levels) = (1 + random.below(12), 1 + random.below(4));
        let delimiter = random.pick(&[",", ";"]);
        let end = random.pick(&["\n", "\n", "\r\n", "\n\n"]);
        let mut text = if random.once_in(8) { "\u{feff}".to_owned() } else { String::new() };
        let quoted = random.once_in(4);
        let mut line = |cells: &[String]| {
            let write = |cell: &String| match quoted {
                true => format!("\"{}\"", cell.replace('"', "\"\"")),
                false => cell.replace(['"', '\r', '\n', ',', ';'], "_"),
            };
            text += &(cells.iter().map(write).collect::<Vec<_>>().join(delimiter) + end);
        };
        if random.once_in(3) {
            line(
                &[vec![COLUMN.to_owned()], (0..levels).map(|level| format!("level {level}")).collect()]
                    .concat(),
            );
        }
        let odd = random.once_in(3);
        for row in 0..rows {
            let value = match random.below(6) {
                0 => random.pick(NUMBERS).to_owned(),
                1 if odd => random.word(),
                _ => format!("zqxj{row}"),
            };
            let labels = (1..=levels).map(|level| match () {
                () if odd && random.once_in(20) => random.word(),
                () if level == levels => "*".to_owned(),
                () => format!("zqxj-{level}-{}", row >> level),
            });
            line(&[value].into_iter().chain(labels).collect::<Vec<_>>());
        }
        text.into_bytes()
    }

    fn attempt(&mut self, input: &[u8]) -> Result<(), String> {
        // A file that is no UTF-8 is refused where it is opened.
        let text = String::from_utf8_lossy(input);
        let table = match hierarchy::parse_csv(&text, COLUMN) {
            Ok(table) => table,
            Err(error) => return blameless(&error, ""),
        };
        let rows = table.rows();
        if let Some(expected) = read_plainly(&text)
            && expected != rows
        {
            return Err("it is read otherwise than line by line, split at the delimiter".into());
        }
        let levels = hierarchy::ROW.of(table.clone());
        let levels = levels.map_err(|error| format!("a table was read, but: {error}"))?;
        shows_no_cell(&format!("{table:?} {levels:?}"), "")?;
        if levels.len() > 50 {
            return Ok(());
        }
        let known = rows.iter().map(|row| row[0].as_str()).take(30);
        let others =
            ["", " ", "*", "zqxj1 ", "ZQXJ1", "1", "1.0", "true", "1990-01-01", "NaN", "-0", "missing"];
        let values = known.chain(others).map(Some).chain([None]);
        let texts: ArrayRef = Arc::new(values.collect::<StringViewArray>());
        let safe = CastOptions { safe: true, ..CastOptions::default() };
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        for of in [
            DataType::Utf8View,
            DataType::Utf8,
            dictionary,
            DataType::Int64,
            DataType::Float64,
            DataType::Date32,
            DataType::Boolean,
        ] {
            let values = cast_with_options(&texts, &of, &safe).map_err(|error| error.to_string())?;
            let hierarchy =
                Hierarchy::new(&of, levels.clone()).map_err(|error| format!("over {of}: {error}"))?;
            agree(&hierarchy, &values)?;
        }
        for (level, generalizer) in levels.iter().enumerate().filter(|(_, generalizer)| !generalizer.is_top())
        {
            let mut labels: Vec<&str> = rows.iter().map(|row| row[level + 1].as_str()).collect();
            labels.sort_unstable();
            labels.dedup();
            let labels: ArrayRef = Arc::new(StringViewArray::from(labels));
            let leaves = generalizer.leaves(&labels).ok_or("no leaves")?;
            if leaves.iter().sum::<u64>() != rows.len() as u64
                || generalizer.all_leaves() != Some(rows.len() as u64)
            {
                return Err(format!("level {level}: the leaves are not the rows"));
            }
        }
        Ok(())
    }
}

/// The rows of a file without quotes and carriage returns, the obvious way; `None` for others.
fn read_plainly(text: &str) -> Option<Vec<Vec<String>>> {
    if text.contains(['"', '\r']) {
        return None;
    }
    // The reader of CSV takes a second byte order mark away.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let split = |delimiter: char| -> Vec<Vec<String>> {
        let lines = text.split('\n').filter(|line| !line.is_empty());
        lines.map(|line| line.split(delimiter).map(str::to_owned).collect()).collect()
    };
    let even = |rows: &Vec<Vec<String>>| {
        rows.iter().all(|row| row.len() == rows[0].len()) && rows.first().is_some_and(|row| row.len() > 1)
    };
    let mut rows = [split(';'), split(',')].into_iter().find(even)?;
    if rows[0][0] == COLUMN {
        rows.remove(0);
    }
    Some(rows)
}
