//! The cost of an update in GALE: accesses to the memory of the device that has its table (GAMT, section 5.3
//! and Figure 14).
//!
//! GALE keeps no copy of the table on the host. The device has for each entry the length of the prefix that
//! it is of, and an update is a kernel with a thread for each entry in the range of its prefix. One access is
//! one element that a thread loads or writes, even if the hardware joins neighbours. The accesses are:
//!
//! | update | loads | writes |
//! |---|---|---|
//! | of a prefix of at most 24 bits | the length of each slot that it covers | next hop and length of each slot that it takes |
//! | … where such a slot leads to a chunk | the length of each of the 256 entries | the length of the slot; next hop and length of each entry that it takes |
//! | of a longer one, its slot leads to a chunk before and after | the length of each entry that it covers | next hop and length of each that it takes |
//! | … the slot needs a chunk now | – | the entry of the slot, next hop and length of 256 entries, from the host |
//! | … the slot needs none any more | – | the entry of the slot |
//!
//! A thread whose length says so writes both, without looking whether they are what is there already. What
//! the host does to find the next hop that comes in the place of a withdrawn one, and where chunks are, is
//! not counted: it takes no memory of the device.

use std::ops::Range;

use wirespeed_fib::{Prefix, Rib, V4};

use crate::build::{Dir24, LEN8, LEN24, within};
use crate::layout::{CHUNK, slot};
use crate::update::{Change, beneath};

/// Memory accesses, of one element each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Lengths that are read.
    pub loads: u64,
    /// Next hops, links and lengths that are written.
    pub writes: u64,
}

impl Accesses {
    /// The accesses that bring a table up to date after one change: `engine` is as before it, `rib` as after
    /// it, and `prefix` what was inserted, replaced or removed. O(entries covered).
    ///
    /// GALE makes changes one by one; several are the sum of each after the other, with an
    /// [`update`](wirespeed_fib::Engine::update) between.
    pub fn of(engine: &Dir24, rib: &Rib<V4>, prefix: Prefix<V4>) -> Self {
        let change = Change::of(rib, prefix);
        if prefix.len() <= 24 {
            return Self::of_slots(engine, &change);
        }
        let address = prefix.address();
        match (engine.leads_on(slot(address)), beneath(rib, address)) {
            (Some(chunk), Some(_)) => Self::of_chunk(engine, &change, within(chunk, prefix)),
            (None, Some(_)) => Self { loads: 0, writes: 1 + 2 * CHUNK as u64 },
            (Some(_), None) => Self { loads: 0, writes: 1 },
            (None, None) => Self::default(),
        }
    }

    /// Loads and writes.
    pub fn total(self) -> u64 {
        self.loads + self.writes
    }

    fn of_slots(engine: &Dir24, change: &Change) -> Self {
        let slots = slot(change.prefix.address())..slot(change.prefix.last()) + 1;
        let lengths = &engine.lengths.section::<u8>(LEN24)[slots.clone()];
        let mut all = Self { loads: slots.len() as u64, writes: 0 };
        for (slot, _) in slots.zip(lengths).filter(|&(_, &len)| change.takes(len)) {
            match engine.leads_on(slot) {
                None => all.writes += 2,
                Some(chunk) => {
                    let first = chunk as usize * CHUNK;
                    let beneath = Self::of_chunk(engine, change, first..first + CHUNK);
                    all.loads += beneath.loads;
                    all.writes += 1 + beneath.writes;
                }
            }
        }
        all
    }

    fn of_chunk(engine: &Dir24, change: &Change, entries: Range<usize>) -> Self {
        let lengths = &engine.lengths.section::<u8>(LEN8)[entries];
        let taken = lengths.iter().filter(|&&len| change.takes(len)).count();
        Self { loads: lengths.len() as u64, writes: 2 * taken as u64 }
    }
}

impl Dir24 {
    /// The chunk that a slot leads to, whatever the width of an entry.
    pub(crate) fn leads_on(&self, slot: usize) -> Option<u32> {
        match self.width {
            1 => self.chunk_of::<u8>(slot),
            2 => self.chunk_of::<u16>(slot),
            _ => self.chunk_of::<u32>(slot),
        }
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::{BuildOptions, Engine, NextHop};

    use super::*;

    /// Makes one change after another (next hop 0: withdraws); loads and writes of each.
    fn costs(start: &[(&str, u32)], changes: &[(&str, u32)]) -> Vec<(u64, u64)> {
        let prefix = |text: &str| text.parse::<Prefix<V4>>().unwrap();
        let mut rib: Rib<V4> = start.iter().map(|&(text, n)| (prefix(text), NextHop(n))).collect();
        let (mut engine, table) = Dir24::build(&rib, &BuildOptions::default()).unwrap();
        let mut costs = Vec::new();
        for &(text, next_hop) in changes {
            match next_hop {
                0 => rib.remove(prefix(text)),
                n => rib.insert(prefix(text), NextHop(n)),
            };
            let accesses = Accesses::of(&engine, &rib, prefix(text));
            assert_eq!(accesses.total(), accesses.loads + accesses.writes);
            costs.push((accesses.loads, accesses.writes));
            engine.update(&table, &rib, &[prefix(text)]).unwrap();
        }
        costs
    }

    #[test]
    fn by_hand() {
        let start = [("10.0.0.0/8", 1), ("10.1.2.0/24", 2)];
        let changes = [
            ("10.1.0.0/16", 3),    // 256 slots, one of them a longer prefix's
            ("10.1.0.0/16", 3),    // the same again: nothing is compared
            ("10.1.2.0/24", 4),    // one slot
            ("10.1.2.128/25", 5),  // a chunk comes
            ("10.1.2.192/26", 6),  // 64 of its entries
            ("10.1.2.128/25", 7),  // 128, of which the half has a longer prefix
            ("10.1.2.0/24", 8),    // a slot that leads on, its length, 256 entries, 128 of them its own
            ("10.1.0.0/16", 0),    // 255 of 256 slots
            ("10.0.0.0/8", 9),     // all slots but one
            ("10.1.2.192/26", 0),  // 64 entries
            ("10.1.2.128/25", 0),  // the chunk goes
            ("10.1.2.0/24", 0),    // one slot
            ("0.0.0.0/0", 1),      // every slot but those of the /8
            ("192.168.0.0/23", 0), // was not there: no slot has that length
        ];
        let every = 1 << 24;
        let of_8 = 1 << 16;
        let by_hand = [
            (256, 510),
            (256, 510),
            (1, 2),
            (0, 513),
            (64, 128),
            (128, 128),
            (257, 257),
            (256, 510),
            (of_8, 2 * of_8 - 2),
            (64, 128),
            (0, 1),
            (1, 2),
            (every, 2 * (every - of_8)),
            (2, 0),
        ];
        assert_eq!(costs(&start, &changes), by_hand);
    }
}
