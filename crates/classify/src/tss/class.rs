//! Classes in the control plane: they come with their first entry, grow, and go with their last.

use wirespeed_table::Outgrown;

use super::hash::SUBTABLES;
use super::layout::{LEAST_LOG, MOST_LOG};
use super::place::Part;
use crate::rank::Rank;

/// A class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held<T> {
    pub(super) mask: T,
    pub(super) first: u32,
    pub(super) d: u32,
    pub(super) first_bits: u32,
    pub(super) log: u32,
    /// A rank at least as good as that of any entry.
    pub(super) bound: Rank,
    /// Values that it has.
    pub(super) entries: u32,
    /// Entries that went since one with the rank of the bound did; 0: the bound is that of an entry.
    pub(super) gone: u32,
    /// What of its record may be other than before.
    pub(super) stale: Stale,
}

/// What of a record may be other than in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stale {
    Nothing,
    Bound,
    All,
}

/// What a table with no places left is outgrown by.
pub(super) const SLOTS_FULL: Outgrown = Outgrown("room for tables of classes");
/// What hashing that places nothing is outgrown by.
pub(super) const NO_PLACES: Outgrown = Outgrown("places for the values of a class");
/// A class that entries come to grows for so many hundredths more.
pub(super) const GROWTH: u32 = 25;
/// A table of so many slots is looked through for the best entry whenever the best one goes.
pub(super) const SHORT: u32 = 64;

/// Slots of a subtable for so many entries with so many hundredths more to come: five sixths full with them.
pub(super) fn d_for(entries: u32, more: u32) -> u32 {
    let wanted = u64::from(entries) * (100 + u64::from(more)) * 12 / 1_000;
    u32::try_from(wanted.div_ceil(SUBTABLES as u64).max(1)).unwrap_or(u32::MAX / 4)
}

/// Whether a table of some d is too short for so many entries: more than seven eighths of its slots, or all
/// three.
pub(super) fn is_short(entries: u32, d: u32) -> bool {
    let slots = SUBTABLES as u64 * u64::from(d);
    u64::from(entries) > if d == 1 { slots } else { slots * 7 / 8 }
}

/// log2 of a filter's bits for so many entries: 32 to 64 for each.
pub(super) fn log_for(entries: u32, more: u32) -> u32 {
    let wanted = u64::from(entries.max(1)) * (100 + u64::from(more)) * 32 / 100;
    wanted.next_power_of_two().trailing_zeros().clamp(LEAST_LOG, MOST_LOG)
}

/// Elements of a filter of `2^log` bits.
pub(super) const fn elements(log: u32) -> u32 {
    1 << (log - LEAST_LOG)
}

impl<T> Held<T> {
    /// Its part of the slots.
    #[inline(always)]
    pub(super) const fn part(&self, class: u32) -> Part {
        Part { class, first: self.first, d: self.d }
    }
}
