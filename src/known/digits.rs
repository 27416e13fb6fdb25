//! Codes whose digits are a hierarchy: each level keeps fewer of them.

use std::borrow::Cow;

use super::Rule;

/// A classification by digits.
pub(super) struct Digits {
    /// The first two digits of all codes, separated by spaces; `31-33` stands for several that are
    /// one section.
    pub(super) sections: &'static str,
    /// The numbers of digits that a code may have.
    pub(super) lengths: [usize; 2],
    /// How many digits each level keeps; at two digits, the section.
    pub(super) kept: &'static [usize],
}

impl Digits {
    /// Returns the section of a code by its first two digits; one digit stands for itself.
    fn section<'a>(&self, code: &'a str) -> Option<&'a str>
    where
        'static: 'a,
    {
        let head = code.get(..2).unwrap_or(code);
        let mut sections = self.sections.split(' ');
        if head.len() < 2 {
            return sections.any(|section| section.starts_with(head)).then_some(head);
        }
        // Both ends of a range of sections begin with the same digit.
        sections.find(|section| match section.split_once('-') {
            Some((first, last)) => first <= head && head <= last,
            None => *section == head,
        })
    }

    fn is_code(&self, text: &str) -> bool {
        let [shortest, longest] = self.lengths;
        (shortest..=longest).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// Returns the name of a range of sections, if the text is one.
    fn range(&self, text: &str) -> Option<&'static str> {
        self.sections.split(' ').find(|section| *section == text && section.contains('-'))
    }
}

impl Rule for Digits {
    fn label(&self, text: &str, level: usize) -> Option<Cow<'static, str>> {
        let kept = *self.kept.get(level.checked_sub(1)?)?;
        if let Some(range) = self.range(text) {
            return Some(range.into());
        }
        let section = self.section(text).filter(|_| self.is_code(text))?;
        let label = if kept == 2 { section } else { text.get(..kept).unwrap_or(text) };
        Some(label.to_owned().into())
    }

    fn label_naively(&self, text: &str, level: usize) -> Option<String> {
        let kept = *self.kept.get(level.checked_sub(1)?)?;
        if text.contains('-') && self.sections.split_whitespace().any(|section| section == text) {
            return Some(text.to_owned());
        }
        let digits: Vec<u32> = text.chars().map(|c| c.to_digit(10)).collect::<Option<_>>()?;
        if digits.len() < self.lengths[0] || digits.len() > self.lengths[1] {
            return None;
        }
        let label: String = text.chars().take(kept).collect();
        for section in self.sections.split_whitespace() {
            let ends: Vec<u32> = section.split('-').filter_map(|end| end.parse().ok()).collect();
            match digits[..] {
                [first, second, ..] if (*ends.first()?..=*ends.last()?).contains(&(first * 10 + second)) => {
                    return Some(if kept == 2 { section.to_owned() } else { label });
                }
                [first] if ends.first()? / 10 == first => return Some(label),
                _ => {}
            }
        }
        None
    }

    fn is_label(&self, label: &str, level: usize) -> bool {
        self.label(label, level).is_some_and(|own| own == label)
    }

    fn examples(&self) -> Vec<String> {
        let mut all = Vec::new();
        for section in self.sections.split(' ') {
            let ends: Vec<&str> = section.split('-').collect();
            if ends.len() > 1 {
                all.push(section.to_owned());
            }
            for end in ends {
                let more = ["", "1", "19", "192", "1920"];
                all.extend(
                    more.map(|more| format!("{end}{more}")).into_iter().filter(|code| self.is_code(code)),
                );
            }
        }
        all
    }
}
