//! Bringing chunks up to date with the Rib: what building does for all of them and an update for a few.
//!
//! Slot by slot (a slot is an element of level 16) the elements that a prefix covers are read back from their
//! runs, set to what the Rib says, and turned into runs again, a word at a time. A chunk is worked on as
//! eight words on the stack; only when it is done is it clear whether it needs a place of its own.

use std::ops::RangeInclusive;

use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{Address, NextHop, Outgrown, Prefix, V4};

use crate::chunks::{Chunk, EMPTY};
use crate::form::Rank;
use crate::layout::{LONG, MAX_NEXT_HOP, WORD, WORDS, Word};
use crate::sink::Sink;

/// The part that is brought up to date.
#[derive(Clone, Copy)]
pub(crate) enum Scope {
    /// Everything, as in building.
    All,
    /// The elements that a changed prefix can affect.
    Of(Prefix<V4>),
}

impl Scope {
    /// The octets at an index that it covers, or the one on the way to it.
    pub(crate) fn octets(self, index: usize) -> RangeInclusive<u8> {
        match self {
            Self::All => 0..=u8::MAX,
            Self::Of(prefix) => prefix.address().octet(index)..=prefix.last().octet(index),
        }
    }

    /// Whether a route that was found decides an octet whatever changed, there and beneath.
    pub(crate) fn leaves(self, best: Option<(u8, NextHop)>) -> bool {
        matches!((self, best), (Self::Of(prefix), Some((len, _))) if len > prefix.len())
    }
}

/// Up to so many elements, those of a /22, an update first tries to change a run in place.
const FEW: u8 = 4;

/// Whether all elements are of one run. Words of one run with one value share it, so their bases tell.
fn is_uniform(chunk: &Chunk) -> bool {
    chunk[0].bits() == 0 && chunk.iter().all(|&word| word == chunk[0])
}

impl Rank {
    /// Brings the part of a slot up to date that is in scope. `cursor` is at the slot if any route
    /// beneath is longer than /16; `inherited` is the next hop of the slot by the others.
    pub(crate) fn touch(
        &mut self,
        slot: u16,
        cursor: Option<Cursor<'_, V4>>,
        inherited: NextHop,
        scope: Scope,
        sink: &mut impl Sink,
    ) -> Result<(), Outgrown> {
        let id = self.slots[usize::from(slot)];
        let before = self.level24.chunks[id as usize];
        let shared = is_uniform(&before);
        let mut chunk = before;
        match cursor {
            None if shared && self.runs.value(before[0].base()) == inherited.0 => return Ok(()),
            None => {
                if !shared {
                    self.release(&before);
                    self.level24.pool.give_back(id);
                }
                let now = self.link_uniform(element(inherited)?, sink)?;
                self.set_slot(slot, id, now, shared, sink);
                return Ok(());
            }
            Some(cursor) => {
                if shared {
                    self.runs.link(self.runs.value(before[0].base()), WORDS, sink)?;
                }
                self.touch_24(&mut chunk, cursor, inherited, scope, sink)?;
            }
        }
        if is_uniform(&chunk) {
            let value = self.runs.value(chunk[0].base());
            let now = if shared && chunk == before { id } else { self.link_uniform(value, sink)? };
            self.runs.unlink(chunk[0].base(), WORDS);
            if now != id {
                if !shared {
                    self.level24.pool.give_back(id);
                }
                self.set_slot(slot, id, now, shared, sink);
            }
        } else {
            let now = if shared { self.level24.take()? } else { id };
            self.level24.write(now, chunk, sink);
            self.set_slot(slot, id, now, shared, sink);
        }
        Ok(())
    }

    /// Turns a slot from one chunk, which it shared or not, to another.
    fn set_slot(&mut self, slot: u16, before: u32, now: u32, shared: bool, sink: &mut impl Sink) {
        if shared && before != now {
            self.unlink_uniform(before);
        }
        if self.slots[usize::from(slot)] != now {
            self.slots[usize::from(slot)] = now;
            sink.slot(slot, now);
        }
    }

    /// Links a slot to the chunk all of whose elements have this value.
    fn link_uniform(&mut self, value: u32, sink: &mut impl Sink) -> Result<u32, Outgrown> {
        if value == 0 {
            return Ok(0);
        }
        if let Some((id, links)) = self.uniform.get_mut(&value) {
            *links += 1;
            return Ok(*id);
        }
        let id = self.level24.take()?;
        let word = Word::new(0, self.runs.link(value, WORDS, sink)?);
        self.level24.write(id, [word; WORDS as usize], sink);
        self.uniform.insert(value, (id, 1));
        Ok(id)
    }

    /// Takes the link of a slot from such a chunk.
    fn unlink_uniform(&mut self, id: u32) {
        let run = self.level24.chunks[id as usize][0].base();
        let value = self.runs.value(run);
        if let Some((_, links)) = self.uniform.get_mut(&value) {
            *links -= 1;
            if *links == 0 {
                self.uniform.remove(&value);
                self.runs.unlink(run, WORDS);
                self.level24.pool.give_back(id);
            }
        }
    }

    /// Sets the elements of a chunk of level 24.
    fn touch_24(
        &mut self,
        chunk: &mut Chunk,
        cursor: Cursor<'_, V4>,
        inherited: NextHop,
        scope: Scope,
        sink: &mut impl Sink,
    ) -> Result<(), Outgrown> {
        let octets = scope.octets(2);
        let pushed = Pushed::new(cursor, inherited, scope, &octets);
        for (word, octets) in by_word(octets) {
            let value = pushed.only(&octets, cursor);
            if value.is_some_and(|value| self.runs.set(chunk[word], &octets, value, sink)) {
                continue;
            }
            let mut elements = self.runs.elements(chunk[word]);
            for octet in octets {
                let Some(value) = pushed.at(octet)? else { continue };
                let element = &mut elements[usize::from(octet) % WORD];
                let long = (*element & LONG != 0).then_some(*element & !LONG);
                *element = match (cursor.child(octet), long) {
                    (Some(child), long) => self.touch_32(long, child, NextHop(value), scope, sink)?,
                    (None, Some(long)) => {
                        self.release_long(long);
                        value
                    }
                    (None, None) => value,
                };
            }
            chunk[word] = self.runs.replace(chunk[word], &elements, sink)?;
        }
        Ok(())
    }

    /// Sets the elements beneath one of level 24, which may have had a chunk there; that element.
    fn touch_32(
        &mut self,
        id: Option<u32>,
        cursor: Cursor<'_, V4>,
        inherited: NextHop,
        scope: Scope,
        sink: &mut impl Sink,
    ) -> Result<u32, Outgrown> {
        // Of a chunk that was not there everything has to be set.
        let (mut chunk, scope) = match id {
            Some(id) => (self.level32.chunks[id as usize], scope),
            None => (EMPTY, Scope::All),
        };
        let octets = scope.octets(3);
        let pushed = Pushed::new(cursor, inherited, scope, &octets);
        for (word, octets) in by_word(octets) {
            let mut elements = self.runs.elements(chunk[word]);
            for octet in octets {
                if let Some(value) = pushed.at(octet)? {
                    elements[usize::from(octet) % WORD] = value;
                }
            }
            chunk[word] = self.runs.replace(chunk[word], &elements, sink)?;
        }
        if is_uniform(&chunk) {
            let value = self.runs.value(chunk[0].base());
            self.runs.unlink(chunk[0].base(), WORDS);
            if let Some(id) = id {
                self.level32.pool.give_back(id);
            }
            return Ok(value);
        }
        let id = match id {
            Some(id) => id,
            None => self.level32.take()?,
        };
        self.level32.write(id, chunk, sink);
        Ok(LONG | id)
    }

    /// Gives back all that a chunk of level 24 leads to.
    fn release(&mut self, chunk: &Chunk) {
        for &word in chunk {
            for at in 0..word.len() {
                let value = self.runs.value(word.base() + at);
                if value & LONG != 0 {
                    self.release_long(value & !LONG);
                }
            }
            self.runs.release(word);
        }
    }

    /// Gives back a chunk of level 32 and its runs.
    fn release_long(&mut self, id: u32) {
        for word in self.level32.chunks[id as usize] {
            self.runs.release(word);
        }
        self.level32.pool.give_back(id);
    }
}

/// The next hops of the octets in scope, by the routes that end in these octets.
enum Pushed<'a> {
    /// The next hops of many octets, all at once.
    All(Box<[NextHop; 256]>),
    /// The next hops of few octets, one by one.
    Each(Cursor<'a, V4>, NextHop, Scope),
}

impl<'a> Pushed<'a> {
    fn new(cursor: Cursor<'a, V4>, inherited: NextHop, scope: Scope, octets: &RangeInclusive<u8>) -> Self {
        if octets.end() - octets.start() < 32 {
            return Self::Each(cursor, inherited, scope);
        }
        let mut next_hops = Box::new([inherited; 256]);
        cursor.expand(inherited, &mut next_hops);
        Self::All(next_hops)
    }

    /// The element of an octet; `None` where it stays what it is.
    #[inline]
    fn at(&self, octet: u8) -> Result<Option<u32>, Outgrown> {
        let next_hop = match self {
            Self::All(next_hops) => next_hops[usize::from(octet)],
            Self::Each(cursor, inherited, scope) => match cursor.best(octet) {
                best if scope.leaves(best) => return Ok(None),
                best => best.map_or(*inherited, |(_, next_hop)| next_hop),
            },
        };
        element(next_hop).map(Some)
    }

    /// The element of all of a few octets, if it is one and nothing longer follows beneath.
    fn only(&self, octets: &RangeInclusive<u8>, cursor: Cursor<'_, V4>) -> Option<u32> {
        if octets.end() - octets.start() >= FEW {
            return None;
        }
        let first = self.at(*octets.start()).ok()??;
        let mut octets = octets.clone();
        octets
            .all(|octet| self.at(octet) == Ok(Some(first)) && cursor.child(octet).is_none())
            .then_some(first)
    }
}

/// The element that holds a next hop.
#[inline]
fn element(next_hop: NextHop) -> Result<u32, Outgrown> {
    if next_hop.0 <= MAX_NEXT_HOP { Ok(next_hop.0) } else { Err(Outgrown("entry width")) }
}

/// The words that octets are in, each with those that it has.
fn by_word(octets: RangeInclusive<u8>) -> impl Iterator<Item = (usize, RangeInclusive<u8>)> {
    let (first, last) = (*octets.start(), *octets.end());
    (first / 32..=last / 32)
        .map(move |word| (usize::from(word), first.max(word * 32)..=last.min(word * 32 + 31)))
}
