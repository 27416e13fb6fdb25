//! Long chains of operators: a statement that would overflow the stack is refused, and long lists are read.

use crate::command::{Place, Ran};

/// A kind of chain: what begins it, one link, and what ends it.
type Chain = (&'static str, &'static str, &'static str);

/// Chains that name a column or table that is not there, so that those which are read are refused for that.
const CHAINS: &[Chain] = &[
    ("SELECT x", " + 1", ""),
    ("SELECT x", " - 1", ""),
    ("SELECT x", " * 1", ""),
    ("SELECT x", " / 1", ""),
    ("SELECT x", " % 1", ""),
    ("SELECT x", " || 'a'", ""),
    ("SELECT x", " | 1", ""),
    ("SELECT x", " AND true", ""),
    ("SELECT x", " OR false", ""),
    ("SELECT k_anonymity(x)", " + k_anonymity(x)", ""),
    ("SELECT count(*) FROM nothing WHERE x", " = 1", ""),
    ("SELECT x", " <> 1", ""),
    ("SELECT x", " >= 1", ""),
    ("SELECT x", " IS NULL", ""),
    ("SELECT x", " LIKE 'a'", ""),
    ("SELECT x", " COLLATE y", ""),
    ("SELECT x", " AT TIME ZONE 'UTC'", ""),
    ("SELECT x", "::int", ""),
    ("SELECT x", "[1]", ""),
    ("SELECT x", " -> 'a'", ""),
    ("SELECT", " -", " x"),
    ("SELECT", " NOT", " x"),
    ("SELECT 1 FROM nothing", " JOIN nothing", ""),
    ("SELECT 1 FROM nothing", " NATURAL JOIN nothing", ""),
    ("SELECT 1 FROM nothing", ", nothing", ""),
    ("SELECT x", " + (1 + 1)", ""),
];

/// Chains of queries, which take seconds to plan.
const QUERIES: &[Chain] = &[
    ("SELECT x", " UNION SELECT 1", ""),
    ("SELECT x, 2", " UNION ALL SELECT 1, 2", ""),
    ("SELECT x", " EXCEPT SELECT 1", ""),
    ("SELECT x", " INTERSECT SELECT 1", ""),
    ("WITH a AS (SELECT x)", ", a AS (SELECT * FROM a)", " SELECT * FROM a"),
];

/// What nests.
const NESTED: &[Chain] = &[
    ("SELECT ", "(", "x"),
    ("SELECT ", "x IN (x ", ""),
    ("SELECT ", "ARRAY[", "x"),
    ("SELECT ", "f(", "x"),
    ("SELECT ", "(SELECT ", "x"),
    ("SELECT ", "CASE WHEN true THEN ", "x"),
    ("SELECT CAST(x AS ", "ARRAY<", "INT"),
    ("SELECT CAST(x AS ", "STRUCT<a ", "INT"),
    ("SELECT CAST(x AS ", "Nullable(", "INT"),
    ("SELECT", " INTERVAL", " x"),
    ("", "EXPLAIN ", "SELECT x"),
    ("", "EXPLAIN ANALYZE ", "SELECT x"),
];

fn of((begin, link, end): &Chain, links: usize) -> String {
    format!("{begin}{}{end};\n", link.repeat(links))
}

fn run(text: &str) -> Ran {
    Place::new().run_on("sql", None, text)
}

fn assert_refused(chain: &Chain, links: usize) {
    println!("{links} of {}", chain.1);
    run(&of(chain, links)).exit(2).says("more than 4,000 operators");
}

fn assert_read(chain: &Chain, links: usize) {
    println!("{links} of {}", chain.1);
    let ran = run(&of(chain, links)).exit(2);
    assert!(!ran.err.contains("4,000 operators"), "{}: {}", chain.1, ran.err);
}

#[test]
fn a_chain_too_long_for_the_stack_is_refused() {
    for chain in CHAINS.iter().chain(QUERIES) {
        assert_refused(chain, 20_000);
    }
    for chain in NESTED {
        assert_refused(chain, 20_000);
        assert_refused(chain, 3_999);
    }
}

#[test]
fn a_long_chain_is_read() {
    CHAINS.iter().for_each(|chain| assert_read(chain, 3_999));
    assert_read(&QUERIES[0], 2_500);
}

#[test]
fn a_long_chain_is_run() {
    let answers = |text: &str, answer: &str| {
        let ran = Place::new().run_on("sql --output csv", None, text).exit(0);
        assert_eq!(ran.out.lines().last(), Some(answer), "{}", &text[..40]);
    };
    answers(&format!("SELECT (1{}) AS n;\n", " + 1".repeat(600)), "601");
    answers(&format!("SELECT (true{}) AS n FROM (VALUES (2)) AS t (a);\n", " AND a > 1".repeat(300)), "true");
    answers(&format!("SELECT a{} FROM (VALUES (7)) AS t (a);\n", "::text::int".repeat(300)), "7");
    // Several statements, each of which is short enough.
    answers(&format!("SELECT (1{}) AS n;\n", " + 1".repeat(150)).repeat(30), "151");
}

#[test]
fn long_lists_are_no_chains() {
    let answers = |text: &str, answer: &str| {
        let ran = Place::new().run_on("sql --output csv", None, text).exit(0);
        assert_eq!(ran.out.lines().last(), Some(answer), "{}", &text[..40]);
    };
    let list = |entry: fn(u32) -> String| (0..10_000).map(entry).collect::<Vec<_>>().join(", ");
    let negative = list(|n| format!("-{n}"));
    answers(
        &format!("SELECT count(*) AS n FROM (VALUES (-3), (4)) AS t (a) WHERE a IN ({negative});\n"),
        "1",
    );
    let rows = list(|n| format!("(-{n}, 'a' || '{n}', '2024-01-01'::date)"));
    answers(
        &format!(
            "CREATE TABLE t (a INT, b TEXT, c DATE);\nINSERT INTO t VALUES {rows};\nSELECT count(*) AS n FROM t;\n"
        ),
        "10000",
    );
}
