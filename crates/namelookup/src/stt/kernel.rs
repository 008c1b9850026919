//! STT: `kernels/stt.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::Table;
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem};

use super::layout::{self, HEAD, RESULTS, SttTable, TABLE};
use crate::kernel::{few, staged};

/// `Stt` of the kernel's source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    table: DevicePtr,
    results: DevicePtr,
    head: DevicePtr,
    rows: u32,
    states: u32,
    stride: u32,
    unused: u32,
    result_bytes: u32,
    staged: u32,
}

/// The one kernel: results of any width, as the argument says.
const STEM: Stem = Stem::of("stt");

impl OnDevice for SttTable {
    fn kernels() -> Vec<Stem> {
        vec![STEM]
    }

    fn constants() -> Vec<Constants> {
        vec![Constants::of("stt").with("STT_ROW", layout::ROW)]
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let image = self.image();
        let result_bytes = image.width(RESULTS).unwrap_or(1);
        let argument = Argument {
            table: sections.at(TABLE),
            results: sections.at(RESULTS),
            head: sections.at(HEAD),
            rows: few(self.rows()),
            states: few(self.states()),
            // A byte a step.
            stride: 1,
            unused: 0,
            result_bytes,
            staged: 0,
        };
        staged::<Self, _>(STEM, result_bytes, |staged| Argument { staged, ..argument })
    }
}
