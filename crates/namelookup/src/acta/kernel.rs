//! ACTA: `kernels/acta.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem};

use super::hash;
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

    fn constants() -> Vec<Constants> {
        vec![
            Constants::of("acta")
                .with("ACTA_BUCKET_BYTES", layout::BUCKET_BYTES)
                .with("ACTA_BASE_BITS", layout::BASE_BITS)
                .with("ACTA_LONG", layout::LONG_MARK)
                .with("ACTA_LEADS", layout::LEADS)
                .with("ACTA_ENDS", layout::ENDS)
                .with("ACTA_CHOICE_SHIFT", layout::SECOND.ilog2())
                .with("ACTA_HEADER_TURN_SHIFT", layout::TURN_SHIFT)
                .with("ACTA_TAG_SHIFT", layout::TAG_SHIFT)
                .with("ACTA_FILTER_SHIFT", layout::COUNT_BITS)
                .with("ACTA_FILTER_BITS", layout::FILTER_BITS)
                .with("ACTA_INLINE_MOST", layout::INLINE_MOST)
                .with("ACTA_ROOT_STATE_AT", layout::ROOT_STATE_AT)
                .with("ACTA_ROOT_RESULT_AT", layout::ROOT_RESULT_AT)
                .with("ACTA_K", hash::K)
                .with("ACTA_K2", hash::K2),
        ]
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
