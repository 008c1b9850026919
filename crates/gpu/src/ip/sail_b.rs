//! SAIL_B and SAIL_U: `kernels/sail_b.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_sail::sail_b::{Levels, SplitTable, layout};

use crate::driver::DevicePtr;
use crate::error::GpuError;
use crate::program::{OnDevice, Program, Sections};

/// `SailB` of the kernels' source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    maps: [DevicePtr; layout::MOST_LEVELS],
    next_hops: [DevicePtr; layout::MOST_LEVELS],
    pivot: DevicePtr,
    n32: DevicePtr,
    levels: u32,
    chunks: u32,
    level: [u8; 32],
}

impl<L: Levels> OnDevice for SplitTable<L> {
    fn programs(&self, sections: Sections<'_>) -> Result<Vec<Program>, GpuError> {
        let mut argument = Argument {
            pivot: sections.at(layout::next_hops::<L>(layout::pivot::<L>())),
            n32: sections.at(layout::long::<L>()),
            chunks: u32::try_from(self.chunks()).expect("no more than the pivot level has elements, and one"),
            ..Argument::zeroed()
        };
        for (at, &level) in L::LEVELS.iter().enumerate() {
            argument.maps[at] = sections.at(layout::bits(at));
            argument.next_hops[at] = sections.at(layout::next_hops::<L>(at));
            argument.level[at] = level;
            argument.levels += 1;
        }
        let stem = format!("sail_b_w{}_p{}", self.entry_width(), self.pivot_width());
        Ok(vec![Program::new("sail_b", stem, &argument, self.pivot_width() as usize)])
    }
}
