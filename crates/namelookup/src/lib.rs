//! Hierarchical names (NDN, domains, URLs) and their longest prefix match.
//!
//! ```text
//! names, domain lists ──► NameTable ──build──► (Engine, Table)     Table: an image that looks up
//!                            │ updates
//!                            └──► the nodes that changed ──Engine::patch──► Patch ──► every copy of the Table
//! ```
//!
//! A [`Name`] is a sequence of components. A prefix matches a name if the name starts with its components,
//! and the longest prefix in the table wins. `/com/ab` is no prefix of `/com/abc`. A lookup gives a
//! [`Match`]: the result, an index into the user's own table or 0 for no match, and the length of the matched
//! prefix.

// Users print what they get, and keep it in types of their own that derive `Debug`.
#![warn(missing_debug_implementations)]

pub mod acta;
mod aggregate;
#[cfg(feature = "papers")]
pub mod aligned;
#[cfg(feature = "papers")]
pub mod ata;
#[cfg(feature = "conformance")]
pub mod conformance;
mod domain;
mod fetch;
mod found;
#[cfg(feature = "papers")]
pub mod fsm;
#[cfg(feature = "synth")]
pub mod generate;
mod kernel;
pub mod list;
#[cfg(feature = "papers")]
pub mod mata;
#[cfg(feature = "text")]
pub mod merge;
mod name;
mod names;
pub mod oracle;
#[cfg(feature = "text")]
pub mod read;
#[cfg(feature = "papers")]
pub mod stt;
mod table;
pub mod tlv;
mod update;
#[cfg(feature = "text")]
pub mod write;

pub use acta::{Acta, ActaTable};
pub use aggregate::{Aggregated, Savings};
pub use domain::{HEAD_ROOM, LiveNames, NameDomain, NameModel};
pub use found::Match;
pub use name::{Components, Name, NameBuf, NameError};
pub use names::{NameBatch, Names};
pub use table::{Children, NameTable, Node, NodeId};
pub use update::NameUpdate;
pub use wirespeed_table::{
    Applied, BuildError, BuildOptions, Engine, Load, Lookup, Outgrown, Standing, Step,
};

wirespeed_table::whole! {
    NameDomain, Acta;
}
#[cfg(feature = "papers")]
wirespeed_table::whole! {
    NameDomain, stt::Stt;
    NameDomain, ata::Ata<1>;
    NameDomain, ata::Ata<2>;
    NameDomain, ata::Ata<3>;
    NameDomain, mata::Mata;
    NameDomain, mata::MataNw;
}
