//! MATA and ATA: `kernels/mata.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::Table;
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem};

use super::form::Form;
use super::layout::{self, ARRAYS, AlignedTable, BASE_BITS, HEAD, RECORD, RESULTS, STRIDE, TRANSITIONS};
use crate::kernel::{few, staged};

/// `Mata` of the kernel's source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    transitions: DevicePtr,
    arrays: DevicePtr,
    results: DevicePtr,
    head: DevicePtr,
    slots: u64,
    array_count: u32,
    stride: u32,
    base_bits: u32,
    unused: u32,
    result_bytes: u32,
    staged: u32,
}

/// The one kernel: results of any width, as the argument says.
const STEM: Stem = Stem::of("mata");

impl<F: Form> OnDevice for AlignedTable<F> {
    fn kernels() -> Vec<Stem> {
        vec![STEM]
    }

    fn constants() -> Vec<Constants> {
        vec![
            Constants::of("aligned")
                .with("ALIGNED_ROOT_STATE_AT", layout::ROOT)
                .with("ALIGNED_ROOT_RESULT_AT", layout::ROOT_RESULT)
                .with("ALIGNED_ARRAY_WORDS", layout::RECORD)
                .with("ALIGNED_ACCEPTING", layout::ACCEPTING),
        ]
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let image = self.image();
        let head = image.section::<u64>(HEAD);
        let result_bytes = image.width(RESULTS).unwrap_or(1);
        let argument = Argument {
            transitions: sections.at(TRANSITIONS),
            arrays: sections.at(ARRAYS),
            results: sections.at(RESULTS),
            head: sections.at(HEAD),
            slots: image.section::<u64>(TRANSITIONS).len() as u64,
            array_count: few((image.section::<u64>(ARRAYS).len() / RECORD) as u64),
            stride: few(head[STRIDE]),
            base_bits: few(head[BASE_BITS]),
            unused: 0,
            result_bytes,
            staged: 0,
        };
        staged::<Self, _>(STEM, result_bytes, |staged| Argument { staged, ..argument })
    }
}
