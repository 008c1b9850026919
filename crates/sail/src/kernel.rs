//! What the programs of SAIL_L and SAIL_M share: `kernels/sail.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_fib::{Address, Family, V6};
use wirespeed_image::device::{Constants, DevicePtr, Stem, Width};

use crate::sail_l::layout::{CHUNK, FIRST, LEAF, levels};

/// Bytes of level 16 staged: `StagedLevel16`.
pub(crate) const STAGED: u32 = 2 << 16;
const _: () = assert!(STAGED as usize == 2 * FIRST);

/// `Level16` and `StagedLevel16` of the kernels' sources.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Level16 {
    pub(crate) elements: DevicePtr,
    pub(crate) chunks: u64,
}

/// The kernel of a module whose level 16 is in memory, for next hops of so many bytes.
pub(crate) const fn stem<A: Address>(module: &'static str, next_hops: Width) -> Stem {
    Stem::of(module).word(A::FAMILY.short_name()).width('w', next_hops)
}

/// The kernel of a module whose level 16 is in shared memory, for next hops of so many bytes.
pub(crate) const fn staged<A: Address>(module: &'static str, next_hops: Width) -> Stem {
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

/// What `kernels/sail.cuh` shares with the layouts of both.
pub(crate) fn constants() -> Vec<Constants> {
    let constants = Constants::of("sail")
        .with("SAIL_FIRST", FIRST)
        .with("SAIL_CHUNK", CHUNK)
        .with("SAIL_LEAF", LEAF)
        // Neither the first, of 16 bits, nor the last, of 128.
        .with("SAIL_BETWEEN", levels::<V6>() - 2);
    vec![constants]
}
