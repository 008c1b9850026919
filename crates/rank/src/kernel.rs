//! RANK: `kernels/rank.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem, Width};

use crate::layout::{self, RankTable};

/// Bytes of level 16 where its elements are of 2 bytes.
const STAGED: u32 = 2 << 16;
const _: () = assert!(STAGED as usize == 2 * layout::SLOTS, "all of level 16");

/// `Rank` of the kernels' source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    level16: DevicePtr,
    level24: DevicePtr,
    level32: DevicePtr,
    runs: DevicePtr,
}

/// Ids of chunks and runs of so many bytes.
const fn stem(ids: Width, runs: Width) -> Stem {
    Stem::of("rank").width('i', ids).width('w', runs)
}

/// Level 16 in shared memory. Ids of 4 bytes, which only a table with a chunk for every slot has, don't fit.
const fn staged(runs: Width) -> Stem {
    Stem::of("rank").word("staged").width('i', Width::Two).width('w', runs)
}

/// Bytes of a run.
const RUNS: [Width; 2] = [Width::Two, Width::Four];

impl OnDevice for RankTable {
    fn kernels() -> Vec<Stem> {
        [RUNS.map(staged), RUNS.map(|runs| stem(Width::Two, runs)), RUNS.map(|runs| stem(Width::Four, runs))]
            .concat()
    }

    fn constants() -> Vec<Constants> {
        vec![
            Constants::of("rank")
                .with("RANK_SLOTS", layout::SLOTS)
                .with("RANK_WORDS", layout::WORDS)
                .with("RANK_WORD", layout::WORD),
        ]
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let (ids, width) = (self.id_width() as usize, self.entry_width() as usize);
        let runs = Width::of(width)?;
        let argument = Argument {
            level16: sections.at(layout::LEVEL16),
            level24: sections.at(layout::LEVEL24),
            level32: sections.at(layout::LEVEL32),
            runs: sections.at(layout::RUNS),
        };
        let program = |stem| Self::program(stem, &argument, width);
        let mut programs = vec![program(stem(Width::of(ids)?, runs))?];
        if ids == 2 {
            programs.insert(0, program(staged(runs))?.with_shared(STAGED));
        }
        Ok(programs)
    }
}
