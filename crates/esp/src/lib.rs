//! IPsec ESP tunnels.

mod crypto;
mod database;
mod error;
mod fault;
mod ip;
mod narrow;
mod open;
mod packets;
mod policy;
pub mod read;
#[cfg(test)]
mod recorded_tests;
mod sa;
mod seal;
mod secret;
mod selector;
mod window;

pub use crypto::Keys;
pub use database::{Change, Database, FamilyReaders, Inbound, Outbound, Reader, State};
pub use error::Error;
pub use fault::{Fault, Faults};
pub use open::{Arrival, Envelope, Opened, Opening, open};
pub use packets::Packets;
pub use policy::{Action, Direction, Policy, Template};
pub use sa::{Ports, Sa, SaConfig};
pub use seal::{Scratch, Sealing, Unsealed, seal};
pub use secret::Secret;
pub use selector::Selector;
pub use window::MOST_WINDOW;
