//! Codes of a classification of diseases: category, block and chapter by ranges of codes.
//!
//! A list is a text with one line per chapter: its range, then the ranges of its blocks
//! (`E00-E90: E00-E07 E10-E14`). The form of a code tells its category, and the block that holds the
//! category tells the rest. A category inside a block counts whether or not the edition uses it.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::Rule;

/// A classification by ranges of codes.
pub(super) struct CodeRanges {
    text: &'static str,
    /// Returns the number of characters of the category of a code in upper case.
    category: fn(&[u8]) -> Option<usize>,
    blocks: OnceLock<Vec<Block>>,
}

struct Block {
    first: &'static str,
    last: &'static str,
    range: &'static str,
    chapter: &'static str,
}

impl CodeRanges {
    /// Creates the classification; `category` returns the length of the category that a code in
    /// upper case, without a dot, begins with.
    pub(super) const fn new(text: &'static str, category: fn(&[u8]) -> Option<usize>) -> Self {
        Self { text, category, blocks: OnceLock::new() }
    }

    /// Returns the blocks in the order of their codes. Codes of one kind have the same length and
    /// letters, so that their order is that of texts.
    fn blocks(&self) -> &[Block] {
        self.blocks.get_or_init(|| {
            let mut blocks = Vec::new();
            for (chapter, ranges) in self.text.lines().filter_map(|line| line.split_once(": ")) {
                blocks.extend(ranges.split(' ').filter_map(|range| {
                    let (first, last) = range.split_once('-')?;
                    Some(Block { first, last, range, chapter })
                }));
            }
            blocks.sort_by_key(|block| block.first);
            blocks
        })
    }

    /// Returns the category of a code and the block that holds it.
    fn find(&self, text: &str) -> Option<(String, &Block)> {
        // The longest codes have seven characters and a dot.
        if text.len() > 8 || !text.is_ascii() {
            return None;
        }
        let code = text.to_ascii_uppercase();
        let (head, tail) = code.split_once('.').unwrap_or((&code, ""));
        let length = (self.category)(head.as_bytes())?;
        // A dot stands behind the category and before something.
        let is_dotted = head.len() < code.len();
        if is_dotted && (head.len() != length || tail.is_empty()) {
            return None;
        }
        let (category, rest) = head.split_at_checked(length)?;
        let is_plain = rest.bytes().chain(tail.bytes()).all(|byte| byte.is_ascii_alphanumeric());
        if !is_plain || rest.len() + tail.len() > 4 {
            return None;
        }
        let after = self.blocks().partition_point(|block| block.first <= category);
        let block = self.blocks().get(after.checked_sub(1)?)?;
        (category <= block.last && category.len() == block.last.len()).then(|| (category.to_owned(), block))
    }
}

/// Reads the letter and the number of a category, each if it has one.
fn parts(code: &str) -> Option<(Option<char>, u32)> {
    let letter = code.chars().next().filter(char::is_ascii_alphabetic);
    let number = if letter.is_some() { code.get(1..)? } else { code };
    Some((letter, number.parse().ok()?))
}

/// Returns whether a range of one or two letters holds a category.
fn holds(range: &str, category: &str) -> Option<bool> {
    let (first, last) = range.split_once('-')?;
    let category = parts(category)?;
    Some(parts(first)? <= category && category <= parts(last)?)
}

impl Rule for CodeRanges {
    fn label(&self, text: &str, level: usize) -> Option<Cow<'static, str>> {
        let (category, block) = self.find(text)?;
        match level {
            1 => Some(category.into()),
            2 => Some(block.range.into()),
            3 => Some(block.chapter.into()),
            _ => None,
        }
    }

    fn label_naively(&self, text: &str, level: usize) -> Option<String> {
        let code: Vec<char> = text.chars().map(|c| c.to_ascii_uppercase()).collect();
        for chapter in self.text.lines() {
            let (name, blocks) = chapter.split_once(':')?;
            for block in blocks.split_whitespace() {
                let (category, rest) = code.split_at_checked(block.find('-')?)?;
                let category: String = category.iter().collect();
                let alike =
                    |a: char, b: char| a.is_ascii_digit() == b.is_ascii_digit() && b.is_ascii_alphanumeric();
                if !block.chars().zip(category.chars()).all(|(a, b)| alike(a, b))
                    || holds(block, &category) != Some(true)
                {
                    continue;
                }
                let rest: String = rest.iter().collect();
                let is_rest = match rest.strip_prefix('.') {
                    Some(rest) => {
                        (1..=4).contains(&rest.len()) && rest.chars().all(|c| c.is_ascii_alphanumeric())
                    }
                    None => rest.len() <= 4 && rest.chars().all(|c| c.is_ascii_alphanumeric()),
                };
                let labels = [category, block.to_owned(), name.to_owned()];
                return labels.into_iter().nth(level.checked_sub(1)?).filter(|_| is_rest);
            }
        }
        None
    }

    fn is_label(&self, label: &str, level: usize) -> bool {
        match level {
            1 => self.find(label).is_some_and(|(category, _)| category == label),
            2 => self.blocks().iter().any(|block| block.range == label),
            3 => self.blocks().iter().any(|block| block.chapter == label),
            _ => false,
        }
    }

    fn examples(&self) -> Vec<String> {
        let ends = self.blocks().iter().flat_map(|block| [block.first, block.last]);
        let mut codes: Vec<String> = ends.flat_map(|code| [code.to_owned(), format!("{code}.1")]).collect();
        codes.sort();
        codes.dedup();
        codes
    }
}
