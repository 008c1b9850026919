//! SAIL_L: `kernels/sail_l.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_fib::{Address, Family};
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem};
use wirespeed_image::{SectionId, Table};

use super::layout::{BCN16, SailLTable, chunk_ids, levels, next_hops};
use crate::kernel::{Level16, constants, programs, stems};

/// The kernels' module.
const MODULE: &str = "sail_l";
/// Levels of IPv6 past 16 and before 128.
const BETWEEN: usize = 13;

/// `SailL4`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct V4 {
    level16: Level16,
    bn24: DevicePtr,
    c24: DevicePtr,
    n32: DevicePtr,
    c24_width: u64,
}

/// `SailLLevel`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Level {
    next_hops: DevicePtr,
    chunks: DevicePtr,
    width: u64,
}

/// `SailL6`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct V6 {
    level16: Level16,
    between: [Level; BETWEEN],
    n128: DevicePtr,
}

impl<A: Address> OnDevice for SailLTable<A> {
    fn kernels() -> Vec<Stem> {
        stems::<A>(MODULE)
    }

    fn constants() -> Vec<Constants> {
        constants()
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let bytes = self.entry_width() as usize;
        let level16 = Level16 { elements: sections.at(BCN16), chunks: self.chunks(1) };
        let id_width = |section: SectionId| u64::from(self.image().width(section).unwrap_or(0));
        match A::FAMILY {
            Family::V4 => {
                let argument = V4 {
                    level16,
                    bn24: sections.at(next_hops(1)),
                    c24: sections.at(chunk_ids(1)),
                    n32: sections.at(next_hops(2)),
                    c24_width: id_width(chunk_ids(1)),
                };
                programs::<A, Self>(MODULE, bytes, &argument)
            }
            Family::V6 => {
                let between = |at: usize| Level {
                    next_hops: sections.at(next_hops(at + 1)),
                    chunks: sections.at(chunk_ids(at + 1)),
                    width: id_width(chunk_ids(at + 1)),
                };
                let argument = V6 {
                    level16,
                    between: std::array::from_fn(between),
                    n128: sections.at(next_hops(levels::<A>() - 1)),
                };
                programs::<A, Self>(MODULE, bytes, &argument)
            }
        }
    }
}
