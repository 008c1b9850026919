#![doc = include_str!("../README.md")]

mod cache;
mod client;
mod cluster;
mod error;
mod place;
mod publish;
mod stores;

pub use cache::ImageCache;
pub use client::Client;
pub use cluster::{executor_config, run_executor, run_scheduler, scheduler_config, signalled};
pub use error::Error;
pub use place::{ContentHash, Place};
pub use publish::{Origin, follow, publish};
pub use stores::Stores;
