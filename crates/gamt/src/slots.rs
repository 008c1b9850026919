//! [`Slots`]: the separate next-hop table of GAMT_S (GAMT, section 3.3).
//!
//! Each prefix has a slot. Leaves hold slots, the table holds a next hop for each, so that another next hop
//! for a prefix is one word however many leaves the prefix has. Most updates of a real trace are of that
//! kind.
//!
//! Deletion is lazy to the last: a withdrawn prefix keeps its leaves and its slot, which takes the next hop
//! of the prefix that now decides. So a route that flaps costs one word each way. The prefixes kept so are
//! **ghosts**. A ghost follows the prefix that covers it: when that changes, so does the slot. `ghosts_in`
//! counts ghosts under each first 16 bits, as most changed prefixes have none beneath them, and that should
//! cost next to nothing to find out. (With the ghosts in a sorted set instead of a flag for each slot,
//! updates of the real trace took a fifth longer.)

use rustc_hash::FxHashMap;
use wirespeed_fib::{Address, NextHop, Outgrown, Prefix, Rib};
use wirespeed_image::{PatchBuilder, Pool, SectionId, width_for};

use crate::bubbles::Bubbles;

/// The slots of prefixes.
#[derive(Clone, Debug)]
pub(crate) struct Slots<A: Address> {
    of: FxHashMap<Prefix<A>, u32>,
    /// The next hop of each slot; slot 0 is that of no prefix.
    next_hops: Vec<u32>,
    pool: Pool,
    /// Whether a slot is a ghost's.
    is_ghost: Vec<bool>,
    /// Prefixes that were withdrawn: all ghosts, and some that came back.
    withdrawn: Vec<Prefix<A>>,
    /// Number of ghosts by their first 16 bits.
    ghosts_in: Vec<u32>,
    /// The largest next hop that an element of the table holds.
    widest: u32,
    bubbles: Bubbles,
}

impl<A: Address> Slots<A> {
    /// Slots 1, 2 and so on for routes, and room for more; next hops up to `widest` are to fit.
    pub(crate) fn new(routes: &[(Prefix<A>, NextHop)], widest: u32, tight: bool) -> Self {
        let room = routes.len() + if tight { 2 } else { routes.len() / 8 + 1_024 };
        let mut next_hops = vec![0; room + 1];
        let mut pool = Pool::new(u32::try_from(next_hops.len()).unwrap_or(u32::MAX));
        let mut of = FxHashMap::with_capacity_and_hasher(room, Default::default());
        for &(prefix, next_hop) in routes {
            let slot = pool.take().expect("there is room for all routes");
            next_hops[slot as usize] = next_hop.0;
            of.insert(prefix, slot);
        }
        Self {
            of,
            next_hops,
            pool,
            is_ghost: vec![false; room + 1],
            withdrawn: Vec::new(),
            ghosts_in: vec![0; 1 << 16],
            widest: match width_for(widest.into()) {
                1 => 0xff,
                2 => 0xffff,
                _ => u32::MAX,
            },
            bubbles: Bubbles::new(1),
        }
    }

    /// The next hop of each slot.
    pub(crate) fn next_hops(&self) -> &[u32] {
        &self.next_hops
    }

    /// Bytes of an element that holds them.
    pub(crate) fn width(&self) -> usize {
        width_for(self.widest.into())
    }

    /// The slot of a prefix that is there or a ghost.
    pub(crate) fn of(&self, prefix: Prefix<A>) -> Option<u32> {
        self.of.get(&prefix).copied()
    }

    /// Gives a prefix a slot. The error is that there is none left.
    pub(crate) fn add(&mut self, prefix: Prefix<A>) -> Result<u32, Outgrown> {
        let slot = self.pool.take().ok_or(Outgrown("room for prefixes"))?;
        self.of.insert(prefix, slot);
        Ok(slot)
    }

    /// Sets the next hop of a slot.
    pub(crate) fn set(&mut self, slot: u32, next_hop: NextHop) -> Result<(), Outgrown> {
        if next_hop.0 > self.widest {
            return Err(Outgrown("width of next hops"));
        }
        let now = &mut self.next_hops[slot as usize];
        if *now != next_hop.0 {
            *now = next_hop.0;
            self.bubbles.note(0, slot as usize);
        }
        Ok(())
    }

    /// A prefix with a slot was withdrawn.
    pub(crate) fn bury(&mut self, prefix: Prefix<A>, slot: u32) {
        if !std::mem::replace(&mut self.is_ghost[slot as usize], true) {
            self.ghosts_in[block(prefix)] += 1;
            self.withdrawn.push(prefix);
            // Those that came back are let go before they outnumber all that there are.
            if self.withdrawn.len() > self.next_hops.len() {
                self.withdrawn = self.ghosts();
            }
        }
    }

    /// A prefix with a slot is there.
    #[inline]
    pub(crate) fn revive(&mut self, prefix: Prefix<A>, slot: u32) {
        if std::mem::replace(&mut self.is_ghost[slot as usize], false) {
            self.ghosts_in[block(prefix)] -= 1;
        }
    }

    /// Whether the slot is a ghost's.
    pub(crate) fn is_ghost(&self, slot: u32) -> bool {
        self.is_ghost[slot as usize]
    }

    /// Whether there may be ghosts beneath a prefix.
    #[inline]
    pub(crate) fn may_have_ghosts(&self, prefix: Prefix<A>) -> bool {
        match prefix.len() {
            0..16 => !self.withdrawn.is_empty(),
            _ => self.ghosts_in[block(prefix)] > 0,
        }
    }

    /// The ghosts, each once.
    fn ghosts(&self) -> Vec<Prefix<A>> {
        let mut ghosts = self.withdrawn.clone();
        ghosts.sort_unstable();
        ghosts.dedup();
        ghosts.retain(|&prefix| self.of(prefix).is_some_and(|slot| self.is_ghost(slot)));
        ghosts
    }

    /// Takes the slots of all ghosts, and says what slot and length now decides where each was: those of the
    /// longest prefix that covers it and has a slot. One that covers it and has none yet is on its way in,
    /// and sees to its range then.
    pub(crate) fn banish(&mut self, rib: &Rib<A>) -> Vec<(Prefix<A>, u32, u8)> {
        let ghosts = self.ghosts();
        self.withdrawn.clear();
        self.ghosts_in.fill(0);
        let mut decided = Vec::with_capacity(ghosts.len());
        for &ghost in &ghosts {
            let mut cover = rib.cover(ghost);
            let (slot, len) = loop {
                let Some((prefix, _)) = cover else { break (0, 0) };
                match self.of(prefix) {
                    Some(slot) => break (slot, prefix.len()),
                    None => cover = rib.cover(prefix),
                }
            };
            decided.push((ghost, slot, len));
        }
        for ghost in &ghosts {
            if let Some(slot) = self.of.remove(ghost) {
                self.is_ghost[slot as usize] = false;
                self.pool.give_back(slot);
            }
        }
        decided
    }

    /// Takes the bubbles, with the values that their slots have now.
    pub(crate) fn fetch(&mut self, section: SectionId, patch: &mut PatchBuilder) {
        self.bubbles.fetch(0, section, patch, |slot| self.next_hops[slot].into());
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        let words = self.next_hops.len() + self.ghosts_in.len();
        let slots = self.of.capacity() * (size_of::<(Prefix<A>, u32)>() + 1);
        let ghosts = self.is_ghost.len() + self.withdrawn.capacity() * size_of::<Prefix<A>>();
        (4 * words + slots + ghosts) as u64 + self.pool.memory_usage() + self.bubbles.memory_usage()
    }
}

/// The first 16 bits of a prefix.
fn block<A: Address>(prefix: Prefix<A>) -> usize {
    prefix.address().first_16().into()
}
