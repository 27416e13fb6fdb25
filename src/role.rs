//! The roles of columns in a release.

/// The role of a column. Every column has one (policy `[columns]`) or is dropped
/// (`others = "drop"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Identifies a person; never written.
    Identifier,
    /// Could be known to an attacker; generalized.
    Quasi,
    /// What an attacker wants to learn; written as is.
    Sensitive,
    /// Identifies the individual of a row, where individuals have several rows; never written.
    /// Sizes count its distinct values.
    Individual,
    /// Holds the k that the individual of a row asks for; never written.
    Preference,
    /// Free text; never written.
    Text,
    /// Neither known to an attacker nor worth learning; written as is.
    Insensitive,
}

impl Role {
    /// All roles with the policy's word for each.
    pub const ALL: [(Role, &str); 7] = [
        (Role::Identifier, "identifier"),
        (Role::Quasi, "quasi"),
        (Role::Sensitive, "sensitive"),
        (Role::Individual, "individual"),
        (Role::Preference, "preference"),
        (Role::Text, "text"),
        (Role::Insensitive, "insensitive"),
    ];

    /// Returns the role that a policy calls `word`.
    ///
    /// # Errors
    /// A text that names the valid words.
    pub fn parse(word: &str) -> Result<Self, String> {
        let words = Self::ALL.map(|(_, w)| w);
        match Self::ALL.iter().find(|(_, w)| *w == word) {
            Some((role, _)) => Ok(*role),
            None if word == "?" => {
                Err(format!("still undecided: replace `?` with one of {}", words.join(", ")))
            }
            None => Err(crate::error::nearest(word, &words)),
        }
    }

    /// Returns the policy's word for the role.
    pub fn word(self) -> &'static str {
        match self {
            Role::Identifier => "identifier",
            Role::Quasi => "quasi",
            Role::Sensitive => "sensitive",
            Role::Individual => "individual",
            Role::Preference => "preference",
            Role::Text => "text",
            Role::Insensitive => "insensitive",
        }
    }

    /// Returns whether columns of this role are released.
    pub fn is_released(self) -> bool {
        matches!(self, Role::Quasi | Role::Sensitive | Role::Insensitive)
    }
}
