//! Made tables, traces and updates of names: seeded, the same on every platform.
//!
//! ```text
//! Domains ──────────────────► table, extend ───► NameFib ───► Tracer ───► NameBatch
//! (made, of real shares)                           ▲  └─────► Churn ────► TimedUpdate, one by one
//! domains ─► Resolver ─► address ─► IP FIB ─► via_fib                 (MATA paper, 5.3 and 5.4)
//! ```
//!
//! ```
//! use wirespeed_namelookup::generate::{self, Load, Paths, TableSpec, TraceSpec};
//!
//! let fib = generate::table(&TableSpec { names: 1000, results: 8, seed: 1 })?;
//! let spec = TraceSpec { load: Load::Average, misses: 0.0, seed: 1 };
//! let trace = generate::trace(&fib.names, Paths::made(), &spec, 5000)?;
//! assert!(trace.names().iter().all(|name| fib.names.lookup(name).is_some()));
//! # Ok::<(), generate::GenerateError>(())
//! ```

mod churn;
mod domains;
mod entries;
mod label;
mod paths;
mod resolve;
mod shape;
mod table;
#[cfg(test)]
mod tests;
mod trace;

pub use churn::{Churn, ChurnSpec};
pub use domains::Domains;
pub use paths::Paths;
pub use resolve::{Resolved, Resolver, via_fib};
pub use table::{TableSpec, extend, table};
pub use trace::{Load, TraceSpec, Tracer, UnknownLoad, trace};

use crate::name::NameError;

/// Why something can't be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// Names of an empty table are asked for.
    #[error("a trace needs a table with names, and this one is empty")]
    NoNames,
    /// All names together are longer than one piece may be.
    #[error(transparent)]
    Name(#[from] NameError),
    /// More results than can be told apart.
    #[error(transparent)]
    Results(#[from] wirespeed_fib::TooManyNextHops),
    /// A resolver with a result that is no address.
    #[error("the resolver has {text:?} where an address should be")]
    NoAddress {
        /// What it has.
        text: String,
    },
    /// Addresses that stand in for a resolver's are drawn from a FIB's prefixes.
    #[error("addresses are drawn from a FIB's prefixes, and this one is empty")]
    NoPrefixes,
}
