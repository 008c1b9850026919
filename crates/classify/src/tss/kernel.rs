//! Tuple search and Bloom search: `kernels/classes.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::Table;
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem};

use super::form::Form;
use super::hash;
use super::layout::{
    self, CLASS_WORDS, CLASSES, Class, FILTERS, HEAD, LEAST_LOG, ORDER, SLOTS, TssTable, slot_elements,
};
use crate::kernel::{few, result_bytes};
use crate::tuple::Tuple;

/// Words that tuples are hashed with.
const KEYS: usize = 12;

/// `Classes` of the kernel's source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    order: DevicePtr,
    classes: DevicePtr,
    slots: DevicePtr,
    filters: DevicePtr,
    head: DevicePtr,
    rounds: [u64; 3],
    keys: [u32; KEYS],
    part: u32,
    room: u32,
    descends: u32,
    unused: u32,
}

/// Most threads of a block.
const THREADS: usize = 512;
/// Tuples of a thread.
const TUPLES: usize = 4;
/// Words of a class's record in shared memory.
const RECORD: usize = 16;
/// Words that say whether a part is wanted.
const FLAGS: usize = 4;

/// Bytes of shared memory: what one, two and three blocks of a multiprocessor have, on GPUs with as much; the
/// last is what every GPU has.
const SHARED: [usize; 4] = [220 << 10, 110 << 10, 72 << 10, 48 << 10];
/// Bytes of it that hold ranks and flags.
const FIXED: usize = THREADS * TUPLES * size_of::<u64>() + FLAGS * WORD;
const WORD: usize = size_of::<u32>();

/// How classes are brought to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Split {
    /// Classes at once.
    part: usize,
    /// Words for what each has: its filter, or its table.
    room: usize,
}

impl Split {
    /// A split for classes that have so many words each, ascending, in so much memory; patches may bring as
    /// many classes as `most`.
    ///
    /// All at once where nine in ten fit so, and else these nine, but as many at once as make a part worth
    /// its barriers.
    fn of(sizes: &[usize], most: usize, shared: usize, worth: usize) -> Self {
        let words = (shared - FIXED) / WORD;
        let classes_in = |room: usize| words / (RECORD + room);
        let nine = sizes.get(sizes.len().saturating_sub(1) * 9 / 10).copied().unwrap_or(0);
        let largest = |least: usize, up_to: usize| {
            let fits = |&&room: &&usize| room <= up_to && classes_in(room) >= least;
            sizes.iter().rev().find(fits).copied()
        };
        let wanted = sizes.len().max(1);
        let at_once = largest(wanted, usize::MAX).filter(|&room| room >= nine);
        let room = at_once.or_else(|| largest(worth.min(wanted), nine)).unwrap_or(0);
        Self { part: classes_in(room).clamp(1, most.max(1)), room }
    }

    /// Bytes of shared memory.
    const fn bytes(self) -> usize {
        FIXED + self.part * (RECORD + self.room) * WORD
    }
}

/// The one kernel of each form: results of any width, as the batch says.
const fn stem<F: Form>() -> Stem {
    Stem::of(if F::FILTERED { "bloom" } else { "tuple_search" })
}

/// A program for each size of shared memory that the classes fill.
impl<T: Tuple, F: Form> OnDevice for TssTable<T, F> {
    fn kernels() -> Vec<Stem> {
        vec![stem::<F>()]
    }

    fn constants() -> Vec<Constants> {
        vec![
            Constants::of("tss")
                .with("TSS_CLASSES_AT", layout::CLASSES_AT)
                .with("TSS_CLASS_WORDS", layout::CLASS_WORDS)
                .with("TSS_FIRST_SLOT_AT", layout::FIRST_SLOT_AT)
                .with("TSS_SUBTABLE_AT", layout::SUBTABLE_AT)
                .with("TSS_FIRST_BITS_AT", layout::FIRST_BITS_AT)
                .with("TSS_LOG_BITS_AT", layout::LOG_BITS_AT)
                .with("TSS_BOUND_AT", layout::BOUND_AT)
                .with("TSS_LEAST_LOG", layout::LEAST_LOG)
                .with("TSS_KEYS", hash::KEYS)
                .with("TSS_K", hash::K)
                .with("TSS_SLOT_OF_4", layout::slot_elements(4))
                .with("TSS_SLOT_OF_9", layout::slot_elements(9))
                .with("TSS_SLOT_OF_10", layout::slot_elements(10)),
            Constants::of("classes")
                .with("CLASSES_THREADS", THREADS)
                .with("CLASSES_TUPLES", TUPLES)
                .with("CLASSES_RECORD", RECORD)
                .with("CLASSES_FLAGS", FLAGS),
        ]
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        /// Classes of a part, where there are as many, of filters and of tables.
        const WORTH: [usize; 2] = [32, 8];
        let image = self.image();
        let order = image.section::<u32>(ORDER);
        let records = image.section::<u32>(CLASSES).as_chunks::<CLASS_WORDS>().0;
        let words = |&number: &u32| {
            let class = Class(&records[number as usize]);
            let words = match F::FILTERED {
                true => 1 << (class.log() - LEAST_LOG),
                false => 3 * class.d() as usize * slot_elements(T::WORDS) * size_of::<u64>() / WORD,
            };
            words.next_multiple_of(4)
        };
        let in_use = &order[..self.classes()];
        let mut sizes: Vec<usize> = in_use.iter().map(words).collect();
        sizes.sort_unstable();
        let bound = |&number: &u32| Class(&records[number as usize]).bound();
        // The engine's patches keep it so.
        let descends = u32::from(in_use.iter().map(bound).is_sorted_by(|a, b| a >= b));
        let worth = WORTH[usize::from(!F::FILTERED)];
        let mut splits: Vec<Split> =
            SHARED.iter().map(|&shared| Split::of(&sizes, order.len(), shared, worth)).collect();
        splits.dedup();
        let keys = self.keys();
        let program = |split: Split| {
            let [order, classes, slots, filters, head] =
                [ORDER, CLASSES, SLOTS, FILTERS, HEAD].map(|id| sections.at(id));
            let [part, room, shared] = [split.part, split.room, split.bytes()].map(few);
            let (rounds, keys) = (keys.rounds, keys.words);
            let argument = Argument {
                order,
                classes,
                slots,
                filters,
                head,
                rounds,
                keys,
                part,
                room,
                descends,
                unused: 0,
            };
            let bytes = result_bytes(image.results());
            Ok(Self::program(stem::<F>(), &argument, bytes)?.with_shared(shared))
        };
        splits.into_iter().map(program).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(sizes: &[usize], shared: usize) -> Split {
        let split = Split::of(sizes, sizes.len() + 10, shared, 32);
        assert!(split.bytes() <= shared, "{split:?}");
        split
    }

    #[test]
    fn all_at_once_where_most_fit_so() {
        assert_eq!(split(&[], 48 << 10), Split { part: 10, room: 0 });
        assert_eq!(split(&[256; 64], 220 << 10), Split { part: 74, room: 256 });
        let mut sizes = vec![4; 90];
        sizes.extend([1 << 20; 4]);
        assert_eq!(split(&sizes, 48 << 10), Split { part: 104, room: 4 });
    }

    #[test]
    fn parts_that_are_worth_it() {
        assert_eq!(split(&[256; 512], 220 << 10), Split { part: 191, room: 256 });
        // Filters of 128 KiB stay where they are.
        assert_eq!(split(&[1 << 15; 100], 220 << 10), Split { part: 110, room: 0 });
        let mut sizes = vec![64; 50];
        sizes.extend([256; 30]);
        sizes.extend([1024; 20]);
        // A tenth and more is too large for 32 at once, the next smaller ones are not.
        assert_eq!(split(&sizes, 72 << 10).room, 256);
    }
}
