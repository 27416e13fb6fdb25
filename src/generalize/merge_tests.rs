use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::DataType;
use proptest::prelude::*;

use super::*;
use crate::decimal::Decimal;
use crate::generalize::laws_tests::agree;
use crate::generalize::{Hierarchy, RegionLabel, Value};

fn merge(levels: i64, by: &'static str, order: Option<Vec<&'static str>>) -> Result<Merge> {
    let mut given = vec![
        ("levels".to_owned(), Setting::Number(Decimal::integer(levels))),
        ("by".to_owned(), Setting::Word(by.into())),
    ];
    given.extend(order.map(|order| ("order".to_owned(), order.into())));
    Merge::of(&given)
}

fn counted(least_holders: u64, values: &[(&str, u64)]) -> FrequentValues {
    let mut counted = FrequentValues::new(least_holders);
    for (value, holders) in values {
        counted.add((*value).to_owned(), *holders);
    }
    counted
}

fn rows(tree: &MergedTree) -> Vec<String> {
    tree.rows.rows().iter().map(|row| row.join(" ")).collect()
}

fn labelled(label: &str, rows: Vec<Vec<String>>) -> MergedTree {
    MergedTree { label: label.to_owned(), rows: rows.into(), is_followed: false }
}

const JOBS: [(&str, u64); 7] =
    [("baker", 6), ("clerk", 30), ("diver", 1), ("driver", 8), ("mayor", 4), ("nurse", 9), ("smith", 7)];

#[test]
fn neighbours_join_and_rare_values_are_others() {
    let tree = merge(2, "names", None).unwrap().tree(&counted(5, &JOBS)).unwrap();
    assert_eq!(
        rows(&tree),
        [
            "baker baker baker baker..clerk",
            "clerk clerk clerk baker..clerk",
            "driver driver driver..smith driver..smith",
            "nurse nurse driver..smith driver..smith",
            "smith smith driver..smith driver..smith",
            "other other other other",
        ]
        .map(str::to_owned)
    );
}

#[test]
fn values_with_fewer_holders_join_the_others() {
    let tree = merge(2, "counts", None).unwrap().tree(&counted(5, &JOBS)).unwrap();
    assert_eq!(
        rows(&tree),
        [
            "baker baker other other",
            "clerk clerk clerk clerk",
            "driver driver other other",
            "nurse nurse nurse other",
            "smith smith other other",
            "other other other other",
        ]
    );
}

#[test]
fn a_policy_may_order_the_values() {
    let sizes = [("large", 9), ("medium", 9), ("other", 2), ("small", 9), ("tiny", 3)];
    let by = |order| merge(1, "names", Some(order)).unwrap().tree(&counted(5, &sizes));
    let tree = by(vec!["tiny", "small", "medium", "huge", "large"]).unwrap();
    assert_eq!(
        rows(&tree)[..3],
        ["small small small..medium", "medium medium small..medium", "large large large"]
    );
    let missing = by(vec!["small", "large"]).unwrap_err().to_string();
    assert_eq!(missing, "order: 1 value that it lacks is held by 5 or more; add each to the list");
    let wrong = |levels, by, order| merge(levels, by, order).unwrap_err().to_string();
    assert_eq!(
        wrong(1, "counts", Some(vec!["a"])),
        "order: goes with by = \"names\", not with by = \"counts\""
    );
    assert_eq!(wrong(1, "names", Some(vec!["a", "b", "a"])), "order: entry 3 repeats an earlier one");
    assert_eq!(wrong(9, "names", None), "levels: expected at most 8, found 9");
    assert!(wrong(1, "size", None).starts_with("by: expected \"names\" or \"counts\""));
}

#[test]
fn a_column_of_rare_values_is_refused() {
    let refused = merge(3, "names", None).unwrap().tree(&counted(5, &[("x", 4), ("y", 1), ("other", 3)]));
    let why = refused.unwrap_err().to_string();
    assert!(why.starts_with("none of its 3 distinct values are held by 5 or more"), "{why}");
}

#[test]
fn labels_are_no_values_whatever_the_names() {
    let names = [("a", 9), ("a..b", 9), ("b", 9), ("c...d", 9), ("other", 9), ("", 9)];
    let mut names = names;
    names.sort_unstable();
    for by in [NAMES, COUNTS] {
        let merge = merge(2, by, None).unwrap();
        let tree = merge.tree(&counted(2, &names)).unwrap();
        assert_eq!(merge.levels(&tree).unwrap().len(), 3);
        let labels: Vec<&String> = tree.rows.rows().iter().map(|row| &row[2]).collect();
        assert_eq!(labels.iter().any(|label| label.contains("....")), by == NAMES, "{labels:?}");
    }
}

#[test]
fn levels_give_every_value_a_label() {
    let merge = merge(1, "names", None).unwrap();
    let tree = merge.tree(&counted(5, &[("1", 9), ("2", 9), ("30", 3), ("31", 2), ("7", 9)])).unwrap();
    let levels = merge.levels(&tree).unwrap();
    let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), Some(30), None, Some(1), Some(99)]));
    let expected = |labels: [&str; 4]| -> ArrayRef {
        let [seven, thirty, one, unknown] = labels.map(Some);
        Arc::new(StringArray::from(vec![seven, thirty, None, one, unknown]))
    };
    let found =
        |at: usize| arrow::compute::cast(&agree(&*levels[at], &values).unwrap(), &DataType::Utf8).unwrap();
    assert_eq!(&found(0), &expected(["7", "other", "1", "other"]));
    assert_eq!(&found(1), &expected(["7", "other", "1..2", "other"]));
    let said: Vec<String> = levels.iter().map(|level| level.descriptor().to_string()).collect();
    assert_eq!(said, ["merge:0", "merge:1"]);
    assert!(levels[0].uncovered(&values).unwrap().is_empty());
    assert!(
        !levels[1].is_label(&Value::Text("30".into())) && levels[1].is_label(&Value::Text("1..2".into()))
    );

    let hierarchy = Hierarchy::merged(&DataType::Int64, levels).unwrap();
    assert!((hierarchy.height(), hierarchy.is_merged(), hierarchy.has_intervals()) == (2, true, false));
    let set = RegionLabel::parse(Some("{7; other}"), &DataType::Int64);
    let covers = |value| set.covers(&hierarchy, &Value::Int(value)).unwrap();
    assert!(covers(7) && covers(30) && !covers(1));
    // A text that names a value with few holders covers nothing.
    let forged = RegionLabel::parse(Some("{30; 7}"), &DataType::Int64);
    assert!(!forged.covers(&hierarchy, &Value::Int(30)).unwrap());
    assert!(!RegionLabel::parse(Some("30"), &DataType::Int64).covers(&hierarchy, &Value::Int(30)).unwrap());
}

#[test]
fn trees_that_the_rule_does_not_make_are_refused() {
    let merge = merge(1, "names", None).unwrap();
    let refused = |rows: &[[&str; 3]]| {
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
        merge.levels(&labelled("other", rows)).is_err()
    };
    assert!(!refused(&[["a", "a", "a..b"], ["b", "b", "a..b"]]));
    assert!(refused(&[["a", "b", "a..b"], ["b", "b", "a..b"]]));
    assert!(refused(&[["a", "a", "x"], ["a", "a", "x"]]));
    assert!(refused(&[["other", "other", "x"]]));
    assert!(refused(&[["a", "a", "b"], ["b", "b", "b"]]));
    assert!(refused(&[["a", "a", "a..c"], ["b", "b", "a..c"]]));
    assert!(refused(&[["a", "a", "a..a"]]));
    assert!(refused(&[["a", "a", "a..c"], ["b", "b", "b"], ["c", "c", "a..c"]]));
    assert!(refused(&[["other", "other", "other"], ["a", "a", "a"]]));
    let short: Vec<Vec<String>> = vec![vec!["a".into(), "a".into()]];
    assert!(merge.levels(&labelled("other", short)).is_err());
}

#[test]
fn numbers_are_in_their_order_also_as_text() {
    let codes = [("1", 9), ("10", 9), ("11", 9), ("2", 9), ("3", 9)];
    let tree = merge(1, "names", None).unwrap().tree(&counted(5, &codes)).unwrap();
    let values: Vec<&String> = tree.rows.rows().iter().map(|row| &row[0]).collect();
    assert_eq!(values, ["1", "2", "3", "10", "11"]);
}

#[test]
fn only_the_label_of_others_is_no_value_in_a_set() {
    let set = |text, has_intervals| RegionLabel::parse_canonical(Some(text), &DataType::Int64, has_intervals);
    assert!(set("{Alice; Bob}", true).is_none());
    assert!(set("{7; other}", true).is_none() && set("{7; other}", false).is_some());
}

#[test]
fn an_earlier_tree_is_followed() {
    let merge = merge(2, "names", None).unwrap();
    let earlier = merge.tree(&counted(5, &JOBS)).unwrap();
    let tonight = counted(5, &[("baker", 9), ("clerk", 4), ("nurse", 5), ("welder", 50)]);
    assert_eq!(
        rows(&merge.follow(&earlier, &tonight).unwrap()),
        ["baker baker baker baker", "nurse nurse nurse nurse", "other other other other"]
    );
    assert!(merge.follow(&earlier, &counted(5, &[("welder", 50)])).is_err());
    assert_eq!(merge.placeholder_tree().rows.rows().len(), 1);
}

#[test]
fn the_rarest_joins_others_that_too_few_hold() {
    let sizes = [("q", 5), ("r", 4), ("s", 3), ("t", 1), ("u", 1)];
    let by_names = merge(1, "names", None).unwrap();
    let others = |rule: &Merge, counted: &FrequentValues| {
        let tree = rule.tree(counted).unwrap();
        assert!(rule.levels(&tree).is_ok());
        tree.listed().map(|row| row[0].clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(others(&by_names, &counted(3, &sizes)), "q r");
    assert_eq!(counted(3, &sizes).listed(), 2);
    assert_eq!(others(&by_names, &counted(2, &sizes)), "q r s");
    assert_eq!(others(&by_names, &counted(3, &[("q", 5), ("r", 4), ("s", 3)])), "q r s");
    // One individual has both.
    let mut overlapping = counted(3, &[("q", 5), ("r", 4), ("s", 3), ("t", 2), ("u", 2)]);
    assert_eq!(others(&by_names, &overlapping), "q r s");
    overlapping.others_are_held_by(2);
    assert_eq!(others(&by_names, &overlapping), "q r");
    // Of several the first in the order of the tree: that of the values, of numbers, or of the policy.
    let ties = counted(3, &[("10", 3), ("11", 7), ("2", 1), ("9", 3)]);
    assert_eq!(others(&by_names, &ties), "10 11");
    let by_order = merge(1, "names", Some(vec!["11", "10", "9"])).unwrap();
    assert_eq!(others(&by_order, &ties), "11 9");
    assert_eq!(others(&merge(1, "counts", None).unwrap(), &ties), "10 11");
    // The only listed value stays: a column of others shows nothing.
    assert_eq!(others(&by_names, &counted(3, &[("q", 5), ("t", 1)])), "q");

    let earlier = by_names.tree(&counted(3, &[("q", 5), ("r", 4), ("s", 3)])).unwrap();
    let followed = by_names.follow(&earlier, &counted(3, &sizes)).unwrap();
    assert_eq!(rows(&followed), ["q q q", "r r r", "other other other"]);
    assert_eq!(by_names.follow(&followed, &counted(3, &sizes)).unwrap(), followed);
    let with_new = counted(3, &[("a", 9), ("q", 5), ("r", 4), ("s", 3), ("t", 1)]);
    assert_eq!(by_names.follow(&earlier, &with_new).unwrap().listed().count(), 3);
}

#[test]
fn the_label_of_the_others_is_no_value() {
    let values = [("a", 9), ("b", 9), ("other", 9), ("other values", 9), ("x", 5)];
    for by in [NAMES, COUNTS] {
        let rule = merge(1, by, None).unwrap();
        let label = |values: &[(&str, u64)]| rule.tree(&counted(6, values)).unwrap().label;
        assert_eq!((label(&values[..2]), label(&values[..3])), ("other".into(), "other values".into()));
        assert_eq!(label(&values), "other values 2");
        // No label tells that few hold a value.
        assert_eq!(label(&[("a", 9), ("other", 1), ("x", 5)]), "other");
    }
    let rule = merge(1, NAMES, None).unwrap();
    let tree = rule.tree(&counted(4, &[("a", 4), ("c", 1), ("d", 1), ("other", 4)])).unwrap();
    assert_eq!(rows(&tree), ["other other other", "other values other values other values"]);
    let levels = rule.levels(&tree).unwrap();
    let level_0 = |text: &str| levels[0].generalize_value(&Value::Text(text.into())).unwrap();
    assert_eq!(
        [level_0("other"), level_0("a")],
        ["other", "other values"].map(|text| Value::Text(text.into()))
    );
    assert_eq!(levels[0].descriptor().to_string(), "merge:0 label:other%20values");
    let read: crate::generalize::Descriptor = levels[0].descriptor().to_string().parse().unwrap();
    assert_eq!(read, levels[0].descriptor());
    // An earlier label stays, and none is another program's.
    let tonight = counted(4, &[("c", 3), ("e", 3), ("other", 4)]);
    assert_eq!(rule.follow(&tree, &tonight).unwrap().label, "other values");
    let rows_of = |tree: &MergedTree| tree.rows.rows().to_vec();
    assert!(rule.levels(&labelled("other", rows_of(&tree))).is_err());
    assert!(rule.levels(&labelled("rare", vec![vec!["rare".into(); 3]])).is_err());

    let of = |label: &'static str| {
        let levels = ("levels".to_owned(), Setting::Number(Decimal::integer(1)));
        Merge::of(&[levels, ("label".to_owned(), Setting::Word(label.into()))])
    };
    let rest = of("the rest").unwrap();
    let watched = |values: &[(&str, u64)]| {
        let mut counted = FrequentValues::new(4).watching(rest.label());
        for (value, holders) in values {
            counted.add((*value).to_owned(), *holders);
        }
        rest.tree(&counted)
    };
    assert_eq!(watched(&[("a", 4), ("b", 4), ("other", 9), ("x", 1)]).unwrap().label, "the rest");
    for holders in [1, 9] {
        let why = watched(&[("a", 9), ("the rest", holders)]).unwrap_err().to_string();
        assert_eq!(why, "label: is a value of the column; choose another text");
    }
    assert!(rest.check_type(&DataType::Utf8).is_ok());
    let why = rest.check_type(&DataType::Int64).unwrap_err().to_string();
    assert_eq!(why, "label: goes with columns of text; remove it: no other value is `other`");
    for wrong in ["", "*", "a\nb"] {
        assert!(of(wrong).unwrap_err().to_string().starts_with("label: expected a text"));
    }
    // A run of the values has a label of its own.
    let dots = of("a..b").unwrap().tree(&counted(4, &[("a", 4), ("b", 4), ("c", 4), ("x", 9)])).unwrap();
    assert!(dots.listed().all(|row| row[2] != "a..b"), "{:?}", rows(&dots));
}

/// Joins neighbours by looking at all pairs each time.
fn joined_naively(holders: &[u64], groups: usize) -> Vec<Vec<usize>> {
    let mut runs: Vec<Vec<usize>> = (0..holders.len()).map(|at| vec![at]).collect();
    let held = |run: &[usize]| run.iter().map(|at| u128::from(holders[*at])).sum::<u128>();
    let loss = |run: &[usize]| held(run) * (run.len() as u128 - 1);
    while runs.len() > groups {
        let more = |at: &usize| {
            let both = [runs[*at].clone(), runs[at + 1].clone()].concat();
            loss(&both) - loss(&runs[*at]) - loss(&runs[at + 1])
        };
        let at = (0..runs.len() - 1).min_by_key(more).unwrap();
        let next = runs.remove(at + 1);
        runs[at].extend(next);
    }
    runs
}

proptest! {
    #[test]
    fn trees_are_right(
        held in prop::collection::btree_map("[-a-c.]{0,3}|other", 0u64..30, 1..40),
        least_holders in 2u64..8,
        levels in 1i64..5,
        by in prop::sample::select(vec![NAMES, COUNTS]),
    ) {
        let held: Vec<(&str, u64)> = held.iter().map(|(value, holders)| (value.as_str(), *holders)).collect();
        let listed: Vec<(&str, u64)> =
            held.iter().copied().filter(|(_, holders)| *holders >= least_holders).collect();
        let rare = || held.iter().filter(|(_, holders)| *holders < least_holders);
        let of_rare: u64 = rare().map(|(_, holders)| holders).sum();
        let mut listed = listed;
        if rare().count() > 0 && of_rare < least_holders && listed.len() > 1 {
            let rarest = (0..listed.len()).min_by_key(|at| listed[*at].1).unwrap();
            listed.remove(rarest);
        }
        let rule = merge(levels, by, None).unwrap();
        let tree = rule.tree(&counted(least_holders, &held));
        prop_assert_eq!(tree.is_ok(), !listed.is_empty());
        let Ok(tree) = tree else { return Ok(()) };
        prop_assert!(rule.levels(&tree).is_ok());
        prop_assert_eq!(rule.tree(&counted(least_holders, &held)).unwrap(), tree.clone());
        let names: Vec<&str> = tree.rows.rows().iter().map(|row| row[0].as_str()).filter(|name| *name != tree.label).collect();
        prop_assert_eq!(&names, &listed.iter().map(|(value, _)| *value).collect::<Vec<_>>());
        prop_assert_eq!(tree.rows.rows().len() > names.len(), listed.len() < held.len());
        let holders: Vec<u64> = listed.iter().map(|(_, holders)| *holders).collect();
        let mut last = names.len();
        for (level, groups) in (2..).zip(rule.groups(names.len())) {
            let labels: Vec<&str> = tree.rows.rows()[..names.len()].iter().map(|row| row[level].as_str()).collect();
            let different: HashSet<&str> = labels.iter().copied().collect();
            prop_assert!(different.len() <= groups && groups <= last);
            last = groups;
            if by == NAMES {
                let runs = joined_naively(&holders, groups);
                prop_assert_eq!(different.len(), runs.len());
                for run in runs {
                    prop_assert!(run.iter().all(|at| labels[*at] == labels[run[0]]));
                }
            } else {
                let named = |at: &usize| labels[*at] == names[*at];
                let least = (0..names.len()).filter(named).map(|at| holders[at]).min();
                prop_assert_eq!((0..names.len()).filter(named).count(), groups - 1);
                prop_assert!((0..names.len()).filter(|at| !named(at)).all(|at| labels[at] == tree.label));
                prop_assert!((0..names.len()).filter(|at| !named(at)).all(|at| least.is_none_or(|least| holders[at] <= least)));
            }
        }
    }
}
