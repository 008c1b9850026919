//! [`Answers`]: the results of a batch, read where they are.

use std::fmt;

use wirespeed_fib::NextHop;
#[cfg(feature = "names")]
use wirespeed_namelookup::{Match, NameDomain};

#[cfg(feature = "names")]
use super::Matches;
use super::{Asked, Batch, Lent, Results};
use crate::engine::{Addresses, Served};
use crate::error::Error;
use crate::owned_keys::OwnedKeys;
use crate::turnover::Seen;

/// The results of a batch, in the order of its keys, in the memory that they were written to. Dropping it
/// gives the memory back. It stays valid whatever happens to the table.
pub struct Answers<D: Served, R: Asked<D> = Results> {
    /// Whether a GPU found the results. They lie in the slot that came back, or, where keys went in parts, in
    /// the memory.
    pub(super) is_from_gpu: bool,
    /// The count of rules that changed hands, from before the state that was looked up in.
    #[cfg_attr(not(feature = "rules"), allow(dead_code))]
    pub(super) seen: Seen,
    pub(super) lent: Lent<D, R>,
}

/// Numbers that a table gave for keys, as wide as they lie in memory. [`Answers::resolve`] makes an answer of
/// a number; a table without [prefix lookups](crate::Builder::prefix_lookups) gives answers already. Numbers
/// of rules have actions by [`Answers::matches`] alone: a guard of another moment may know other rules by
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers<'a> {
    /// Numbers of one byte.
    U8(&'a [u8]),
    /// Numbers of two bytes.
    U16(&'a [u16]),
    /// Numbers of four bytes.
    U32(&'a [u32]),
}

impl Numbers<'_> {
    /// The number of the key at an index. Panics if there is no such key.
    #[inline]
    #[must_use]
    pub fn get(self, index: usize) -> u32 {
        match self {
            Self::U8(numbers) => numbers[index].into(),
            Self::U16(numbers) => numbers[index].into(),
            Self::U32(numbers) => numbers[index],
        }
    }

    /// Whether all numbers pass a check.
    #[cfg(feature = "rules")]
    pub(super) fn all(self, check: impl Fn(u32) -> bool) -> bool {
        match self {
            Self::U8(numbers) => numbers.iter().all(|&number| check(number.into())),
            Self::U16(numbers) => numbers.iter().all(|&number| check(number.into())),
            Self::U32(numbers) => numbers.iter().all(|&number| check(number)),
        }
    }
}

impl<D: Served, R: Asked<D>> Answers<D, R> {
    /// The keys, like [`Batch::keys`].
    #[must_use]
    pub fn keys(&self) -> D::Keys<'_> {
        self.lent.memory.keys()
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lent.memory.keys.count()
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a GPU looked the batch up.
    #[must_use]
    pub fn is_from_gpu(&self) -> bool {
        self.is_from_gpu
    }

    /// Takes the memory for the next batch of at most `keys` keys.
    pub fn into_batch(self, keys: usize) -> Batch<D, R> {
        let Self { lent, .. } = self;
        Batch::of(lent, keys)
    }

    /// The results where a GPU wrote them, and the bytes of each. `None` if they lie in the memory.
    fn in_slot(&self) -> Option<(&[u8], usize)> {
        let done = self.lent.memory.done.as_ref().filter(|_| self.is_from_gpu)?;
        let results = done.results().expect("a batch with an error is looked up on the CPU");
        Some((results, done.result_bytes()))
    }
}

impl<D: Served> Answers<D> {
    /// The numbers where they lie. A loop over them is the fastest way to read a batch.
    #[must_use]
    pub fn numbers(&self) -> Numbers<'_> {
        let Some((results, bytes)) = self.in_slot() else {
            return Numbers::U32(bytemuck::cast_slice(&self.lent.memory.results));
        };
        match bytes {
            1 => Numbers::U8(results),
            2 => Numbers::U16(bytemuck::cast_slice(results)),
            _ => Numbers::U32(bytemuck::cast_slice(results)),
        }
    }

    /// The answer that a number stands for.
    #[must_use]
    pub fn resolve(&self, number: u32) -> D::Answer {
        let mut answer = [bytemuck::cast(number)];
        if let Some(ids) = self.lent.source.reader.ids() {
            D::take_apart(ids, &mut answer);
        }
        answer[0]
    }

    /// The answer for the key at an index. Panics if there is no such key.
    #[must_use]
    pub fn get(&self, index: usize) -> D::Answer {
        self.resolve(self.numbers().get(index))
    }

    /// The answers, in order. [`numbers`](Self::numbers) is faster.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = D::Answer> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Copies the answers. Panics if their number is not the length of `to`.
    pub fn copy_to(&self, to: &mut [D::Answer]) {
        assert_eq!(self.len(), to.len(), "an answer for each key");
        self.copy_numbers_to(bytemuck::cast_slice_mut(to));
        if let Some(ids) = self.lent.source.reader.ids() {
            D::take_apart(ids, to);
        }
    }

    fn copy_numbers_to(&self, to: &mut [u32]) {
        match self.numbers() {
            Numbers::U8(numbers) => widen(numbers, to),
            Numbers::U16(numbers) => widen(numbers, to),
            Numbers::U32(numbers) => to.copy_from_slice(numbers),
        }
    }
}

#[cfg(feature = "names")]
impl Answers<NameDomain, Matches> {
    /// The result of each name and the length of the prefix that it is of, in the order of the names, where
    /// they lie. A slice can be read, and copied from, in any way.
    #[must_use]
    pub fn matches(&self) -> &[Match] {
        self.in_slot().map_or(&self.lent.memory.results, |(results, _)| bytemuck::cast_slice(results))
    }
}

impl<A: Addresses> Answers<A> {
    /// Copies the next hop and the length of each longest prefix, like
    /// [`Reader::lookup_prefixes`](crate::Reader::lookup_prefixes).
    ///
    /// Fails if the table was built without [`prefix_lookups`](crate::Builder::prefix_lookups). Panics if a
    /// slice has another length than the batch.
    pub fn copy_prefixes_to(&self, next_hops: &mut [NextHop], lengths: &mut [u8]) -> Result<(), Error> {
        assert_eq!(self.len(), next_hops.len(), "an answer for each key");
        assert_eq!(self.len(), lengths.len(), "a length for each key");
        let pairs = self.lent.source.reader.pairs()?;
        self.copy_numbers_to(bytemuck::cast_slice_mut(next_hops));
        pairs.split(next_hops, lengths);
        Ok(())
    }
}

fn widen<N: Copy + Into<u32>>(numbers: &[N], to: &mut [u32]) {
    to.iter_mut().zip(numbers).for_each(|(to, &number)| *to = number.into());
}

impl<D: Served, R: Asked<D>> fmt::Debug for Answers<D, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers")
            .field("len", &self.len())
            .field("is_from_gpu", &self.is_from_gpu())
            .finish_non_exhaustive()
    }
}
