//! [`Keys`]: both hash tables, for the control plane one.

use wirespeed_fib::{Address, Outgrown, Prefix};

use crate::buckets::{Buckets, Edit, Words};
use crate::hash::{Key, Seed, word};
use crate::layout::Sizes;
use crate::slots::Slots;
use crate::value::Value;

/// The keys by where they belong.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) narrow: Slots,
    pub(crate) wide: Buckets,
}

impl Keys {
    /// None yet.
    pub(crate) fn new(sizes: Sizes, seed: Seed) -> Self {
        Self { narrow: Slots::new(seed, sizes.slot_bits), wide: Buckets::new(seed, sizes.wide) }
    }

    /// The value of a key, `None` where it is not there.
    pub(crate) fn value<A: Address>(&self, key: Prefix<A>, words: &Words<'_>) -> Option<Value> {
        match Place::of(key) {
            Place::Narrow(word) => Some(self.narrow.value(self.narrow.find(word)?)),
            Place::Wide(key) => Some(Buckets::value(self.wide.find(key, words)?, words)),
        }
    }

    /// Gives a key that is there another value.
    pub(crate) fn set_value<A: Address>(&mut self, key: Prefix<A>, value: Value, edit: &mut Edit<'_>) {
        match Place::of(key) {
            Place::Narrow(word) => {
                if let Some(slot) = self.narrow.find(word) {
                    self.narrow.set_value(slot, value, &mut edit.changes);
                }
            }
            Place::Wide(key) => {
                if let Some(spot) = self.wide.find(key, &edit.wide) {
                    Buckets::set_value(spot, value, edit);
                }
            }
        }
    }

    /// Puts in a key that is not there. After an error nothing is where it was.
    pub(crate) fn insert<A: Address>(
        &mut self,
        key: Prefix<A>,
        value: Value,
        edit: &mut Edit<'_>,
    ) -> Result<(), Outgrown> {
        match Place::of(key) {
            Place::Narrow(word) => self.narrow.insert(word, value, &mut edit.changes),
            Place::Wide(key) => self.wide.insert(key, value, edit),
        }
    }

    /// Takes out a key, if it is there.
    pub(crate) fn remove<A: Address>(&mut self, key: Prefix<A>, edit: &mut Edit<'_>) {
        match Place::of(key) {
            Place::Narrow(word) => {
                if let Some(slot) = self.narrow.find(word) {
                    self.narrow.remove(slot, &mut edit.changes);
                }
            }
            Place::Wide(key) => {
                if let Some(spot) = self.wide.find(key, &edit.wide) {
                    self.wide.remove(spot, edit);
                }
            }
        }
    }

    /// Bytes held: the wide keys are in the table alone.
    pub(crate) fn memory_usage(&self) -> u64 {
        self.narrow.memory_usage()
    }
}

/// The table that a key belongs in.
enum Place {
    Narrow(u64),
    Wide(Key),
}

impl Place {
    fn of<A: Address>(prefix: Prefix<A>) -> Self {
        let key = Key::of(prefix);
        if key.is_wide() { Self::Wide(key) } else { Self::Narrow(word(key.high, key.len)) }
    }
}
