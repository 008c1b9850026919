//! Names as input numbers, 32 of them interleaved (section 4; footnote 7), as MATA-NW takes them.
//!
//! ```text
//!             lane   0     1     2    …   31
//! group 0  row 0   com/  org/  net/  …  com/      a row: 32 u32, one 128-byte block of a GPU's memory
//!          row 1   parc  exam   0    …  x/        0 after a name's end
//!          row 2   /     ple/   0    …   0
//!          row 3   www/   0     0    …   0
//! group 1  row 4   …                              groups start at given rows
//! ```
//!
//! A 0 may also be four zero bytes of a name. Such a step doesn't end with a slash, so a lookup that
//! continues with it past a name's end finds nothing.

use super::form::Form;
use super::layout::AlignedTable;
use super::lookup::View;
use crate::found::Match;
use crate::fsm::{Stride, bytes_of, chunks};
use crate::names::Names;

/// Names of a group, and numbers of a row.
pub const LANES: usize = 32;

/// Names that are interleaved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interleaved {
    /// The rows, [`LANES`] numbers each.
    rows: Vec<u32>,
    /// The row that each group starts with, and past the last group's.
    groups: Vec<u32>,
    names: usize,
}

/// Interleaves names with four bytes in each number. O(bytes).
///
/// Panics from 2^32 rows on, which the bytes of a batch can't reach.
pub fn interleave(names: Names<'_>) -> Interleaved {
    let mut to = Interleaved::default();
    to.fill(names);
    to
}

impl Interleaved {
    /// Replaces the interleaved names, and keeps the memory.
    pub fn fill(&mut self, names: Names<'_>) {
        self.rows.clear();
        self.groups.clear();
        self.groups.push(0);
        self.names = names.len();
        for group in (0..names.len()).step_by(LANES) {
            let from = self.rows.len();
            for (lane, at) in (group..names.len().min(group + LANES)).enumerate() {
                let mut to = from + lane;
                for step in chunks(names.name(at), Stride::FOUR) {
                    if to >= self.rows.len() {
                        self.rows.resize(self.rows.len() + LANES, 0);
                    }
                    self.rows[to] = step.input;
                    to += LANES;
                }
            }
            let rows = u32::try_from(self.rows.len() / LANES).expect("fewer rows than bytes of a batch");
            self.groups.push(rows);
        }
    }

    /// The number of names.
    pub const fn len(&self) -> usize {
        self.names
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.names == 0
    }

    /// All rows.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The row that each group starts with, and one past the last group's.
    pub fn groups(&self) -> &[u32] {
        &self.groups
    }
}

impl<F: Form> AlignedTable<F> {
    /// Looks up names that are interleaved with this table's stride, four bytes.
    ///
    /// Panics when the lengths differ, or when the stride is different.
    pub fn match_interleaved(&self, names: &Interleaved, matches: &mut [Match]) {
        assert_eq!(names.len(), matches.len(), "a match for each name");
        assert_eq!(F::STRIDE, Stride::FOUR, "names are interleaved by four bytes");
        let view = View::of(self);
        for (group, matches) in names.groups.windows(2).zip(matches.chunks_mut(LANES)) {
            let rows = &names.rows[group[0] as usize * LANES..group[1] as usize * LANES];
            view.group(rows, matches);
        }
    }
}

impl<F: Form> View<'_, F> {
    /// Looks up the names of a group, row by row.
    fn group(&self, rows: &[u32], matches: &mut [Match]) {
        /// A name under way.
        #[derive(Clone, Copy)]
        struct Lane {
            lane: usize,
            state: u32,
            at: u32,
        }
        let mut found = [(u32::MAX, 0u32); LANES];
        let mut lanes: [Lane; LANES] = std::array::from_fn(|lane| Lane { lane, state: self.root, at: 0 });
        let mut live = if self.root == 0 { 0 } else { matches.len() };
        for row in rows.chunks_exact(LANES) {
            lanes[..live].iter().for_each(|lane| self.prefetch(lane.state, row[lane.lane]));
            let mut still = 0;
            for at in 0..live {
                let mut lane = lanes[at];
                let input = row[lane.lane];
                let Some(link) = self.follow(&mut lane.state, input) else { continue };
                lane.at += bytes_of(input, Stride::FOUR);
                if link.accepting {
                    found[lane.lane] = (link.slot, lane.at);
                }
                lanes[still] = lane;
                still += usize::from(lane.state != 0);
            }
            live = still;
            if live == 0 {
                break;
            }
        }
        let found = &found[..matches.len()];
        found.iter().filter(|(slot, _)| *slot != u32::MAX).for_each(|&(slot, _)| self.prefetch_result(slot));
        for (to, &(slot, length)) in matches.iter_mut().zip(found) {
            *to = self.result(slot, length as usize);
        }
    }
}
