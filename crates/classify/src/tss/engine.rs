//! [`Tss`]: the state of both engines.

use std::collections::HashMap;
use std::marker::PhantomData;

use super::class::Held;
use super::filter::Filters;
use super::order::Order;
use super::place::{Entry, Slots};
use super::runs::Runs;
use crate::seeded::Seeded;

/// Builds, and keeps up to date, a table for tuple search or Bloom search.
///
/// It holds a copy of all slots and filters, four bits for each bit of a filter, and the worse rules of
/// patterns that several have.
#[derive(Clone, Debug)]
pub struct Tss<T, F> {
    pub(super) classes: Vec<Option<Held<T>>>,
    /// Numbers of classes.
    pub(super) masks: HashMap<T, u32, Seeded>,
    /// Numbers of classes that went.
    pub(super) free: Vec<u32>,
    /// The capacity in classes.
    pub(super) classes_room: usize,
    pub(super) order: Order,
    /// Classes in use, as in the image.
    pub(super) in_use: usize,
    /// Classes that came, went or are others than before, some more than once.
    pub(super) dirty: Vec<u32>,
    pub(super) slots: Slots,
    pub(super) slot_runs: Runs,
    pub(super) filters: Filters,
    pub(super) bit_runs: Runs,
    pub(super) scratch: Vec<Entry>,
    /// Whether sections are as long as it takes.
    pub(super) is_building: bool,
    pub(super) form: PhantomData<F>,
}
