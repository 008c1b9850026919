//! Generated tables, traces and updates of names. They depend on a seed only, and are equal on every
//! platform.
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

/// The reason why data can't be generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The table is empty.
    #[error("a trace needs a table with names, and this one is empty")]
    NoNames,
    /// All names together are longer than a batch may be.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There are more results than numbers.
    #[error(transparent)]
    Results(#[from] wirespeed_fib::TooManyNextHops),
    /// The resolver has a result that is not an address.
    #[error("the resolver has {text:?} where an address should be")]
    NoAddress {
        /// The text of the result.
        text: String,
    },
    /// The FIB is empty: addresses of a stand-in resolver are drawn from its prefixes.
    #[error("addresses are drawn from a FIB's prefixes, and this one is empty")]
    NoPrefixes,
}
