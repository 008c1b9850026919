//! FOLD with hot blocks: `kernels/fold_hot.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem, Width};

use super::layout::{self, FoldHotTable};

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

/// Slots and hot blocks in shared memory, elements of so many bytes.
const fn all(elements: Width) -> Stem {
    Stem::of("fold_hot").word("all").width('w', elements)
}

/// Slots of 2 bytes in shared memory, elements of so many.
const fn slots(elements: Width) -> Stem {
    Stem::of("fold_hot").word("slots").width('w', elements)
}

/// Nothing in shared memory; slots and elements of so many bytes.
const fn nothing(slots: Width, elements: Width) -> Stem {
    Stem::of("fold_hot").width('i', slots).width('w', elements)
}

impl OnDevice for FoldHotTable {
    fn kernels() -> Vec<Stem> {
        let with = |slots| Width::ALL.map(|elements| nothing(slots, elements));
        // Hot blocks hold elements of one byte.
        let staged = std::iter::once(all(Width::One)).chain(Width::ALL.map(slots));
        staged.chain([Width::Two, Width::Four].map(with).concat()).collect()
    }

    fn constants() -> Vec<Constants> {
        vec![
            Constants::of("fold_hot")
                .with("HOT_SLOT_BITS", layout::SLOT_BITS)
                .with("HOT_SHORT", layout::SHORT)
                .with("HOT_LONG", layout::LONG),
        ]
    }

    /// Programs with c16 and the hot blocks in shared memory, for large batches; with c16 alone, for middling
    /// ones; through memory, for small ones. Of these, those that the table's widths leave room for.
    fn programs(&self, sections: Sections<'_>) -> Programs {
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
        let program = |stem| Self::program(stem, &argument, width);
        let elements = Width::of(width)?;
        let mut programs = Vec::new();
        if blocks > 0 {
            let shared = SLOTS + blocks * HOT;
            programs.push(program(all(elements))?.with_shared(shared));
        }
        if slot_width == 2 {
            programs.push(program(slots(elements))?.with_shared(SLOTS));
        }
        programs.push(program(nothing(Width::of(slot_width)?, elements))?);
        Ok(programs)
    }
}
