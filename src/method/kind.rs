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

impl ReleaseKind {
    /// Returns whether the method makes classes of its own, which show regions or centroids.
    pub fn makes_classes(self) -> bool {
        match self {
            Self::Regions | Self::Centroids | Self::Noise => true,
            Self::Levels | Self::Groups => false,
        }
    }

    /// Returns whether classes show centroids of the values themselves.
    pub fn shows_centroids(self) -> bool {
        match self {
            Self::Centroids | Self::Noise => true,
            Self::Levels | Self::Regions | Self::Groups => false,
        }
    }

    /// Returns whether columns of this role are released: beside exact quasi-identifiers only sensitive values, in
    /// groups; beside noise nothing without it.
    pub fn releases(self, role: Role) -> bool {
        match (role, self) {
            (Role::Quasi, _) => true,
            (Role::Sensitive, kind) => kind != Self::Noise,
            (Role::Insensitive, kind) => !matches!(kind, Self::Groups | Self::Noise),
            (Role::Identifier | Role::Individual | Role::Preference | Role::Text, _) => false,
        }
    }
}
