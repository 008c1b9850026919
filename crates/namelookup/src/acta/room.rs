//! Makes room for an entry whose two buckets are full.
//!
//! ```text
//! insert        a bucket has room ─────────────────────────► there
//!               none, while the table is built ────────────► search, else force
//! insert_or_wait   none, in an update: it waits for the others
//! settle_waiting   plan: entries of its two buckets that have room elsewhere, whose buckets are asked for
//!                  a few entries later: these move, and it goes in; where they can't any more, search, else force
//! ```
//!
//! A breadth-first search finds the shortest path to room. It reads one bucket after the other without
//! prefetches. In a table that is three quarters full, every second new name finds its two buckets full, and
//! a search took 0.7 µs. But mostly the first step is enough, or two or three entries that move at once for a
//! large one. This much can be planned ahead.

use super::hash::{BLOCK, Hash, base, bucket};
use super::layout::{BUCKET_BYTES, Bucket, MOST_ENTRIES, SECOND, Slot};
use super::place::{Entry, Form, Full, Homeless, ROOM};
use crate::fetch::prefetch;

/// The most buckets that a search reads.
const SEARCH: usize = 400;

/// The most evictions for a large entry.
const EVICTIONS: u32 = 127;

/// The choice that each eviction uses, by bits: those of pi.
const EITHER: u128 = 0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344;

/// The number of waiting entries for which moves are planned ahead.
const AHEAD: usize = 8;

/// The most entries that a plan moves.
const MOVES: u32 = 4;

/// The moves planned for a waiting entry. A plan is a hint: earlier changes may have made it void.
#[derive(Clone, Copy, Default)]
struct Plan {
    /// The index of the bucket among its two.
    choice: usize,
    /// The slots, one bit each. None if nothing was found.
    slots: u16,
}

impl Form<'_> {
    /// Puts an entry in, and moves others if necessary.
    #[inline]
    pub(super) fn house(&mut self, homeless: Homeless) -> Result<(), Full> {
        match self.room_for(&homeless) {
            Some(choice) => self.settle(&homeless, choice),
            None => self.force(homeless)?,
        }
        Ok(())
    }

    /// Puts the waiting entries in.
    pub(super) fn settle_waiting(&mut self) -> Result<(), Full> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut plans = [Plan::default(); AHEAD];
        for turn in 0..waiting.len() + AHEAD {
            let place = turn % AHEAD;
            if let Some(homeless) = turn.checked_sub(AHEAD).map(|now| &waiting[now]) {
                self.carry_out(homeless, plans[place])?;
            }
            if let Some(homeless) = waiting.get(turn) {
                plans[place] = self.plan(homeless);
            }
        }
        // Its memory serves the next ones.
        waiting.clear();
        self.waiting = waiting;
        Ok(())
    }

    /// Plans moves that make room: one entry, or a few that make room together. Prefetches their
    /// destinations.
    fn plan(&self, homeless: &Homeless) -> Plan {
        let wanted = homeless.entry.size();
        let (mut plan, mut fewest) = (Plan::default(), MOVES + 1);
        for (choice, &at) in homeless.buckets.iter().enumerate() {
            let bucket = self.bucket(at);
            let (mut free, mut slots) = (ROOM - self.taken(at), 0u16);
            let free_now = free;
            // From the last one on: where that goes, the others stay where they are.
            for slot in self.last_first(bucket) {
                let (_, other) = self.hash_and_other(at, bucket, slot);
                if other == at || !self.fits(other, slot.size()) {
                    continue;
                }
                self.fetch_bucket(other);
                prefetch(&self.beside, (if slot.header.is_second() { other } else { at }) as usize);
                if free_now + slot.size() >= wanted {
                    return Plan { choice, slots: 1 << slot.number };
                }
                (free, slots) = (free + slot.size(), slots | 1 << slot.number);
                if free >= wanted && slots.count_ones() < fewest {
                    (plan, fewest) = (Plan { choice, slots }, slots.count_ones());
                    break;
                }
            }
        }
        plan
    }

    /// Makes the planned moves, and puts the entry in.
    fn carry_out(&mut self, homeless: &Homeless, Plan { choice, slots }: Plan) -> Result<(), Full> {
        let (at, size) = (homeless.buckets[choice], homeless.entry.size());
        // The last one first, so that the others keep their numbers.
        for number in (0..MOST_ENTRIES).rev().filter(|number| slots >> number & 1 != 0) {
            self.move_out(at, number);
        }
        if self.fits(at, size) {
            self.settle(homeless, choice);
            return Ok(());
        }
        self.house(*homeless)
    }

    /// Moves an entry to its other bucket if that has room.
    fn move_out(&mut self, at: u32, number: usize) {
        let line = *self.line(at);
        let bucket = Bucket::of(&line);
        let Some(slot) = bucket.slots(self.width).nth(number) else { return };
        let (hash, other) = self.hash_and_other(at, bucket, slot);
        if other != at && self.fits(other, slot.size()) {
            self.transfer(at, Entry::of(bucket, slot), slot, other, hash);
        }
    }

    /// The index of its bucket that has room for an entry, now or after moves.
    #[inline]
    fn room_for(&mut self, homeless: &Homeless) -> Option<usize> {
        self.fitting(homeless).or_else(|| self.search(Search::new(homeless.buckets, homeless.entry.size())))
    }

    /// Puts a large entry in, for which several small ones must leave and find room elsewhere. If that takes
    /// too long the remaining ones are lost: after the error the table must be rebuilt.
    #[cold]
    fn force(&mut self, homeless: Homeless) -> Result<(), Full> {
        let mut all = vec![homeless];
        let mut evictions = 0u32;
        while let Some(homeless) = all.pop() {
            let choice = match self.room_for(&homeless) {
                Some(choice) => choice,
                None if evictions == EVICTIONS => return Err(Full),
                None => {
                    evictions += 1;
                    // At random: by turns two large entries may throw each other out for ever.
                    let choice = usize::from(EITHER >> evictions & 1 == 1);
                    let at = homeless.buckets[choice];
                    while !self.fits(at, homeless.entry.size()) {
                        all.push(self.evict(at));
                    }
                    choice
                }
            };
            self.settle(&homeless, choice);
        }
        Ok(())
    }

    /// Takes the smallest entry out of a bucket, one that has any.
    fn evict(&mut self, at: u32) -> Homeless {
        let line = *self.line(at);
        let bucket = Bucket::of(&line);
        let slot = bucket.slots(self.width).min_by_key(|slot| slot.end - slot.start);
        let slot = slot.expect("an empty bucket has room for any entry");
        let (hash, other) = self.hash_and_other(at, bucket, slot);
        let entry = Entry::of(bucket, slot);
        self.cut(at, slot);
        if slot.header.is_second() {
            self.come_back(other, hash);
            return Homeless { entry, hash, buckets: [other, at] };
        }
        Homeless { entry, hash, buckets: [at, other] }
    }

    /// Moves entries along the shortest path that makes room in one of two buckets. Returns which one.
    fn search(&mut self, mut search: Search) -> Option<usize> {
        let mut next = 0;
        while let Some(&Step { at, size: wanted, .. }) = search.steps.get(next) {
            let line = *self.line(at);
            let bucket = Bucket::of(&line);
            let free = ROOM - self.taken(at);
            for slot in bucket.slots(self.width) {
                let freed = slot.size();
                if free + freed < wanted {
                    continue;
                }
                let (_, other) = self.hash_and_other(at, bucket, slot);
                if search.passes(next, other) {
                    continue;
                }
                if self.fits(other, freed) {
                    let choice = search.choice(next);
                    self.shift(&search, next, slot, other);
                    return Some(choice);
                }
                if search.steps.len() < SEARCH {
                    self.fetch_bucket(other);
                    search.steps.push(Step { at: other, size: freed, from: Some((next, slot)) });
                }
            }
            next += 1;
        }
        None
    }

    /// Moves the entry of a slot to a bucket that has room, then moves the previous entry of the path into
    /// its place, and so on.
    fn shift(&mut self, search: &Search, mut step: usize, mut slot: Slot, mut to: u32) {
        loop {
            let Step { at, from, .. } = search.steps[step];
            let line = *self.line(at);
            let bucket = Bucket::of(&line);
            let (hash, _) = self.hash_and_other(at, bucket, slot);
            self.transfer(at, Entry::of(bucket, slot), slot, to, hash);
            let Some((before, its)) = from else { return };
            (to, step, slot) = (at, before, its);
        }
    }

    /// Moves an entry to its other bucket.
    fn transfer(&mut self, from: u32, entry: Entry, slot: Slot, to: u32, hash: Hash) {
        self.cut(from, slot);
        if slot.header.is_second() {
            self.come_back(to, hash);
            self.push(to, &entry, 0);
        } else {
            self.leave(from, hash);
            self.push(to, &entry, 1);
        }
    }

    /// The hash of an entry's component, and its other bucket.
    fn hash_and_other(&self, at: u32, of: Bucket<'_>, slot: Slot) -> (Hash, u32) {
        let (count, hash) = (self.count(), self.hash_of(of, slot));
        let [first, second] = hash.choices(count);
        let other = match slot.header.0 & SECOND != 0 {
            true => bucket(base(at, second, count), first, count),
            false => bucket(base(at, first, count), second, count),
        };
        (hash, other)
    }

    fn hash_of(&self, of: Bucket<'_>, slot: Slot) -> Hash {
        if slot.header.is_long() {
            return self.seeds.hash(self.component(of, slot));
        }
        let mut buffer = [0; BUCKET_BYTES + BLOCK];
        buffer[..BUCKET_BYTES].copy_from_slice(of.0);
        self.seeds.hash_within(&buffer, slot.start, slot.header.component_bytes())
    }

    /// The entries of a bucket, from the last to the first.
    fn last_first(&self, bucket: Bucket<'_>) -> impl Iterator<Item = Slot> + use<> {
        let mut slots = [None; MOST_ENTRIES];
        slots.iter_mut().zip(bucket.slots(self.width)).for_each(|(to, slot)| *to = Some(slot));
        slots.into_iter().rev().flatten()
    }
}

/// A bucket on a path to room.
#[derive(Clone, Copy)]
struct Step {
    at: u32,
    /// Bytes of room that are needed in it.
    size: usize,
    /// The step before, and the entry of its bucket that would come here.
    from: Option<(usize, Slot)>,
}

struct Search {
    steps: Vec<Step>,
}

impl Search {
    fn new(choices: [u32; 2], size: usize) -> Self {
        let mut steps = Vec::with_capacity(16);
        steps.extend(choices.map(|at| Step { at, size, from: None }));
        Self { steps }
    }

    /// The steps from one back to the first.
    fn back(&self, from: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(from), |&step| self.steps[step].from.map(|(before, _)| before))
    }

    /// Whether the way to a step goes through a bucket.
    fn passes(&self, step: usize, at: u32) -> bool {
        self.back(step).any(|step| self.steps[step].at == at)
    }

    /// The choice that the way to a step comes from.
    fn choice(&self, step: usize) -> usize {
        self.back(step).last().unwrap_or(0)
    }
}
