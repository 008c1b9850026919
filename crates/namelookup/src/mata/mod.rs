//! MATA, multiple aligned transition arrays (section 2.4): four bytes a step, arrays of prime lengths.

mod interleaved;

use crate::aligned::{Aligned, AlignedTable, Form};
use crate::fsm::Stride;

pub use interleaved::{MataNw, MataNwTable};

/// The form of a MATA.
#[derive(Clone, Copy, Debug)]
pub struct MataForm;

impl Form for MataForm {
    const NAME: &'static str = "mata";
    const KIND: &'static str = "mata";
    const STRIDE: Stride = Stride::FOUR;
    const BASE_BITS: u32 = 22;
    const MANY_ARRAYS: bool = true;
}

/// Builds, and keeps up to date, a MATA.
pub type Mata = Aligned<MataForm>;
/// A MATA, ready for lookups.
pub type MataTable = AlignedTable<MataForm>;
