//! Name lookup on GPUs.
//!
//! ```text
//! form      names as they lie in a batch; results as numbers and matches
//! in_place  names that are written to a batch as they come
//! remote    a table on GPUs that follows a live one
//! ```

mod form;
mod in_place;
mod remote;

pub use crate::numbers::unpack;
pub use form::{
    ENDS, GROUP, PACKED, ROWS, Wanted, bytes_of, pack, pack_ends, pack_rows, row_bytes_of, unpack_matches,
};
pub use in_place::{InPlace, Sent};
pub use remote::Remote;

/// A table of names on GPUs beside the same table on the CPU.
pub type Offload = crate::offload::Offload<Remote>;
/// A queue of batches of names of one thread, several under way at once. Results are `u32` or
/// [`Match`](wirespeed_namelookup::Match).
pub type Pipeline<'k, R = u32> = crate::offload::Pipeline<'k, 'k, Remote, R>;
