//! Applications of the router: each implements [`App`](crate::App).
//!
//! | application | what it does |
//! |---|---|
//! | [`Ip`] | forwards IPv4 and IPv6 by the longest prefix |
//! | [`Acl`] | asks a classifier first, in front of another application |
//! | `Esp` | takes packets into IPsec tunnels and out of them, in front of another application (feature `esp`) |
//! | [`Ndn`] | forwards NDN Interests by name, and with a [`Pit`] Data back to who asked |

mod acl;
#[cfg(feature = "esp")]
mod esp;
pub mod ip;
mod names;

pub use acl::{Acl, Decision, NoDecision};
#[cfg(feature = "esp")]
pub use esp::Esp;
pub use ip::Ip;
pub use names::{Ndn, Pit};
