//! Name lookup on GPUs.
//!
//! ```text
//! form      names as they lie in a batch; results as numbers and matches
//! remote    a table on GPUs that follows a live one
//! offload   lookups that go to the CPU or to GPUs; the CPU answers for a GPU that fails
//! acta, …   an engine's programs: one file each, beside its kernel's source in `kernels`
//! ```

mod acta;
mod aligned;
mod form;
mod offload;
mod remote;
mod staged;
mod stt;

pub use crate::dispatch::{Counts, Meter, Place, Policy, Use};
pub use form::{
    ENDS, GROUP, PACKED, ROWS, Wanted, bytes_of, pack, pack_ends, pack_rows, row_bytes_of, unpack,
    unpack_matches,
};
pub use offload::Offload;
pub use remote::{Remote, RemoteFollower, take, take_matches};
