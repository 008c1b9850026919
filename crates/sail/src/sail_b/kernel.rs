//! SAIL_B and SAIL_U: `kernels/sail_b.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem, Width};

use super::layout::{self, Levels, SplitTable};

/// `SailB` of the kernels' source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    maps: [DevicePtr; layout::MOST_LEVELS],
    next_hops: [DevicePtr; layout::MOST_LEVELS],
    pivot: DevicePtr,
    n32: DevicePtr,
    levels: u32,
    chunks: u32,
    level: [u8; 32],
}

/// Next hops of so many bytes, and elements of the pivot level, which are no narrower.
const fn stem(next_hops: Width, pivot: Width) -> Stem {
    Stem::of("sail_b").width('w', next_hops).width('p', pivot)
}

impl<L: Levels> OnDevice for SplitTable<L> {
    fn kernels() -> Vec<Stem> {
        let pairs = Width::ALL.into_iter().flat_map(|pivot| Width::ALL.map(|next_hops| (next_hops, pivot)));
        pairs
            .filter(|(next_hops, pivot)| next_hops <= pivot)
            .map(|(next_hops, pivot)| stem(next_hops, pivot))
            .collect()
    }

    fn constants() -> Vec<Constants> {
        vec![
            Constants::of("sail_b")
                .with("SAIL_B_PIVOT", layout::PIVOT)
                .with("SAIL_B_MOST_LEVELS", layout::MOST_LEVELS)
                .with("SAIL_B_CHUNK", layout::CHUNK),
        ]
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let mut argument = Argument {
            pivot: sections.at(layout::next_hops::<L>(layout::pivot::<L>())),
            n32: sections.at(layout::long::<L>()),
            chunks: u32::try_from(self.chunks()).expect("no more than the pivot level has elements, and one"),
            ..Argument::zeroed()
        };
        for (at, &level) in L::LEVELS.iter().enumerate() {
            argument.maps[at] = sections.at(layout::bits(at));
            argument.next_hops[at] = sections.at(layout::next_hops::<L>(at));
            argument.level[at] = level;
            argument.levels += 1;
        }
        let [next_hops, pivot] = [self.entry_width(), self.pivot_width()].map(|bytes| bytes as usize);
        let stem = stem(Width::of(next_hops)?, Width::of(pivot)?);
        Ok(vec![Self::program(stem, &argument, pivot)?])
    }
}
