//! GAMT: `kernels/gamt.cuh`.

use bytemuck::{Pod, Zeroable, bytes_of};
use wirespeed_fib::{Address, Family};
use wirespeed_gamt::layout::{Code, Level, next_hops, units};
use wirespeed_gamt::{GamtTable, Placement};

use crate::driver::DevicePtr;
use crate::error::GpuError;
use crate::program::{OnDevice, Program, Sections};

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

impl<A: Address, P: Placement> OnDevice for GamtTable<A, P> {
    fn programs(&self, sections: Sections<'_>) -> Result<Vec<Program>, GpuError> {
        let width = self.entry_width() as usize;
        let family = match A::FAMILY {
            Family::V4 => "v4",
            Family::V6 => "v6",
        };
        let levels = self.levels();
        let next_hops = if P::SEPARATE { sections.at(next_hops(levels.len())) } else { DevicePtr(0) };
        let head = Head { next_hops, count: levels.len() as u64 };
        let mut table = bytes_of(&head).to_vec();
        for at in 0..usize::from(A::BITS) {
            let level = levels.get(at).map(|level| LevelArgument::of(level, sections.at(units(at))));
            table.extend_from_slice(bytes_of(&level.unwrap_or(LevelArgument::zeroed())));
        }
        let program = Program::new("gamt", format!("gamt_{family}_w{width}"), &head, width);
        Ok(vec![Program { table, ..program }])
    }
}
