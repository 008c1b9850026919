//! [`Gathered`]: the flows of a table that a classifier is to be built for.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use wirespeed_classify::{OpenFlow13Tuple, OpenFlowTuple};

use super::flow::Flow;
use super::front::{Devices, Front, MOST_PORTS, OfKey, Used};
use super::table::Table;
use crate::wire::number::port;
use crate::wire::{Field, Key};

/// Classes from which on a classifier pays.
const LEAST_CLASSES: usize = 4;
/// Flows of a class up to which it goes into the classifier: larger ones are found by their hash.
const MOST_OF_CLASS: usize = 8192;
/// The most flows of a classifier. Engines hold more; a quarter of a million takes seconds to build.
const MOST: usize = 1 << 18;

/// Whether a flow may match a frame that comes in, by the fields that all of these have alike: no metadata,
/// no tunnel, and the physical port that is the port itself.
fn may_match(flow: &Flow) -> bool {
    let matched = flow.matched();
    let number = matched.value.of(Field::InPort);
    // The lower halves of numbers of ports that there can be, LOCAL among them, differ. Others are of no
    // frame.
    let is_port = number <= u128::from(MOST_PORTS) || number == u128::from(port::LOCAL);
    let is_of_port = !matched.has(Field::InPhyPort) || matched.value.of(Field::InPhyPort) == number;
    let is_zero = |field| matched.value.of(field) == 0;
    is_port && is_of_port && is_zero(Field::Metadata) && is_zero(Field::TunnelId)
}

/// The flows of a classifier that is to be built.
pub(crate) struct Gathered {
    table: u8,
    masks: FxHashSet<Key>,
    flows: Vec<Arc<Flow>>,
    is_wide: bool,
}

/// Whether a class of this mask and so many flows may go into the classifier of a table.
pub(crate) fn suits(table: u8, shape: &Key, flows: usize) -> bool {
    flows <= MOST_OF_CLASS && OpenFlow13Tuple::mask(table, shape).is_some()
}

impl Gathered {
    /// The flows of a table that a classifier is to answer for; `None` if it would not pay.
    pub(crate) fn of(number: u8, table: &Table) -> Option<Self> {
        let is_narrow = |mask: &Key| OpenFlowTuple::mask(number, mask).is_some();
        let suited = || table.classes().filter(|class| suits(number, &class.shape().mask, class.len()));
        let is_wide = suited().filter(|class| !is_narrow(&class.shape().mask)).count() >= LEAST_CLASSES;
        let mut masks = FxHashSet::default();
        let mut flows: Vec<Arc<Flow>> = Vec::new();
        for class in suited().filter(|class| is_wide || is_narrow(&class.shape().mask)) {
            if flows.len() + class.len() <= MOST {
                masks.insert(class.shape().mask);
                flows.extend(class.iter().cloned());
            }
        }
        flows.retain(|flow| may_match(flow));
        (masks.len() >= LEAST_CLASSES).then_some(Self { table: number, masks, flows, is_wide })
    }

    /// Whether a classifier that is in use has these flows.
    pub(crate) fn is_in(&self, used: &Used) -> bool {
        used.is_whole(&self.masks)
    }

    /// Builds the classifier.
    pub(crate) fn build(self, devices: &mut Devices) -> Option<Front> {
        Front::build(self.table, (self.masks, self.flows), self.is_wide, devices)
    }
}
