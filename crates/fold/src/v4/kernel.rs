//! FOLD for IPv4: `kernels/fold.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::Table;
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem, Width};

use super::layout::{self, FoldTableV4};

/// `FoldV4` of the kernels' source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    c18: DevicePtr,
    n24: DevicePtr,
    b18: DevicePtr,
    c24: DevicePtr,
    n32: DevicePtr,
    b18_bytes: u64,
}

/// Numbers of chunks and elements of so many bytes.
const fn stem(numbers: Width, elements: Width) -> Stem {
    Stem::of("fold").word("v4").width('i', numbers).width('w', elements)
}

impl OnDevice for FoldTableV4 {
    fn kernels() -> Vec<Stem> {
        let with = |numbers| Width::ALL.map(|elements| stem(numbers, elements));
        [Width::Two, Width::Four].map(with).concat()
    }

    fn constants() -> Vec<Constants> {
        vec![
            Constants::of("fold_v4")
                .with("FOLD_SLOT_BITS", layout::SLOT_BITS)
                .with("FOLD_SHORT", layout::SHORT)
                .with("FOLD_LONG", layout::LONG),
        ]
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let width = self.entry_width();
        let number_bytes = |section| self.image().width(section).unwrap_or(0);
        let argument = Argument {
            c18: sections.at(layout::C18),
            n24: sections.at(layout::N24),
            b18: sections.at(layout::B18),
            c24: sections.at(layout::C24),
            n32: sections.at(layout::N32),
            b18_bytes: number_bytes(layout::B18).into(),
        };
        let stem = stem(Width::of(number_bytes(layout::C18) as usize)?, Width::of(width)?);
        Ok(vec![Self::program(stem, &argument, width)?])
    }
}
