//! Programs that stage names in shared memory, and one that does not.

use bytemuck::NoUninit;
use wirespeed_image::device::{OnDevice, Programs, Stem};

/// Bytes of shared memory for a block's names: for 512 of usual length and 1,024, for 256, and for none.
const STAGED: [u32; 3] = [32 << 10, 14 << 10, 0];

/// Converts a number that fits 32 bits of an argument.
#[cfg(feature = "papers")]
pub(crate) fn few(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Makes a program for each, whose argument has this number of bytes for names.
pub(crate) fn staged<T: OnDevice, X: NoUninit>(
    stem: Stem,
    result_bytes: u32,
    argument: impl Fn(u32) -> X,
) -> Programs {
    let program = |bytes| Ok(T::program(stem, &argument(bytes), result_bytes as usize)?.with_shared(bytes));
    STAGED.into_iter().map(program).collect()
}
