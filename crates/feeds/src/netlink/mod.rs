//! Netlink messages about links, addresses, neighbours, next-hop objects, routes and rules (`rtnetlink(7)`).
//! Routes are read without allocation.
//!
//! The kernel and FRR's FPM speak this language. The crate `netlink-packet-route` reads most of it, but no
//! next-hop objects; it allocates for each attribute, and refuses a whole message for one attribute that it
//! does not know. Here a reader takes the few attributes that matter and skips all others. Tests compare
//! both.
//!
//! ```text
//! bytes ──► Messages ──► Message { kind, flags, sequence, body } ──► read ──► Event
//!                                                    └ fixed part, then Attributes: length, type, value
//! ```

mod address;
mod attributes;
mod event;
mod link;
mod message;
mod neighbour;
mod next_hop;
mod request;
mod route;
mod rule;

pub(crate) use event::{Event, read};
pub(crate) use message::{Messages, flags};
pub(crate) use next_hop::{NextHopObject, Target};
pub(crate) use request::{DumpOf, dump_request, resolve_request};
pub(crate) use route::RouteMessage;

/// Why a message can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The message is shorter than its own fields say.
    Truncated,
    /// A value is not allowed.
    Malformed,
}
