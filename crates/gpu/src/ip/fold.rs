//! FOLD: `kernels/fold.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_fold::v4::layout as v4;
use wirespeed_fold::v6::layout as v6;
use wirespeed_fold::{FoldTableV4, FoldTableV6};
use wirespeed_image::Table;

use crate::program::{DevicePtr, OnDevice, Programs, Sections, Stem, Width};

/// Bytes of a first step that a program has in shared memory: 2^16 elements of 2 bytes.
const STAGED: u32 = 2 << 16;

/// `FoldV4` of the kernels' source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ArgumentV4 {
    c18: DevicePtr,
    n24: DevicePtr,
    b18: DevicePtr,
    c24: DevicePtr,
    n32: DevicePtr,
    b18_bytes: u64,
}

/// Numbers of chunks and elements of so many bytes.
const fn stem_v4(numbers: Width, elements: Width) -> Stem {
    Stem::of("fold").word("v4").width('i', numbers).width('w', elements)
}

impl OnDevice for FoldTableV4 {
    fn kernels() -> Vec<Stem> {
        let with = |numbers| Width::ALL.map(|elements| stem_v4(numbers, elements));
        [Width::Two, Width::Four].map(with).concat()
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let width = self.entry_width();
        let number_bytes = |section| self.image().width(section).unwrap_or(0);
        let argument = ArgumentV4 {
            c18: sections.at(v4::C18),
            n24: sections.at(v4::N24),
            b18: sections.at(v4::B18),
            c24: sections.at(v4::C24),
            n32: sections.at(v4::N32),
            b18_bytes: number_bytes(v4::B18).into(),
        };
        let stem = stem_v4(Width::of(number_bytes(v4::C18) as usize)?, Width::of(width)?);
        Ok(vec![Self::program(stem, &argument, width)?])
    }
}

/// `FoldV6` of the kernels' source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ArgumentV6 {
    elements: [DevicePtr; v6::MOST_STEPS],
    base: u32,
    steps: u32,
    from: [u8; v6::MOST_STEPS],
    stride: [u8; v6::MOST_STEPS],
}

/// Elements of so many bytes.
const fn stem_v6(elements: Width) -> Stem {
    Stem::of("fold").word("v6").width('w', elements)
}

/// A first step in shared memory. Of 16 bits, in elements of 2 bytes; with 4 bytes it doesn't fit.
const STAGED_V6: Stem = Stem::of("fold").word("v6").word("staged").width('w', Width::Two);

impl OnDevice for FoldTableV6 {
    fn kernels() -> Vec<Stem> {
        vec![STAGED_V6, stem_v6(Width::Two), stem_v6(Width::Four)]
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let (width, strides) = (self.entry_width(), self.strides());
        let mut argument = ArgumentV6 { base: self.base(), ..ArgumentV6::zeroed() };
        let mut from = 0;
        for (step, &stride) in strides.iter().enumerate() {
            argument.elements[step] = sections.at(v6::section(step));
            (argument.from[step], argument.stride[step]) = (from, stride);
            argument.steps += 1;
            from += stride;
        }
        let program = |stem| Self::program(stem, &argument, width);
        let mut programs = vec![program(stem_v6(Width::of(width)?))?];
        if (width, strides[0]) == (2, 16) {
            programs.insert(0, program(STAGED_V6)?.with_shared(STAGED));
        }
        Ok(programs)
    }
}
