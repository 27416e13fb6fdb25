//! Functions that are told apart by their names alone, as the engine demands of functions that it compares.

/// Implements `Debug`, `Eq` and `Hash` for a function by its field `name`.
macro_rules! told_apart_by_name {
    ($function:ty) => {
        impl std::fmt::Debug for $function {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.name)
            }
        }

        impl PartialEq for $function {
            fn eq(&self, other: &Self) -> bool {
                self.name == other.name
            }
        }

        impl Eq for $function {}

        impl std::hash::Hash for $function {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.name.hash(state);
            }
        }
    };
}

pub(super) use told_apart_by_name;
