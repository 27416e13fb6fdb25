//! The text of `[input]` in a proposed policy, with its comments: how the files of the input are written.

use super::Proposal;
use super::policy_text::PolicyText;
use crate::parameter::toml_text;
use crate::policy::{CsvOptions, NumberFormat};

impl PolicyText {
    /// Writes the CSV options that differ from the usual ones.
    pub(super) fn input(&mut self, csv: &CsvOptions, proposal: &Proposal) {
        let Proposal { unclear_dates, unclear_numbers, .. } = proposal;
        let usual = CsvOptions::default();
        if *csv == usual && unclear_dates.is_empty() && unclear_numbers.is_empty() {
            return;
        }
        self.comment("The format of the input.");
        if let Some(delimiter) = csv.delimiter {
            let mark =
                if delimiter == b'\t' { "a tab".to_owned() } else { format!("`{}`", char::from(delimiter)) };
            self.comment(&format!("The cells of the first lines are separated by {mark}."));
        }
        if let Some(encoding) = csv.encoding {
            self.comment(&format!(
                "The input is not in UTF-8, but most likely in {}; check accented letters in the release.",
                encoding.name()
            ));
        }
        for format in &csv.date_formats {
            let form = format.text().replace("%d", "DD").replace("%m", "MM").replace("%Y", "YYYY");
            let form = form.replace("%b", "MON").replace("%H", "hh").replace("%M", "mm").replace("%S", "ss");
            self.comment(&format!("There are dates that are written {form}."));
        }
        if csv.numbers != usual.numbers {
            let NumberFormat { decimal, thousands } = csv.numbers;
            let thousands =
                thousands.map(|mark| format!(" and `{mark}` between thousands")).unwrap_or_default();
            self.comment(&format!("There are numbers with `{decimal}` before their fraction{thousands}."));
        }
        if !unclear_dates.is_empty() {
            let formats: Vec<String> = unclear_dates.iter().map(|format| toml_text(format.text())).collect();
            self.comment(&format!(
                "There are dates that fit several formats: {}. Ask which one holds, then add it to date_format; until then they stay text.",
                formats.join(" and ")
            ));
        }
        if let [one, other] = unclear_numbers.as_slice() {
            let of = |format: &NumberFormat| {
                let thousands = format
                    .thousands
                    .map(|mark| format!(" with thousands = {}", toml_text(&mark.to_string())));
                format!(
                    "decimal = {}{}",
                    toml_text(&format.decimal.to_string()),
                    thousands.unwrap_or_default()
                )
            };
            let until = match *one == usual.numbers {
                true => "a point is read as the mark before a fraction",
                false => "they stay text",
            };
            self.comment(&format!(
                "There are numbers that fit {} as well as {}. Ask which one holds, then write it here; until then {until}.",
                of(one),
                of(other)
            ));
        }
        if !csv.has_header() {
            self.comment(
                "The first line looks like data, not like names; if it holds names, write `header = true`.",
            );
        }
        if csv.nulls != usual.nulls {
            self.comment(
                "Some cells hold a word instead of a value: `nulls` lists those that mean \"missing\", in all columns.",
            );
        }
        self.line("[input]");
        if let Some(delimiter) = csv.delimiter {
            self.line(&format!("delimiter = {}", toml_text(&char::from(delimiter).to_string())));
        }
        if !csv.has_header() {
            self.line("header = false");
        }
        if let Some(encoding) = csv.encoding {
            self.line(&format!("encoding = {}", toml_text(&encoding.name().to_ascii_lowercase())));
        }
        match csv.date_formats.as_slice() {
            [] => {}
            [one] => self.line(&format!("date_format = {}", toml_text(one.text()))),
            several => {
                let all: Vec<String> = several.iter().map(|one| toml_text(one.text())).collect();
                self.line(&format!("date_format = [{}]", all.join(", ")));
            }
        }
        if csv.numbers.decimal != usual.numbers.decimal {
            self.line(&format!("decimal = {}", toml_text(&csv.numbers.decimal.to_string())));
        }
        if let Some(mark) = csv.numbers.thousands {
            self.line(&format!("thousands = {}", toml_text(&mark.to_string())));
        }
        if csv.nulls != usual.nulls {
            let nulls: Vec<String> = csv.nulls.iter().map(|text| toml_text(text)).collect();
            self.line(&format!("nulls = [{}]", nulls.join(", ")));
        }
        self.blank();
    }
}
