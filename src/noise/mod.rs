//! Noise that makes means differentially private: whatever an attacker knows, another row in place of one
//! individual's changes the probability of every release by a factor of at most `exp(epsilon)`.
//!
//! [`Mechanism`] says in which order rows are cut into clusters, how far the sums of a table and of its
//! neighbours can be apart, and how much noise that takes; [`DiscreteLaplace`] draws it.

mod discrete_laplace;
mod hilbert;
mod mechanism;

#[cfg(test)]
pub(crate) use discrete_laplace::tests::seeded;
pub use discrete_laplace::{DiscreteLaplace, Random};
pub use mechanism::{EPSILON_SCALE, MAX_COLUMNS, MAX_EPSILON, Mechanism, NoisyColumn, Order};
