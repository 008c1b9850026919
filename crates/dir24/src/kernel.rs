//! DIR-24-8: `kernels/dir24.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem, Width};

use crate::layout::{self, Dir24Table};

/// `Dir24` of the kernel's source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    tbl24: DevicePtr,
    tbl8: DevicePtr,
}

/// Elements of so many bytes.
const fn stem(elements: Width) -> Stem {
    Stem::of("dir24").width('w', elements)
}

impl OnDevice for Dir24Table {
    fn kernels() -> Vec<Stem> {
        Width::ALL.map(stem).into()
    }

    fn constants() -> Vec<Constants> {
        vec![Constants::of("dir24").with("DIR24_CHUNK", layout::CHUNK)]
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let width = self.entry_width();
        let argument = Argument { tbl24: sections.at(layout::TBL24), tbl8: sections.at(layout::TBL8) };
        Ok(vec![Self::program(stem(Width::of(width)?), &argument, width)?])
    }
}
