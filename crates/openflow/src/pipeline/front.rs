//! [`Front`]: the façade's classifier for wildcards of the first table.
//!
//! A table with many masks needs a look into a hash table for each. The classifier answers for all masks that
//! an [`OpenFlowTuple`] can hold at once, in batches, on the CPU or on a GPU. It is built from the flows of
//! small classes once they have not changed for a while. Any change of such a flow lets it go: the hash
//! tables have all flows, and they answer until it is built again.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use wirespeed::{Classifier, Device, Fleet, RuleReader};
use wirespeed_classify::{OpenFlowTuple, Pattern, Rule, Tuple};

use super::flow::Flow;
use super::hit::Hit;
use super::hot::Hot;
use super::row::Row;
use super::table::Table;
use crate::wire::number::port;
use crate::wire::{Field, Key};

/// The highest number of a port beside LOCAL, whose lower half is higher.
#[allow(clippy::cast_possible_truncation)] // 16 bits
const MOST_PORTS: u32 = crate::switch::MOST_PORTS as u32;
const _: () = assert!(MOST_PORTS < port::LOCAL & 0xffff);

/// Classes from which on a classifier pays.
const LEAST_CLASSES: usize = 4;
/// Flows of a class up to which it goes into the classifier: larger ones are found by their hash.
const MOST_OF_CLASS: usize = 8192;
/// The most flows of a classifier. Engines hold more; a quarter of a million takes seconds to build.
const MOST: usize = 1 << 18;

/// The words of keys that tuples hold.
const WORDS: [u8; 5] = [0, 1, 2, 3, 4];

/// The bits of keys that tuples hold. Word 0 has the lower half of the port.
const HELD: Key = {
    let mut held = Key([0; crate::wire::WORDS]);
    held.0[0] = 0x0000_ffff_ffff_1fff;
    held.0[1] = !3;
    held.0[2] = 0xffff_ffff_ffff_0700;
    held.0[3] = u64::MAX;
    held.0[4] = 0xffff_ffff_0000_0000;
    held
};

/// A classifier for flows of some masks.
#[derive(Debug)]
pub(crate) struct Front {
    masks: FxHashSet<Key>,
    /// The flows by the numbers of their rules, from 1 on.
    flows: Vec<(Hot, Option<Arc<Flow>>)>,
    /// The highest priority of a flow.
    best: u16,
    reader: RuleReader<OpenFlowTuple>,
    /// Keeps the table.
    _classifier: Classifier<OpenFlowTuple>,
}

/// The tuple of a key: its fields, each in the place of a tuple that is as wide.
#[inline]
pub(crate) fn tuple<R: Row>(key: &R) -> OpenFlowTuple {
    let [ports, dst, src, addresses, transport] = std::array::from_fn(|at| key.word(WORDS[at]));
    let half = |number: u64, shift: u32| {
        #[allow(clippy::cast_possible_truncation)] // 32 bits of it
        let half = (number >> shift) as u32;
        half
    };
    let port = half(ports, 32) & 0xffff;
    let vlan = half(ports, 0) & 0xffff;
    OpenFlowTuple::from_words(&[
        port << 16 | half(src, 48) & 0xffff,
        half(src, 16),
        half(dst, 32),
        half(dst, 16) << 16 | vlan,
        (half(src, 8) & 0xff) << 24 | half(ports, 16) & 0xffff,
        (half(dst, 0) & 0xfc) << 24 | (half(dst, 8) & 0xff) << 16,
        half(addresses, 32),
        half(addresses, 0),
        half(transport, 32),
    ])
}

/// A mask of flows as a mask of tuples, if tuples hold all that it looks at.
fn mask(mask: &Key) -> Option<OpenFlowTuple> {
    let mut held = *mask;
    let has_port = held.of(Field::InPort) != 0;
    // The lower half tells ports of frames apart.
    held.0[0] &= 0x0000_ffff_ffff_ffff;
    let is_whole_port = !has_port || mask.of(Field::InPort) == Field::InPort.all();
    (HELD.covers(&held) && is_whole_port).then(|| tuple(&held))
}

/// The flows of a classifier that is to be built.
pub(crate) struct Gathered {
    masks: FxHashSet<Key>,
    flows: Vec<Arc<Flow>>,
}

/// Whether a class of this mask and so many flows may go into a classifier.
pub(crate) fn suits(shape: &Key, flows: usize) -> bool {
    flows <= MOST_OF_CLASS && mask(shape).is_some()
}

impl Gathered {
    /// The flows of a table that a classifier is to answer for; `None` if it would not pay.
    pub(crate) fn of(table: &Table) -> Option<Self> {
        let mut masks = FxHashSet::default();
        let mut flows: Vec<Arc<Flow>> = Vec::new();
        for class in table.classes() {
            if suits(&class.shape().mask, class.len()) && flows.len() + class.len() <= MOST {
                masks.insert(class.shape().mask);
                flows.extend(class.iter().cloned());
            }
        }
        // The lower halves of numbers of ports that there can be, LOCAL among them, differ. Others are of no
        // frame.
        flows.retain(|flow| {
            let number = flow.matched().value.of(Field::InPort);
            number <= u128::from(MOST_PORTS) || number == u128::from(port::LOCAL)
        });
        (masks.len() >= LEAST_CLASSES).then_some(Self { masks, flows })
    }

    /// Builds the classifier.
    pub(crate) fn build(self, device: Device, fleet: Option<&Fleet>) -> Option<Front> {
        let Self { masks, flows } = self;
        let rules = flows.iter().map(|flow| {
            let matched = flow.matched();
            let mask = mask(&matched.mask).unwrap_or_default();
            Rule::new(Pattern::new(tuple(&matched.value), mask), u32::from(flow.priority), 1)
        });
        let mut builder = Classifier::<OpenFlowTuple>::builder().rules(rules).device(device);
        if let Some(fleet) = fleet {
            builder = builder.fleet(fleet.clone());
        }
        match builder.build() {
            Ok(classifier) => {
                let best = flows.iter().map(|flow| flow.priority).max().unwrap_or(0);
                let flows = flows.into_iter().map(|flow| (flow.hot.clone(), Some(flow))).collect();
                Some(Front { masks, flows, best, reader: classifier.reader(), _classifier: classifier })
            }
            Err(error) => {
                tracing::warn!(%error, "no classifier for wildcards; hash tables answer");
                None
            }
        }
    }
}

impl Front {
    /// Whether flows of this mask are in the classifier.
    pub(crate) fn covers(&self, mask: &Key) -> bool {
        self.masks.contains(mask)
    }

    /// The highest priority of a flow that it knows.
    pub(crate) const fn best(&self) -> u16 {
        self.best
    }

    pub(crate) const fn reader(&self) -> &RuleReader<OpenFlowTuple> {
        &self.reader
    }

    /// The flow of a rule's number, 0 for none.
    #[inline]
    pub(crate) fn flow(&self, number: u32) -> Option<Hit<'_>> {
        self.flows.get((number as usize).wrapping_sub(1)).map(|(hot, flow)| Hit::new(hot, flow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_hold_their_fields() {
        assert_eq!(OpenFlowTuple::USED.and(&tuple(&HELD)), tuple(&HELD));
        // Each bit of a key that is held is a bit of the tuple, and no two are one.
        let mut seen = OpenFlowTuple::default();
        for (word, &bits) in HELD.0.iter().enumerate() {
            for bit in (0..64).filter(|bit| bits >> bit & 1 == 1) {
                let mut key = Key::default();
                key.0[word] = 1 << bit;
                let tuple = tuple(&key);
                assert_eq!((tuple.ones(), tuple.and(&seen).ones()), (1, 0), "bit {bit} of word {word}");
                seen = seen.or(&tuple);
            }
        }
    }
}
