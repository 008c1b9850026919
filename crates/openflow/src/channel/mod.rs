//! Controllers: connections over TCP, their roles, and what they ask and are told.

mod answer;
mod bundles;
mod change;
mod link;
mod outbox;
mod server;
mod session;
mod tell;

pub use server::{Channel, Target};
pub use session::Session;
