//! IP lookup on GPUs.
//!
//! ```text
//! keys       addresses as keys of a batch, results as next hops
//! remote     a table on GPUs that follows a live one
//! offload    lookups that go to either, one by one or several under way; the CPU answers for a GPU that fails
//! dir24, …   an engine's program: one file each, beside its kernel's source in `kernels`
//! ```

mod dir24;
mod fold;
mod fold_hot;
mod gamt;
mod keys;
mod offload;
mod open;
mod rank;
mod remote;
mod sail_b;
mod sail_l;
mod sail_m;
mod waldvogel;

pub use crate::dispatch::{Counts, Meter, Place, Policy, Use};
pub use keys::{KeyBytes, pack, unpack};
pub use offload::{Offload, Pipeline};
pub use open::open_all;
pub use remote::{Remote, RemoteFollower};
pub use sail_m::programs_with_fibs;
