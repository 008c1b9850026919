//! GAMT: `kernels/gamt.cuh`.

use bytemuck::{Pod, Zeroable, bytes_of};
use wirespeed_fib::{Address, V4, V6};
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Program, Programs, Sections, Stem, Width};

use crate::layout::{Code, GamtTable, JUMP_BITS, Level, Placement, next_hops, units};

/// `GamtLevel` of the kernel's source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct LevelArgument {
    units: DevicePtr,
    base: u32,
    below: u8,
    from: u8,
    stride: u8,
    width: u8,
}

impl LevelArgument {
    fn of(level: &Level, units: DevicePtr) -> Self {
        let (base, below) = match level.code {
            Code::Narrow { base, below, .. } => (base, below),
            Code::Paper { .. } => (0, 0),
        };
        let width = level.code.width().to_le_bytes()[0];
        Self { units, base, below, from: level.from, stride: level.stride, width }
    }
}

/// `Gamt`: before its levels, of which there are as many as an address has bits.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Head {
    next_hops: DevicePtr,
    count: u64,
}

/// Results of so many bytes.
const fn stem<A: Address>(results: Width) -> Stem {
    Stem::of("gamt").word(A::FAMILY.short_name()).width('w', results)
}

impl<A: Address, P: Placement> OnDevice for GamtTable<A, P> {
    fn kernels() -> Vec<Stem> {
        Width::ALL.map(stem::<A>).into()
    }

    fn constants() -> Vec<Constants> {
        vec![
            Constants::of("gamt")
                .with("GAMT_JUMP_BITS", JUMP_BITS)
                .with("GAMT_MOST_LEVELS_V4", V4::BITS)
                .with("GAMT_MOST_LEVELS_V6", V6::BITS),
        ]
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let width = self.entry_width() as usize;
        let levels = self.levels();
        let next_hops = if P::SEPARATE { sections.at(next_hops(levels.len())) } else { DevicePtr(0) };
        let head = Head { next_hops, count: levels.len() as u64 };
        let mut table = bytes_of(&head).to_vec();
        for at in 0..usize::from(A::BITS) {
            let level = levels.get(at).map(|level| LevelArgument::of(level, sections.at(units(at))));
            table.extend_from_slice(bytes_of(&level.unwrap_or(LevelArgument::zeroed())));
        }
        let program = Self::program(stem::<A>(Width::of(width)?), &head, width)?;
        Ok(vec![Program { table, ..program }])
    }
}
