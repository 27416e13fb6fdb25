//! Lists of names: sections of values that share their labels.
//!
//! A list is a text. A line `= Western Europe < Europe` begins a section and states its labels from
//! level 1 on; each other line is one value of the section by all its names, separated by `;`.

use std::borrow::Cow;
use std::sync::OnceLock;

use hashbrown::HashMap;

use super::Rule;

/// A list of names.
pub(super) struct NamedList {
    text: &'static str,
    is_folded: bool,
    index: OnceLock<Index>,
}

/// The labels of each section, and the section of each name.
struct Index {
    sections: Vec<Vec<&'static str>>,
    of_names: HashMap<String, usize>,
}

impl NamedList {
    /// Creates a list whose values match exactly.
    pub(super) const fn exact(text: &'static str) -> Self {
        Self { text, is_folded: false, index: OnceLock::new() }
    }

    /// Creates a list whose values match by their letters and digits, in any case, with `&` as
    /// `and`: `trinidad & tobago` is `Trinidad and Tobago`.
    pub(super) const fn folded(text: &'static str) -> Self {
        Self { text, is_folded: true, index: OnceLock::new() }
    }

    /// Returns the form in which names are compared.
    fn key(&self, name: &str) -> String {
        if !self.is_folded {
            return name.to_owned();
        }
        let mut key = String::with_capacity(name.len());
        for c in name.chars() {
            match c {
                '&' => key.push_str("and"),
                c => key.extend(c.to_lowercase().filter(|c| c.is_alphanumeric())),
            }
        }
        key
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let mut index = Index { sections: Vec::new(), of_names: HashMap::new() };
            for line in self.text.lines() {
                match line.strip_prefix("= ") {
                    Some(labels) => index.sections.push(labels.split(" < ").collect()),
                    None => {
                        let section = index.sections.len().saturating_sub(1);
                        index.of_names.extend(line.split(';').map(|name| (self.key(name), section)));
                    }
                }
            }
            index
        })
    }
}

/// Returns the letters and digits of a name in lower case.
fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric())
}

impl Rule for NamedList {
    fn label(&self, text: &str, level: usize) -> Option<Cow<'static, str>> {
        let index = self.index();
        let section = index.sections.get(*index.of_names.get(&self.key(text))?)?;
        section.get(level.checked_sub(1)?).map(|label| Cow::Borrowed(*label))
    }

    fn label_naively(&self, text: &str, level: usize) -> Option<String> {
        let wanted: Vec<char> = letters(&text.replace('&', "and")).collect();
        let is_same = |name: &str| {
            if self.is_folded { letters(name).eq(wanted.iter().copied()) } else { name == text }
        };
        let mut section = "";
        for line in self.text.lines() {
            if line.starts_with('=') {
                section = line;
            } else if line.split(';').any(is_same) {
                let labels: Vec<&str> = section.trim_start_matches('=').split('<').map(str::trim).collect();
                return Some((*labels.get(level.checked_sub(1)?)?).to_owned());
            }
        }
        None
    }

    fn is_label(&self, label: &str, level: usize) -> bool {
        level.checked_sub(1).is_some_and(|level| {
            self.index().sections.iter().any(|section| section.get(level).is_some_and(|one| *one == label))
        })
    }

    fn examples(&self) -> Vec<String> {
        let values = self.text.lines().filter(|line| !line.starts_with("= "));
        values.flat_map(|line| line.split(';')).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_belongs_to_one_value() {
        for (text, is_folded) in [
            (include_str!("../../data/known/country.txt"), true),
            (include_str!("../../data/known/us_state.txt"), true),
            (include_str!("../../data/known/isced.txt"), false),
            (include_str!("../../data/known/life_stage.txt"), false),
        ] {
            let list = NamedList { text, is_folded, index: OnceLock::new() };
            let lines: Vec<Vec<String>> = text
                .lines()
                .filter(|l| !l.starts_with('='))
                .map(|l| l.split(';').map(|n| list.key(n)).collect())
                .collect();
            for (at, names) in lines.iter().enumerate() {
                for name in names {
                    assert!(
                        !name.is_empty() && lines[..at].iter().all(|other| !other.contains(name)),
                        "{name}"
                    );
                }
            }
        }
    }
}
