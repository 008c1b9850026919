//! Applications of the router: each implements [`App`](crate::App).
//!
//! | application | what it does |
//! |---|---|
//! | [`Ip`] | forwards IPv4 and IPv6 by the longest prefix |
//! | [`Acl`] | asks a classifier first, in front of another application |
//! | [`Ndn`] | forwards NDN Interests by name |

mod acl;
pub mod ip;
mod names;

pub use acl::{Acl, Decision, NoDecision};
pub use ip::Ip;
pub use names::Ndn;
