//! Routes from outside, live.

mod bridge;
mod error;
mod feed;
pub mod kernel;
mod model;
mod netlink;
mod state;
mod status;

pub use bridge::{LiveTable, Updates};
pub use error::Error;
pub use feed::Feed;
pub use model::*;
pub use status::{Skip, Status};
