//! Splits a text into statements and backslash commands by the engine's own tokens.

use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// The ending of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Blanks and comments only.
    Blank,
    /// A semicolon.
    Statement,
    /// An unfinished statement, quotation or comment.
    Open,
}

/// Returns how a text ends.
pub(super) fn end(text: &str, dialect: &dyn Dialect) -> End {
    let Ok(tokens) = Tokenizer::new(dialect, text).tokenize() else { return End::Open };
    match tokens.iter().rfind(|token| !matches!(token, Token::Whitespace(_) | Token::EOF)) {
        None => End::Blank,
        Some(Token::SemiColon) => End::Statement,
        Some(_) => End::Open,
    }
}

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// Statements, on their original lines: blank lines replace the text before.
    Statements(String),
    /// A line that begins with a backslash, between statements.
    Command(&'a str),
}

/// A text that is read part by part.
pub(super) struct Script<'a> {
    rest: std::iter::Peekable<std::str::Lines<'a>>,
    line: usize,
}

impl<'a> Script<'a> {
    /// Starts at the first line of a text.
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text.lines().peekable(), line: 0 }
    }

    /// Returns the next piece, in the current dialect.
    pub(super) fn next_part(&mut self, dialect: &dyn Dialect) -> Option<Part<'a>> {
        let mut statements = "\n".repeat(self.line);
        while let Some(line) = self.rest.peek().copied() {
            if is_command(line) {
                match end(&statements, dialect) {
                    End::Open => {}
                    End::Statement => return Some(Part::Statements(statements)),
                    End::Blank => {
                        self.rest.next();
                        self.line += 1;
                        return Some(Part::Command(line.trim()));
                    }
                }
            }
            statements.push_str(line);
            statements.push('\n');
            self.rest.next();
            self.line += 1;
        }
        (end(&statements, dialect) != End::Blank).then_some(Part::Statements(statements))
    }
}

/// Returns whether a line is a backslash command, at a place where one may stand.
pub(super) fn is_command(line: &str) -> bool {
    line.trim_start().starts_with('\\')
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    #[test]
    fn a_text_ends_where_the_tokens_say() {
        for (text, expected) in [
            ("", End::Blank),
            (" -- nothing;\n/* nor here; */ ", End::Blank),
            ("SELECT 1", End::Open),
            ("SELECT 1;", End::Statement),
            ("SELECT 1; -- done", End::Statement),
            ("SELECT ';", End::Open),
            ("SELECT ';' AS \";\"", End::Open),
            ("SELECT 1; /* not yet", End::Open),
            ("SELECT 1; SELECT", End::Open),
        ] {
            assert_eq!(end(text, &GenericDialect), expected, "{text}");
        }
    }

    fn parts(text: &str) -> Vec<Part<'_>> {
        let mut script = Script::new(text);
        std::iter::from_fn(|| script.next_part(&GenericDialect)).collect()
    }

    #[test]
    fn commands_stand_between_statements() {
        let statements = |text: &str| Part::Statements(text.to_owned());
        assert_eq!(parts(" -- nothing\n"), []);
        assert_eq!(parts("SELECT 1"), [statements("SELECT 1\n")]);
        assert_eq!(
            parts("\\timing\nSELECT 1;\nSELECT\n2;\n  \\o csv \n-- and\n\\d\nSELECT 3;"),
            [
                Part::Command("\\timing"),
                statements("\nSELECT 1;\nSELECT\n2;\n"),
                Part::Command("\\o csv"),
                Part::Command("\\d"),
                statements("\n\n\n\n\n\n\nSELECT 3;\n"),
            ]
        );
        // Within a statement or a quotation, a backslash line is part of it.
        assert_eq!(parts("SELECT '\n\\d\n';"), [statements("SELECT '\n\\d\n';\n")]);
        assert_eq!(parts("SELECT 1\n\\d\n"), [statements("SELECT 1\n\\d\n")]);
    }
}
