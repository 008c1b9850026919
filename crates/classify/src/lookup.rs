//! What an engine of rules is: [`Classify`], its data plane, and [`ClassifyEngine`], its control plane.

use rayon::prelude::*;
use wirespeed_image::{ImageError, Patch, Table};

pub use wirespeed_image::{Outgrown, Step};

use crate::rules::{Changed, RuleSet};
use crate::tuple::Tuple;

/// How full an array of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// What its places are, in the plural.
    pub what: &'static str,
    /// What there is room for.
    pub places: u64,
    /// What is taken.
    pub taken: u64,
}

/// The best rule that matches, over a compiled table.
pub trait Classify<T: Tuple>: Send + Sync {
    /// The number of the best rule that matches a tuple; 0 where none does.
    fn lookup(&self, tuple: &T) -> u32;

    /// Each tuple's [`lookup`](Self::lookup) into the same place of `results`. Much faster than one by one,
    /// as many are under way at once.
    ///
    /// Panics when the lengths differ.
    fn lookup_batch(&self, tuples: &[T], results: &mut [u32]);

    /// [`lookup_batch`](Self::lookup_batch) on every core: parts of the batch on the threads of the `rayon`
    /// pool that the caller is in.
    ///
    /// Panics when the lengths differ.
    fn par_lookup_batch(&self, tuples: &[T], results: &mut [u32]) {
        assert_eq!(tuples.len(), results.len(), "a result for each tuple");
        let part = tuples.len().div_ceil(4 * rayon::current_num_threads()).max(LEAST_PART);
        let parts = tuples.par_chunks(part).zip(results.par_chunks_mut(part));
        parts.for_each(|(tuples, results)| self.lookup_batch(tuples, results));
    }

    /// What shape the table took, in a line for people.
    fn shape(&self) -> Option<String> {
        None
    }

    /// The arrays that entries lie in. O(table).
    fn loads(&self) -> Vec<Load> {
        Vec::new()
    }

    /// The share of tuples that get past the filter of a class which they don't match, as its formula has it,
    /// on average over the classes. `None` without filters or classes. O(table).
    fn expected_false_positives(&self) -> Option<f64> {
        None
    }

    /// The steps of one lookup, for people: what is read, in order. The last one says `result N` or
    /// `no match`.
    fn explain(&self, tuple: &T) -> Vec<Step>;
}

/// The shortest part of a batch that is worth handing to another thread.
const LEAST_PART: usize = 256;

/// An engine's control plane.
pub trait ClassifyEngine<T: Tuple>: Sized + Send + 'static {
    /// The name that users choose it by.
    const NAME: &'static str;

    /// Its data plane.
    type Table: Table + Classify<T>;

    /// Compiles a set, and makes the engine that keeps it up to date. Uses all threads of the `rayon` pool
    /// that the caller is in.
    fn build(rules: &RuleSet<T>, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError>;

    /// Takes changes in. `changed` lists the rules that came, went, or are others than before, each once and
    /// with what it was, in any order. `rules` has them as they are now.
    ///
    /// Many are best taken a few at a time, while what is known of them is in the cache. After an error the
    /// engine is spent: build a new one from the same `rules`.
    fn take(&mut self, rules: &RuleSet<T>, changed: &[Changed<T>]) -> Result<(), Outgrown>;

    /// The patch of all changes taken since the last one, to `rules` as it is now.
    ///
    /// The image's counts after it are [`RuleSet::len`] and [`RuleSet::last_number`]. That number may be over
    /// any rule's, and may have grown since without a change, by a rule that came and went.
    fn patch(&mut self, rules: &RuleSet<T>) -> Patch;

    /// Takes changes in; the patch of them.
    fn update(&mut self, rules: &RuleSet<T>, changed: &[Changed<T>]) -> Result<Patch, Outgrown> {
        self.take(rules, changed)?;
        Ok(self.patch(rules))
    }

    /// Bytes held beside the table and the rules.
    fn memory_usage(&self) -> u64;
}

/// What a user may ask of a table. Nothing about sizes: these follow the data.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    /// Most bytes that one image may take; past it building fails.
    pub memory_cap: Option<u64>,
    /// Room to leave for rules to come, in hundredths of what the rules take; engines leave some in any case,
    /// and a live table asks for some.
    pub head_room: u32,
    /// Whether to leave no head room beyond [`head_room`](Self::head_room) but what an engine can't do
    /// without, for a table that would be over its cap otherwise.
    pub tight: bool,
    /// What engines that hash draw their seed from; without it, something that is random for each process.
    /// Whoever can choose rules or packets must not know it.
    pub seed: Option<u64>,
}

/// The entries that an engine takes of a set which makes entries of ranges: so many, and [`ENTRIES_A_RULE`]
/// for each rule. A few rules may have millions, which take seconds and hundreds of megabytes.
pub const MOST_ENTRIES: u64 = 1 << 20;
/// See [`MOST_ENTRIES`]. Rules as they are in use have two or three on average.
pub const ENTRIES_A_RULE: u64 = 16;

/// How many entries the set has, and how many it may have.
pub(crate) fn entries_of<T: Tuple>(rules: &RuleSet<T>) -> (u64, u64) {
    (rules.entries_len(), MOST_ENTRIES + ENTRIES_A_RULE * rules.len() as u64)
}

/// Refuses a set of too many entries before any is made.
pub(crate) fn check_entries<T: Tuple>(engine: &'static str, rules: &RuleSet<T>) -> Result<(), BuildError> {
    match entries_of(rules) {
        (found, limit) if found > limit => Err(BuildError::Limit { engine, what: "entries", limit, found }),
        _ => Ok(()),
    }
}

/// Refuses to keep a table up to date when its set has too many entries.
pub(crate) fn take_entries<T: Tuple>(rules: &RuleSet<T>) -> Result<(), Outgrown> {
    let (found, limit) = entries_of(rules);
    if found > limit { Err(Outgrown("entries")) } else { Ok(()) }
}

/// Why a table can't be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The image can't be made: over the cap, or no memory.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The engine's encoding ends below what the set needs.
    #[error("{engine} holds {limit} {what}, the set has {found}")]
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
}
