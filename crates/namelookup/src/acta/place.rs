//! [`Form`]: the buckets of the control plane, in which entries are put, removed and moved.
//!
//! An entry may lie in either of two buckets. If both are full, other entries move to their other bucket (as
//! in cuckoo hashing with buckets, but with entries of different sizes; see `room.rs`). An entry's other
//! bucket follows from its component and its current bucket, so little is kept beside the buckets: see
//! `beside.rs`.
//!
//! The buckets themselves are here only while a table is built. An update reads them in the table, and has
//! those that it touches beside it.

use bytemuck::{Pod, Zeroable};
use rustc_hash::FxHashMap;
use wirespeed_image::HugeVec;

use super::beside::Beside;
use super::edit::{self, Payload};
use super::hash::{Hash, Seeds, bucket};
use super::layout::{
    BUCKET_BYTES, BUCKET_WORDS, Bucket, COUNT_BITS, ENDS, HEADER_BYTES, Header, INLINE_MOST, LEADS,
    MOST_ENTRIES, SECOND, STATE_BYTES, Slot, State,
};
use super::long::Long;
use crate::fetch::{prefetch, same};

/// A bucket in a cache line of its own, as images have it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u64; BUCKET_WORDS]);

/// Bytes of a bucket for headers and payloads.
pub(super) const ROOM: usize = BUCKET_BYTES - HEADER_BYTES;

/// Fewer buckets are in the cache: 256 KiB.
const CACHED: usize = 1 << 12;

/// An entry has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// A component as input of a state: its possible buckets, and its header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) hash: Hash,
    pub(super) buckets: [u32; 2],
    /// The header in the first choice.
    pub(super) wanted: Header,
}

impl Key {
    /// The key of a state and the component's hash and length.
    pub(super) fn new(state: State, hash: Hash, len: usize, buckets: u32) -> Self {
        let choices = hash.choices(buckets).map(|choice| bucket(state.base(), choice, buckets));
        Self { hash, buckets: choices, wanted: Header::wanted(len, state.turn(), hash.tag()) }
    }

    /// Bytes of the payload of a transition with this result and state.
    pub(super) fn payload_bytes(&self, gives: Gives, width: usize) -> usize {
        Header(self.wanted.0 | gives.flags()).payload_bytes(width)
    }

    fn header(&self, choice: usize) -> Header {
        Header(self.wanted.0 | if choice == 1 { SECOND } else { 0 })
    }
}

/// The result and state of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gives {
    pub(super) state: Option<State>,
    /// 0 if it is no entry.
    pub(super) result: u32,
}

impl Gives {
    fn flags(self) -> u16 {
        (if self.state.is_some() { LEADS } else { 0 }) | if self.result != 0 { ENDS } else { 0 }
    }
}

/// An entry that moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The header that it has in the first choice.
    header: Header,
    payload: Payload,
}

impl Entry {
    /// The entry of a slot, for moving.
    pub(super) fn of(bucket: Bucket<'_>, slot: Slot) -> Self {
        let mut payload = Payload::new();
        payload.push(bucket.payload(slot));
        Self { header: Header(slot.header.0 & !SECOND), payload }
    }

    /// Its bytes in a bucket.
    pub(super) const fn size(&self) -> usize {
        HEADER_BYTES + self.payload.len()
    }
}

/// An entry that is in no bucket, and its possible buckets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Homeless {
    pub(super) entry: Entry,
    pub(super) hash: Hash,
    pub(super) buckets: [u32; 2],
}

/// The buckets of the table, or of a build.
#[derive(Debug)]
enum Buckets<'t> {
    Built(HugeVec<Line>),
    /// The buckets before an update.
    Table(&'t [[u64; BUCKET_WORDS]]),
}

/// The buckets that the current update touched.
#[derive(Debug, Default)]
struct Touched {
    lines: Vec<Line>,
    /// The index in `lines` of each bucket.
    at: FxHashMap<u32, u32>,
}

/// How many touched buckets ahead they are fetched.
const AHEAD: usize = 12;

/// Touched buckets whose memory is kept between updates.
const MUCH: usize = 1 << 14;

impl Touched {
    fn memory_usage(&self) -> usize {
        self.lines.capacity() * size_of::<Line>() + self.at.capacity() * (size_of::<(u32, u32)>() + 1)
    }
}

/// The buckets, and what is known of each.
#[derive(Debug)]
pub(super) struct Form<'t> {
    buckets: Buckets<'t>,
    pub(super) beside: HugeVec<Beside>,
    pub(super) long: Long,
    pub(super) seeds: Seeds,
    pub(super) width: usize,
    /// Entries of an update whose buckets were both full.
    pub(super) waiting: Vec<Homeless>,
    touched: Touched,
}

impl Form<'static> {
    /// Makes empty buckets, for a build.
    pub(super) fn new(buckets: u32, seeds: Seeds, width: usize) -> Self {
        let count = buckets as usize;
        Self {
            buckets: Buckets::Built(HugeVec::filled(Line([0; BUCKET_WORDS]), count)),
            beside: HugeVec::filled(Beside::default(), count),
            long: Long::default(),
            seeds,
            width,
            waiting: Vec::new(),
            touched: Touched::default(),
        }
    }
}

impl Form<'_> {
    /// Takes the form for an update to a table. No table is the end of a build, or of an update.
    pub(super) fn over<'t>(&mut self, table: &'t [[u64; BUCKET_WORDS]]) -> Form<'t> {
        Form {
            buckets: Buckets::Table(table),
            beside: std::mem::take(&mut self.beside),
            long: std::mem::take(&mut self.long),
            seeds: self.seeds,
            width: self.width,
            waiting: std::mem::take(&mut self.waiting),
            touched: std::mem::take(&mut self.touched),
        }
    }

    /// Number of buckets.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.beside.len()).expect("at most 2^28 buckets")
    }

    /// A bucket, to read.
    #[inline]
    pub(super) fn bucket(&self, at: u32) -> Bucket<'_> {
        Bucket::of(self.line(at))
    }

    #[inline]
    pub(super) fn line(&self, at: u32) -> &[u64; BUCKET_WORDS] {
        match &self.buckets {
            Buckets::Built(lines) => &lines[at as usize].0,
            Buckets::Table(_) if self.is_touched(at) => &self.touched.lines[self.touched.at[&at] as usize].0,
            Buckets::Table(lines) => &lines[at as usize],
        }
    }

    #[inline]
    fn is_touched(&self, at: u32) -> bool {
        self.beside[at as usize].is_touched()
    }

    /// All buckets of a build, or of the table before the update.
    pub(super) fn buckets(&self) -> &[[u64; BUCKET_WORDS]] {
        match &self.buckets {
            Buckets::Built(lines) => bytemuck::cast_slice(lines),
            Buckets::Table(lines) => lines,
        }
    }

    /// Prefetches the first data that an update of a transition reads.
    #[inline]
    pub(super) fn fetch(&self, key: &Key) {
        self.fetch_bucket(key.buckets[0]);
    }

    /// Asks for a bucket.
    #[inline]
    pub(super) fn fetch_bucket(&self, at: u32) {
        prefetch(self.buckets(), at as usize);
        prefetch(&self.beside, at as usize);
    }

    /// Prefetches the second bucket if the first one, which has arrived by now, shows that it is needed: for
    /// finding the transition, or for inserting it with `size` bytes.
    #[inline]
    pub(super) fn fetch_second(&self, key: &Key, is_sought: bool, size: usize) {
        let second = key.buckets[1] as usize;
        let is_away = is_sought && self.bucket(key.buckets[0]).head() & key.hash.filter_bit() != 0;
        if is_away || self.taken(key.buckets[0]) + size > ROOM {
            prefetch(self.buckets(), second);
            prefetch(&self.beside, second);
        }
    }

    /// The number of buckets that the update touched.
    pub(super) fn touched(&self) -> usize {
        self.touched.lines.len()
    }

    /// Calls `see` with the buckets that the update touched, in order, with their old and new words. None is
    /// touched afterwards.
    pub(super) fn each_touched(
        &mut self,
        mut see: impl FnMut(u32, &[u64; BUCKET_WORDS], &[u64; BUCKET_WORDS]),
    ) {
        let mut touched = std::mem::take(&mut self.touched);
        let mut places: Vec<(u32, u32)> = touched.at.drain().collect();
        sort(&mut places, self.count());
        let before = self.buckets();
        for (turn, &(at, line)) in places.iter().enumerate() {
            if let Some(&(at, line)) = places.get(turn + AHEAD) {
                prefetch(before, at as usize);
                prefetch(&touched.lines, line as usize);
            }
            see(at, &before[at as usize], &touched.lines[line as usize].0);
        }
        places.iter().for_each(|&(at, _)| self.beside[at as usize].settle());
        touched.lines.clear();
        touched.lines.shrink_to(MUCH);
        touched.at.shrink_to(MUCH);
        self.touched = touched;
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> u64 {
        let built =
            if let Buckets::Built(lines) = &self.buckets { lines.len() * size_of::<Line>() } else { 0 };
        let beside = self.beside.capacity() * size_of::<Beside>();
        let waiting = self.waiting.capacity() * size_of::<Homeless>();
        (built + beside + self.touched.memory_usage() + waiting) as u64 + self.long.memory_usage()
    }

    /// The bucket and slot of a component.
    pub(super) fn find(&self, key: &Key, component: &[u8]) -> Option<(u32, Slot)> {
        let first = key.buckets[0];
        if let Some(slot) = self.find_in(first, key.header(0), component) {
            return Some((first, slot));
        }
        if self.bucket(first).head() & key.hash.filter_bit() == 0 {
            return None;
        }
        let second = key.buckets[1];
        self.find_in(second, key.header(1), component).map(|slot| (second, slot))
    }

    /// Inserts a new transition.
    pub(super) fn insert(&mut self, key: &Key, component: &[u8], gives: Gives) -> Result<(), Full> {
        let homeless = self.homeless(key, component, gives)?;
        self.house(homeless)
    }

    /// Inserts a new transition. If its buckets are full it waits for
    /// [`settle_waiting`](Self::settle_waiting).
    #[inline]
    pub(super) fn insert_or_wait(&mut self, key: &Key, component: &[u8], gives: Gives) -> Result<(), Full> {
        let homeless = self.homeless(key, component, gives)?;
        match self.fitting(&homeless) {
            Some(choice) => self.settle(&homeless, choice),
            // Small tables need no prefetch, and the entry that waited longest would fit worst, because it is
            // mostly the largest.
            None if self.beside.len() < CACHED => self.house(homeless)?,
            None => self.waiting.push(homeless),
        }
        Ok(())
    }

    /// Makes an entry of a transition, in no bucket yet.
    #[inline]
    fn homeless(&mut self, key: &Key, component: &[u8], gives: Gives) -> Result<Homeless, Full> {
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
        Ok(Homeless { entry, hash: key.hash, buckets: key.buckets })
    }

    /// Takes a transition out.
    pub(super) fn remove(&mut self, key: &Key, at: u32, slot: Slot) {
        if slot.header.is_long() {
            let (word, len) = self.bucket(at).long(slot);
            self.long.take_back(word, len);
        }
        if slot.header.is_second() {
            self.come_back(key.buckets[0], key.hash);
        }
        self.cut(at, slot);
    }

    /// Gives a transition another result and state of the same shape. Returns whether the shape is the same.
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
        let bucket = self.bucket(at);
        let is_it = |slot: &Slot| {
            slot.header.0 & Header::WANTED == wanted.0 && same(self.component(bucket, *slot), component)
        };
        bucket.slots(self.width).find(is_it)
    }

    pub(super) fn component<'f>(&'f self, bucket: Bucket<'f>, slot: Slot) -> &'f [u8] {
        if !slot.header.is_long() {
            return bucket.component(slot);
        }
        let (word, len) = bucket.long(slot);
        self.long.component(word, len)
    }

    /// The index of its bucket that has room for an entry without any move.
    #[inline]
    pub(super) fn fitting(&self, homeless: &Homeless) -> Option<usize> {
        let size = homeless.entry.size();
        homeless.buckets.iter().position(|&at| self.fits(at, size))
    }

    /// Whether a bucket has room for so many bytes.
    #[inline]
    pub(super) fn fits(&self, at: u32, size: usize) -> bool {
        let taken = self.taken(at);
        taken + size <= ROOM && (size * MOST_ENTRIES > ROOM - taken || self.entries(at) < MOST_ENTRIES)
    }

    /// Bytes of a bucket that are taken.
    #[inline]
    pub(super) fn taken(&self, at: u32) -> usize {
        self.beside[at as usize].taken()
    }

    fn set_taken(&mut self, at: u32, bytes: usize) {
        self.beside[at as usize].set_taken(bytes);
    }

    fn entries(&self, at: u32) -> usize {
        self.bucket(at).len()
    }

    /// Puts an entry into one of its buckets, which has room.
    #[inline]
    pub(super) fn settle(&mut self, homeless: &Homeless, choice: usize) {
        if choice == 1 {
            self.leave(homeless.buckets[0], homeless.hash);
        }
        self.push(homeless.buckets[choice], &homeless.entry, choice);
    }

    /// Counts an entry whose first choice is this bucket and which is in its second.
    pub(super) fn leave(&mut self, at: u32, hash: Hash) {
        let head = self.bucket(at).head();
        match head & hash.filter_bit() {
            0 => self.set_head(at, head | hash.filter_bit()),
            _ => self.beside[at as usize].add(hash),
        }
    }

    /// Uncounts an entry whose first choice is this bucket and which left its second.
    pub(super) fn come_back(&mut self, at: u32, hash: Hash) {
        if self.beside[at as usize].remove(hash) {
            let head = self.bucket(at).head() & !hash.filter_bit();
            self.set_head(at, head);
        }
    }

    fn set_head(&mut self, at: u32, head: u16) {
        let bytes: &mut [u8; BUCKET_BYTES] = bytemuck::cast_mut(self.touch(at));
        bytes[..HEADER_BYTES].copy_from_slice(&head.to_le_bytes());
    }

    /// Adds an entry to a bucket that has room, and is one of its choices.
    pub(super) fn push(&mut self, at: u32, entry: &Entry, choice: usize) {
        let taken = self.taken(at);
        let header = Header(entry.header.0 | if choice == 1 { SECOND } else { 0 });
        edit::put(self.touch(at), taken, header, &entry.payload);
        self.set_taken(at, taken + entry.size());
    }

    /// Takes an entry out of a bucket, and closes up.
    pub(super) fn cut(&mut self, at: u32, slot: Slot) {
        let taken = self.taken(at);
        edit::cut(self.touch(at), taken, slot);
        self.set_taken(at, taken - (slot.end - slot.start) - HEADER_BYTES);
    }

    /// A bucket, to write.
    fn touch(&mut self, at: u32) -> &mut [u64; BUCKET_WORDS] {
        let before = match &mut self.buckets {
            Buckets::Built(lines) => return &mut lines[at as usize].0,
            Buckets::Table(lines) => lines[at as usize],
        };
        let beside = &mut self.beside[at as usize];
        let Touched { lines, at: places } = &mut self.touched;
        let line = if !beside.is_touched() {
            beside.touch();
            places.insert(at, u32::try_from(lines.len()).expect("at most 2^28 buckets"));
            lines.push(Line(before));
            lines.len() - 1
        } else {
            places[&at] as usize
        };
        &mut lines[line].0
    }
}

/// Sorts touched buckets by their numbers, which are below `count`, digit by digit from the last one on. A
/// sort by comparisons took a twelfth of the instructions of an update.
fn sort(places: &mut Vec<(u32, u32)>, count: u32) {
    /// Bits of a digit.
    const DIGIT: u32 = 11;
    const VALUES: usize = 1 << DIGIT;
    if places.len() < VALUES / 4 {
        return places.sort_unstable();
    }
    let mut sorted = vec![(0, 0); places.len()];
    for shift in (0..u32::BITS - count.leading_zeros()).step_by(DIGIT as usize) {
        let digit = |at: u32| (at >> shift) as usize % VALUES;
        let mut starts = [0u32; VALUES + 1];
        places.iter().for_each(|&(at, _)| starts[digit(at) + 1] += 1);
        (0..VALUES).for_each(|value| starts[value + 1] += starts[value]);
        for &place in &*places {
            let start = &mut starts[digit(place.0)];
            sorted[*start as usize] = place;
            *start += 1;
        }
        std::mem::swap(places, &mut sorted);
    }
}

const _: () = assert!(MOST_ENTRIES == (1 << COUNT_BITS) - 1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touched_buckets_are_sorted() {
        for (len, count) in [(0, 1), (1, 1), (600, 700), (5_000, 60_000), (9_000, 1 << 28)] {
            // Numbers that are all different, as those of touched buckets.
            let at = |n: u32| u32::try_from(u64::from(n) * 0x9e37_79b1 % u64::from(count)).unwrap();
            let mut places: Vec<_> = (0..len).map(|n| (at(n), n)).collect();
            let mut plainly = places.clone();
            plainly.sort_unstable();
            sort(&mut places, count);
            assert_eq!(places, plainly);
        }
    }
}
