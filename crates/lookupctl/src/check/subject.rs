//! [`Subject`]: a table that is held against the truth, on the CPU or on GPUs, in each way of looking up.

use std::sync::OnceLock;

use wirespeed::GpuError;
use wirespeed::engine::{Addresses, RuleTuple, Served};
use wirespeed::gpu::ip::KeyBytes;
use wirespeed::gpu::names::Remote;
use wirespeed_fib::NextHop;
use wirespeed_namelookup::{Match, NameDomain, Names};
use wirespeed_table::{Keys, Lookup};

/// A way of looking up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// What it is called in a report.
    pub(crate) name: &'static str,
    /// Keys of a batch.
    pub(crate) keys: usize,
    pub(crate) asks: Asks,
}

/// The call of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// One key after the other.
    Single,
    /// A batch, for its results alone.
    Results,
    /// A batch, for all that is found.
    Found,
}

const fn way(name: &'static str, keys: usize, asks: Asks) -> Way {
    Way { name, keys, asks }
}

/// How tables of a domain are looked up in to be checked.
pub(crate) trait Lookups<D: Served> {
    /// The ways of the CPU.
    const ON_CPU: &'static [Way];
    /// The ways of GPUs: batches large and small may go to different kernels.
    const ON_GPU: &'static [Way];
    /// What no lookup finds: a place that is not written holds it.
    const NOTHING: D::Found;

    /// How many first bits of a key to have GPUs look at, one after the other, in a table where lookups
    /// depend on so many.
    fn reaches(reach: u8) -> Vec<u8> {
        vec![reach]
    }

    /// Bytes of the keys that go to GPUs, where that isn't always the same.
    fn key_bytes(remote: &D::Remote) -> Option<usize> {
        let _ = remote;
        None
    }

    /// Lookups keys up one by one.
    fn one_by_one(table: &dyn Lookup<D>, keys: D::Keys<'_>, found: &mut [D::Found]);

    /// Has results alone looked up; what is not written is as it was.
    fn results(found: &mut [D::Found], look_up: impl FnOnce(&mut [D::Result]));

    /// Lookups keys up on GPUs.
    fn on_gpu(
        remote: &D::Remote,
        asks: Asks,
        keys: D::Keys<'_>,
        found: &mut [D::Found],
    ) -> Result<(), GpuError>;
}

/// Lookups of addresses.
pub(crate) enum OfAddresses {}

impl<A: Addresses> Lookups<A> for OfAddresses {
    const ON_CPU: &'static [Way] = &[way("batch", 4096, Asks::Results), way("single", 4096, Asks::Single)];
    const ON_GPU: &'static [Way] = &[way("batch", 1 << 16, Asks::Results), way("small", 999, Asks::Results)];
    const NOTHING: NextHop = NextHop(u32::MAX);

    /// Keys of each width that prefixes allow have kernels of their own.
    fn reaches(reach: u8) -> Vec<u8> {
        let bits = KeyBytes::kinds(A::FAMILY).iter().filter_map(|kind| u8::try_from(8 * kind.count()).ok());
        bits.filter(|&bits| bits >= reach).collect()
    }

    fn key_bytes(remote: &A::Remote) -> Option<usize> {
        Some(remote.key_bytes().count())
    }

    fn one_by_one(table: &dyn Lookup<A>, keys: &[A], found: &mut [NextHop]) {
        keys.iter().zip(found).for_each(|(&key, found)| *found = table.lookup(key));
    }

    fn results(found: &mut [NextHop], look_up: impl FnOnce(&mut [NextHop])) {
        look_up(found);
    }

    fn on_gpu(remote: &A::Remote, _: Asks, keys: &[A], found: &mut [NextHop]) -> Result<(), GpuError> {
        remote.lookup_batch(keys, found)
    }
}

/// Lookups of names.
pub(crate) enum OfNames {}

impl Lookups<NameDomain> for OfNames {
    const ON_CPU: &'static [Way] = &[
        way("match batch", usize::MAX, Asks::Found),
        way("batch", usize::MAX, Asks::Results),
        way("single", usize::MAX, Asks::Single),
    ];
    const ON_GPU: &'static [Way] = &[
        way("match batch", usize::MAX, Asks::Found),
        way("batch", usize::MAX, Asks::Results),
        way("small match batch", 999, Asks::Found),
        way("small batch", 999, Asks::Results),
    ];
    const NOTHING: Match = Match { result: u32::MAX, length: u32::MAX };

    fn one_by_one(table: &dyn Lookup<NameDomain>, names: Names<'_>, found: &mut [Match]) {
        names.iter().zip(found).for_each(|(name, found)| *found = table.lookup(name));
    }

    fn results(found: &mut [Match], look_up: impl FnOnce(&mut [u32])) {
        let mut results: Vec<u32> = found.iter().map(|found| found.result).collect();
        look_up(&mut results);
        found.iter_mut().zip(results).for_each(|(found, result)| found.result = result);
    }

    fn on_gpu(remote: &Remote, asks: Asks, names: Names<'_>, found: &mut [Match]) -> Result<(), GpuError> {
        if asks == Asks::Found {
            return remote.match_batch(names, found);
        }
        let mut answered = Ok(());
        Self::results(found, |results| answered = remote.lookup_batch(names, results));
        answered
    }
}

/// Lookups of tuples.
pub(crate) enum OfTuples {}

impl<T: RuleTuple> Lookups<T> for OfTuples {
    const ON_CPU: &'static [Way] = &[
        way("batch", usize::MAX, Asks::Results),
        way("small batch", 37, Asks::Results),
        way("single", usize::MAX, Asks::Single),
    ];
    const ON_GPU: &'static [Way] =
        &[way("batch", usize::MAX, Asks::Results), way("small batch", 999, Asks::Results)];
    const NOTHING: u32 = u32::MAX;

    fn one_by_one(table: &dyn Lookup<T>, tuples: &[T], found: &mut [u32]) {
        tuples.iter().zip(found).for_each(|(tuple, found)| *found = table.lookup(tuple));
    }

    fn results(found: &mut [u32], look_up: impl FnOnce(&mut [u32])) {
        look_up(found);
    }

    fn on_gpu(remote: &T::Remote, _: Asks, tuples: &[T], found: &mut [u32]) -> Result<(), GpuError> {
        remote.lookup_batch(tuples, found)
    }
}

/// A table that is looked up in one or more ways.
pub(crate) enum Subject<'a, D: Served> {
    /// A table on this machine's cores.
    Cpu(&'a dyn Lookup<D>),
    /// A table on GPUs, and the first error of one: what there was instead of answers is wrong then.
    Gpu(&'a D::Remote, OnceLock<GpuError>),
}

impl<'a, D: Served> Subject<'a, D> {
    /// A table on GPUs.
    pub(crate) const fn on_gpu(remote: &'a D::Remote) -> Self {
        Self::Gpu(remote, OnceLock::new())
    }

    /// The ways to try.
    pub(crate) fn ways<L: Lookups<D>>(&self) -> &'static [Way] {
        match self {
            Self::Cpu(_) => L::ON_CPU,
            Self::Gpu(..) => L::ON_GPU,
        }
    }

    /// Lookups keys up in batches of the way's size. A way that doesn't ask for all that is found leaves the
    /// rest [as it is](Lookups::NOTHING).
    pub(crate) fn look_up<L: Lookups<D>>(&self, way: &Way, keys: D::Keys<'_>, found: &mut [D::Found]) {
        found.fill(L::NOTHING);
        for (at, found) in found.chunks_mut(way.keys.min(keys.len()).max(1)).enumerate() {
            let from = at * way.keys.min(keys.len());
            self.look_up_batch::<L>(way.asks, keys.part(from..from + found.len()), found);
        }
    }

    /// Lookups one batch up.
    pub(crate) fn look_up_batch<L: Lookups<D>>(&self, asks: Asks, keys: D::Keys<'_>, found: &mut [D::Found]) {
        match (self, asks) {
            (Self::Cpu(table), Asks::Single) => L::one_by_one(*table, keys, found),
            (Self::Cpu(table), Asks::Results) => {
                L::results(found, |results| table.lookup_batch(keys, results));
            }
            (Self::Cpu(table), Asks::Found) => table.match_batch(keys, found),
            (Self::Gpu(remote, failed), asks) => {
                if let Err(error) = L::on_gpu(remote, asks, keys, found) {
                    // The first is told.
                    let _ = failed.set(error);
                }
            }
        }
    }

    /// Why there were no answers, if so.
    pub(crate) fn failure(self) -> Option<GpuError> {
        match self {
            Self::Cpu(_) => None,
            Self::Gpu(_, failed) => failed.into_inner(),
        }
    }

    /// Whether GPUs look up.
    pub(crate) const fn is_on_gpu(&self) -> bool {
        matches!(self, Self::Gpu(..))
    }
}
