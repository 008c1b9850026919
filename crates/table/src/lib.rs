//! Lookup tables of all domains: addresses, names and rules.
//!
//! ```text
//! Model ──Engine::build──► (Engine, Table)        Table: an image that looks up; copies of it live in
//!   │ updates                                     readers, files and GPUs
//!   └──► changes ──Engine::take, Engine::patch──► Patch ──► every copy of the Table
//! ```
//!
//! A [`Domain`] is a type that defines keys, results and updates: `V4` and `V6` for addresses, `NameDomain`
//! for names, each tuple type for rules. A [`Model`] is the user's data, such as a routing table. An
//! [`Engine`] compiles it and keeps it up to date, a [`Lookup`] answers, and [`Live`] keeps model, engine and
//! readers in step.
//!
//! The feature `parallel`, on by default, looks batches up on the threads of a pool
//! ([`Lookup::par_lookup_batch`]).

// Users print what they get, and keep it in types of their own that derive `Debug`.
#![warn(missing_debug_implementations)]

mod companion;
#[cfg(feature = "conformance")]
pub mod conformance;
mod control;
mod domain;
mod engine;
mod error;
mod live;
mod lookup;
mod options;
mod order;
mod standing;
pub mod vector;
mod whole;

pub use companion::Companion;
pub use domain::{Domain, Keys, Model, Undone};
pub use engine::Engine;
pub use error::BuildError;
pub use live::Live;
#[cfg(feature = "parallel")]
pub use lookup::on_all_cores;
pub use lookup::{Load, Lookup};
pub use options::{BuildOptions, ByEntries, Strides};
pub use order::sort_by_number;
pub use standing::Standing;
pub use vector::VectorLevel;
#[doc(hidden)]
pub use whole::{Whole, use_all};
pub use wirespeed_image::live::Applied;
pub use wirespeed_image::{Outgrown, Step};
