//! Binary search on prefix lengths: `kernels/waldvogel.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_fib::{Address, Family};
use wirespeed_waldvogel::{WaldvogelTable, layout};

use crate::driver::DevicePtr;
use crate::error::GpuError;
use crate::program::{OnDevice, Program, Sections};

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

impl<A: Address> OnDevice for WaldvogelTable<A> {
    fn programs(&self, sections: Sections<'_>) -> Result<Vec<Program>, GpuError> {
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
        let family = match A::FAMILY {
            Family::V4 => "v4",
            Family::V6 => "v6",
        };
        let program = |stem: String| Program::new("waldvogel", stem, &argument, RESULT);
        let mut programs = vec![program(format!("waldvogel_{family}"))];
        // A pilot for four slots. IPv4 tables that matter have too many.
        let pilots = 1 << (self.slot_bits() - 2);
        if A::FAMILY == Family::V6 && pilots <= MOST_STAGED {
            programs.insert(0, program(format!("waldvogel_{family}_staged")).with_shared(pilots));
        }
        Ok(programs)
    }
}
