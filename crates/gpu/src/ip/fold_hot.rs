//! FOLD with hot blocks: `kernels/fold_hot.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_fold::FoldHotTable;
use wirespeed_fold::hot::layout;

use crate::driver::DevicePtr;
use crate::error::GpuError;
use crate::program::{OnDevice, Program, Sections};

/// Bytes of c16, where its elements are of 2.
const SLOTS: u32 = 2 << layout::SLOT_BITS;
/// Bytes of a hot block.
const HOT: u32 = 8;

/// `FoldHot` of the kernels' source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    c16: DevicePtr,
    n24: DevicePtr,
    b16: DevicePtr,
    c24: DevicePtr,
    n32: DevicePtr,
    hot: DevicePtr,
    blocks: u32,
    base: u32,
    b16_bytes: u64,
}

impl OnDevice for FoldHotTable {
    /// Programs with c16 and the hot blocks in shared memory, for large batches; with c16 alone, for middling
    /// ones; through memory, for small ones. Of these, those that the table's widths leave room for.
    fn programs(&self, sections: Sections<'_>) -> Result<Vec<Program>, GpuError> {
        let (width, slot_width) = (self.entry_width(), self.slot_width());
        let blocks = u32::try_from(self.hot()).unwrap_or(0);
        let argument = Argument {
            c16: sections.at(layout::C16),
            n24: sections.at(layout::N24),
            b16: sections.at(layout::B16),
            c24: sections.at(layout::C24),
            n32: sections.at(layout::N32),
            hot: sections.at(layout::HOT),
            blocks,
            base: self.base(),
            b16_bytes: self.block_width() as u64,
        };
        let program = |stem: String| Program::new("fold_hot", stem, &argument, width);
        let mut programs = Vec::new();
        if blocks > 0 {
            let shared = SLOTS + blocks * HOT;
            programs.push(program(format!("fold_hot_all_w{width}")).with_shared(shared));
        }
        if slot_width == 2 {
            programs.push(program(format!("fold_hot_slots_w{width}")).with_shared(SLOTS));
        }
        programs.push(program(format!("fold_hot_i{slot_width}_w{width}")));
        Ok(programs)
    }
}
