//! [`Block`]: what is known of a chunk in 8 bytes.
//!
//! ```text
//! byte      0   1   2   3     4   5   6   7
//!           b1  b2  b3  0     value of the elements below b1, from b1, from b2, from b3 on
//! ```
//!
//! Boundaries ascend. A value is a next hop, or [`ESCAPE`]: the elements of that run are not all equal, or
//! lead on to longer prefixes, so ask the chunk. Boundaries say only which runs are worth knowing: any are
//! right as long as the values are taken from the chunk, which is all that an update does. They are chosen
//! when a table is built.

/// Runs of a block.
pub(super) const RUNS: usize = 4;
/// Elements of a chunk.
const ELEMENTS: usize = 256;
/// The value of a run that has none. All ones, as the element of a chunk that leads on.
pub(super) const ESCAPE: u8 = u8::MAX;

/// A block, as the table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block(pub(super) u64);

impl Block {
    /// The block of a chunk whose runs start at 0 and at the boundaries, which ascend and are fewer than
    /// [`RUNS`]. Where there are fewer than they could be, the last one is repeated, and without any it is
    /// the last element.
    pub(super) fn new(boundaries: &[u8], chunk: &[u8]) -> Self {
        let mut bytes = [0; 8];
        let last = boundaries.last().copied().unwrap_or(u8::MAX);
        for (at, byte) in bytes[..RUNS - 1].iter_mut().enumerate() {
            *byte = boundaries.get(at).copied().unwrap_or(last);
        }
        Self(u64::from_le_bytes(bytes)).of(chunk)
    }

    /// The block of a chunk about which nothing is known: runs of the same length.
    pub(super) fn even(chunk: &[u8]) -> Self {
        Self::new(&[64, 128, 192], chunk)
    }

    /// The block with the same boundaries for what the chunk holds now.
    pub(super) fn of(self, chunk: &[u8]) -> Self {
        let mut bytes = self.0.to_le_bytes();
        for (run, elements) in self.runs().into_iter().enumerate() {
            bytes[RUNS + run] = uniform(&chunk[elements]).unwrap_or(ESCAPE);
        }
        Self(u64::from_le_bytes(bytes))
    }

    /// The elements of each run; none where a boundary is repeated.
    fn runs(self) -> [std::ops::Range<usize>; RUNS] {
        let [b1, b2, b3, ..] = self.0.to_le_bytes().map(usize::from);
        [0..b1, b1..b2, b2..b3, b3..ELEMENTS]
    }

    /// The values.
    pub(super) fn values(self) -> [u8; RUNS] {
        let [_, _, _, _, values @ ..] = self.0.to_le_bytes();
        values
    }

    /// What it says of an element: its value, or [`ESCAPE`].
    #[cfg(test)]
    pub(super) fn value(self, element: u8) -> u8 {
        let [b1, b2, b3, ..] = self.0.to_le_bytes();
        let run = [b1, b2, b3].into_iter().filter(|&boundary| element >= boundary).count();
        self.values()[run]
    }
}

/// The one value of all elements, if there is one.
fn uniform(elements: &[u8]) -> Option<u8> {
    let (&first, rest) = elements.split_first()?;
    rest.iter().all(|&element| element == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the boundaries and the chunk: a value is that of every element of its run, and only runs
        /// that are not of one value have none.
        #[test]
        fn a_block_tells_of_its_chunk(
            mut boundaries in proptest::collection::vec(any::<u8>(), 0..RUNS),
            changes in proptest::collection::vec((any::<u8>(), 0..4u8), 0..12),
        ) {
            boundaries.sort_unstable();
            let mut chunk = [0; ELEMENTS];
            for (from, value) in changes {
                chunk[usize::from(from)..].fill(if value == 3 { ESCAPE } else { value });
            }
            let block = Block::new(&boundaries, &chunk);
            if boundaries.is_empty() {
                boundaries.push(u8::MAX);
            }
            let mut starts = vec![0];
            starts.extend(boundaries.iter().map(|&boundary| usize::from(boundary)));
            starts.push(ELEMENTS);
            for run in starts.windows(2) {
                let elements = &chunk[run[0]..run[1]];
                let right = uniform(elements).unwrap_or(ESCAPE);
                for element in run[0]..run[1] {
                    prop_assert_eq!(block.value(u8::try_from(element).unwrap()), right);
                }
            }
        }
    }

    #[test]
    fn fewer_runs_than_there_could_be() {
        let chunk: [u8; ELEMENTS] = std::array::from_fn(|at| u8::from(at >= 9));
        let block = Block::new(&[9], &chunk);
        assert_eq!(block.0.to_le_bytes()[..3], [9, 9, 9]);
        assert_eq!([block.value(8), block.value(9), block.value(255)], [0, 1, 1]);
        let block = Block::new(&[], &[7; ELEMENTS]);
        assert_eq!([block.value(0), block.value(254), block.value(255)], [7, 7, 7]);
    }
}
