//! [`Keys`]: both hash tables, for the control plane one.

use wirespeed_fib::{Address, Outgrown, Prefix};

use crate::buckets::Buckets;
use crate::hash::{Key, Seed, word};
use crate::layout::Sizes;
use crate::slots::Slots;
use crate::value::Value;
use wirespeed_image::Changes;

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
    pub(crate) fn value<A: Address>(&self, key: Prefix<A>) -> Option<Value> {
        match Place::of(key) {
            Place::Narrow(word) => Some(self.narrow.value(self.narrow.find(word)?)),
            Place::Wide(key) => Some(self.wide.value(self.wide.find(key)?)),
        }
    }

    /// Gives a key that is there another value.
    pub(crate) fn set_value<A: Address>(&mut self, key: Prefix<A>, value: Value, changes: &mut Changes) {
        match Place::of(key) {
            Place::Narrow(word) => {
                if let Some(slot) = self.narrow.find(word) {
                    self.narrow.set_value(slot, value, changes);
                }
            }
            Place::Wide(key) => {
                if let Some(spot) = self.wide.find(key) {
                    self.wide.set_value(spot, value, changes);
                }
            }
        }
    }

    /// Puts in a key that is not there. After an error nothing is where it was.
    pub(crate) fn insert<A: Address>(
        &mut self,
        key: Prefix<A>,
        value: Value,
        changes: &mut Changes,
    ) -> Result<(), Outgrown> {
        match Place::of(key) {
            Place::Narrow(word) => self.narrow.insert(word, value, changes),
            Place::Wide(key) => self.wide.insert(key, value, changes),
        }
    }

    /// Takes out a key, if it is there.
    pub(crate) fn remove<A: Address>(&mut self, key: Prefix<A>, changes: &mut Changes) {
        match Place::of(key) {
            Place::Narrow(word) => {
                if let Some(slot) = self.narrow.find(word) {
                    self.narrow.remove(slot, changes);
                }
            }
            Place::Wide(key) => {
                if let Some(spot) = self.wide.find(key) {
                    self.wide.remove(spot, changes);
                }
            }
        }
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        self.narrow.memory_usage() + self.wide.memory_usage()
    }
}

/// In which table a key belongs.
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
