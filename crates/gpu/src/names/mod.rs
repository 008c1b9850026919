//! Name lookup on GPUs.
//!
//! ```text
//! form      names as they lie in a batch; results as numbers and matches
//! acta, …   an engine's programs: one file each, beside its kernel's source in `kernels`
//! ```

mod acta;
mod aligned;
mod form;
mod staged;
mod stt;

pub use crate::dispatch::{Meter, Place, Policy};
pub use form::{
    ENDS, GROUP, PACKED, ROWS, Wanted, bytes_of, pack, pack_ends, pack_rows, unpack, unpack_matches,
};
