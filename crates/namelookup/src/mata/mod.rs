//! MATA, multiple aligned transition arrays (section 2.4): four bytes a step, arrays of prime lengths.
//!
//! On 3,646,918 real domains (`benches/structures.rs`; two cores of a shared EPYC): 156 MB, 42 bytes a name,
//! built in 3.9 s. A state transition table of the same names would take 33.5 GB (section 6.1's count at one
//! byte a step), 215 times as much; the paper has 130 times for 2.76 M names. One core looks up 9.3 M/s in
//! batches and 1.5 M/s one by one (the paper: 2.28 M/s). [`LiveNames`](crate::LiveNames) takes 0.45 to 0.78
//! M/s removals, 0.51 to 0.75 M/s insertions of names that were there before and 0.77 M/s of others (the
//! paper: 0.6 M/s and 0.03 M/s). Made names share less with those of the table. They come in at 0.09 M/s
//! while as many others go (`cargo xtask record names`). The first 33,000 of them come in at 0.16 to 0.19
//! M/s, whether to 0.7 M or to 10 M names (figure 24).
//!
//! Dropped: halved states in shared arrays of 262,147 slots, which led to one array for each (221 MB in all);
//! moving a state of hundreds of transitions among full arrays by force (a second each).

mod interleaved;
mod kernel;

use wirespeed_table::Standing;

use crate::aligned::{Aligned, AlignedTable, Form};
use crate::fsm::Stride;

pub use interleaved::{MataNw, MataNwTable};

/// The form of a MATA.
#[derive(Clone, Copy, Debug)]
pub struct MataForm;

impl Form for MataForm {
    const NAME: &'static str = "mata";
    const STANDING: Standing =
        Standing::Niche("whole trips on a GPU whose kernel has to be as short as can be");
    const KIND: &'static str = "mata";
    const STRIDE: Stride = Stride::FOUR;
    const BASE_BITS: u32 = 22;
    const MANY_ARRAYS: bool = true;
}

/// Builds a MATA and keeps it up to date.
pub type Mata = Aligned<MataForm>;
/// A MATA, ready for lookups.
pub type MataTable = AlignedTable<MataForm>;
