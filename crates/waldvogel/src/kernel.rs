//! Binary search on prefix lengths: `kernels/waldvogel.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_fib::{Address, Family};
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem};

use crate::layout::{self, WaldvogelTable};

/// Bytes of a result: a value of a table always has room for any next hop.
const RESULT: usize = 4;
/// Most bytes of pilots that a program has in shared memory: those of 2^19 slots.
const MOST_STAGED: u32 = 128 << 10;

/// `Waldvogel` of the kernels' source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    root: DevicePtr,
    chunks: DevicePtr,
    ropes: DevicePtr,
    misses: DevicePtr,
    slots: DevicePtr,
    pilots: DevicePtr,
    wide: DevicePtr,
    seed: [u64; 4],
    slot_bits: u32,
    buckets: u32,
}

/// The kernel that reads all from memory.
const fn in_memory<A: Address>() -> Stem {
    Stem::of("waldvogel").word(A::FAMILY.short_name())
}

/// The kernel with pilots in shared memory. IPv4 tables that matter have too many.
const fn staged<A: Address>() -> Stem {
    in_memory::<A>().word("staged")
}

impl<A: Address> OnDevice for WaldvogelTable<A> {
    fn kernels() -> Vec<Stem> {
        match A::FAMILY {
            Family::V4 => vec![in_memory::<A>()],
            Family::V6 => vec![staged::<A>(), in_memory::<A>()],
        }
    }

    fn constants() -> Vec<Constants> {
        vec![
            Constants::of("waldvogel")
                .with("WALDVOGEL_ROOT_BITS", layout::ROOT_BITS)
                .with("WALDVOGEL_CHUNK_BITS", layout::CHUNK_BITS)
                .with("WALDVOGEL_MOST_TRIES", layout::MOST_TRIES)
                .with("WALDVOGEL_OPEN", layout::OPEN)
                .with("WALDVOGEL_NUMBER_BITS", layout::NUMBER_BITS)
                .with("WALDVOGEL_WIDE_LENGTH", layout::WIDE_LENGTH)
                .with("WALDVOGEL_STEPS", layout::STEPS)
                .with("WALDVOGEL_HASH_BITS", layout::HASH_BITS)
                .with("WALDVOGEL_FOLD", layout::FOLD)
                .with("WALDVOGEL_BUCKET_WORDS", layout::BUCKET_WORDS)
                .with("WALDVOGEL_BUCKET_SLOTS", layout::BUCKET_SLOTS)
                .with("WALDVOGEL_BUCKET_VALUES", layout::BUCKET_VALUES)
                .with("WALDVOGEL_BUCKET_LENGTHS", layout::BUCKET_LENGTHS)
                .with("WALDVOGEL_BUCKET_SPILLED", layout::BUCKET_SPILLED),
        ]
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let argument = Argument {
            root: sections.at(layout::ROOT),
            chunks: sections.at(layout::CHUNKS),
            ropes: sections.at(layout::ROPES),
            misses: sections.at(layout::MISSES),
            slots: sections.at(layout::SLOTS),
            pilots: sections.at(layout::PILOTS),
            wide: sections.at(layout::WIDE),
            seed: self.seed(),
            slot_bits: self.slot_bits(),
            buckets: self.buckets(),
        };
        let program = |stem| Self::program(stem, &argument, RESULT);
        let mut programs = vec![program(in_memory::<A>())?];
        // A pilot for four slots.
        let pilots = 1 << (self.slot_bits() - 2);
        if A::FAMILY == Family::V6 && pilots <= MOST_STAGED {
            programs.insert(0, program(staged::<A>())?.with_shared(pilots));
        }
        Ok(programs)
    }
}
