//! ATA, the aligned transition array (sections 2.2 and 2.3): one array, one byte a step, or with [`Ata<2>`]
//! and [`Ata<3>`] two or three.
//!
//! The array is at least as long as there are input numbers, so that two transitions of a state never meet:
//! 128 MB for three bytes a step. Indexes past its end wrap around to its start.

use wirespeed_table::Standing;

use crate::aligned::{Aligned, AlignedTable, Form};
use crate::fsm::Stride;

/// The form of an ATA of `D` bytes a step, 1 to 3.
#[derive(Clone, Copy, Debug)]
pub struct AtaForm<const D: u8>;

impl<const D: u8> Form for AtaForm<D> {
    const NAME: &'static str = ["ata", "ata-2", "ata-3"][D as usize - 1];
    const STANDING: Standing = Standing::Paper("MATA, NSDI 2013");
    const KIND: &'static str = Self::NAME;
    const STRIDE: Stride = Stride::new(D).expect("1 to 3 bytes");
    const BASE_BITS: u32 = 31;
    const MANY_ARRAYS: bool = false;
}

/// Builds an ATA and keeps it up to date.
pub type Ata<const D: u8 = 1> = Aligned<AtaForm<D>>;
/// An ATA, ready for lookups.
pub type AtaTable<const D: u8 = 1> = AlignedTable<AtaForm<D>>;
