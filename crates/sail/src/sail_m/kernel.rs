//! SAIL_M: `kernels/sail_m.cuh`. Keys are addresses, for FIB 0, or addresses with ids of FIBs.

use bytemuck::{Pod, Zeroable};
use wirespeed_fib::{Address, Family};
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Program, Programs, Sections, Stem};

use super::layout::{BCA16, SailMTable, elements, next_hops};
use crate::kernel::{Level16, constants, programs, stems};

/// The kernels' module.
const MODULE: &str = "sail_m";
/// Levels of IPv6 past 16.
const DEEPER: usize = 14;

/// `SailMNextHops` of the kernel's source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct NextHops {
    n: DevicePtr,
    arrays: u64,
    slots: u64,
}

/// `SailM4`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct V4 {
    level16: Level16,
    bca24: DevicePtr,
    a32: DevicePtr,
    width: u64,
    next_hops: NextHops,
}

/// `SailM6`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct V6 {
    level16: Level16,
    deeper: [DevicePtr; DEEPER],
    width: u64,
    next_hops: NextHops,
}

/// Lookups in FIB 0.
impl<A: Address> OnDevice for SailMTable<A> {
    fn kernels() -> Vec<Stem> {
        stems::<A>(MODULE)
    }

    fn constants() -> Vec<Constants> {
        constants()
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let bytes = self.entry_width() as usize;
        let level16 = Level16 { elements: sections.at(BCA16), chunks: self.chunks(1) as u64 };
        let next_hops = NextHops {
            n: sections.at(next_hops::<A>()),
            arrays: self.arrays() as u64,
            slots: self.slots() as u64,
        };
        let id_width = u64::from(self.id_width());
        match A::FAMILY {
            Family::V4 => {
                let (bca24, a32) = (sections.at(elements(1)), sections.at(elements(2)));
                let argument = V4 { level16, bca24, a32, width: id_width, next_hops };
                programs::<A, Self>(MODULE, bytes, &argument)
            }
            Family::V6 => {
                let deeper = std::array::from_fn(|at| sections.at(elements(at + 1)));
                let argument = V6 { level16, deeper, width: id_width, next_hops };
                programs::<A, Self>(MODULE, bytes, &argument)
            }
        }
    }
}

/// The programs for keys that name a FIB, as [`SailMTable::lookup_mixed`]: addresses in the first plane, of 4
/// bytes, or of 16 or 8, and ids of FIBs of 2 bytes in the second ([`bytes_with_fibs`]).
pub fn programs_with_fibs<A: Address>(table: &SailMTable<A>, sections: Sections<'_>) -> Programs {
    let with = |program: Program| Program { stem: with_fibs(program.stem), ..program };
    Ok(table.programs(sections)?.into_iter().map(with).collect())
}

/// Every kernel that [`programs_with_fibs`] may name.
pub fn kernels_with_fibs<A: Address>() -> Vec<Stem> {
    SailMTable::<A>::kernels().into_iter().map(with_fibs).collect()
}

/// Bytes of keys that name a FIB, with those of the id: the kinds that there are kernels for.
pub const fn bytes_with_fibs(family: Family) -> &'static [usize] {
    match family {
        Family::V4 => &[6],
        Family::V6 => &[18, 10],
    }
}

const fn with_fibs(stem: Stem) -> Stem {
    stem.word("fibs")
}
