//! Refuses a statement whose operators form too long a chain, by its tokens.
//!
//! `1 + 1 + 1 + ...` is a tree as deep as it is long. To read, plan or even drop it takes as much of
//! the stack, and a stack that overflows ends the program, so the operators are counted before
//! the text is parsed. The parser limits how deep expressions nest, but not types.

use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use datafusion_kanon::{Error, Result};

/// The most operators in a statement, not counting those of other entries of a list.
const MOST: usize = 4_000;

/// The most brackets within one another.
const MOST_OPEN: usize = 200;

/// What a word counts whose operand the parser reads by calling itself again, with large frames.
const NESTS: usize = MOST / MOST_OPEN;

/// Checks each statement of a text.
///
/// # Errors
/// A policy error for too many operators. Text without tokens is left to the parser.
pub(super) fn check(text: &str, dialect: &dyn Dialect) -> Result<()> {
    let Ok(tokens) = Tokenizer::new(dialect, text).tokenize() else { return Ok(()) };
    if tokens.split(|token| *token == Token::SemiColon).all(|statement| depth(statement) <= MOST) {
        return Ok(());
    }
    Err(Error::policy(
        "a statement has more than 4,000 operators (such as +, ||, AND, OR, JOIN, UNION) in a row, or \
         more than 200 brackets within one another; split it, or write many values as a list: x IN (1, 2, 3)",
    ))
}

/// What stands in brackets, or between CASE and END.
#[derive(Default)]
struct Part {
    is_case: bool,
    /// Whether it is between FROM and the next clause, where a comma is a join.
    is_from: bool,
    /// The joins, set operators and common tables, which chain across commas.
    links: usize,
    /// The operators since the last comma, and the depth of the deepest part there.
    operators: usize,
    inner: usize,
    /// The same of the deepest entry before it.
    before: usize,
}

impl Part {
    fn depth(&self) -> usize {
        self.links + self.before.max(self.operators + self.inner)
    }

    /// Begins the next entry of a list.
    fn next_entry(&mut self) {
        self.before = self.before.max(self.operators + self.inner);
        (self.operators, self.inner) = (0, 0);
    }
}

/// Returns the number of operators that may stand above one another in the tree of a statement.
fn depth(tokens: &[Token]) -> usize {
    let (mut outer, mut part) = (Vec::new(), Part::default());
    let is_blank = |token: &&Token| !matches!(token, Token::Whitespace(_) | Token::EOF);
    let mut tokens = tokens.iter().filter(is_blank).peekable();
    let mut last = &Token::EOF;
    while let Some(token) = tokens.next() {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                let is_subscript = *token == Token::LBracket && ends_value(last);
                part.operators += usize::from(is_subscript);
                outer.push(std::mem::take(&mut part));
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                while part.is_case && close(&mut outer, &mut part) {}
                close(&mut outer, &mut part);
            }
            Token::Lt if TYPES.iter().any(|of| is_word(last, *of)) => part.operators += NESTS,
            Token::Comma if part.is_from => part.links += 1,
            Token::Comma => part.next_entry(),
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::CASE => {
                    part.operators += 1;
                    outer.push(std::mem::take(&mut part));
                    part.is_case = true;
                }
                Keyword::END if part.is_case => {
                    close(&mut outer, &mut part);
                }
                Keyword::WHEN | Keyword::THEN | Keyword::ELSE if part.is_case => part.next_entry(),
                Keyword::FROM => part.is_from = !is_word(last, Keyword::DISTINCT),
                Keyword::SELECT | Keyword::WHERE | Keyword::GROUP | Keyword::ORDER => part.is_from = false,
                Keyword::EXPLAIN | Keyword::INTERVAL => part.operators += NESTS,
                Keyword::AS => part.links += usize::from(tokens.peek() == Some(&&Token::LParen)),
                keyword if LINKS.contains(&keyword) => part.links += 1,
                keyword => part.operators += usize::from(OPERATORS.contains(&keyword)),
            },
            token => part.operators += usize::from(!is_value(token)),
        }
        if outer.len() > MOST_OPEN {
            return usize::MAX;
        }
        last = token;
    }
    while close(&mut outer, &mut part) {}
    part.depth()
}

/// Goes back to the part around this one; returns whether there is one.
fn close(outer: &mut Vec<Part>, part: &mut Part) -> bool {
    let Some(around) = outer.pop() else { return false };
    let inner = std::mem::replace(part, around).depth();
    part.inner = part.inner.max(inner);
    true
}

/// Words that chain queries and tables.
const LINKS: [Keyword; 8] = [
    Keyword::APPLY,
    Keyword::EXCEPT,
    Keyword::INTERSECT,
    Keyword::JOIN,
    Keyword::MINUS,
    Keyword::PIVOT,
    Keyword::UNION,
    Keyword::UNPIVOT,
];

/// Types of types.
const TYPES: [Keyword; 3] = [Keyword::ARRAY, Keyword::MAP, Keyword::STRUCT];

/// Words that are operators.
const OPERATORS: [Keyword; 21] = [
    Keyword::AND,
    Keyword::AT,
    Keyword::BETWEEN,
    Keyword::COLLATE,
    Keyword::DIV,
    Keyword::ILIKE,
    Keyword::IN,
    Keyword::IS,
    Keyword::LIKE,
    Keyword::MATCH,
    Keyword::MEMBER,
    Keyword::NOT,
    Keyword::NOTNULL,
    Keyword::OPERATOR,
    Keyword::OR,
    Keyword::OVERLAPS,
    Keyword::PRIOR,
    Keyword::REGEXP,
    Keyword::RLIKE,
    Keyword::SIMILAR,
    Keyword::XOR,
];

fn is_word(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.keyword == keyword)
}

/// Returns whether a token may end a value, so that a bracket behind it is a subscript.
fn ends_value(token: &Token) -> bool {
    let is_closed = matches!(token, Token::RParen | Token::RBracket | Token::RBrace);
    let is_keyword = matches!(token, Token::Word(word) if word.keyword != Keyword::NoKeyword);
    is_closed || (is_value(token) && !is_keyword)
}

/// Returns whether a token is a name or a literal. Every other one that is no bracket or comma is an
/// operator.
fn is_value(token: &Token) -> bool {
    matches!(
        token,
        Token::Word(_)
            | Token::Number(..)
            | Token::Char(_)
            | Token::Placeholder(_)
            | Token::Period
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::TripleSingleQuotedString(_)
            | Token::TripleDoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::DoubleQuotedByteStringLiteral(_)
            | Token::TripleSingleQuotedByteStringLiteral(_)
            | Token::TripleDoubleQuotedByteStringLiteral(_)
            | Token::SingleQuotedRawStringLiteral(_)
            | Token::DoubleQuotedRawStringLiteral(_)
            | Token::TripleSingleQuotedRawStringLiteral(_)
            | Token::TripleDoubleQuotedRawStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::QuoteDelimitedStringLiteral(_)
            | Token::NationalQuoteDelimitedStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    fn depth_of(text: &str) -> usize {
        depth(&Tokenizer::new(&GenericDialect, text).tokenize().unwrap())
    }

    #[test]
    fn what_chains_is_counted() {
        for (text, expected) in [
            ("SELECT 1", 0),
            ("SELECT 1 + 1 - 2 * a.b / c % 3", 5),
            ("SELECT a || 'x + y' || \"and\" || b -- + c", 3),
            ("SELECT a AND NOT b or c IS NOT NULL", 5),
            ("SELECT a = 1, b >= 2 AND c < d", 3),
            ("SELECT - - -1", 3),
            ("SELECT a::int::text", 2),
            ("SELECT a[1][2] -> 'x'", 3),
            ("SELECT 1 UNION ALL SELECT 2, 3 EXCEPT SELECT 4, 5 INTERSECT SELECT 6", 3),
            ("SELECT * FROM a JOIN b ON a.x = b.x, c, d WHERE e IN (1, 2)", 6),
            ("WITH a AS (SELECT 1 + 1 + 1), b AS (SELECT 2) SELECT * FROM b", 4),
            ("EXPLAIN EXPLAIN SELECT 1", 40),
            ("SELECT CAST(a AS ARRAY<STRUCT<b INT>>) < INTERVAL '1' DAY", 62),
        ] {
            assert_eq!(depth_of(text), expected, "{text}");
        }
    }

    #[test]
    fn the_deepest_entry_of_a_list_counts() {
        for (text, expected) in [
            ("SELECT a IN (-1, -2, 3, - -4)", 3),
            ("INSERT INTO t VALUES (-1, 'a' || 'b'), (1 + 1 + 1, 'c'), ('2024-01-01'::date, -3)", 2),
            ("SELECT [[1, 2], [-3, 4], [5]], ARRAY[1], {'a': 1, 'b': -2}", 2),
            ("SELECT a + 1, (b + c + (d + e)) + 1 + f(-g, h), 2", 5),
            ("SELECT 1 FROM t GROUP BY a, b, c ORDER BY a, b", 0),
            ("SELECT a IS DISTINCT FROM b, c, d FROM t", 1),
            ("SELECT CASE a WHEN 1 THEN 2 WHEN b + c THEN 3 ELSE -d END + 1", 3),
            ("SELECT CASE WHEN CASE WHEN a + b + c THEN 1 END = 2 THEN 3 END", 5),
            ("SELECT (CASE WHEN a) + b, 1", 2),
        ] {
            assert_eq!(depth_of(text), expected, "{text}");
        }
    }

    #[test]
    fn each_statement_is_checked() {
        let sum = |operators: usize| format!("SELECT 1{}", " + 1".repeat(operators));
        let is_refused = |text: &str| check(text, &GenericDialect).is_err();
        assert!(!is_refused(&format!("{0}; {0}", sum(MOST))));
        assert!(is_refused(&format!("SELECT 1; {}; SELECT 2", sum(MOST + 1))));
        let all_in_brackets = format!("{} + ({})", sum(MOST / 2), sum(MOST / 2));
        assert!(is_refused(&all_in_brackets));
        let nested = |depth: usize| format!("SELECT {}1{}", "(".repeat(depth), ")".repeat(depth));
        assert!(!is_refused(&nested(MOST_OPEN)) && is_refused(&nested(MOST_OPEN + 1)));
        let error = check(&sum(60_000), &GenericDialect).unwrap_err();
        assert!(error.to_string().contains("4,000 operators"), "{error}");
    }
}
