//! What an engine of names is: [`NameLpm`], its data plane, and [`NameEngine`], its control plane.

use rayon::prelude::*;
use wirespeed_image::{ImageError, Patch, Table};

pub use wirespeed_fib::{Outgrown, Step};

use crate::found::Match;
use crate::name::Name;
use crate::names::Names;
use crate::table::{NameTable, NodeId};

/// How full an array of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// What there is room for.
    pub places: u64,
    /// What is taken.
    pub taken: u64,
}

/// Longest prefix match of names over a compiled table.
pub trait NameLpm: Send + Sync {
    /// The longest prefix of the name that is in the table.
    fn lookup(&self, name: &Name) -> Match;

    /// The results of each name's [`lookup`](Self::lookup) into the same place of `results`. Much faster than
    /// one by one, as many names are under way at once.
    ///
    /// Panics when the lengths differ.
    fn lookup_batch(&self, names: Names<'_>, results: &mut [u32]);

    /// The results of each name's [`lookup`](Self::lookup) and the lengths that matched, into the same place
    /// of `matches`.
    ///
    /// Panics when the lengths differ.
    fn match_batch(&self, names: Names<'_>, matches: &mut [Match]);

    /// [`lookup_batch`](Self::lookup_batch) on every core: parts of the batch on the threads of the `rayon`
    /// pool that the caller is in.
    ///
    /// Panics when the lengths differ.
    fn par_lookup_batch(&self, names: Names<'_>, results: &mut [u32]) {
        assert_eq!(names.len(), results.len(), "a result for each name");
        let part = names.len().div_ceil(4 * rayon::current_num_threads()).max(LEAST_PART);
        results.par_chunks_mut(part).enumerate().for_each(|(at, results)| {
            let from = at * part;
            self.lookup_batch(names.part(from..from + results.len()), results);
        });
    }

    /// What shape the table took, in a line for people.
    fn shape(&self) -> Option<String> {
        None
    }

    /// The arrays that transitions lie in; none where there is nothing like it. O(table).
    fn loads(&self) -> Vec<Load> {
        Vec::new()
    }

    /// The steps of one lookup, for people: each element that is read, in order. The last one says `result N`
    /// or `no match`.
    fn explain(&self, name: &Name) -> Vec<Step>;
}

/// The shortest part of a batch that is worth handing to another thread.
const LEAST_PART: usize = 1_024;

/// An engine's control plane.
pub trait NameEngine: Sized + Send + 'static {
    /// The name that users choose it by.
    const NAME: &'static str;

    /// Its data plane.
    type Table: Table + NameLpm;

    /// Compiles a table, and makes the engine that keeps it up to date. Uses all threads of the `rayon` pool
    /// that the caller is in.
    fn build(names: &NameTable, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError>;

    /// The patch that takes a table from before the changes to `names` as it is now: `changed` lists the
    /// nodes that came, went, have another result than before, or went from no children to some or back; in
    /// any order, each once. Nodes that went can be read still ([`Node::is_gone`](crate::Node::is_gone)).
    ///
    /// After an error the engine is spent: build a new one from the same `names`.
    fn update(&mut self, names: &NameTable, changed: &[NodeId]) -> Result<Patch, Outgrown>;

    /// Bytes held beside the table and the names.
    fn memory_usage(&self) -> u64;
}

/// What a user may ask of a table. Nothing about sizes: these follow the data.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    /// Most bytes that one image may take; past it building fails.
    pub memory_cap: Option<u64>,
    /// Room to leave for names to come, in hundredths of what the names take; engines leave some in any case,
    /// and a live table asks for some.
    pub head_room: u32,
    /// Whether to leave no head room beyond [`head_room`](Self::head_room), and to take time for that, for a
    /// table that would be over its cap otherwise.
    pub tight: bool,
    /// The largest result to make room for, where more are expected than the table has.
    pub results: u32,
    /// What engines that hash draw their seed from; without it, something that is random for each process.
    /// Whoever can choose names must not know it.
    pub seed: Option<u64>,
    /// Whether live names are looked up in the reduced table, which gives the same results and not always the
    /// same lengths; see [`Aggregated`](crate::Aggregated). An engine takes no notice: it is given the table
    /// that it is to compile.
    pub aggregate: bool,
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
}
