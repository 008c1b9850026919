//! [`Base`]: the arrays of the table that an update starts from.

use wirespeed_image::prefetch;

use super::layout::{LANES, View};

/// The table before the update at hand; nothing while one is built.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Base<'t> {
    pub(super) slots: &'t [u64],
    pub(super) cells: &'t [u64],
    pub(super) ranks: &'t [u64],
}

impl<'t> From<View<'t>> for Base<'t> {
    fn from(View { slots, cells, ranks, .. }: View<'t>) -> Self {
        Self { slots, cells, ranks }
    }
}

impl Base<'_> {
    /// An element of the directories; 0 past the end, as in a table that has grown.
    #[inline(always)]
    pub(super) fn slot(self, at: usize) -> u64 {
        self.slots.get(at).copied().unwrap_or(0)
    }

    /// Elements of the directories, so many at a multiple; 0 past the end.
    #[inline(always)]
    pub(super) fn line<const LEN: usize>(self, nth: usize) -> [u64; LEN] {
        match self.slots.as_chunks().0.get(nth) {
            Some(line) => *line,
            None => std::array::from_fn(|at| self.slot(nth * LEN + at)),
        }
    }

    /// Asks for an element of the directories.
    #[inline]
    pub(super) fn fetch_slot(self, at: usize) {
        prefetch(self.slots, at);
    }

    /// The ranks of a group; none past the end.
    #[inline(always)]
    pub(super) fn ranks(self, group: usize) -> [u64; LANES] {
        self.ranks.as_chunks().0.get(group).copied().unwrap_or([0; LANES])
    }
}
