//! [`Tracer`]: names to look up in a table (MATA paper, 5.4).

use std::fmt;
use std::str::FromStr;

use wirespeed_fib::synth::rng::Rng;
use wirespeed_fib::trace::Zipf;

use super::GenerateError;
use super::domains::Domains;
use super::entries::each_entry;
use super::paths::Paths;
use crate::name::{Name, NameError, SLASH};
use crate::names::NameBatch;
use crate::table::NameTable;

/// The choice of entries for a trace. Written and read as `average`, `heavy` and `zipf:1.1`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// All entries, equally likely.
    Average,
    /// The longest tenth of the entries, equally likely: they take the most steps.
    Heavy,
    /// All entries by Zipf's law with this skew, 0 to 20, in an order drawn by the seed.
    Zipf(f64),
}

/// The largest skew: above it all weight is on the first entry anyway.
const MAX_SKEW: f64 = 20.0;

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Average => f.write_str("average"),
            Self::Heavy => f.write_str("heavy"),
            Self::Zipf(skew) => write!(f, "zipf:{skew}"),
        }
    }
}

impl FromStr for Load {
    type Err = UnknownLoad;

    fn from_str(text: &str) -> Result<Self, UnknownLoad> {
        let skew = |skew: &str| skew.parse().ok().filter(|skew| (0.0..=MAX_SKEW).contains(skew));
        match text {
            "average" => Ok(Self::Average),
            "heavy" => Ok(Self::Heavy),
            _ => text
                .strip_prefix("zipf:")
                .and_then(skew)
                .map(Self::Zipf)
                .ok_or_else(|| UnknownLoad(text.to_owned())),
        }
    }
}

/// A text that names no load.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no load is called {0:?}: there are average, heavy, and zipf:SKEW with a skew of 0 to 20")]
pub struct UnknownLoad(String);

/// The specification of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceSpec {
    /// The choice of entries.
    pub load: Load,
    /// Share of names that no entry matches, 0 to 1: generated domains. If the table has an entry for the
    /// root, it matches these, too.
    pub misses: f64,
    /// The seed.
    pub seed: u64,
}

/// Generates `count` names to look up in a table: entries, each with a path after it. Equal tables (made in
/// the same way), paths and specifications give equal traces. O(bytes of the table and the trace).
pub fn trace(
    names: &NameTable,
    paths: Paths,
    spec: &TraceSpec,
    count: usize,
) -> Result<NameBatch, GenerateError> {
    let mut tracer = Tracer::new(names, paths, spec)?;
    let mut batch = NameBatch::new();
    for _ in 0..count {
        batch.push(tracer.draw())?;
    }
    Ok(batch)
}

/// An endless trace, for more names than a batch may hold.
///
/// ```
/// use wirespeed_namelookup::generate::{Load, Paths, TraceSpec, Tracer};
/// use wirespeed_namelookup::{NameBuf, NameTable};
///
/// let names: NameTable = [(NameBuf::new("/com/parc")?, 1)].into_iter().collect();
/// let spec = TraceSpec { load: Load::Heavy, misses: 0.5, seed: 1 };
/// let mut tracer = Tracer::new(&names, Paths::None, &spec)?;
/// let hits = (0..1000).filter(|_| names.lookup(tracer.draw()).is_some()).count();
/// assert!((400..600).contains(&hits));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Tracer<'t> {
    names: &'t NameTable,
    entries: NameBatch,
    zipf: Option<Zipf>,
    paths: Paths,
    misses: f64,
    made: Domains,
    rng: Rng,
    name: Vec<u8>,
}

impl<'t> Tracer<'t> {
    /// Makes a trace of a table's current entries. O(bytes of the table), and that much memory.
    pub fn new(names: &'t NameTable, paths: Paths, spec: &TraceSpec) -> Result<Self, GenerateError> {
        if names.is_empty() && spec.misses < 1.0 {
            return Err(GenerateError::NoNames);
        }
        let mut rng = Rng::stream(spec.seed, 41);
        let entries = match spec.load {
            Load::Average => entries(names, 0)?,
            Load::Heavy => longest_tenth(names)?,
            Load::Zipf(_) => shuffled(&entries(names, 0)?, &mut rng),
        };
        let zipf = match spec.load {
            Load::Zipf(skew) => Some(Zipf::new(entries.len(), skew)),
            _ => None,
        };
        let made = Domains::new(spec.seed ^ 0x6d69_7373);
        Ok(Self { names, entries, zipf, paths, misses: spec.misses, made, rng, name: Vec::new() })
    }

    /// The next name.
    pub fn draw(&mut self) -> &Name {
        self.name.clear();
        if self.misses > 0.0 && self.rng.chance(self.misses) {
            self.draw_miss();
        } else {
            let at = match &self.zipf {
                Some(zipf) => zipf.draw(&mut self.rng),
                None => self.rng.index(self.entries.len()),
            };
            self.name.extend_from_slice(self.entries.names().name(at).as_bytes());
        }
        self.paths.append(&mut self.rng, &mut self.name);
        self.name.truncate(Name::MAX_LEN);
        while self.name.last() == Some(&SLASH) {
            self.name.pop();
        }
        Name::new_unchecked(&self.name)
    }

    /// A generated domain that no entry matches. If entries match almost all of them, it has a top level that
    /// does not exist.
    fn draw_miss(&mut self) {
        for _ in 0..16 {
            let name = self.made.draw();
            if !self.names.lookup(name).is_some() {
                self.name.extend_from_slice(name.as_bytes());
                return;
            }
        }
        self.name.extend_from_slice(format!("/{:016x}", self.rng.bits()).as_bytes());
    }
}

/// The entries with at least this length.
fn entries(names: &NameTable, least: usize) -> Result<NameBatch, NameError> {
    let (mut batch, mut result) = (NameBatch::new(), Ok(()));
    each_entry(names, |name, _| {
        if name.len() >= least && result.is_ok() {
            result = batch.push(name);
        }
    });
    result.map(|()| batch)
}

/// The longest tenth of all entries, at least one.
fn longest_tenth(names: &NameTable) -> Result<NameBatch, NameError> {
    let mut lengths = Vec::with_capacity(names.len());
    each_entry(names, |name, _| lengths.push(name.len()));
    let wanted = lengths.len().div_ceil(10);
    if wanted == 0 {
        return Ok(NameBatch::new());
    }
    let (_, &mut least, _) = lengths.select_nth_unstable_by(wanted - 1, |a, b| b.cmp(a));
    // Among entries of the last one's length, the first ones are taken.
    let all = entries(names, least)?;
    let longer = all.names().iter().filter(|name| name.len() > least).count();
    let mut equal = wanted - longer;
    let mut batch = NameBatch::with_capacity(wanted, wanted * least);
    for name in all.names().iter() {
        if name.len() == least {
            if equal == 0 {
                continue;
            }
            equal -= 1;
        }
        batch.push(name)?;
    }
    Ok(batch)
}

fn shuffled(batch: &NameBatch, rng: &mut Rng) -> NameBatch {
    let mut order: Vec<usize> = (0..batch.len()).collect();
    rng.shuffle(&mut order);
    order.into_iter().map(|at| batch.names().name(at)).collect()
}
