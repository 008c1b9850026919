//! [`Step`]: the change of one cell, and what was found when its slot was fetched.

use super::cell::Cell;
use super::layers::Fits;
use crate::rank::Rank;

/// The change of a cell: it comes, goes, or has another rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<T> {
    pub(super) cell: Cell<T>,
    /// The hash that it is known by.
    pub(super) hash: u32,
    /// Whether its rule has no other cell.
    pub(super) is_only: bool,
    /// Its rank until now; none if it comes.
    pub(super) before: Rank,
    /// Its rank from now on; none if it goes.
    pub(super) now: Rank,
    /// The layers that it may be put in, if it comes and no layer seems to have it yet.
    pub(super) fits: Option<Fits>,
    /// The slot that it seems to be about.
    pub(super) led: Led,
    /// Another slot, if the bucket of the first had no free place.
    pub(super) led_on: Led,
}

/// A slot, and what led there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Led {
    pub(super) layer: u32,
    pub(super) hash: u32,
    pub(super) at: usize,
}

impl Led {
    /// A slot of no layer.
    pub(super) const NOWHERE: Self = Self { layer: u32::MAX, hash: 0, at: 0 };

    pub(super) const fn is_anywhere(self) -> bool {
        self.layer != u32::MAX
    }
}

impl<T> Step<T> {
    /// A step for a cell that comes.
    pub(super) const fn of(cell: Cell<T>, hash: u32, now: Rank) -> Self {
        Self {
            cell,
            hash,
            is_only: false,
            before: Rank::NONE,
            now,
            led: Led::NOWHERE,
            led_on: Led::NOWHERE,
            fits: None,
        }
    }
}
