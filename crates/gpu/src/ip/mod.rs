//! IP lookup on GPUs.
//!
//! ```text
//! keys       addresses as keys of a batch, results as next hops
//! in_place   addresses that are written to a batch as they come
//! remote     a table on GPUs that follows a live one
//! ```
//!
//! The table's engine says which kernel looks up, and with which argument
//! ([`OnDevice`](wirespeed_image::device::OnDevice)).

mod in_place;
mod keys;
mod open;
mod remote;

pub use in_place::{InPlace, Sent};
pub use keys::{KeyBytes, pack};
pub use open::open_all;
pub use remote::Remote;

/// A table of addresses on GPUs beside the same table on the CPU.
pub type Offload<A> = crate::offload::Offload<Remote<A>>;
/// A queue of batches of addresses of one thread, several under way at once.
pub type Pipeline<'k, A> = crate::offload::Pipeline<'k, 'k, Remote<A>, wirespeed_fib::NextHop>;
