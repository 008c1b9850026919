//! The codec of OpenFlow 1.3: requests of controllers are read, answers and events are written.
//!
//! Reading never panics, and allocates no more than a small multiple of a message's bytes. What a message
//! says of lengths is checked against the bytes that there are; a [`Failure`] is the error to be answered.

mod action;
pub(crate) mod bundle;
mod bytes;
mod change;
mod failure;
mod field;
mod header;
mod matches;
pub mod number;
pub(crate) mod reply;
mod request;

pub use action::{Action, Instructions};
pub use bundle::{BundleAdd, BundleControl, BundleStep};
pub(crate) use bytes::Out;
pub use change::{
    Band, Bucket, Command, FlowCommand, FlowMod, GroupKind, GroupMod, MOST_BANDS, MOST_BUCKETS, MeterMod,
};
pub use failure::Failure;
pub use field::{Field, Key, WORDS};
pub use header::{HEADER, Header, VERSION};
pub use matches::Match;
pub use request::{FlowQuery, Multipart, PacketOut, Request};
