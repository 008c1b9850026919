//! ACTA: `kernels/acta.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::device::{DevicePtr, OnDevice, Programs, Sections, Stem};

use super::layout::{self, ActaTable};
use crate::kernel::staged;

/// `Acta` of the kernel's source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    buckets: DevicePtr,
    long: DevicePtr,
    head: DevicePtr,
    seeds: [u64; 2],
    long_words: u64,
    bucket_count: u32,
    width: u32,
    result_bytes: u32,
    staged: u32,
}

/// The one kernel: results of any width, as the argument says.
const STEM: Stem = Stem::of("acta");

impl OnDevice for ActaTable {
    fn kernels() -> Vec<Stem> {
        vec![STEM]
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let view = self.view();
        let width = u32::try_from(view.width).unwrap_or(4);
        // There are kernels for results of 1, 2 and 4 bytes.
        let result_bytes = width.next_power_of_two();
        let argument = Argument {
            buckets: sections.at(layout::BUCKETS),
            long: sections.at(layout::LONG),
            head: sections.at(layout::HEAD),
            seeds: view.seeds.0,
            long_words: (view.long.len() / 8) as u64,
            bucket_count: view.count,
            width,
            result_bytes,
            staged: 0,
        };
        staged::<Self, _>(STEM, result_bytes, |staged| Argument { staged, ..argument })
    }
}
