//! [`Subject`]: a table that is held against the truth, on the CPU or on GPUs, in several passes over the
//! keys.

use std::sync::OnceLock;

use wirespeed::GpuError;
use wirespeed::engine::{Addresses, RuleTuple, Served};
use wirespeed::gpu::ip::KeyBytes;
use wirespeed::gpu::names::Remote;
use wirespeed_fib::NextHop;
use wirespeed_namelookup::{Match, NameDomain, Names};
use wirespeed_table::{Keys, Lookup};

/// A pass over all keys: by which call, in batches of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    /// Its name in a report.
    pub(crate) name: &'static str,
    /// Keys of a batch.
    pub(crate) keys: usize,
    pub(crate) asks: Asks,
}

/// The call of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// One key after the other.
    Single,
    /// A batch, for its results alone.
    Results,
    /// A batch, for all that is found.
    Found,
}

const fn pass(name: &'static str, keys: usize, asks: Asks) -> Pass {
    Pass { name, keys, asks }
}

/// The lookups by which tables of a domain are checked.
pub(crate) trait Lookups<D: Served> {
    /// The passes on the CPU.
    const ON_CPU: &'static [Pass];
    /// The passes on GPUs: large and small batches may go to different kernels.
    const ON_GPU: &'static [Pass];
    /// A value that no lookup finds. It stands wherever a lookup has not written.
    const NOTHING: D::Found;

    /// The widths of keys to check GPUs with, in bits, for a table whose lookups depend on the first
    /// `reach` bits.
    fn reaches(reach: u8) -> Vec<u8> {
        vec![reach]
    }

    /// Bytes of each key that goes to GPUs, if the table decides that.
    fn key_bytes(remote: &D::Remote) -> Option<usize> {
        let _ = remote;
        None
    }

    /// Looks keys up one by one.
    fn one_by_one(table: &dyn Lookup<D>, keys: D::Keys<'_>, found: &mut [D::Found]);

    /// Looks up results alone; everything else in `found` stays as it is.
    fn results(found: &mut [D::Found], look_up: impl FnOnce(&mut [D::Result]));

    /// Looks keys up on GPUs.
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
    const ON_CPU: &'static [Pass] = &[pass("batch", 4096, Asks::Results), pass("single", 4096, Asks::Single)];
    const ON_GPU: &'static [Pass] =
        &[pass("batch", 1 << 16, Asks::Results), pass("small", 999, Asks::Results)];
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
    const ON_CPU: &'static [Pass] = &[
        pass("match batch", usize::MAX, Asks::Found),
        pass("batch", usize::MAX, Asks::Results),
        pass("single", usize::MAX, Asks::Single),
    ];
    const ON_GPU: &'static [Pass] = &[
        pass("match batch", usize::MAX, Asks::Found),
        pass("batch", usize::MAX, Asks::Results),
        pass("small match batch", 999, Asks::Found),
        pass("small batch", 999, Asks::Results),
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
    const ON_CPU: &'static [Pass] = &[
        pass("batch", usize::MAX, Asks::Results),
        pass("small batch", 37, Asks::Results),
        pass("single", usize::MAX, Asks::Single),
    ];
    const ON_GPU: &'static [Pass] =
        &[pass("batch", usize::MAX, Asks::Results), pass("small batch", 999, Asks::Results)];
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

/// A table to check.
pub(crate) enum Subject<'a, D: Served> {
    /// A table on this machine's cores.
    Cpu(&'a dyn Lookup<D>),
    /// A table on GPUs, and the first error of a lookup there. After an error, no answer counts.
    Gpu(&'a D::Remote, OnceLock<GpuError>),
}

impl<'a, D: Served> Subject<'a, D> {
    /// A table on GPUs.
    pub(crate) const fn on_gpu(remote: &'a D::Remote) -> Self {
        Self::Gpu(remote, OnceLock::new())
    }

    /// The passes to make.
    pub(crate) fn passes<L: Lookups<D>>(&self) -> &'static [Pass] {
        match self {
            Self::Cpu(_) => L::ON_CPU,
            Self::Gpu(..) => L::ON_GPU,
        }
    }

    /// Looks keys up in batches of the pass. A pass that asks for results alone leaves the rest
    /// [unwritten](Lookups::NOTHING).
    pub(crate) fn look_up<L: Lookups<D>>(&self, pass: &Pass, keys: D::Keys<'_>, found: &mut [D::Found]) {
        found.fill(L::NOTHING);
        for (at, found) in found.chunks_mut(pass.keys.min(keys.len()).max(1)).enumerate() {
            let from = at * pass.keys.min(keys.len());
            self.look_up_batch::<L>(pass.asks, keys.part(from..from + found.len()), found);
        }
    }

    /// Looks one batch up.
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
