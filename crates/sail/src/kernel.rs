//! The common part of the programs of SAIL_L and SAIL_M: `kernels/sail.cuh`.

use bytemuck::{NoUninit, Pod, Zeroable};
use wirespeed_fib::{Address, Family, V6};
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Stem, Width};

use crate::sail_l::layout::{CHUNK, FIRST, LEAF, levels};

/// Bytes of level 16 staged: `StagedLevel16`.
const STAGED: u32 = 2 << 16;
const _: () = assert!(STAGED as usize == 2 * FIRST);

/// `Level16` and `StagedLevel16` of the kernels' sources.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Level16 {
    pub(crate) elements: DevicePtr,
    pub(crate) chunks: u64,
}

/// The kernel of a module whose level 16 is in memory, for next hops of so many bytes.
const fn stem<A: Address>(module: &'static str, next_hops: Width) -> Stem {
    Stem::of(module).word(A::FAMILY.short_name()).width('w', next_hops)
}

/// The kernel of a module whose level 16 is in shared memory, for next hops of so many bytes.
const fn staged<A: Address>(module: &'static str, next_hops: Width) -> Stem {
    Stem::of(module).word(A::FAMILY.short_name()).word("staged").width('w', next_hops)
}

/// All kernels of a module: of IPv4 one that stages level 16, too.
pub(crate) fn stems<A: Address>(module: &'static str) -> Vec<Stem> {
    let in_memory = Width::ALL.map(|next_hops| stem::<A>(module, next_hops));
    match A::FAMILY {
        Family::V4 => [Width::ALL.map(|next_hops| staged::<A>(module, next_hops)), in_memory].concat(),
        Family::V6 => in_memory.into(),
    }
}

/// The programs of a module for a table of next hops of so many bytes, with this argument: of IPv4 the first
/// stages level 16, the second reads it from memory.
pub(crate) fn programs<A: Address, T: OnDevice>(
    module: &'static str,
    next_hop_bytes: usize,
    argument: &impl NoUninit,
) -> Programs {
    let width = Width::of(next_hop_bytes)?;
    let program = |stem| T::program(stem, argument, next_hop_bytes);
    let in_memory = program(stem::<A>(module, width))?;
    Ok(match A::FAMILY {
        Family::V4 => vec![program(staged::<A>(module, width))?.with_shared(STAGED), in_memory],
        Family::V6 => vec![in_memory],
    })
}

/// The constants that `kernels/sail.cuh` shares with both layouts.
pub(crate) fn constants() -> Vec<Constants> {
    let constants = Constants::of("sail")
        .with("SAIL_FIRST", FIRST)
        .with("SAIL_CHUNK", CHUNK)
        .with("SAIL_LEAF", LEAF)
        // Neither the first, of 16 bits, nor the last, of 128.
        .with("SAIL_BETWEEN", levels::<V6>() - 2);
    vec![constants]
}
