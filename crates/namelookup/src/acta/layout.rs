//! The sections of ACTA and what their elements say.
//!
//! Nodes of the component trie with children are *states*. Every node except the root is a *transition* of
//! its parent, and lies in one of two buckets. Their numbers are sums of the parent's state and of the
//! component's hash.
//!
//! ```text
//! buckets  8 × u64 each, B of them
//!          head u16   bits 0–3: n, the number of entries; bits 4–15: a filter: a bit for each entry whose first choice is this
//!                     bucket and that lies in its second
//!          n headers  u16 each:  ggg tttt c e l nnnnnn
//!                     n length (63: long)   l leads: a state follows   e ends: a result follows
//!                     c second choice       t turn of the parent's state      g tag, of the hash
//!          zeros
//!          payloads   from the end backwards, in the order of the headers:
//!                     component (long: u32 word in `long`, u32 length) | state u32, where it leads | result, where it ends
//! long     u64        the bytes of long components, zero-padded to words
//! head     u64        B, w, seeds, root's state and result: see `B_AT` and so on
//! ```
//!
//! A state is a u32: its base, which is less than B, in the low bits, and its turn in the high four bits. No
//! two states are equal. `bucket = base + r mod B`, with `r` from the component's hash. So bucket, choice,
//! turn and component determine the transition, and its parent need not be stored. Results take `w` bytes, 1
//! to 4, by the largest result. All integers are little-endian.

use rayon::prelude::*;
use wirespeed_image::{Checked, Image, ImageBuilder, ImageError, Patch, PatchError, SectionId, Table, Write};

use super::hash::Seeds;
pub use super::hash::{COUNT_BITS, FILTER_BITS};
use crate::fetch::prefetch;

/// The buckets.
pub const BUCKETS: SectionId = SectionId(0);
/// The bytes of long components.
pub const LONG: SectionId = SectionId(1);
/// The parameters of the table.
pub const HEAD: SectionId = SectionId(2);

/// Elements of a bucket.
pub const BUCKET_WORDS: usize = 8;
/// Bytes of a bucket.
pub const BUCKET_BYTES: usize = 64;
/// The most entries of a bucket.
pub const MOST_ENTRIES: usize = 15;
/// Bytes of a bucket's head, and of a header.
pub const HEADER_BYTES: usize = 2;

/// The longest component that lies in a bucket.
pub const INLINE_MOST: usize = 40;
/// The length in a header that says that the component is long.
pub const LONG_MARK: u16 = 63;
/// Bits of the length in a header.
pub const LENGTH_MASK: u16 = 63;
/// Set in a header of a transition that leads to a state.
pub const LEADS: u16 = 1 << 6;
/// Set in a header of a transition that is an entry.
pub const ENDS: u16 = 1 << 7;
/// Set in a header of a transition that lies in its second choice.
pub const SECOND: u16 = 1 << 8;
/// The place of the turn in a header.
pub const TURN_SHIFT: u32 = 9;
/// The place of the tag in a header.
pub const TAG_SHIFT: u32 = 13;
/// Bytes of a payload that say where a long component is.
pub const LONG_BYTES: usize = 8;
/// Bytes of a state.
pub const STATE_BYTES: usize = 4;

/// Bits of a state that are its base.
pub const BASE_BITS: u32 = 28;
/// The most buckets: one less than there are bases, so that no state is all ones.
pub const MOST_BUCKETS: u64 = (1 << BASE_BITS) - 1;
/// Number of turns.
pub const TURNS: u32 = 16;

/// Place in `head` of the number of buckets.
pub const B_AT: usize = 0;
/// Place in `head` of the bytes of a result.
pub const WIDTH_AT: usize = 1;
/// Place in `head` of the two seeds of the hash.
pub const SEEDS_AT: usize = 2;
/// Place in `head` of the root's state, [`NO_STATE`] where it has no children.
pub const ROOT_STATE_AT: usize = 4;
/// Place in `head` of the root's result, 0 where it is no entry.
pub const ROOT_RESULT_AT: usize = 5;
/// Elements of `head`.
pub const HEAD_LEN: usize = 6;
/// No state, in `head`.
pub const NO_STATE: u64 = u64::MAX;

/// How many writes of a patch ahead buckets are fetched.
const AHEAD: usize = 64;

/// A state: the number of a node with children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State(pub u32);

impl State {
    pub(super) const fn new(base: u32, turn: u32) -> Self {
        Self(turn << BASE_BITS | base)
    }

    /// Below the number of buckets.
    #[inline]
    pub const fn base(self) -> u32 {
        self.0 & ((1 << BASE_BITS) - 1)
    }

    /// Tells apart the states of one base.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // four bits
    pub const fn turn(self) -> u16 {
        (self.0 >> BASE_BITS) as u16
    }
}

/// A header of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header(pub u16);

impl Header {
    /// The bits that a lookup compares: all except whether the transition leads and ends.
    pub const WANTED: u16 = !(LEADS | ENDS);

    /// The wanted header of a component in its first choice, without the bits for leading and ending.
    #[inline]
    pub(super) fn wanted(len: usize, turn: u16, tag: u16) -> Self {
        #[allow(clippy::cast_possible_truncation)] // at most `INLINE_MOST`
        let length = if len > INLINE_MOST { LONG_MARK } else { len as u16 };
        Self(length | turn << TURN_SHIFT | tag << TAG_SHIFT)
    }

    /// Bytes of the component in the payload.
    #[inline]
    pub fn component_bytes(self) -> usize {
        if self.is_long() { LONG_BYTES } else { usize::from(self.0 & LENGTH_MASK) }
    }

    /// Whether the component lies in `long`.
    #[inline]
    pub const fn is_long(self) -> bool {
        self.0 & LENGTH_MASK == LONG_MARK
    }

    /// Whether a state follows.
    #[inline]
    pub const fn leads(self) -> bool {
        self.0 & LEADS != 0
    }

    /// Whether a result follows.
    #[inline]
    pub const fn ends(self) -> bool {
        self.0 & ENDS != 0
    }

    /// Whether it lies in its second choice.
    #[inline]
    pub const fn is_second(self) -> bool {
        self.0 & SECOND != 0
    }

    /// Bytes of its payload, with results of `width` bytes.
    #[inline]
    pub fn payload_bytes(self, width: usize) -> usize {
        let state = if self.leads() { STATE_BYTES } else { 0 };
        let result = if self.ends() { width } else { 0 };
        self.component_bytes() + state + result
    }
}

/// A bucket, to read.
#[derive(Clone, Copy, Debug)]
pub struct Bucket<'b>(pub &'b [u8; BUCKET_BYTES]);

/// An entry of a bucket: its number, its header, and the start and end of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its number.
    pub number: usize,
    /// Its header.
    pub header: Header,
    /// The start of its payload.
    pub start: usize,
    /// The end of its payload.
    pub end: usize,
}

impl Slot {
    /// Bytes that its entry takes, header included.
    #[inline]
    pub const fn size(&self) -> usize {
        HEADER_BYTES + self.end - self.start
    }
}

impl<'b> Bucket<'b> {
    /// The bucket in so many words.
    #[inline]
    pub fn of(words: &'b [u64; BUCKET_WORDS]) -> Self {
        Self(bytemuck::cast_ref(words))
    }

    /// Number of entries and filter.
    #[inline]
    pub const fn head(self) -> u16 {
        u16::from_le_bytes([self.0[0], self.0[1]])
    }

    /// Number of entries.
    #[inline]
    pub const fn len(self) -> usize {
        (self.head() & ((1 << COUNT_BITS) - 1)) as usize
    }

    /// Whether it has none.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// A header.
    #[inline]
    pub fn header(self, slot: usize) -> Header {
        let at = HEADER_BYTES * (1 + slot);
        Header(u16::from_le_bytes([self.0[at], self.0[at + 1]]))
    }

    /// The entries. In a bucket that is not valid a start may fall below 0; then iteration ends.
    #[inline]
    pub fn slots(self, width: usize) -> impl Iterator<Item = Slot> + use<'b> {
        let mut end = BUCKET_BYTES;
        (0..self.len()).map_while(move |number| {
            let header = self.header(number);
            let start = end.checked_sub(header.payload_bytes(width))?;
            let slot = Slot { number, header, start, end };
            end = start;
            Some(slot)
        })
    }

    /// Bytes of the payload.
    pub fn payload(self, slot: Slot) -> &'b [u8] {
        &self.0[slot.start..slot.end]
    }

    /// The component of a slot, which is not long.
    pub fn component(self, slot: Slot) -> &'b [u8] {
        &self.0[slot.start..][..slot.header.component_bytes()]
    }

    /// The location of a long component: its first word and its length.
    pub fn long(self, slot: Slot) -> (u32, u32) {
        (self.u32_at(slot.start), self.u32_at(slot.start + 4))
    }

    /// The state that a slot leads to. Only valid if it leads to one.
    #[inline]
    pub fn state(self, slot: Slot, width: usize) -> State {
        let result = if slot.header.ends() { width } else { 0 };
        State(self.u32_at(slot.end - result - STATE_BYTES))
    }

    /// The result of a slot. Only valid if it has one.
    #[inline]
    pub fn result(self, slot: Slot, width: usize) -> u32 {
        // It reads from before its first byte, so that nothing past the bucket is read.
        self.u32_at(slot.end.saturating_sub(4)) >> (32 - 8 * width)
    }

    #[inline]
    fn u32_at(self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }
}

/// The bounds of the elements in a table's buckets.
#[derive(Clone, Copy, Debug)]
struct Limits {
    buckets: u64,
    width: usize,
    long_words: u64,
    results: u64,
}

impl Limits {
    /// Whether a lookup may read a bucket. The content of entries can't be predicted, so the code has almost
    /// no jumps.
    fn admit(&self, words: &[u64; BUCKET_WORDS]) -> bool {
        let bucket = Bucket::of(words);
        let (mut end, mut bad) = (BUCKET_BYTES, false);
        for number in 0..bucket.len() {
            let header = bucket.header(number);
            let Some(start) = end.checked_sub(header.payload_bytes(self.width)) else { return false };
            let slot = Slot { number, header, start, end };
            bad |= header.is_long() && !self.admit_long(bucket, slot);
            let length = usize::from(header.0 & LENGTH_MASK);
            bad |= !header.is_long() & (length.wrapping_sub(1) >= INLINE_MOST);
            let state = bucket.u32_at((start + header.component_bytes()).min(BUCKET_BYTES - STATE_BYTES));
            bad |= header.leads() & (u64::from(State(state).base()) >= self.buckets);
            let result = bucket.result(slot, self.width);
            bad |= header.ends() & (u64::from(result).wrapping_sub(1) >= self.results);
            bad |= header.0 & (LEADS | ENDS) == 0;
            end = start;
        }
        !bad && end >= HEADER_BYTES * (1 + bucket.len())
    }

    #[cold]
    fn admit_long(&self, bucket: Bucket<'_>, slot: Slot) -> bool {
        let (word, len) = bucket.long(slot);
        let end = u64::from(word) + u64::from(len).div_ceil(8);
        len as usize > INLINE_MOST && end <= self.long_words
    }
}

/// A table of ACTA, ready for lookups.
#[derive(Clone, Debug)]
pub struct ActaTable {
    image: Image,
}

/// The data that a lookup reads.
#[derive(Clone, Copy, Debug)]
pub struct View<'t> {
    /// The buckets.
    pub buckets: &'t [[u64; BUCKET_WORDS]],
    /// Their number.
    pub count: u32,
    /// The bytes of long components.
    pub long: &'t [u8],
    /// The seeds of the hash.
    pub seeds: Seeds,
    /// Bytes of a result.
    pub width: usize,
    /// The root's state, where it has children.
    pub root: Option<State>,
    /// The root's result, 0 where it is no entry.
    pub root_result: u32,
}

/// An empty image of so many buckets and words of long components.
pub(super) fn allocate(buckets: u64, long_words: u64, cap: Option<u64>) -> Result<Image, ImageError> {
    ImageBuilder::new(ActaTable::KIND, ActaTable::LAYOUT)
        .section::<u64>("buckets", buckets * BUCKET_WORDS as u64)
        .section::<u64>("long", long_words)
        .section::<u64>("head", HEAD_LEN as u64)
        .build(cap)
}

impl ActaTable {
    /// The table of an image just compiled.
    pub(super) const fn new(image: Image) -> Self {
        Self { image }
    }

    /// What a lookup reads.
    #[allow(clippy::cast_possible_truncation)] // every image and patch is checked for that
    pub fn view(&self) -> View<'_> {
        let head = self.image.section::<u64>(HEAD);
        let state = head[ROOT_STATE_AT];
        View {
            buckets: self.image.section::<u64>(BUCKETS).as_chunks().0,
            count: head[B_AT] as u32,
            long: bytemuck::cast_slice(self.image.section::<u64>(LONG)),
            seeds: Seeds([head[SEEDS_AT], head[SEEDS_AT + 1]]),
            width: head[WIDTH_AT] as usize,
            root: (state != NO_STATE).then_some(State(state as u32)),
            root_result: head[ROOT_RESULT_AT] as u32,
        }
    }

    /// The head after a patch.
    fn head_after(&self, patch: &Patch) -> [u64; HEAD_LEN] {
        let mut head = [0; HEAD_LEN];
        head.copy_from_slice(self.image.section::<u64>(HEAD));
        for write in patch.of(HEAD) {
            if let Some(element) = usize::try_from(write.index()).ok().and_then(|index| head.get_mut(index)) {
                *element = write.value;
            }
        }
        head
    }

    /// The bounds for elements of buckets, from a valid head.
    fn limits(&self, head: &[u64; HEAD_LEN], results: u64) -> Limits {
        Limits {
            buckets: head[B_AT],
            width: usize::try_from(head[WIDTH_AT]).unwrap_or(0),
            long_words: self.image.section::<u64>(LONG).len() as u64,
            results,
        }
    }

    /// A word of the first invalid bucket among those that a patch writes to, in the state after the patch.
    fn bad_bucket(&self, patch: &Patch, limits: &Limits) -> Option<u64> {
        let buckets = self.view().buckets;
        // `Image::check` has seen that they are in memory.
        let index = |index: u64| usize::try_from(index).unwrap_or(usize::MAX);
        let (of, place) = (|at: u64| index(at) / BUCKET_WORDS, |at: u64| index(at) % BUCKET_WORDS);
        let writes = patch.of(BUCKETS);
        let is_bad = |writes: &&[Write]| {
            let mut words = buckets[of(writes[0].index())];
            for write in *writes {
                words[place(write.index())] = write.value;
            }
            !limits.admit(&words)
        };
        let mut at = 0;
        let mut touched = writes.chunk_by(|a, b| of(a.index()) == of(b.index())).inspect(|now| {
            at += now.len();
            if let Some(later) = writes.get(at + AHEAD) {
                prefetch(buckets, of(later.index()));
            }
        });
        touched.find(is_bad).map(|writes| writes[0].value)
    }

    /// A word of the first invalid bucket among those that a patch does not change.
    fn bad_elsewhere(&self, patch: &Patch, limits: &Limits) -> Option<u64> {
        let buckets = self.view().buckets;
        let is_bad = |(at, bucket): &(usize, &[u64; BUCKET_WORDS])| {
            let first = (at * BUCKET_WORDS) as u64;
            let is_before = |write: &Write| (write.section(), write.index()) < (BUCKETS, first);
            let writes = &patch.writes()[patch.writes().partition_point(is_before)..];
            let is_touched = writes.first().is_some_and(|write| {
                write.section() == BUCKETS && write.index() < first + BUCKET_WORDS as u64
            });
            !is_touched && !limits.admit(bucket)
        };
        buckets.par_iter().enumerate().find_first(is_bad).map(|(_, bucket)| bucket[0])
    }
}

/// Whether the head fits sections with this many elements, and a largest result.
fn admits_head(head: &[u64; HEAD_LEN], buckets: u64, results: u64) -> bool {
    (1..=MOST_BUCKETS).contains(&head[B_AT])
        && head[B_AT] * BUCKET_WORDS as u64 == buckets
        && (1..=4).contains(&head[WIDTH_AT])
        && admits_root(head[ROOT_STATE_AT], head[B_AT])
        && head[ROOT_RESULT_AT] <= results
        && results <= u64::from(u32::MAX)
}

fn admits_root(state: u64, buckets: u64) -> bool {
    match u32::try_from(state) {
        Ok(state) => u64::from(State(state).base()) < buckets,
        Err(_) => state == NO_STATE,
    }
}

impl Table for ActaTable {
    const KIND: &'static str = "acta";
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        let malformed = |what: String| Err(ImageError::Malformed(what));
        if image.sections() <= usize::from(HEAD.0) {
            return malformed(format!("{} sections, 3 are needed", image.sections()));
        }
        let usage = image.memory_usage();
        if let Some(odd) = usage[..=usize::from(HEAD.0)].iter().find(|section| section.width != 8) {
            return malformed(format!("section {} is not of words", odd.name));
        }
        let Ok(head) = <[u64; HEAD_LEN]>::try_from(image.section::<u64>(HEAD)) else {
            return malformed(format!("head is not of {HEAD_LEN} elements"));
        };
        if !admits_head(&head, usage[usize::from(BUCKETS.0)].len, image.results()) {
            return malformed(format!("head {head:?} contradicts the sections"));
        }
        let table = Self::new(image);
        let limits = table.limits(&head, table.image.results());
        match table.view().buckets.par_iter().position_first(|bucket| !limits.admit(bucket)) {
            Some(bad) => malformed(format!("bucket {bad} is not valid")),
            None => Ok(table),
        }
    }

    fn image(&self) -> &Image {
        &self.image
    }

    fn image_mut(&mut self, _: Checked) -> &mut Image {
        &mut self.image
    }

    /// Whether an element may have some value in some table. In buckets and in the head validity depends on
    /// other elements, which [`check`](Self::check) tests.
    fn admits(&self, section: SectionId, _value: u64, _results: u64) -> bool {
        section <= HEAD
    }

    /// Checks that a patch leaves the table valid: the head, and each changed bucket in its state after the
    /// patch. O(writes). If the width changes or the largest result falls, which no update does, it checks
    /// all buckets.
    fn check(&self, patch: &Patch) -> Result<(), PatchError> {
        self.image.check(patch)?;
        if let Some(other) = patch.writes().last().filter(|write| write.section() > HEAD) {
            return Err(PatchError::Section(other.section()));
        }
        let (before, now) = (self.image.results(), patch.counts().map(|(_, results)| results));
        let results = now.unwrap_or(before);
        let head = self.head_after(patch);
        if !admits_head(&head, self.image.section::<u64>(BUCKETS).len() as u64, results) {
            return Err(PatchError::Value { section: HEAD, value: results });
        }
        let limits = self.limits(&head, results);
        let is_stricter = limits.width != self.view().width || results < before;
        let elsewhere = || is_stricter.then(|| self.bad_elsewhere(patch, &limits)).flatten();
        match self.bad_bucket(patch, &limits).or_else(elsewhere) {
            Some(value) => Err(PatchError::Value { section: BUCKETS, value }),
            None => Ok(()),
        }
    }
}
