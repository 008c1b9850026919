//! Packet classification on GPUs.
//!
//! ```text
//! form      tuples as they lie in a batch; results as numbers of rules
//! in_place  tuples that are written to a batch as they come
//! remote    a table on GPUs that follows a live one
//! ```

mod form;
mod in_place;
mod remote;

pub use form::{GROUP, bytes_of, has_too_large, kind, pack};
pub use in_place::{InPlace, Sent};
pub use remote::Remote;

/// A table of rules on GPUs beside the same table on the CPU.
pub type Offload<T> = crate::offload::Offload<Remote<T>>;
/// A queue of batches of tuples of one thread, several under way at once. Results are rule numbers.
pub type Pipeline<'k, T> = crate::offload::Pipeline<'k, 'k, Remote<T>, u32>;
