//! [`Form`]: the buckets as the control plane has them, where entries are put in, taken out and moved.
//!
//! An entry may lie in either of two buckets; where both are full, a breadth-first search finds the shortest way to make room by
//! moving entries to their other bucket (as in cuckoo hashing with buckets; here entries are of different sizes). An entry's other
//! bucket follows from its component and the one that it lies in, so that nothing beside the buckets has to be kept of it but how
//! many entries each bit of a bucket's filter stands for.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::HugeVec;

use super::edit::{self, Payload};
use super::hash::{Hash, Seeds, base, bucket};
use super::layout::{
    BUCKET_BYTES, BUCKET_WORDS, Bucket, COUNT_BITS, ENDS, FILTER_BITS, HEADER_BYTES, Header, INLINE_MOST,
    LEADS, MOST_ENTRIES, SECOND, STATE_BYTES, Slot, State,
};
use super::long::Long;
use crate::fetch::{prefetch, same};

/// A bucket in a cache line of its own, as images have it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u64; BUCKET_WORDS]);

/// Bytes of a bucket for headers and payloads.
pub(super) const ROOM: usize = BUCKET_BYTES - HEADER_BYTES;

/// The most buckets that a search for room looks at.
const SEARCH: usize = 400;

/// The most times that entries are thrown out for a large one.
const EVICTIONS: u32 = 127;

/// Which choice they are thrown out of, by bits: those of pi.
const EITHER: u128 = 0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344;

/// A filter's bit stands for so many entries or more once it did: how many is no longer known.
const MANY: u64 = 15;

/// In what is taken of a bucket: it was touched.
const TOUCHED: u8 = 1 << 7;

/// There is no room for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// A component as input of a state: where it may lie and what its header is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) hash: Hash,
    pub(super) buckets: [u32; 2],
    /// The header in the first choice.
    pub(super) wanted: Header,
}

impl Key {
    /// Of a state and the component's hash and length.
    pub(super) fn new(state: State, hash: Hash, len: usize, buckets: u32) -> Self {
        let choices = hash.choices(buckets).map(|choice| bucket(state.base(), choice, buckets));
        Self { hash, buckets: choices, wanted: Header::wanted(len, state.turn(), hash.tag()) }
    }

    /// Bytes of the payload of a transition that gives this.
    pub(super) fn payload_bytes(&self, gives: Gives, width: usize) -> usize {
        Header(self.wanted.0 | gives.flags()).payload_bytes(width)
    }

    fn header(&self, choice: usize) -> Header {
        Header(self.wanted.0 | if choice == 1 { SECOND } else { 0 })
    }
}

/// What a transition gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gives {
    pub(super) state: Option<State>,
    /// 0 where it is no entry.
    pub(super) result: u32,
}

impl Gives {
    fn flags(self) -> u16 {
        (if self.state.is_some() { LEADS } else { 0 }) | if self.result != 0 { ENDS } else { 0 }
    }
}

/// An entry on its way.
#[derive(Clone, Copy)]
struct Entry {
    /// As it is in the first choice.
    header: Header,
    payload: Payload,
}

impl Entry {
    /// That of a slot, for another place.
    fn of(bucket: Bucket<'_>, slot: Slot) -> Self {
        let mut payload = Payload::new();
        payload.push(bucket.payload(slot));
        Self { header: Header(slot.header.0 & !SECOND), payload }
    }

    /// Bytes that it takes in a bucket.
    const fn size(&self) -> usize {
        HEADER_BYTES + self.payload.len()
    }
}

/// An entry that lies in no bucket, and those in which it may.
#[derive(Clone, Copy)]
struct Homeless {
    entry: Entry,
    hash: Hash,
    buckets: [u32; 2],
}

/// The buckets that were touched, as they were before.
#[derive(Debug, Default)]
struct Touched {
    before: Vec<Line>,
    /// Which bucket each is: the bucket above, its place in `before` below, so that they are sorted as integers.
    places: Vec<u64>,
}

/// How many touched buckets ahead they are fetched.
const AHEAD: usize = 12;

/// The halves of a place.
#[allow(clippy::cast_possible_truncation)] // that is what they are
const fn split(place: u64) -> (u32, u32) {
    ((place >> 32) as u32, place as u32)
}

impl Touched {
    const fn memory_usage(&self) -> usize {
        (self.before.capacity() * BUCKET_WORDS + self.places.capacity()) * 8
    }
}

/// The buckets.
#[derive(Debug)]
pub(super) struct Form {
    buckets: HugeVec<Line>,
    /// Bytes of each bucket that are taken, its head's apart; and [`TOUCHED`].
    taken: HugeVec<u8>,
    /// For each bucket how many entries each bit of its filter stands for, four bits each.
    away: HugeVec<u64>,
    pub(super) long: Long,
    pub(super) seeds: Seeds,
    pub(super) width: usize,
    /// `None` while the table is built.
    touched: Option<Touched>,
}

impl Form {
    pub(super) fn new(buckets: u32, seeds: Seeds, width: usize) -> Self {
        let count = buckets as usize;
        Self {
            buckets: HugeVec::filled(Line([0; BUCKET_WORDS]), count),
            taken: HugeVec::filled(0, count),
            away: HugeVec::filled(0, count),
            long: Long::default(),
            seeds,
            width,
            touched: None,
        }
    }

    /// Number of buckets.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.buckets.len()).expect("at most 2^28 buckets")
    }

    /// All buckets.
    pub(super) fn buckets(&self) -> &[Line] {
        &self.buckets
    }

    /// Asks for what an update of a transition reads first.
    #[inline]
    pub(super) fn fetch(&self, key: &Key) {
        let first = key.buckets[0] as usize;
        prefetch(&self.buckets, first);
        prefetch(&self.taken, first);
    }

    /// Asks for the second bucket where the first one, which is there by now, says that it is needed: to find the transition, where that
    /// is sought, or to put it in, as it is `size` bytes large.
    #[inline]
    pub(super) fn fetch_second(&self, key: &Key, is_sought: bool, size: usize) {
        let [first, second] = key.buckets.map(|at| at as usize);
        let is_away = is_sought && Bucket::of(&self.buckets[first].0).head() & key.hash.filter_bit() != 0;
        if is_away || self.taken(key.buckets[0]) + size > ROOM {
            prefetch(&self.buckets, second);
            prefetch(&self.taken, second);
            // Only what goes to its second choice, or leaves it, is counted.
            prefetch(&self.away, first);
        }
    }

    /// From now on remembers what it touches.
    pub(super) fn track(&mut self) {
        self.touched = Some(Touched::default());
    }

    /// How many buckets were touched since they were last seen.
    pub(super) fn touched(&self) -> usize {
        self.touched.as_ref().map_or(0, |touched| touched.places.len())
    }

    /// Calls `see` with the buckets that were touched since the last call, in order, with their words before and now.
    pub(super) fn each_touched(&mut self, mut see: impl FnMut(u32, &Line, &Line)) {
        let Some(touched) = &mut self.touched else { return };
        touched.places.sort_unstable();
        for (turn, &place) in touched.places.iter().enumerate() {
            if let Some(&ahead) = touched.places.get(turn + AHEAD) {
                let (at, before) = split(ahead);
                prefetch(&self.buckets, at as usize);
                prefetch(&touched.before, before as usize);
            }
            let (at, before) = split(place);
            self.taken[at as usize] &= !TOUCHED;
            see(at, &touched.before[before as usize], &self.buckets[at as usize]);
        }
        touched.places.clear();
        touched.before.clear();
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> u64 {
        let touched = self.touched.as_ref().map_or(0, Touched::memory_usage);
        let bucket = size_of::<Line>() + 1 + size_of::<u64>();
        (self.buckets.len() * bucket + touched) as u64 + self.long.memory_usage()
    }

    /// Where a component lies.
    pub(super) fn find(&self, key: &Key, component: &[u8]) -> Option<(u32, Slot)> {
        let first = key.buckets[0];
        if let Some(slot) = self.find_in(first, key.header(0), component) {
            return Some((first, slot));
        }
        if Bucket::of(&self.buckets[first as usize].0).head() & key.hash.filter_bit() == 0 {
            return None;
        }
        let second = key.buckets[1];
        self.find_in(second, key.header(1), component).map(|slot| (second, slot))
    }

    /// Puts a transition in that isn't there.
    pub(super) fn insert(&mut self, key: &Key, component: &[u8], gives: Gives) -> Result<(), Full> {
        let mut payload = Payload::new();
        if component.len() > INLINE_MOST {
            payload.push_number(self.long.put(component).ok_or(Full)?, 4);
            payload.push_number(u32::try_from(component.len()).expect("a name's length"), 4);
        } else {
            payload.push(component);
        }
        if let Some(state) = gives.state {
            payload.push_number(state.0, STATE_BYTES);
        }
        if gives.result != 0 {
            payload.push_number(gives.result, self.width);
        }
        let entry = Entry { header: Header(key.wanted.0 | gives.flags()), payload };
        let homeless = Homeless { entry, hash: key.hash, buckets: key.buckets };
        match self.room_for(&homeless) {
            Some(choice) => self.settle(&homeless, choice),
            None => self.force(homeless)?,
        }
        Ok(())
    }

    /// Takes a transition out.
    pub(super) fn remove(&mut self, key: &Key, at: u32, slot: Slot) {
        if slot.header.is_long() {
            let (word, len) = Bucket::of(&self.buckets[at as usize].0).long(slot);
            self.long.take_back(word, len);
        }
        if slot.header.is_second() {
            self.come_back(key.buckets[0], key.hash);
        }
        self.cut(at, slot);
    }

    /// Gives a transition something else of the same shape; whether it is that.
    pub(super) fn replace(&mut self, at: u32, slot: Slot, gives: Gives) -> bool {
        if slot.header.0 & (LEADS | ENDS) != gives.flags() {
            return false;
        }
        let width = self.width;
        let bytes: &mut [u8; BUCKET_BYTES] = bytemuck::cast_mut(self.touch(at));
        let mut end = slot.end;
        if gives.result != 0 {
            end -= width;
            bytes[end..slot.end].copy_from_slice(&gives.result.to_le_bytes()[..width]);
        }
        if let Some(state) = gives.state {
            bytes[end - 4..end].copy_from_slice(&state.0.to_le_bytes());
        }
        true
    }

    fn find_in(&self, at: u32, wanted: Header, component: &[u8]) -> Option<Slot> {
        let bucket = Bucket::of(&self.buckets[at as usize].0);
        let is_it = |slot: &Slot| {
            slot.header.0 & Header::WANTED == wanted.0 && same(self.component(bucket, *slot), component)
        };
        bucket.slots(self.width).find(is_it)
    }

    fn component<'f>(&'f self, bucket: Bucket<'f>, slot: Slot) -> &'f [u8] {
        if !slot.header.is_long() {
            return bucket.component(slot);
        }
        let (word, len) = bucket.long(slot);
        self.long.component(word, len)
    }

    fn fits(&self, at: u32, size: usize) -> bool {
        let taken = self.taken(at);
        taken + size <= ROOM && (size * MOST_ENTRIES > ROOM - taken || self.entries(at) < MOST_ENTRIES)
    }

    /// Bytes of a bucket that are taken.
    #[inline]
    fn taken(&self, at: u32) -> usize {
        usize::from(self.taken[at as usize] & !TOUCHED)
    }

    fn set_taken(&mut self, at: u32, bytes: usize) {
        let taken = &mut self.taken[at as usize];
        *taken = *taken & TOUCHED | u8::try_from(bytes).expect("at most 62");
    }

    fn entries(&self, at: u32) -> usize {
        Bucket::of(&self.buckets[at as usize].0).len()
    }

    /// Which of its two buckets has room for an entry, or has it once others have moved.
    #[inline]
    fn room_for(&mut self, homeless: &Homeless) -> Option<usize> {
        let size = homeless.entry.size();
        let fitting = homeless.buckets.iter().position(|&at| self.fits(at, size));
        fitting.or_else(|| self.search(Search::new(homeless.buckets, size)))
    }

    /// Puts an entry into one of its buckets, which has room.
    #[inline]
    fn settle(&mut self, homeless: &Homeless, choice: usize) {
        if choice == 1 {
            self.leave(homeless.buckets[0], homeless.hash);
        }
        self.push(homeless.buckets[choice], &homeless.entry, choice);
    }

    /// Puts a large entry in, for which several small ones have to go, and these wherever they find room. What is left when that
    /// takes too long is lost: whoever is told so builds anew.
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
        let line = self.buckets[at as usize];
        let bucket_of = Bucket::of(&line.0);
        let slot = bucket_of.slots(self.width).min_by_key(|slot| slot.end - slot.start);
        let slot = slot.expect("an empty bucket has room for any entry");
        let hash = self.seeds.hash(self.component(bucket_of, slot));
        let other = self.other(at, bucket_of, slot);
        let entry = Entry::of(bucket_of, slot);
        self.cut(at, slot);
        if slot.header.is_second() {
            self.come_back(other, hash);
            return Homeless { entry, hash, buckets: [other, at] };
        }
        Homeless { entry, hash, buckets: [at, other] }
    }

    /// Moves entries along the shortest way that makes room in one of two buckets; in which one.
    fn search(&mut self, mut search: Search) -> Option<usize> {
        let mut next = 0;
        while let Some(&Step { at, size: wanted, .. }) = search.steps.get(next) {
            let line = self.buckets[at as usize];
            let bucket = Bucket::of(&line.0);
            let free = ROOM - self.taken(at);
            for slot in bucket.slots(self.width) {
                let freed = HEADER_BYTES + slot.end - slot.start;
                if free + freed < wanted {
                    continue;
                }
                let other = self.other(at, bucket, slot);
                if search.passes(next, other) {
                    continue;
                }
                if self.fits(other, freed) {
                    let choice = search.choice(next);
                    self.shift(&search, next, slot, other);
                    return Some(choice);
                }
                if search.steps.len() < SEARCH {
                    search.steps.push(Step { at: other, size: freed, from: Some((next, slot)) });
                }
            }
            next += 1;
        }
        None
    }

    /// Moves the entry of a slot to a bucket that has room, then the one that led there into its place, and so on.
    fn shift(&mut self, search: &Search, mut step: usize, mut slot: Slot, mut to: u32) {
        loop {
            let Step { at, from, .. } = search.steps[step];
            self.transfer(at, slot, to);
            let Some((before, its)) = from else { return };
            (to, step, slot) = (at, before, its);
        }
    }

    /// Moves an entry to its other bucket.
    fn transfer(&mut self, from: u32, slot: Slot, to: u32) {
        let line = self.buckets[from as usize];
        let bucket = Bucket::of(&line.0);
        let hash = self.seeds.hash(self.component(bucket, slot));
        let entry = Entry::of(bucket, slot);
        self.cut(from, slot);
        if slot.header.is_second() {
            self.come_back(to, hash);
            self.push(to, &entry, 0);
        } else {
            self.leave(from, hash);
            self.push(to, &entry, 1);
        }
    }

    /// The other bucket of an entry.
    fn other(&self, at: u32, bucket_of: Bucket<'_>, slot: Slot) -> u32 {
        let count = self.count();
        let [first, second] = self.seeds.hash(self.component(bucket_of, slot)).choices(count);
        match slot.header.is_second() {
            true => bucket(base(at, second, count), first, count),
            false => bucket(base(at, first, count), second, count),
        }
    }

    /// An entry whose first choice is this bucket lies in its second.
    fn leave(&mut self, at: u32, hash: Hash) {
        let counts = &mut self.away[at as usize];
        let shift = 4 * hash.filter();
        let count = *counts >> shift & MANY;
        if count < MANY {
            *counts += 1 << shift;
        }
        if count == 0 {
            let head = Bucket::of(&self.buckets[at as usize].0).head() | hash.filter_bit();
            self.set_head(at, head);
        }
    }

    /// It does no longer.
    fn come_back(&mut self, at: u32, hash: Hash) {
        let counts = &mut self.away[at as usize];
        let shift = 4 * hash.filter();
        let count = *counts >> shift & MANY;
        if count < MANY {
            *counts -= 1 << shift;
        }
        if count == 1 {
            let head = Bucket::of(&self.buckets[at as usize].0).head() & !hash.filter_bit();
            self.set_head(at, head);
        }
    }

    fn set_head(&mut self, at: u32, head: u16) {
        let bytes: &mut [u8; BUCKET_BYTES] = bytemuck::cast_mut(self.touch(at));
        bytes[..HEADER_BYTES].copy_from_slice(&head.to_le_bytes());
    }

    /// Adds an entry to a bucket that has room, and is one of its choices.
    fn push(&mut self, at: u32, entry: &Entry, choice: usize) {
        let taken = self.taken(at);
        let header = Header(entry.header.0 | if choice == 1 { SECOND } else { 0 });
        edit::put(self.touch(at), taken, header, &entry.payload);
        self.set_taken(at, taken + entry.size());
    }

    /// Takes an entry out of a bucket, and closes up.
    fn cut(&mut self, at: u32, slot: Slot) {
        let taken = self.taken(at);
        edit::cut(self.touch(at), taken, slot);
        self.set_taken(at, taken - (slot.end - slot.start) - HEADER_BYTES);
    }

    /// A bucket, to write.
    fn touch(&mut self, at: u32) -> &mut [u64; BUCKET_WORDS] {
        let line = &mut self.buckets[at as usize];
        let taken = &mut self.taken[at as usize];
        if let Some(touched) = self.touched.as_mut().filter(|_| *taken & TOUCHED == 0) {
            *taken |= TOUCHED;
            touched.places.push(u64::from(at) << 32 | touched.before.len() as u64);
            touched.before.push(*line);
        }
        &mut line.0
    }
}

const _: () = assert!(MOST_ENTRIES == (1 << COUNT_BITS) - 1 && FILTER_BITS * 4 <= u64::BITS);

/// A bucket on the way to room.
#[derive(Clone, Copy)]
struct Step {
    at: u32,
    /// Bytes for which it is to have room.
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

    /// Of which choice the way to a step comes.
    fn choice(&self, step: usize) -> usize {
        self.back(step).last().unwrap_or(0)
    }
}
