//! Name lookup on GPUs.
//!
//! ```text
//! form      names as they lie in a batch; results as numbers and matches
//! ```

mod form;

pub use crate::dispatch::{Meter, Place, Policy};
pub use form::{
    ENDS, GROUP, PACKED, ROWS, Wanted, bytes_of, pack, pack_ends, pack_rows, unpack, unpack_matches,
};
