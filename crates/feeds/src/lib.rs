//! Routes from outside, live.

pub mod bmp;
mod bridge;
mod error;
mod feed;
pub mod fpm;
pub mod kernel;
mod model;
mod netlink;
mod quiet;
mod state;
mod status;
mod tcp;

pub use bridge::{LiveTable, Updates};
pub use error::Error;
pub use feed::Feed;
pub use model::*;
pub use status::{Skip, Status};
