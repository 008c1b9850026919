//! [`Answers`]: the flows of packets in later tables, looked up for many packets together before any of them
//! goes its way.

use super::hit::Hit;
use crate::wire::Key;

/// The number in place of an answer's where there is none.
const NONE: u32 = u32::MAX;

/// The flow that a packet with these fields finds in a table.
#[derive(Debug)]
struct Answer<'s> {
    table: u8,
    key: Key,
    hit: Option<Hit<'s>>,
    /// The next answer for the packet.
    next: u32,
}

/// The answers for the frames of a chunk.
#[derive(Debug, Default)]
pub(crate) struct Answers<'s> {
    all: Vec<Answer<'s>>,
    /// The first and the last answer for each frame, and whether its flows do nothing but lead to the last
    /// one.
    of_frame: Vec<(u32, u32, bool)>,
}

/// The answers for a packet that are not taken yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known<'s> {
    all: &'s [Answer<'s>],
    next: u32,
}

impl<'s> Answers<'s> {
    /// No answers for so many frames.
    pub(crate) fn new(frames: usize) -> Self {
        Self { all: Vec::new(), of_frame: vec![(NONE, NONE, false); frames] }
    }

    /// Adds the answer of a table for a frame, behind those of earlier tables.
    pub(crate) fn add(&mut self, frame: u32, table: u8, key: Key, hit: Option<Hit<'s>>) {
        // Frames times tables are fewer than 2^32.
        #[allow(clippy::cast_possible_truncation)]
        let at = self.all.len() as u32;
        self.all.push(Answer { table, key, hit, next: NONE });
        let (first, last, _) = &mut self.of_frame[frame as usize];
        match self.all.get_mut(*last as usize) {
            Some(before) => before.next = at,
            None => *first = at,
        }
        *last = at;
    }

    /// Notes that all flows of a frame before the last one do nothing but lead to it.
    pub(crate) fn set_plain(&mut self, frame: u32) {
        self.of_frame[frame as usize].2 = true;
    }

    /// The answers for a frame.
    pub(crate) fn of(&self, frame: usize) -> Known<'_> {
        let next = self.of_frame.get(frame).map_or(NONE, |&(first, ..)| first);
        Known { all: &self.all, next }
    }

    /// The answers for a frame whose flows do nothing but lead to the last one.
    #[inline]
    pub(crate) fn plain(&self, frame: usize) -> Option<impl Iterator<Item = (u8, Hit<'_>)>> {
        self.of_frame.get(frame).filter(|(.., is_plain)| *is_plain)?;
        let mut known = self.of(frame);
        Some(std::iter::from_fn(move || {
            let answer = known.step()?;
            Some((answer.table, answer.hit?))
        }))
    }
}

impl<'s> Known<'s> {
    fn step(&mut self) -> Option<&'s Answer<'s>> {
        let answer = self.all.get(self.next as usize)?;
        self.next = answer.next;
        Some(answer)
    }

    /// The answer of a table for these fields, if it is known: perhaps that there is no flow.
    pub(crate) fn take(&mut self, table: u8, key: &Key) -> Option<Option<Hit<'s>>> {
        self.step().filter(|answer| answer.table == table && answer.key == *key).map(|answer| answer.hit)
    }
}
