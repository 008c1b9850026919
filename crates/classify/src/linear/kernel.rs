//! Linear search: `kernels/linear.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::Table;
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem};

use super::layout::{self, ENTRIES, HEAD, LinearTable, NUMBERS, group_elements};
use crate::kernel::result_bytes;
use crate::tuple::Tuple;

/// `Linear` of the kernel's source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    entries: DevicePtr,
    numbers: DevicePtr,
    head: DevicePtr,
    staged: u32,
    unused: u32,
}

/// Bytes of shared memory for rules: what one, two, three and four blocks of a multiprocessor have, on GPUs
/// with as much; the last is what every GPU has.
const STAGED: [u32; 4] = [220 << 10, 110 << 10, 72 << 10, 48 << 10];

/// The one kernel: results of any width, as the batch says.
const STEM: Stem = Stem::of("linear");

/// Has a program for each size that the rules fill, which stages them, as many at a time as there is room
/// for; and one that reads them where they are.
impl<T: Tuple> OnDevice for LinearTable<T> {
    fn kernels() -> Vec<Stem> {
        vec![STEM]
    }

    fn constants() -> Vec<Constants> {
        vec![
            Constants::of("linear")
                .with("LINEAR_LANES", layout::LANES)
                .with("LINEAR_GROUPS_AT", layout::GROUPS_AT),
        ]
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let group = size_of::<u32>() * group_elements(T::WORDS);
        // Patches may take all the room that there is.
        let all = u32::try_from(group * self.room().max(1)).unwrap_or(u32::MAX);
        let mut sizes: Vec<u32> = STAGED.iter().map(|&most| most.min(all)).collect();
        sizes.dedup();
        sizes.push(0);
        let bytes = result_bytes(self.image().results());
        let program = |staged| {
            let [entries, numbers, head] = [ENTRIES, NUMBERS, HEAD].map(|id| sections.at(id));
            let argument = Argument { entries, numbers, head, staged, unused: 0 };
            Ok(Self::program(STEM, &argument, bytes)?.with_shared(staged))
        };
        sizes.into_iter().map(program).collect()
    }
}
