//! FOLD: `kernels/fold.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_fold::v4::layout as v4;
use wirespeed_fold::v6::layout as v6;
use wirespeed_fold::{FoldTableV4, FoldTableV6};
use wirespeed_image::Table;

use crate::driver::DevicePtr;
use crate::error::GpuError;
use crate::program::{OnDevice, Program, Sections};

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

impl OnDevice for FoldTableV4 {
    fn programs(&self, sections: Sections<'_>) -> Result<Vec<Program>, GpuError> {
        let width = self.entry_width();
        let number_width = |section| self.image().width(section).unwrap_or(0);
        let argument = ArgumentV4 {
            c18: sections.at(v4::C18),
            n24: sections.at(v4::N24),
            b18: sections.at(v4::B18),
            c24: sections.at(v4::C24),
            n32: sections.at(v4::N32),
            b18_bytes: number_width(v4::B18).into(),
        };
        let stem = format!("fold_v4_i{}_w{width}", number_width(v4::C18));
        Ok(vec![Program::new("fold", stem, &argument, width)])
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

impl OnDevice for FoldTableV6 {
    fn programs(&self, sections: Sections<'_>) -> Result<Vec<Program>, GpuError> {
        let (width, strides) = (self.entry_width(), self.strides());
        let mut argument = ArgumentV6 { base: self.base(), ..ArgumentV6::zeroed() };
        let mut from = 0;
        for (step, &stride) in strides.iter().enumerate() {
            argument.elements[step] = sections.at(v6::section(step));
            (argument.from[step], argument.stride[step]) = (from, stride);
            argument.steps += 1;
            from += stride;
        }
        let program = |stem: String| Program::new("fold", stem, &argument, width);
        let mut programs = vec![program(format!("fold_v6_w{width}"))];
        // Of 16 bits, in elements of 2 bytes; with 4 bytes it doesn't fit.
        if (width, strides[0]) == (2, 16) {
            programs.insert(0, program("fold_v6_staged_w2".to_owned()).with_shared(STAGED));
        }
        Ok(programs)
    }
}
