//! Noise that makes means differentially private: whatever an attacker knows, another row in place of one
//! individual's changes the probability of every release by a factor of at most `exp(epsilon)`.
//!
//! [`Mechanism`] says in which order rows are cut into clusters, how far the sums of a table and of its
//! neighbours can be apart, and how much noise that takes; [`DiscreteLaplace`] draws it.
//!
//! The room lies below the class table, because the method and the verification share it. It sees the policy
//! and the number of rows only, so none of its decisions depends on the data. The sampler is ours. OpenDP 0.16
//! is the one vetted library for Rust, and has the same algorithm; but its secure source of random bits
//! compiles OpenSSL with Perl and make, without which it calls its own bits insecure, and it takes no source
//! from outside, so neither a test with a seed nor a recorded key is possible.

mod discrete_laplace;
mod hilbert;
mod mechanism;

#[cfg(test)]
pub(crate) use discrete_laplace::tests::seeded;
pub use discrete_laplace::{DiscreteLaplace, Random};
pub use mechanism::{EPSILON_SCALE, MAX_COLUMNS, MAX_EPSILON, Mechanism, NoisyColumn, Order};
