//! Quilt: `kernels/quilt.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::Table;
use wirespeed_image::device::{Constants, DevicePtr, OnDevice, Programs, Sections, Stem, Unsupported};

use super::hash::{self, FILTER, MOST_WORDS, Seeds};
use super::layout::{
    self, BLOCK, CELLS, HEAD, LAYERS, LAYERS_AT_ONCE, QuiltTable, RANKS, SCAN, SCAN_RANKS, SCAN_TOPS, SLOTS,
    blocks, record_len,
};
use crate::kernel::{few, result_bytes};
use crate::tuple::Tuple;

/// `Quilt` of the kernel's source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    head: DevicePtr,
    layers: DevicePtr,
    slots: DevicePtr,
    cells: DevicePtr,
    ranks: DevicePtr,
    tops: DevicePtr,
    scan: DevicePtr,
    scan_ranks: DevicePtr,
    padding: u64,
    keys: [u32; MOST_WORDS],
    factor: u32,
    shift: u32,
    staged: u32,
    filters: u32,
    chunk: u32,
    unused: u32,
    bits: [u8; FILTER.len()],
}

/// Bytes of shared memory for filters and all: what one, two and three blocks of a multiprocessor have, on
/// GPUs with as much; the last is what every GPU has.
const SHARED: [usize; 4] = [220 << 10, 110 << 10, 72 << 10, 48 << 10];
/// Bytes of it for records at most: 512 layers of IPv4, 256 of longer tuples.
const RECORDS: usize = 16 << 10;
/// Layers whose candidates are gathered: a bit each.
const CHUNK: u32 = 32;

/// What is brought to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Split {
    /// Layers' records.
    staged: usize,
    /// Slots' filters, a byte each, by four.
    filters: usize,
}

impl Split {
    /// One split for each size of shared memory that the filters fill; and one without filters, for batches
    /// that aren't worth bringing them. Patches may take the whole capacity.
    fn all(room: usize, record: usize, slots: usize) -> Vec<Self> {
        let staged = room.min(RECORDS / record);
        let left = |shared: usize| shared - FILTER.len() - staged * record;
        let filters = SHARED.iter().map(|&shared| slots.min(left(shared)) & !3).chain([0]);
        let mut all: Vec<Self> = filters.map(|filters| Self { staged, filters }).collect();
        all.dedup();
        all
    }

    /// Bytes of shared memory.
    const fn bytes(self, record: usize) -> usize {
        FILTER.len() + self.staged * record + self.filters
    }
}

/// The one kernel: results of any width, as the batch says.
const STEM: Stem = Stem::of("quilt");

impl<T: Tuple> OnDevice for QuiltTable<T> {
    fn kernels() -> Vec<Stem> {
        vec![STEM]
    }

    fn constants() -> Vec<Constants> {
        vec![
            Constants::of("quilt")
                .with("QUILT_COUNT_AT", layout::COUNT_AT)
                .with("QUILT_REST_AT", layout::REST_AT)
                .with("QUILT_MASK_AT", layout::MASK_AT)
                .with("QUILT_BLOCK", layout::BLOCK)
                .with("QUILT_LANES", layout::LANES)
                .with("QUILT_GROUP_BITS", layout::GROUP_BITS)
                .with("QUILT_FORM_SHIFT", layout::FORM_SHIFT)
                .with("QUILT_FILTER_SHIFT", layout::FILTER_SHIFT)
                .with("QUILT_LAYERS_AT_ONCE", layout::LAYERS_AT_ONCE)
                .with("QUILT_KEYS", hash::MOST_WORDS)
                .with("QUILT_FILTERS", hash::FILTER.len())
                .with("QUILT_SCAN_AT", layout::SCAN_AT)
                .with("QUILT_SCAN_LANES", layout::SCAN_LANES)
                .with("QUILT_TOPS", layout::TOPS),
        ]
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        let image = self.image();
        let record = record_len::<T>() * size_of::<u64>();
        let room = image.section::<u64>(LAYERS).len() / record_len::<T>();
        if u32::try_from(room).is_err() {
            return Err(Unsupported(format!("{room} layers: at most {}", u32::MAX)));
        }
        let [head, layers, slots, cells, ranks] =
            [HEAD, LAYERS, SLOTS, CELLS, RANKS].map(|id| sections.at(id));
        let [tops, scan, scan_ranks] = [SCAN_TOPS, SCAN, SCAN_RANKS].map(|id| sections.at(id));
        // The engine's patches change none of these.
        let seeds = self.seeds();
        let Seeds { keys, factor } = seeds;
        let (padding, shift) = (padding::<T>(&seeds), self.shift());
        let chunk = if self.descends() { CHUNK } else { few(LAYERS_AT_ONCE) };
        let program = |split: Split| {
            let [staged, filters, shared] = [split.staged, split.filters, split.bytes(record)].map(few);
            let argument = Argument {
                head,
                layers,
                slots,
                cells,
                ranks,
                tops,
                scan,
                scan_ranks,
                padding,
                keys,
                factor,
                shift,
                staged,
                filters,
                chunk,
                unused: 0,
                bits: FILTER,
            };
            Ok(Self::program(STEM, &argument, result_bytes(image.results()))?.with_shared(shared))
        };
        let splits = Split::all(room, record, image.section::<u64>(SLOTS).len());
        splits.into_iter().map(program).collect()
    }
}

/// What the words that fill up the last block, all of them 0, give to every hash.
fn padding<T: Tuple>(seeds: &Seeds) -> u64 {
    let pairs = (T::WORDS.next_multiple_of(2)..blocks::<T>() * BLOCK).step_by(2);
    let product = |at: usize| u64::from(seeds.keys[at]).wrapping_mul(seeds.keys[at + 1].into());
    pairs.map(product).fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_go_where_they_fit() {
        let of = |slots| Split::all(100, 32, slots);
        let filters = |slots| of(slots).iter().map(|split| split.filters).collect::<Vec<_>>();
        assert_eq!(filters(3), [0]);
        assert_eq!(filters(40_003), [40_000, 0]);
        assert_eq!(filters(100_000), [100_000, 70_464, 45_888, 0]);
        assert_eq!(filters(1 << 20)[0], (220 << 10) - 64 - 3200);
        for split in of(1 << 20) {
            assert!(split.staged == 100 && SHARED.contains(&split.bytes(32)) || split.filters == 0);
        }
        assert_eq!(Split::all(1 << 20, 64, 0), [Split { staged: 256, filters: 0 }]);
    }
}
