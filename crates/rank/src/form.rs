//! [`Rank`]: the control plane's form of ranked chunks.
//!
//! The form is what the sections hold, as chunks and runs with their owners.

use rustc_hash::FxHashMap;

use crate::chunks::Level;
use crate::layout::Shape;
use crate::runs::Runs;

/// The control plane of ranked chunks: build, and keep up to date, a [`RankTable`](crate::RankTable).
#[derive(Clone, Debug)]
pub struct Rank {
    /// The chunk of each slot.
    pub(crate) slots: Vec<u32>,
    pub(crate) level24: Level,
    pub(crate) level32: Level,
    /// The chunk all of whose elements have a value, and how many slots lead there. That of no route is chunk
    /// 0, always there and not counted.
    pub(crate) uniform: FxHashMap<u32, (u32, u32)>,
    pub(crate) runs: Runs,
    /// The widths of the table.
    pub(crate) shape: Shape,
    /// The largest next hop that has been in the table.
    pub(crate) results: u32,
}
