//! FOLD for IPv6: `kernels/fold.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem, Width};

use super::layout::{self, FoldTableV6};

/// Bytes of a first step that a program has in shared memory: 2^16 elements of 2 bytes.
const STAGED_BYTES: u32 = 2 << 16;

/// `FoldV6` of the kernels' source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    elements: [DevicePtr; layout::MOST_STEPS],
    base: u32,
    steps: u32,
    from: [u8; layout::MOST_STEPS],
    stride: [u8; layout::MOST_STEPS],
}

/// Elements of so many bytes.
const fn stem(elements: Width) -> Stem {
    Stem::of("fold").word("v6").width('w', elements)
}

/// A first step in shared memory. Of 16 bits, in elements of 2 bytes; with 4 bytes it doesn't fit.
const STAGED: Stem = Stem::of("fold").word("v6").word("staged").width('w', Width::Two);

impl OnDevice for FoldTableV6 {
    fn kernels() -> Vec<Stem> {
        vec![STAGED, stem(Width::Two), stem(Width::Four)]
    }

    fn constants() -> Vec<Constants> {
        vec![Constants::of("fold_v6").with("FOLD_MOST_STEPS", layout::MOST_STEPS)]
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let (width, strides) = (self.entry_width(), self.strides());
        let mut argument = Argument { base: self.base(), ..Argument::zeroed() };
        let mut from = 0;
        for (step, &stride) in strides.iter().enumerate() {
            argument.elements[step] = sections.at(layout::section(step));
            (argument.from[step], argument.stride[step]) = (from, stride);
            argument.steps += 1;
            from += stride;
        }
        let program = |stem| Self::program(stem, &argument, width);
        let mut programs = vec![program(stem(Width::of(width)?))?];
        if (width, strides[0]) == (2, 16) {
            programs.insert(0, program(STAGED)?.with_shared(STAGED_BYTES));
        }
        Ok(programs)
    }
}
