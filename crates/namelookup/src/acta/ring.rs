//! The ring of a batch.
//!
//! A batch keeps many names under way, in a ring. At each turn a name probes the bucket that was fetched for
//! it in the previous turn, and fetches the next one. A name that is finished is replaced by the next name of
//! the batch, so names with many components hold nobody up.

use super::hash::{Hash, bucket};
use super::layout::{Bucket, Header, SECOND, Slot, State, View};
use super::memo::{self, Given, Memo, Short};
use crate::fetch::prefetch;
use crate::found::Match;
use crate::name::SLASH;
use crate::names::Names;

/// The number of names under way.
pub(super) const UNDER_WAY: usize = 24;

/// What a batch writes for a name.
pub(super) trait Answer: Copy + Send {
    fn answer(result: u32, length: u32) -> Self;
}

impl Answer for u32 {
    #[inline(always)]
    fn answer(result: u32, _: u32) -> Self {
        result
    }
}

impl Answer for Match {
    #[inline(always)]
    fn answer(result: u32, length: u32) -> Self {
        Self { result, length }
    }
}

impl<'t> View<'t> {
    /// The transition of a state by a component.
    pub(super) fn find(&self, state: State, component: &[u8]) -> Option<(Bucket<'t>, Slot)> {
        let hash = self.seeds.hash(component);
        let wanted = Header::wanted(component.len(), state.turn(), hash.tag());
        let [first, second] = hash.choices(self.count).map(|choice| bucket(state.base(), choice, self.count));
        let bucket = self.bucket(first);
        if let Some(slot) = self.find_in(bucket, wanted, component) {
            return Some((bucket, slot));
        }
        if bucket.head() & hash.filter_bit() == 0 {
            return None;
        }
        let bucket = self.bucket(second);
        let slot = self.find_in(bucket, Header(wanted.0 | SECOND), component)?;
        Some((bucket, slot))
    }

    /// The state and result of a state's transition by a component.
    #[cold]
    fn give(&self, state: State, component: &[u8]) -> Given {
        let Some((bucket, slot)) = self.find(state, component) else { return Given::default() };
        let leads = slot.header.leads();
        Given {
            state: if leads { bucket.state(slot, self.width).0 } else { 0 },
            leads,
            result: if slot.header.ends() { bucket.result(slot, self.width) } else { 0 },
        }
    }

    #[inline(always)]
    pub(super) fn bucket(&self, at: u32) -> Bucket<'t> {
        Bucket::of(&self.buckets[at as usize])
    }

    /// The entry of a bucket that has this header and component.
    #[inline]
    pub(super) fn find_in(&self, bucket: Bucket<'_>, wanted: Header, component: &[u8]) -> Option<Slot> {
        bucket
            .slots(self.width)
            .find(|slot| slot.header.0 & Header::WANTED == wanted.0 && self.is(bucket, *slot, component))
    }

    /// Whether an entry is of this component.
    pub(super) fn is(&self, bucket: Bucket<'_>, slot: Slot, component: &[u8]) -> bool {
        match slot.header.is_long() {
            true => self.is_long(bucket, slot, component),
            false => bucket.component(slot) == component,
        }
    }

    /// Whether an entry is of this long component.
    pub(super) fn is_long(&self, bucket: Bucket<'_>, slot: Slot, component: &[u8]) -> bool {
        let (word, len) = bucket.long(slot);
        len as usize == component.len() && self.long[8 * word as usize..].starts_with(component)
    }
}

/// A part of the bytes of a batch. Vectors may read the bytes around it.
#[derive(Clone, Copy)]
pub(super) struct Part<'n> {
    pub(super) all: &'n [u8],
    pub(super) from: usize,
    pub(super) to: usize,
}

impl<'n> Part<'n> {
    fn of(names: Names<'n>, from: u32, to: u32) -> Self {
        Self { all: names.bytes(), from: from as usize, to: to as usize }
    }

    #[inline(always)]
    pub(super) fn bytes(self) -> &'n [u8] {
        &self.all[self.from..self.to]
    }
}

/// The instructions that depend on the CPU.
pub(super) trait Probe: Copy {
    /// The length and hash of the component that the rest of a name starts with. It has at least one byte.
    fn component(self, view: &View<'_>, rest: Part<'_>) -> (usize, Hash);

    /// The entry of a bucket that has this header and this component.
    fn find(self, view: &View<'_>, bucket: Bucket<'_>, wanted: Header, component: Part<'_>) -> Option<Slot>;
}

/// The instructions that every CPU has.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Probe for Portable {
    #[inline(always)]
    fn component(self, view: &View<'_>, rest: Part<'_>) -> (usize, Hash) {
        let rest = rest.bytes();
        let len = component_len(rest);
        (len, view.seeds.hash(&rest[..len]))
    }

    #[inline(always)]
    fn find(self, view: &View<'_>, bucket: Bucket<'_>, wanted: Header, component: Part<'_>) -> Option<Slot> {
        view.find_in(bucket, wanted, component.bytes())
    }
}

/// Bytes before the next slash, or all: eight at a time.
#[inline]
pub(super) fn component_len(rest: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 0xff;
    let (words, tail) = rest.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let zero_where_slash = u64::from_le_bytes(*word) ^ (ONES * SLASH as u64);
        let found = zero_where_slash.wrapping_sub(ONES) & !zero_where_slash & (ONES << 7);
        if found != 0 {
            return 8 * at + found.trailing_zeros() as usize / 8;
        }
    }
    let before = rest.len() - tail.len();
    before + tail.iter().position(|&byte| byte == SLASH).unwrap_or(tail.len())
}

/// A name under way.
#[derive(Clone, Copy, Default)]
struct Lane {
    /// The start and end of its bytes, and of the current component.
    start: u32,
    end: u32,
    from: u32,
    to: u32,
    /// The index of the name in the batch.
    number: u32,
    bucket: u32,
    base: u32,
    wanted: u16,
    hash: u64,
    result: u32,
    length: u32,
}

/// Looks up a batch.
#[inline(always)]
pub(super) fn ring<P: Probe, A: Answer>(probe: P, view: View<'_>, names: Names<'_>, answers: &mut [A]) {
    assert_eq!(names.len(), answers.len(), "an answer for each name");
    let Some(root) = view.root else {
        answers.fill(A::answer(view.root_result, 0));
        return;
    };
    let memo = (names.len() >= memo::FEWEST).then(Memo::new);
    let mut ring = Ring { probe, view, names, root, next: 0, answers, memo };
    let mut lanes = [Lane::default(); UNDER_WAY];
    let mut under_way = 0;
    while under_way < UNDER_WAY && ring.enter(&mut lanes[under_way]) {
        under_way += 1;
    }
    while under_way > 0 {
        let mut at = 0;
        while at < under_way {
            if ring.turn(&mut lanes[at]) || ring.enter(&mut lanes[at]) {
                at += 1;
            } else {
                under_way -= 1;
                lanes[at] = lanes[under_way];
            }
        }
    }
}

struct Ring<'b, P, A> {
    probe: P,
    view: View<'b>,
    names: Names<'b>,
    root: State,
    /// The next name of the batch.
    next: usize,
    answers: &'b mut [A],
    /// The memo, if there are enough names.
    memo: Option<Memo>,
}

impl<P: Probe, A: Answer> Ring<'_, P, A> {
    /// Puts the next name under way. Returns whether there is one. Names without components are answered at
    /// once.
    #[inline(always)]
    fn enter(&mut self, lane: &mut Lane) -> bool {
        let ends = self.names.ends();
        while let Some(&end) = ends.get(self.next) {
            let start = if self.next == 0 { self.names.start() } else { ends[self.next - 1] };
            let number = self.next;
            self.next += 1;
            if start < end {
                #[allow(clippy::cast_possible_truncation)]
                // names have bytes, of which there are fewer than 2^32
                let number = number as u32;
                *lane = Lane { start, end, number, result: self.view.root_result, ..Lane::default() };
                if self.start(lane) {
                    return true;
                }
                continue;
            }
            self.answers[number] = A::answer(self.view.root_result, 0);
        }
        false
    }

    /// Looks for the first component of a name, or for the second if the first is known. Returns whether a
    /// lookup is necessary.
    #[inline(always)]
    fn start(&mut self, lane: &mut Lane) -> bool {
        let first = lane.start + 1;
        let rest = &self.names.bytes()[first as usize..lane.end as usize];
        let Some(memo) = &mut self.memo else {
            self.ask(lane, first, self.root);
            return true;
        };
        let Some(short) = Short::of(rest) else {
            self.ask(lane, first, self.root);
            return true;
        };
        let given = match memo.get(short) {
            Some(given) => given,
            None => {
                let given = self.view.give(self.root, &rest[..short.len as usize]);
                memo.set(short, given);
                given
            }
        };
        let to = first + short.len;
        if given.result != 0 {
            lane.result = given.result;
            lane.length = to - lane.start;
        }
        if given.leads {
            // There is a slash, and so another component.
            self.ask(lane, to + 1, State(given.state));
            return true;
        }
        self.answers[lane.number as usize] = A::answer(lane.result, lane.length);
        false
    }

    /// Looks for the component that starts at `from` in a state: prefetches its bucket.
    #[inline(always)]
    fn ask(&mut self, lane: &mut Lane, from: u32, state: State) {
        let (len, hash) = self.probe.component(&self.view, Part::of(self.names, from, lane.end));
        lane.from = from;
        #[allow(clippy::cast_possible_truncation)] // within a name
        {
            lane.to = from + len as u32;
        }
        lane.hash = hash.0;
        lane.base = state.base();
        lane.wanted = Header::wanted(len, state.turn(), hash.tag()).0;
        self.fetch(lane, hash.first(self.view.count));
    }

    #[inline(always)]
    fn fetch(&self, lane: &mut Lane, choice: u32) {
        lane.bucket = bucket(lane.base, choice, self.view.count);
        prefetch(self.view.buckets, lane.bucket as usize);
    }

    /// Probes the prefetched bucket. Returns whether the name continues.
    #[inline(always)]
    fn turn(&mut self, lane: &mut Lane) -> bool {
        let bucket = self.view.bucket(lane.bucket);
        let component = Part::of(self.names, lane.from, lane.to);
        if let Some(slot) = self.probe.find(&self.view, bucket, Header(lane.wanted), component) {
            if slot.header.ends() {
                lane.result = bucket.result(slot, self.view.width);
                lane.length = lane.to - lane.start;
            }
            if slot.header.leads() && lane.to < lane.end {
                self.ask(lane, lane.to + 1, bucket.state(slot, self.view.width));
                return true;
            }
        } else if lane.wanted & SECOND == 0 && bucket.head() & Hash(lane.hash).filter_bit() != 0 {
            lane.wanted |= SECOND;
            self.fetch(lane, Hash(lane.hash).second(self.view.count));
            return true;
        }
        self.answers[lane.number as usize] = A::answer(lane.result, lane.length);
        false
    }
}
