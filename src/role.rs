//! What a column is to a release.

/// The role of a column. Every column has one (policy `[columns]`), or is dropped with `others = "drop"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Names a person; never written.
    Identifier,
    /// Could be known to an attacker; generalized.
    Quasi,
    /// What an attacker wants to learn; written as is.
    Sensitive,
    /// Tells whose row it is, where people have several rows; never written. Sizes count its distinct values.
    Individual,
    /// Free text; never written.
    Text,
    /// Neither known to an attacker nor worth learning; written as is.
    Insensitive,
}

impl Role {
    /// All roles with the word of the policy.
    pub const ALL: [(Role, &str); 6] = [
        (Role::Identifier, "identifier"),
        (Role::Quasi, "quasi"),
        (Role::Sensitive, "sensitive"),
        (Role::Individual, "individual"),
        (Role::Text, "text"),
        (Role::Insensitive, "insensitive"),
    ];

    /// The role that a policy calls `word`, or the valid words as an error text.
    ///
    /// # Errors
    /// What to write instead.
    pub fn parse(word: &str) -> Result<Self, String> {
        let words = Self::ALL.map(|(_, w)| w);
        match Self::ALL.iter().find(|(_, w)| *w == word) {
            Some((role, _)) => Ok(*role),
            None if word == "?" => {
                Err(format!("still undecided: put one of {} in place of `?`", words.join(", ")))
            }
            None => Err(crate::error::nearest(word, &words)),
        }
    }

    /// The word of the policy.
    pub fn word(self) -> &'static str {
        match self {
            Role::Identifier => "identifier",
            Role::Quasi => "quasi",
            Role::Sensitive => "sensitive",
            Role::Individual => "individual",
            Role::Text => "text",
            Role::Insensitive => "insensitive",
        }
    }

    /// Whether columns of this role are in a release.
    pub fn is_released(self) -> bool {
        matches!(self, Role::Quasi | Role::Sensitive | Role::Insensitive)
    }
}
