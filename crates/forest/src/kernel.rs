//! Forests: `kernels/forest.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_fib::Address;
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem};

use crate::layout::{CELLS, ForestTable, ROOTS, Width};

/// `Forest` of the kernels' source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    cells: DevicePtr,
    roots: DevicePtr,
    stride: u64,
}

/// Cells of this width.
const fn stem<A: Address>(width: Width) -> Stem {
    Stem::of("forest").word(A::FAMILY.short_name()).word(match width {
        Width::Narrow => "narrow",
        Width::Wide => "wide",
    })
}

/// A program looks up in table 0.
impl<A: Address> OnDevice for ForestTable<A> {
    fn kernels() -> Vec<Stem> {
        vec![stem::<A>(Width::Narrow), stem::<A>(Width::Wide)]
    }

    fn constants() -> Vec<Constants> {
        Vec::new()
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let (cells, roots) = (sections.at(CELLS), sections.at(ROOTS));
        let argument = Argument { cells, roots, stride: self.stride().into() };
        // A next hop is half of a cell.
        Ok(vec![Self::program(stem::<A>(self.width), &argument, self.cell_width() / 2)?])
    }
}
