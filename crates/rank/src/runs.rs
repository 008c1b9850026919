//! [`Runs`]: what the section of runs holds, and who has which part of it.
//!
//! The control plane's copy of the section, from which elements are read back before they are changed. A word
//! of several runs has a piece of its own; words of one run share an element for each value, found by value.

use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;
use wirespeed_fib::Outgrown;

use crate::layout::{LONG, WORD, Word};
use crate::sink::Sink;
use crate::space::Space;

/// The elements of a word: next hops, or chunks of level 32 with [`LONG`](crate::layout::LONG) set.
pub(crate) type Elements = [u32; WORD];

/// The runs of all words.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    /// What each element of the section holds, those that are free included; never used ones may be missing.
    values: Vec<u32>,
    space: Space,
    /// Where the run is that words of one run with this value share, and how many do. That of no route is
    /// element 0, always there and not counted.
    single: FxHashMap<u32, (u32, u32)>,
}

impl Runs {
    /// No runs, with room for so many.
    pub(crate) fn new(capacity: u32) -> Self {
        Self { values: vec![0], space: Space::new(1, capacity), single: FxHashMap::default() }
    }

    /// What a run holds.
    #[inline]
    pub(crate) fn value(&self, run: u32) -> u32 {
        self.values[run as usize]
    }

    /// The values of the runs of a word.
    pub(crate) fn of(&self, word: Word) -> &[u32] {
        &self.values[word.base() as usize..][..word.len() as usize]
    }

    /// The elements of a word.
    pub(crate) fn elements(&self, word: Word) -> Elements {
        let runs = self.of(word);
        let (mut bits, mut run) = (word.bits(), 0);
        let mut elements = [runs[0]; WORD];
        for element in &mut elements {
            run += (bits & 1) as usize;
            bits >>= 1;
            *element = runs[run];
        }
        elements
    }

    /// Sets the elements of some neighbouring octets to a value where these are a run of a word and stay one;
    /// whether they are that, and so done with. It is what most updates come to, and saves taking the word
    /// apart.
    pub(crate) fn set(
        &mut self,
        word: Word,
        octets: &RangeInclusive<u8>,
        value: u32,
        sink: &mut impl Sink,
    ) -> bool {
        let (first, last) = (u32::from(octets.start() % 32), u32::from(octets.end() % 32));
        let at = word.run_of(*octets.start());
        let held = self.values[at];
        let inside = (u64::from(word.bits()) >> first >> 1) & ((1 << (last - first)) - 1);
        if inside == 0 && held == value {
            return true;
        }
        let starts = first == 0 || word.bits() >> first & 1 == 1;
        let ends = last == 31 || word.bits() >> (last + 1) & 1 == 1;
        // A word of one run shares it.
        if word.len() == 1 || inside != 0 || !starts || !ends || held & LONG != 0 {
            return false;
        }
        if first > 0 && self.values[at - 1] == value || last < 31 && self.values[at + 1] == value {
            return false;
        }
        self.values[at] = value;
        #[allow(clippy::cast_possible_truncation)] // as the base of the word
        sink.run(at as u32, value);
        true
    }

    /// The word of elements that takes the place of another, whose runs are reused where they can be.
    pub(crate) fn replace(
        &mut self,
        word: Word,
        elements: &Elements,
        sink: &mut impl Sink,
    ) -> Result<Word, Outgrown> {
        let (mut bits, mut last) = (0, 0);
        let mut runs = [elements[0]; WORD];
        for i in 1..WORD {
            let differs = elements[i] != elements[i - 1];
            bits |= u32::from(differs) << i;
            last += usize::from(differs);
            runs[last] = elements[i];
        }
        let runs = &runs[..=last];
        let base = match (word.len() as usize, runs) {
            (1, &[value]) if self.value(word.base()) == value => word.base(),
            (len, runs) if len == runs.len() && len > 1 => word.base(),
            (_, &[value]) => {
                self.release(word);
                self.link(value, 1, sink)?
            }
            (_, runs) => {
                self.release(word);
                self.take(runs.len())?
            }
        };
        if last > 0 {
            self.write(base, runs, sink);
        }
        Ok(Word::new(bits, base))
    }

    /// Gives back the runs of a word.
    pub(crate) fn release(&mut self, word: Word) {
        match word.len() {
            1 => self.unlink(word.base(), 1),
            len => self.space.give_back(word.base(), len),
        }
    }

    /// Adds so many links to the run that words of one run with this value share.
    pub(crate) fn link(&mut self, value: u32, links: u32, sink: &mut impl Sink) -> Result<u32, Outgrown> {
        if value == 0 {
            return Ok(0);
        }
        if let Some((at, known)) = self.single.get_mut(&value) {
            *known += links;
            return Ok(*at);
        }
        let at = self.take(1)?;
        self.single.insert(value, (at, links));
        self.write(at, &[value], sink);
        Ok(at)
    }

    /// Takes so many links from a shared run.
    pub(crate) fn unlink(&mut self, run: u32, links: u32) {
        let value = self.value(run);
        if value == 0 {
            return;
        }
        let Some((_, known)) = self.single.get_mut(&value) else {
            debug_assert!(false, "run {run} is not shared");
            return;
        };
        *known -= links;
        if *known == 0 {
            self.single.remove(&value);
            self.space.give_back(run, 1);
        }
    }

    /// The whole section up to the last run ever used.
    pub(crate) fn values(&self) -> &[u32] {
        &self.values
    }

    /// Runs that there have to be room for.
    pub(crate) fn used(&self) -> u32 {
        self.space.used()
    }

    /// Sets the capacity.
    pub(crate) fn set_capacity(&mut self, capacity: u32) {
        self.space.set_capacity(capacity);
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        let shared = self.single.capacity() * (size_of::<(u32, (u32, u32))>() + 1);
        (self.values.capacity() * size_of::<u32>() + shared) as u64 + self.space.memory_usage()
    }

    fn take(&mut self, len: usize) -> Result<u32, Outgrown> {
        debug_assert!(len <= WORD);
        #[allow(clippy::cast_possible_truncation)] // at most 32
        let at = self.space.take(len as u32).ok_or(Outgrown("room for runs"))?;
        let end = self.space.used() as usize;
        if self.values.len() < end {
            self.values.resize(end, 0);
        }
        Ok(at)
    }

    /// Writes what is not there yet.
    fn write(&mut self, at: u32, runs: &[u32], sink: &mut impl Sink) {
        let held = &mut self.values[at as usize..][..runs.len()];
        for ((run, held), &value) in (at..).zip(held).zip(runs) {
            if *held != value {
                *held = value;
                sink.run(run, value);
            }
        }
    }
}
