//! What an IP engine is: [`Lpm`], its data plane, and [`Engine`], its control plane.
//!
//! ```text
//! Rib ──build──► (Engine, Table)      Table: an image that looks up; copies of it live in readers, files, GPUs
//!  │ updates
//!  └──► Rib' ──Engine::update(the prefixes that changed)──► Patch ──► every copy of the Table
//! ```
//!
//! The engine holds only what it needs to turn changes into patches (where its chunks lie), never a second
//! table: it reads the values of a patch from the Rib as it is after all the changes, so that each location
//! is written once however many changes touch it.

use rayon::prelude::*;
use wirespeed_image::{ImageError, Patch, Table};
pub use wirespeed_image::{Outgrown, Step};

use crate::address::Address;
use crate::next_hop::NextHop;
use crate::prefix::Prefix;
use crate::rib::Rib;

/// Longest-prefix match over a compiled table.
pub trait Lpm<A: Address>: Send + Sync {
    /// The next hop of the longest prefix that contains the address, [`NextHop::NONE`] where there is none.
    fn lookup(&self, address: A) -> NextHop;

    /// [`lookup`](Self::lookup) of each address into the same place of `next_hops`. Much faster than one by
    /// one, as many addresses are under way at once; batches of 1,000 and more get the most out of it.
    ///
    /// Panics when the slices differ in length.
    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]);

    /// [`lookup_batch`](Self::lookup_batch) on every core: parts of the batch on the threads of the `rayon`
    /// pool that the caller is in. Worth it from some ten thousand addresses on; results are in order as
    /// ever.
    ///
    /// Panics when the slices differ in length.
    fn par_lookup_batch(&self, addresses: &[A], next_hops: &mut [NextHop]) {
        on_all_cores(addresses, next_hops, |addresses, next_hops| self.lookup_batch(addresses, next_hops));
    }

    /// The shape of the table, in a line for people, if it depends on the routes.
    fn shape(&self) -> Option<String> {
        None
    }

    /// The steps of one lookup, for people: each element that is read, in order.
    fn explain(&self, address: A) -> Vec<Step>;
}

/// Looks up parts of a batch on the threads of the `rayon` pool that the caller is in, each by `lookup`. For
/// keys of any kind; a table does it by [`Lpm::par_lookup_batch`]. Panics when the slices differ in length.
pub fn on_all_cores<K: Sync>(
    keys: &[K],
    next_hops: &mut [NextHop],
    lookup: impl Fn(&[K], &mut [NextHop]) + Sync,
) {
    assert_eq!(keys.len(), next_hops.len(), "a result for each key");
    // A few parts a thread even out what slows one of them down.
    let part = keys.len().div_ceil(4 * rayon::current_num_threads()).max(LEAST_PART);
    keys.par_chunks(part)
        .zip(next_hops.par_chunks_mut(part))
        .for_each(|(keys, next_hops)| lookup(keys, next_hops));
}

/// The shortest part of a batch that is worth handing to another thread.
const LEAST_PART: usize = 2_048;

/// An engine's control plane.
pub trait Engine<A: Address>: Sized + Send + 'static {
    /// The name that users choose it by.
    const NAME: &'static str;

    /// Its data plane.
    type Table: Table + Lpm<A>;

    /// Compiles a table, and makes the engine that keeps it up to date.
    fn build(rib: &Rib<A>, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError>;

    /// The patch that takes a table from before the changes to `rib`: `changed` lists the prefixes that were
    /// inserted, replaced or removed since the last patch, in any order, repeated or not.
    ///
    /// After an error the engine is spent: build a new one from the same `rib`.
    fn update(&mut self, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<Patch, Outgrown>;

    /// [`update`](Self::update) for what has a copy of the table at hand, as the last patch left it: an
    /// engine that keeps no second copy of some section reads it there. Such an engine can't
    /// [`update`](Self::update) without one, and has to be built anew.
    fn update_beside(
        &mut self,
        table: &Self::Table,
        rib: &Rib<A>,
        changed: &[Prefix<A>],
    ) -> Result<Patch, Outgrown> {
        let _ = table;
        self.update(rib, changed)
    }

    /// Bytes held beside the table and the Rib.
    fn memory_usage(&self) -> u64;
}

/// What a user may ask of a table. Nothing about sizes: these follow the data.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    /// Most bytes that one image may take; past it building fails.
    pub memory_cap: Option<u64>,
    /// A cap that grows with the table: the lower one counts, of this and [`memory_cap`](Self::memory_cap).
    pub memory_by_prefixes: Option<ByPrefixes>,
    /// The largest next-hop index to make room for, where more are expected than the Rib has.
    pub next_hops: u32,
    /// Whether to leave no more head room for updates than an engine can't do without: of a table that would
    /// be over its cap otherwise.
    pub tight: bool,
    /// How a multi-bit trie is cut into levels. Engines whose levels are fixed take no notice.
    pub strides: Strides,
    /// What engines that hash draw their seed from; without it, something that is random for each process.
    /// Whoever can choose routes must not know it.
    pub seed: Option<u64>,
}

/// Bytes that one image may take by the number of prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByPrefixes {
    /// Bytes whatever their number.
    pub base: u64,
    /// Bytes for each prefix, beside that.
    pub each: u64,
}

impl BuildOptions {
    /// The options for a table of so many prefixes: with what it may take as a
    /// [`memory_cap`](Self::memory_cap). A live table asks for them whenever it is built; engines look at the
    /// memory cap alone.
    #[must_use]
    pub fn for_prefixes(&self, prefixes: usize) -> Self {
        let by = |ByPrefixes { base, each }| each.saturating_mul(prefixes as u64).saturating_add(base);
        let cap = [self.memory_cap, self.memory_by_prefixes.map(by)].into_iter().flatten().min();
        Self { memory_cap: cap, ..self.clone() }
    }

    /// Head room for things of which so many are in use: one part of so many, and at least so much in any
    /// table. A [`tight`](Self::tight) table gets hardly any.
    pub fn head_room(&self, in_use: u64, part: u64, least: u64) -> u64 {
        /// One that is always there, and one for the moment in which it takes the place of another.
        const LEAST: u64 = 2;
        if self.tight { LEAST } else { in_use / part + least }
    }

    /// [`head_room`](Self::head_room) of what is counted in 32 bits.
    pub fn head_room_of(&self, in_use: u32, part: u32, least: u32) -> u32 {
        let room = self.head_room(in_use.into(), part.into(), least.into());
        u32::try_from(room).unwrap_or(u32::MAX)
    }
}

/// How a multi-bit trie is cut into levels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Strides {
    /// Levels by which a lookup is expected to cost least on this table.
    #[default]
    Fastest,
    /// Levels that suit lookups on a GPU best. Engines to which that makes no difference take it for
    /// [`Fastest`](Self::Fastest).
    FastestOnGpu,
    /// A number of levels of which the widest is as narrow as can be, then with the fewest memory
    /// transactions of so many bytes (GAMT, section 4.2, Algorithm 3).
    Levels {
        /// The number of levels.
        levels: u8,
        /// Bytes of a transaction.
        transaction: u32,
    },
    /// Levels of so many bits, from the first bit on.
    Given(Vec<u8>),
}

impl Strides {
    /// Whether the engine is to choose.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Fastest | Self::FastestOnGpu)
    }

    /// Chooses for lookups on a GPU where the engine is to choose. Levels that were asked for stay.
    #[must_use]
    pub fn on_gpu(self) -> Self {
        if self.is_open() { Self::FastestOnGpu } else { self }
    }
}

/// Why a table can't be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The image can't be made: over the cap, or no memory.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The engine's encoding ends below what the table needs.
    #[error("{engine} holds {limit} {what}, the table has {found}")]
    Limit {
        /// The engine.
        engine: &'static str,
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        limit: u64,
        /// How many there are.
        found: u64,
    },
    /// A multi-bit trie can't be cut by the strides that were given.
    #[error("{engine} can't be cut by the strides that were given: {why}")]
    Strides {
        /// The engine.
        engine: &'static str,
        /// What is wrong with them.
        why: String,
    },
}
