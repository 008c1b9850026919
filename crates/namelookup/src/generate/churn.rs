//! [`Churn`]: an endless stream of updates to a table of names.
//!
//! There is no recorded update stream of a name forwarder. So the user gives the mix. Each update is possible
//! at its time (a removal of a present name, a return of a removed one, a name that was never there), and
//! names are drawn evenly.

use std::time::Duration;

use rustc_hash::FxHashSet;
use wirespeed_fib::synth::rng::Rng;
use xxhash_rust::xxh3::xxh3_64;

use super::GenerateError;
use super::domains::Domains;
use super::entries::each_entry;
use crate::names::NameBatch;
use crate::read::TimedUpdate;
use crate::table::NameTable;
use crate::update::NameUpdate;

/// The specification of updates. Shares are relative to each other. If an update of a kind is not possible,
/// one of another kind is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChurnSpec {
    /// Share of insertions of new generated names.
    pub insertions: f64,
    /// Share of removals.
    pub removals: f64,
    /// Share of changes of results. With a single result the result stays.
    pub changes: f64,
    /// Share of insertions of names that were removed.
    pub returns: f64,
    /// Number of results, numbered from 1; at least 1.
    pub results: u32,
    /// Updates a second, evenly spaced from 0; `None` for updates without a time.
    pub rate: Option<f64>,
    /// The seed.
    pub seed: u64,
}

impl Default for ChurnSpec {
    /// Equal shares of insertions, removals, returns and changes.
    fn default() -> Self {
        Self { insertions: 1.0, removals: 2.0, changes: 2.0, returns: 1.0, results: 1, rate: None, seed: 1 }
    }
}

/// An endless stream of updates, each valid for the table after all earlier ones. O(1) a step.
///
/// ```
/// use wirespeed_namelookup::generate::{Churn, ChurnSpec, TableSpec, table};
///
/// let mut fib = table(&TableSpec { names: 1000, results: 8, seed: 1 })?;
/// let spec = ChurnSpec { results: 8, changes: 0.0, ..ChurnSpec::default() };
/// for timed in Churn::new(&fib.names, &spec)?.take(5000) {
///     assert!(fib.names.apply(&timed.update));
/// }
/// # Ok::<(), wirespeed_namelookup::generate::GenerateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Churn {
    spec: ChurnSpec,
    rng: Rng,
    made: Domains,
    /// All names that ever existed, with their last results.
    names: NameBatch,
    results: Vec<u32>,
    /// The hashes of all names, which tell new names. A wrong answer, once in 2^64, does no harm.
    known: FxHashSet<u64>,
    present: Vec<u32>,
    gone: Vec<u32>,
    count: u64,
}

impl Churn {
    /// Makes a stream for a table, whose names are copied. O(bytes of the table).
    pub fn new(table: &NameTable, spec: &ChurnSpec) -> Result<Self, GenerateError> {
        let mut churn = Self {
            spec: *spec,
            rng: Rng::stream(spec.seed, 51),
            made: Domains::new(spec.seed ^ 0x6368_7572),
            names: NameBatch::new(),
            results: Vec::with_capacity(table.len()),
            known: FxHashSet::default(),
            present: Vec::with_capacity(table.len()),
            gone: Vec::new(),
            count: 0,
        };
        let mut outcome = Ok(());
        each_entry(table, |name, result| {
            if outcome.is_ok() {
                outcome = churn.names.push(name);
                churn.known.insert(xxh3_64(name.as_bytes()));
                churn.results.push(result);
            }
        });
        outcome?;
        churn.present = (0..=u32::MAX).take(churn.results.len()).collect();
        Ok(churn)
    }

    /// Uses other shares and results from now on. Times continue.
    pub const fn turn_to(&mut self, spec: &ChurnSpec) {
        let ChurnSpec { rate, seed, .. } = self.spec;
        self.spec = ChurnSpec { rate, seed, ..*spec };
    }

    fn insert(&mut self, at: u32, result: u32) -> NameUpdate {
        self.results[at as usize] = result;
        NameUpdate::Insert(self.names.names().name(at as usize).to_owned(), result)
    }

    fn any_result(&mut self) -> u32 {
        let drawn = self.rng.below(u64::from(self.spec.results.max(1)));
        u32::try_from(drawn).expect("under a u32") + 1
    }

    fn other_result(&mut self, than: u32) -> u32 {
        (0..64).map(|_| self.any_result()).find(|&result| result != than).unwrap_or(than)
    }

    /// A new name. `None` if no more names can be held.
    fn new_name(&mut self) -> Option<NameUpdate> {
        let at = u32::try_from(self.results.len()).ok()?;
        let name = loop {
            let name = self.made.draw();
            if self.known.insert(xxh3_64(name.as_bytes())) {
                break name;
            }
        };
        self.names.push(name).ok()?;
        self.present.push(at);
        self.results.push(0);
        let result = self.any_result();
        Some(self.insert(at, result))
    }

    fn removal(&mut self) -> Option<NameUpdate> {
        if self.present.is_empty() {
            return None;
        }
        let at = self.present.swap_remove(self.rng.index(self.present.len()));
        self.gone.push(at);
        Some(NameUpdate::Remove(self.names.names().name(at as usize).to_owned()))
    }

    fn change(&mut self) -> Option<NameUpdate> {
        if self.present.is_empty() {
            return None;
        }
        let at = self.present[self.rng.index(self.present.len())];
        let result = self.other_result(self.results[at as usize]);
        Some(self.insert(at, result))
    }

    fn comeback(&mut self) -> Option<NameUpdate> {
        if self.gone.is_empty() {
            return None;
        }
        let at = self.gone.swap_remove(self.rng.index(self.gone.len()));
        self.present.push(at);
        let result = self.any_result();
        Some(self.insert(at, result))
    }

    fn draw(&mut self) -> Option<NameUpdate> {
        let shares = [self.spec.insertions, self.spec.removals, self.spec.changes, self.spec.returns];
        let shares = shares.map(|share| share.max(0.0));
        let mut at = self.rng.unit() * shares.iter().sum::<f64>();
        let drawn = shares.iter().position(|&share| {
            at -= share;
            at < 0.0
        });
        match drawn {
            Some(0) => self.new_name(),
            Some(1) => self.removal(),
            Some(2) => self.change(),
            Some(_) => self.comeback(),
            None => None,
        }
    }
}

impl Iterator for Churn {
    type Item = TimedUpdate;

    /// Ends only if no update of the mix is possible: removals alone, after all names are removed.
    #[allow(clippy::cast_precision_loss)] // a count of updates
    fn next(&mut self) -> Option<TimedUpdate> {
        let update = (0..1000).find_map(|_| self.draw())?;
        let seconds = self.spec.rate.map(|rate| self.count as f64 / rate);
        self.count += 1;
        let time = seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO));
        Some(TimedUpdate { time, update })
    }
}
