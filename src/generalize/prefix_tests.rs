//! Prefixes by hand, and the laws of their characters.

use arrow::array::{Int32Array, StringArray, StringViewArray};
use proptest::prelude::*;

use super::*;
use crate::generalize::laws_tests::agree;

fn prefix(length: usize) -> Prefix {
    Prefix::new(length).unwrap()
}

#[test]
fn one_mark_whatever_it_hides() {
    let zips: ArrayRef = Arc::new(StringArray::from(vec!["02139", "0213", "021", "0", "", "***"]));
    let expected: ArrayRef = Arc::new(StringViewArray::from(vec!["021*", "021*", "021*", "0*", "*", "****"]));
    assert_eq!(&agree(&prefix(3), &zips).unwrap(), &expected);
    let codes: ArrayRef = Arc::new(Int32Array::from(vec![90210, -1234]));
    let expected: ArrayRef = Arc::new(StringViewArray::from(vec!["902*", "-12*"]));
    assert_eq!(&agree(&prefix(3), &codes).unwrap(), &expected);
}

fn masked(length: usize, side: Side, width: Option<usize>) -> Prefix {
    Prefix::masked(length, side, width).unwrap()
}

#[test]
fn the_last_characters_and_a_fixed_width() {
    let zips: ArrayRef = Arc::new(StringArray::from(vec!["02139", "02", "", "021391234", "北京市东城区"]));
    for (level, expected) in [
        (masked(3, Side::Right, None), ["*139", "*02", "*", "*234", "*东城区"]),
        (masked(3, Side::Left, Some(5)), ["021**", "02***", "*****", "021**", "北京市**"]),
        (masked(3, Side::Right, Some(5)), ["**139", "***02", "*****", "**234", "**东城区"]),
    ] {
        let labels = agree(&level, &zips).unwrap();
        assert_eq!(labels.as_string_view().iter().flatten().collect::<Vec<_>>(), expected);
    }
    let label = |level: &Prefix, text: &str| level.is_label(&Value::Text(text.into()));
    let right = masked(2, Side::Right, None);
    assert!(label(&right, "*39") && label(&right, "*") && !label(&right, "*139") && !label(&right, "39"));
    let wide = masked(2, Side::Left, Some(4));
    assert!(label(&wide, "02**") && label(&wide, "****") && !label(&wide, "02*") && !label(&wide, "021*"));
    let wide = masked(2, Side::Right, Some(4));
    assert!(label(&wide, "**39") && !label(&wide, "*139") && !label(&wide, "39**"));
    assert_eq!(wide.descriptor().to_string(), "prefix:2 side:right width:4");
    assert!(masked(1, Side::Right, Some(4)).check_coarsens(&wide).is_ok());
    assert!(masked(1, Side::Left, Some(4)).check_coarsens(&wide).is_err());
    assert!(masked(1, Side::Right, Some(5)).check_coarsens(&wide).is_err());
    assert!(Prefix::masked(4, Side::Left, Some(4)).is_err());
    assert!(Prefix::masked(4, Side::Left, Some(1_000)).is_ok());
    assert!(Prefix::masked(4, Side::Left, Some(1_001)).is_err());
    assert_eq!(["left", "right"].map(Side::parse), [Ok(Side::Left), Ok(Side::Right)]);
}

#[test]
fn characters_are_not_cut() {
    let labels = |level: &Prefix, words: &[&str]| {
        let words: ArrayRef = Arc::new(StringArray::from(words.to_vec()));
        let labels = agree(level, &words).unwrap();
        labels.as_string_view().iter().flatten().map(str::to_owned).collect::<Vec<_>>()
    };
    let words = ["Łódź", "北京市", "🦀🦀🦀", "e\u{301}te"];
    assert_eq!(labels(&prefix(2), &words), ["Łó*", "北京*", "🦀🦀*", "e\u{301}t*"]);
    // A letter with its accents (here two), a family, a flag, a syllable, CR LF.
    let (accents, family) = ("Zu\u{308}\u{301}rich", "👩\u{200d}👩\u{200d}👧ab");
    let words = [accents, family, "🇨🇭🇩🇪🇦🇹", "\u{1112}\u{1161}\u{11ab}글말", "a\r\nb", "e\u{301}", "Zu"];
    let kept = ["Zu\u{308}\u{301}*", "👩\u{200d}👩\u{200d}👧a*", "🇨🇭🇩🇪*", "\u{1112}\u{1161}\u{11ab}글*"];
    assert_eq!(labels(&prefix(2), &words), [&kept[..], &["a\r\n*", "e\u{301}*", "Zu*"]].concat());
    let last = masked(3, Side::Right, Some(5));
    let words = ["hiru\u{308}Z", "ba👩\u{200d}👩\u{200d}👧", "🇨🇭🇩🇪🇦🇹🇨🇿", "b\r\na", "abu\u{308}"];
    let kept = ["**ru\u{308}Z", "**ba👩\u{200d}👩\u{200d}👧", "**🇩🇪🇦🇹🇨🇿", "**b\r\na", "**abu\u{308}"];
    assert_eq!(labels(&last, &words), kept);
    assert_eq!(["", "abc", "u\u{308}", "a\r\n", "\n\r"].map(characters), [0, 3, 1, 2, 2]);
}

/// A mark that is a part of the character beside it is none of the marks up to the width, and the
/// codes say so as the labels do.
#[test]
fn marks_that_belong_to_a_character() {
    let pairs: ArrayRef = Arc::new(StringArray::from(vec!["a\u{600}", "a\u{600}*", "a\u{600}**x"]));
    let level = masked(3, Side::Left, Some(5));
    let labels = agree(&level, &pairs).unwrap();
    let labels: Vec<&str> = labels.as_string_view().iter().flatten().collect();
    assert_eq!(labels, ["a\u{600}***", "a\u{600}****", "a\u{600}****"]);
    let codes = level.codes(&pairs).unwrap();
    let codes: Vec<&str> = codes.as_string_view().iter().flatten().collect();
    assert_eq!(codes, ["a\u{600}", "a\u{600}*", "a\u{600}*"]);
}

#[test]
fn labels_and_levels() {
    let label = |text: &str| prefix(2).is_label(&Value::Text(text.into()));
    assert!(label("*") && label("北京*") && !label("abc*") && !label("ab") && !label(""));
    assert!(prefix(2).check_coarsens(&prefix(3)).is_ok() && prefix(3).check_coarsens(&prefix(3)).is_err());
    assert!(prefix(3).check_coarsens(&prefix(2)).unwrap_err().contains("prefixes must shrink"));
    let levels = |n: &str| ROW.of(vec![Decimal::parse(n).unwrap()]);
    assert!(levels("3").is_ok());
    assert!(["0", "-1", "1.5"].iter().all(|n| levels(n).is_err()));
    assert!(prefix(2).output_type(&DataType::Float64).is_err());
}

proptest! {
    #[test]
    fn every_side_and_width_agrees_and_nests(
        values in prop::collection::vec("[a*é北🦀👩🇨🇭\r\n\u{301}\u{200d}\u{600}\u{1112}\u{1161}\u{915}\u{94d}]{0,8}", 1..20),
        (long, less) in (2usize..7, 1usize..6),
        right in any::<bool>(),
        width in prop::option::of(7usize..9),
    ) {
        let side = if right { Side::Right } else { Side::Left };
        let (fine, coarse) = (masked(long, side, width), masked(long.saturating_sub(less).max(1), side, width));
        prop_assert!(coarse.check_coarsens(&fine).is_ok());
        let values: ArrayRef = Arc::new(StringArray::from(values));
        let (fines, coarses) = (agree(&fine, &values).unwrap(), agree(&coarse, &values).unwrap());
        let mut above = std::collections::HashMap::new();
        for (a, b) in fines.as_string_view().iter().zip(coarses.as_string_view().iter()) {
            prop_assert_eq!(*above.entry(a).or_insert(b), b);
        }
        // Codes are equal where labels are.
        for level in [&fine, &coarse] {
            let (labels, codes) = (agree(level, &values).unwrap(), level.codes(&values).unwrap());
            let pairs = labels.as_string_view().iter().zip(codes.as_string_view().iter());
            let pairs: Vec<_> = pairs.collect();
            for (one, other) in pairs.iter().flat_map(|one| pairs.iter().map(move |other| (one, other))) {
                prop_assert_eq!(one.0 == other.0, one.1 == other.1);
            }
        }
    }

    #[test]
    fn texts_agree_and_nest(
        values in prop::collection::vec(prop::option::of("[a*é北🦀🇨🇭\r\n\u{301}\u{200d}]{0,6}"), 0..20),
        long in 2usize..7,
        less in 1usize..6,
    ) {
        let values: ArrayRef = Arc::new(StringArray::from(values));
        let (fine, coarse) = (prefix(long), prefix(long.saturating_sub(less).max(1)));
        prop_assert!(coarse.check_coarsens(&fine).is_ok());
        let fines = agree(&fine, &values).unwrap();
        let coarses = agree(&coarse, &values).unwrap();
        // Without its mark, a fine label has all the characters that the coarse level reads.
        let unmarked = fines.as_string_view().iter().map(|label| label.map(|l| l.strip_suffix(MARK).unwrap()));
        let unmarked: ArrayRef = Arc::new(unmarked.collect::<StringViewArray>());
        prop_assert_eq!(&agree(&coarse, &unmarked).unwrap(), &coarses);
    }

    #[test]
    fn integers_agree(values in prop::collection::vec(prop::option::of(any::<i32>()), 0..20), length in 1usize..12) {
        agree(&prefix(length), &(Arc::new(Int32Array::from(values)) as ArrayRef)).unwrap();
    }
}
