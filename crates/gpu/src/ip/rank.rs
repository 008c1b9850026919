//! RANK: `kernels/rank.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_rank::{RankTable, layout};

use crate::driver::DevicePtr;
use crate::error::GpuError;
use crate::program::{OnDevice, Program, Sections};

/// Bytes of level 16 where its elements are of 2 bytes.
const STAGED: u32 = 2 << 16;
const _: () = assert!(STAGED as usize == 2 * layout::SLOTS, "all of level 16");

/// `Rank` of the kernels' source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    level16: DevicePtr,
    level24: DevicePtr,
    level32: DevicePtr,
    runs: DevicePtr,
}

impl OnDevice for RankTable {
    fn programs(&self, sections: Sections<'_>) -> Result<Vec<Program>, GpuError> {
        let (ids, width) = (self.id_width(), self.entry_width());
        let argument = Argument {
            level16: sections.at(layout::LEVEL16),
            level24: sections.at(layout::LEVEL24),
            level32: sections.at(layout::LEVEL32),
            runs: sections.at(layout::RUNS),
        };
        let program = |stem: String| Program::new("rank", stem, &argument, width as usize);
        let mut programs = vec![program(format!("rank_i{ids}_w{width}"))];
        // Ids of 4 bytes, which only a table with a chunk for every slot has, don't fit in shared memory.
        if ids == 2 {
            programs.insert(0, program(format!("rank_staged_i2_w{width}")).with_shared(STAGED));
        }
        Ok(programs)
    }
}
