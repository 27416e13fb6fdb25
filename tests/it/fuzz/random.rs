//! Random choices and mutations.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The same choices for the same seed.
#[derive(Clone)]
pub(crate) struct Random(ChaCha8Rng);

/// Numbers at the ends of types, and others that readers trip over.
pub(crate) const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "5",
    "10",
    "-0",
    "00",
    "007",
    "0.1",
    "0.5",
    "2.5",
    "1e3",
    "1e-3",
    "1e308",
    "-1e999",
    "1e-400",
    "127",
    "-128",
    "128",
    "255",
    "256",
    "32767",
    "65536",
    "2147483647",
    "-2147483648",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "999999999999999999",
    "1000000000000000000",
    "170141183460469231731687303715884105727",
    "4e15",
    "4000000000000001",
    "0.000000000000000001",
    "123456789012345678901234567890",
    "nan",
    "inf",
    "-inf",
    "NaN",
    "0x10",
    "1_000",
    "+5",
    ".5",
    "5.",
];

/// Characters that readers trip over.
pub(crate) const ODD: &[&str] = &[
    "\0",
    "\u{feff}",
    "\u{202e}",
    "\u{200b}",
    "é",
    "e\u{301}",
    "ß",
    "İ",
    "👩\u{200d}👩\u{200d}👧",
    "\u{10ffff}",
    "\u{85}",
    "\u{2028}",
    "\r",
    "\r\n",
    "\n",
    "\t",
    "\"",
    "\"\"",
    "'",
    "\\",
    "\\u0000",
    "\\ud800",
    ",",
    ";",
    "|",
    "*",
    "%",
    "{",
    "[",
    "=",
    "#",
    " ",
    "",
];

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number below `end`; 0 where there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end.max(1) as u64) as usize
    }

    /// Once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.next_u64() as u8
    }

    /// A short text of letters, digits and now and then something odd.
    pub(crate) fn word(&mut self) -> String {
        (0..self.below(6))
            .map(|_| match self.below(8) {
                0 => self.pick(ODD).to_owned(),
                1 => self.pick(NUMBERS).to_owned(),
                _ => char::from(b'a' + self.below(6) as u8).to_string(),
            })
            .collect()
    }

    fn span(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = if self.once_in(4) { length } else { 8 };
        start..(start + self.below(most + 1)).min(length)
    }

    /// `input` with a few changes; parts may come from `others`.
    pub(crate) fn mutated(&mut self, input: &[u8], tokens: &[&str], others: &[&[u8]]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(6) {
            let span = self.span(bytes.len());
            match self.below(12) {
                0 if !bytes.is_empty() => {
                    let at = self.below(bytes.len());
                    bytes[at] ^= 1 << self.below(8);
                }
                1 if !bytes.is_empty() => {
                    let at = self.below(bytes.len());
                    bytes[at] = self.byte();
                }
                2 => drop(bytes.drain(span)),
                3 => {
                    let copy = bytes[span.clone()].to_vec();
                    let times = if self.once_in(20) { 2_000 } else { 1 + self.below(3) };
                    bytes.splice(span.end..span.end, copy.repeat(times));
                }
                4 => drop(bytes.splice(span, self.pick(ODD).bytes())),
                5 => drop(bytes.splice(span, self.pick(NUMBERS).bytes())),
                6 | 7 => drop(bytes.splice(span, self.pick(tokens).bytes())),
                8 => {
                    let other = self.pick(others);
                    let part = self.span(other.len());
                    bytes.splice(span, other[part].iter().copied());
                }
                9 => self.swap_words(&mut bytes),
                10 => {
                    // A number in place of another.
                    let digit = |b: &u8| b.is_ascii_digit();
                    let from = self.below(bytes.len());
                    if let Some(start) = bytes[from..].iter().position(digit).map(|at| from + at) {
                        let end = bytes[start..]
                            .iter()
                            .position(|b| !digit(b))
                            .map_or(bytes.len(), |at| start + at);
                        bytes.splice(start..end, self.pick(NUMBERS).bytes());
                    }
                }
                _ if self.once_in(3) => bytes.truncate(span.start),
                _ => bytes.insert(span.start, self.byte()),
            }
        }
        bytes.truncate(1 << 16);
        bytes
    }

    fn swap_words(&mut self, bytes: &mut Vec<u8>) {
        let mut words: Vec<Vec<u8>> =
            bytes.split_inclusive(|b| b" ,;\n=\t({".contains(b)).map(<[u8]>::to_vec).collect();
        if words.len() > 1 {
            let (a, b) = (self.below(words.len()), self.below(words.len()));
            words.swap(a, b);
            *bytes = words.concat();
        }
    }
}
