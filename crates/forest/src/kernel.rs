//! Forests: `kernels/forest.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_fib::Address;
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem, Unsupported};

use crate::layout::{CELLS, ForestTable, LEAVES, ROOTS, Width};

/// `Forest` of the kernels' source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    cells: DevicePtr,
    leaves: DevicePtr,
    roots: DevicePtr,
    stride: u32,
    leaf_bytes: u32,
}

/// Cells of this width.
const fn stem<A: Address>(width: Width) -> Stem {
    Stem::of("forest").word(A::FAMILY.short_name()).word(match width {
        Width::Narrow(_) => "narrow",
        Width::Wide => "wide",
    })
}

/// A program looks up in table 0.
impl<A: Address> OnDevice for ForestTable<A> {
    fn kernels() -> Vec<Stem> {
        vec![stem::<A>(Width::NARROW), stem::<A>(Width::Wide)]
    }

    fn constants() -> Vec<Constants> {
        Vec::new()
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        if !self.width.is_even() {
            return Err(Unsupported("uneven cells, which only many tables in one have".to_owned()));
        }
        let argument = Argument {
            cells: sections.at(CELLS),
            leaves: sections.at(LEAVES),
            roots: sections.at(ROOTS),
            stride: self.stride().into(),
            leaf_bytes: u32::from(self.leaf_width().to_le_bytes()[0]),
        };
        // A next hop is half of a cell.
        Ok(vec![Self::program(stem::<A>(self.width), &argument, self.cell_width() / 2)?])
    }
}
