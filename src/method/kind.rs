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
struct Facts {
    makes_classes: bool,
    shows_centroids: bool,
    adds_noise: bool,
    suppresses: bool,
    /// The roles of the columns that are released, besides quasi-identifiers.
    releases: &'static [Role],
    /// Why intervals have no ends to choose, as what follows the name of a method; `None` if they have.
    why_no_ends: Option<&'static str>,
}

const OF_LABELS: Facts = Facts {
    makes_classes: false,
    shows_centroids: false,
    adds_noise: false,
    suppresses: true,
    releases: &[Role::Sensitive, Role::Insensitive],
    why_no_ends: Some("releases labels whose ends are fixed"),
};

const OF_CENTROIDS: Facts = Facts {
    makes_classes: true,
    shows_centroids: true,
    why_no_ends: Some("shows centroids, which have no ends"),
    ..OF_LABELS
};

impl ReleaseKind {
    const fn facts(self) -> Facts {
        match self {
            Self::Levels => OF_LABELS,
            Self::Regions => Facts { makes_classes: true, why_no_ends: None, ..OF_LABELS },
            Self::Centroids => OF_CENTROIDS,
            Self::Noise => Facts { adds_noise: true, suppresses: false, releases: &[], ..OF_CENTROIDS },
            Self::Groups => Facts {
                suppresses: false,
                releases: &[Role::Sensitive],
                why_no_ends: Some("shows every value as it is"),
                ..OF_LABELS
            },
        }
    }

    /// Returns whether the method makes classes of its own, which show regions or centroids.
    pub fn makes_classes(self) -> bool {
        self.facts().makes_classes
    }

    /// Returns whether classes show centroids of the values themselves.
    pub fn shows_centroids(self) -> bool {
        self.facts().shows_centroids
    }

    /// Returns whether all that is shown has noise, so that nothing else may follow from a row.
    pub fn adds_noise(self) -> bool {
        self.facts().adds_noise
    }

    /// Returns whether rows of classes that fail are suppressed; otherwise there is a row for each individual.
    pub fn suppresses(self) -> bool {
        self.facts().suppresses
    }

    /// Returns whether columns of this role are released.
    pub fn releases(self, role: Role) -> bool {
        role == Role::Quasi || self.facts().releases.contains(&role)
    }

    /// Returns why intervals have no ends to choose, as what follows the name of a method; `None` if they have.
    pub fn why_no_ends(self) -> Option<&'static str> {
        self.facts().why_no_ends
    }
}
