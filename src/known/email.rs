//! `email`: an e-mail address becomes its domain and its top-level domain.
//!
//! Reads text with something before its last `@` and a domain behind it: labels of 1 to 63 ASCII
//! letters, digits and hyphens, none at a label's end, at least two of them, the last not a number,
//! nor `other`, which is no top-level domain but the label of values that are no addresses.
//! Labels are in lower case: `example.org`, `org`. A domain can belong to one person or a small
//! office, so that it identifies as much as the address.

use std::borrow::Cow;

use super::{Input, KnownRow, OTHER, Rule};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "email",
        summary: "an e-mail address to its domain and top-level domain",
        parameters: "",
        example: "hierarchy = { known = \"email\" }",
        paper: None,
    },
    words: &[],
    levels: &["domain", "top_level_domain"],
    input: Input::Text,
    source: "e-mail addresses",
    rule: || &Email,
};

/// The rule that the [module](self) describes.
struct Email;

fn is_domain_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn is_last_label(label: &str) -> bool {
    is_domain_label(label)
        && !label.bytes().all(|byte| byte.is_ascii_digit())
        && !label.eq_ignore_ascii_case(OTHER)
}

fn is_domain(domain: &str) -> bool {
    domain
        .rsplit_once('.')
        .is_some_and(|(others, last)| is_last_label(last) && others.split('.').all(is_domain_label))
}

impl Rule for Email {
    fn label(&self, text: &str, level: usize) -> Option<Cow<'static, str>> {
        let (_, domain) =
            text.rsplit_once('@').filter(|(local, domain)| !local.is_empty() && is_domain(domain))?;
        let label = match level {
            1 => domain,
            2 => domain.rsplit('.').next()?,
            _ => return None,
        };
        Some(label.to_ascii_lowercase().into())
    }

    fn label_naively(&self, text: &str, level: usize) -> Option<String> {
        let chars: Vec<char> = text.chars().collect();
        let at = chars.iter().rposition(|c| *c == '@').filter(|at| *at > 0)?;
        let mut labels = vec![String::new()];
        for c in chars.into_iter().skip(at + 1) {
            match (c, labels.last_mut()?) {
                ('.', _) => labels.push(String::new()),
                ('a'..='z' | 'A'..='Z' | '0'..='9', label) => label.push(c.to_ascii_lowercase()),
                ('-', label) if !label.is_empty() => label.push('-'),
                _ => return None,
            }
        }
        let last = labels.last()?.clone();
        let is_number = last.chars().all(char::is_numeric);
        if labels.len() < 2
            || is_number
            || last == "other"
            || labels.iter().any(|l| l.is_empty() || l.len() > 63 || l.ends_with('-'))
        {
            return None;
        }
        [labels.join("."), last].into_iter().nth(level.checked_sub(1)?)
    }

    fn is_label(&self, label: &str, level: usize) -> bool {
        let is_form = match level {
            1 => is_domain(label),
            2 => is_last_label(label),
            _ => false,
        };
        is_form && !label.bytes().any(|byte| byte.is_ascii_uppercase())
    }

    fn examples(&self) -> Vec<String> {
        [
            "a@example.org",
            "b.c@Example.ORG",
            "d@mail.example.org",
            "\"e@f\"@x-1.co.uk",
            "g+h@xn--bcher-kva.example",
        ]
        .map(str::to_owned)
        .into()
    }
}

#[cfg(test)]
mod tests {
    use crate::known::tests::labels;

    #[test]
    fn addresses_by_hand() {
        for (value, path) in [
            ("Ann@Mail.Example.ORG", "mail.example.org < org"),
            ("a@b@c.de", "c.de < de"),
            ("ü@x-1.co.uk", "x-1.co.uk < uk"),
        ] {
            assert_eq!(labels("email", value).as_deref(), Some(path), "{value}");
        }
        let long = format!("a@{}.org", "x".repeat(64));
        for outside in [
            "ann",
            "@x.org",
            "a@localhost",
            "a@1.2.3.4",
            "a@b.OTHER",
            "a@x..org",
            "a@-x.org",
            "a@x-.org",
            "a@x.org.",
            "a@x.org ",
            "a@ü.de",
            &long,
        ] {
            assert_eq!(labels("email", outside), None, "{outside}");
        }
    }
}
