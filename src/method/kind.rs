//! The kinds of release that methods make.

use crate::role::Role;

/// What the released rows of a method show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseKind {
    /// The labels of one level per column.
    Levels,
    /// Regions of the row's class: intervals, labels or sets.
    Regions,
    /// Centroids of the row's class.
    Centroids,
    /// Centroids with noise, and nothing else.
    Noise,
    /// Quasi-identifiers as they are, and in another table the sensitive values of groups.
    Groups,
}

/// What is true of every release of a kind, whatever its policy.
#[derive(Debug)]
pub struct KindFacts {
    /// Whether the method makes classes of its own, which show regions or centroids.
    pub makes_classes: bool,
    /// Whether classes show centroids of the values themselves.
    pub shows_centroids: bool,
    /// Whether all that is shown has noise, so that nothing else may follow from a row.
    pub adds_noise: bool,
    /// Whether rows of classes that fail are suppressed.
    pub suppresses: bool,
    /// Whether there is a row for each individual of the input, and no other.
    pub has_row_per_individual: bool,
    /// The roles of the columns that are released, besides quasi-identifiers.
    pub releases: &'static [Role],
    /// Why no policy says what the ends of intervals show, after the name of the method; `None` if it may.
    pub why_no_ends: Option<&'static str>,
    /// Why the recoding cannot be applied to other rows, after the name of the method; `None` if it can.
    pub why_no_other_rows: Option<&'static str>,
}

const OF_LABELS: KindFacts = KindFacts {
    makes_classes: false,
    shows_centroids: false,
    adds_noise: false,
    suppresses: true,
    has_row_per_individual: false,
    releases: &[Role::Sensitive, Role::Insensitive],
    why_no_ends: Some("releases labels whose ends are fixed"),
    why_no_other_rows: None,
};

const OF_CENTROIDS: KindFacts = KindFacts {
    makes_classes: true,
    shows_centroids: true,
    why_no_ends: Some("shows centroids, which have no ends"),
    why_no_other_rows: Some(
        "shows centroids of the rows of its own input, which are not those of other rows, so they cannot be used again; \
         release with --policy, which computes them anew",
    ),
    ..OF_LABELS
};

impl ReleaseKind {
    /// Returns what is true of every release of this kind.
    pub const fn facts(self) -> KindFacts {
        match self {
            Self::Levels => OF_LABELS,
            Self::Regions => KindFacts { makes_classes: true, why_no_ends: None, ..OF_LABELS },
            Self::Centroids => OF_CENTROIDS,
            Self::Noise => KindFacts {
                adds_noise: true,
                suppresses: false,
                has_row_per_individual: true,
                releases: &[],
                ..OF_CENTROIDS
            },
            Self::Groups => KindFacts {
                suppresses: false,
                has_row_per_individual: true,
                releases: &[Role::Sensitive],
                why_no_ends: Some("shows every value as it is"),
                why_no_other_rows: Some(
                    "deals the rows of its own input to groups, and other rows make other groups; release with --policy",
                ),
                ..OF_LABELS
            },
        }
    }

    /// Returns whether columns of this role are released.
    pub fn releases(self, role: Role) -> bool {
        role == Role::Quasi || self.facts().releases.contains(&role)
    }
}
