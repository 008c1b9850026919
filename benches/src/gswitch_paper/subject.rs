//! What figures are about: a set with its trace and right answers, and what engines make of it.

use std::time::Instant;

use anyhow::{Result, ensure};
use wirespeed_classify::bloom::BloomSearch;
use wirespeed_classify::generate::{self, Kind, Shape, Synthetic};
use wirespeed_classify::linear::Linear;
use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::tuple_search::TupleSearch;
use wirespeed_classify::{BuildOptions, Engine, Ipv4Tuple, Lookup, RuleSet, Tuple};
use wirespeed_gpu::runtime::{Gpu, TableHandle};
use wirespeed_image::Table;
use wirespeed_image::device::OnDevice;

use crate::classify::data::{self, Set};
use crate::gpu::bench::{Bench, Uploaded};
use crate::gpu::tuples;

/// Seed of sets, traces and tables.
const SEED: u64 = 1;
/// Tuples that the oracle is asked about: it takes a look at every mask.
const ASKED: usize = 1 << 12;

/// Tuples that a scan is asked about.
const SCANNED: usize = 1 << 10;
/// Classes that a tuple is looked up in one after the other before a measurement takes minutes.
const MOST_CLASSES: usize = 1 << 12;

/// A set, what is looked up in it, and the numbers that are right.
pub struct Subject<T: Tuple> {
    /// The name in records.
    pub name: String,
    /// The rules.
    pub rules: RuleSet<T>,
    /// The paper's C, F and C_m, where the set was made to have them; of a real one only its classes.
    pub shape: Shape,
    /// The tuples that are looked up.
    pub trace: Vec<T>,
    /// The number of each.
    pub right: Vec<u32>,
}

impl<T: Tuple> Subject<T> {
    /// A set of a shape.
    pub fn made(shape: Shape, tuples: usize) -> Result<Self> {
        let made = Synthetic::<T>::new(shape, SEED)?;
        Self::new("synthetic".into(), shape, made.trace(tuples, SEED + 1), made.rules)
    }

    fn new(name: String, shape: Shape, trace: Vec<T>, rules: RuleSet<T>) -> Result<Self> {
        let (_, table) = BloomSearch::<T>::build(&rules, &options(0))?;
        let mut right = vec![0; trace.len()];
        table.par_lookup_batch(&trace, &mut right);
        let subject = Self { name, rules, shape, trace, right };
        subject.held_against(ASKED, |rules, some| Ok(data::right(rules, some)))
    }

    /// The subject, if others give the same numbers for so many of its tuples, evenly spread.
    fn held_against(
        self,
        tuples: usize,
        others: impl FnOnce(&RuleSet<T>, &[T]) -> Result<Vec<u32>>,
    ) -> Result<Self> {
        let every = self.trace.len().div_ceil(tuples).max(1);
        let some: Vec<T> = self.trace.iter().step_by(every).copied().collect();
        let is_right = self.right.iter().step_by(every).eq(&others(&self.rules, &some)?);
        ensure!(is_right, "{}: two that look up on the CPU differ", self.name);
        Ok(self)
    }

    /// So many of its tuples at most, that so many entries are held against in no more than a moment.
    pub fn part(&self, method: &dyn Method<T>, tuples: usize) -> (&[T], &[u32]) {
        /// Comparisons of a launch of linear search.
        const MOST: u64 = 1 << 31;
        let scanned =
            usize::try_from(MOST / self.rules.entries_len().max(1)).unwrap_or(usize::MAX).max(1 << 8);
        let most = if method.is_scan() { tuples.min(scanned) } else { tuples };
        let count = most.min(self.trace.len());
        (&self.trace[..count], &self.right[..count])
    }
}

impl Subject<Ipv4Tuple> {
    /// A made set in the style of ClassBench, and tuples of random rules in no order. It has thousands of
    /// classes, so that its right numbers are Quilt's, a part of which is held against a scan.
    pub fn in_style(kind: Kind, rules: usize, tuples: usize) -> Result<Self> {
        let rules = generate::classbench::<Ipv4Tuple>(kind, rules, SEED);
        let trace = generate::tuples(&rules, tuples, 1.0, SEED + 1);
        let shape = Shape::even(rules.len(), rules.classes().len());
        let (_, table) = Quilt::<Ipv4Tuple>::build(&rules, &options(0))?;
        let mut right = vec![0; trace.len()];
        table.par_lookup_batch(&trace, &mut right);
        let subject = Self { name: format!("made-{}", kind.name()), rules, shape, trace, right };
        subject.held_against(SCANNED, |rules, some| {
            let (_, scan) = Linear::<Ipv4Tuple>::build(rules, &options(0))?;
            let mut numbers = vec![0; some.len()];
            scan.par_lookup_batch(some, &mut numbers);
            Ok(numbers)
        })
    }

    /// A set of ClassBench by its name, shuffled, as often as it takes for so many tuples.
    pub fn classbench(name: &str, tuples: usize) -> Result<Self> {
        let set: Set = data::set(name)?;
        let (trace, right) = set.shuffled(SEED);
        let again = |of: usize| (0..of).cycle().take(tuples);
        let shape = Shape::even(set.rules.len(), set.rules.classes().len());
        Ok(Self {
            trace: again(trace.len()).map(|at| trace[at]).collect(),
            right: again(right.len()).map(|at| right[at]).collect(),
            name: set.name,
            rules: set.rules,
            shape,
        })
    }
}

fn options(head_room: u32) -> BuildOptions {
    BuildOptions { seed: Some(SEED), head_room, ..BuildOptions::default() }
}

/// A set that an engine compiled, whichever engine it is.
pub trait Method<T: Tuple>: Send + Sync {
    /// `linear`, `tuple`, `bloom`, `quilt`.
    fn name(&self) -> &'static str;
    /// Bytes of its image.
    fn bytes(&self) -> u64;
    /// Seconds that building took.
    fn seconds(&self) -> f64;
    /// The table on the CPU.
    fn table(&self) -> &dyn Lookup<T>;
    /// Brings it to a GPU.
    fn upload(&self, bench: &mut Bench) -> Result<Uploaded>;
    /// Brings it to a GPU's runtime, tuned with tuples.
    fn send(&self, gpu: &Gpu, sample: &[T]) -> Result<TableHandle>;

    /// Whether a lookup goes through all rules.
    fn is_scan(&self) -> bool {
        self.name() == Linear::<T>::NAME
    }
}

/// An engine's table.
struct Built<T: Tuple, E: Engine<T>> {
    table: E::Table,
    seconds: f64,
}

impl<T: Tuple, E: Engine<T>> Built<T, E> {
    fn new(rules: &RuleSet<T>, head_room: u32) -> Result<Self> {
        let start = Instant::now();
        let (_, table) = E::build(rules, &options(head_room))?;
        Ok(Self { table, seconds: start.elapsed().as_secs_f64() })
    }
}

impl<T: Tuple, E: Engine<T, Table: OnDevice>> Method<T> for Built<T, E> {
    fn name(&self) -> &'static str {
        E::NAME
    }

    fn bytes(&self) -> u64 {
        self.table.image().bytes()
    }

    fn seconds(&self) -> f64 {
        self.seconds
    }

    fn table(&self) -> &dyn Lookup<T> {
        &self.table
    }

    fn upload(&self, bench: &mut Bench) -> Result<Uploaded> {
        bench.upload(&self.table)
    }

    fn send(&self, gpu: &Gpu, sample: &[T]) -> Result<TableHandle> {
        tuples::upload(gpu, &self.table, sample)
    }
}

/// The paper's engines and ours, those that hold a set.
pub fn methods<T: Tuple>(rules: &RuleSet<T>) -> Vec<Box<dyn Method<T>>> {
    let mut methods: Vec<Box<dyn Method<T>>> = Vec::new();
    let mut add = |name: &str, built: Result<Box<dyn Method<T>>>| match built {
        Ok(built) => methods.push(built),
        Err(why) => eprintln!("{name}: left out: {why:#}"),
    };
    add("linear", Built::<T, Linear<T>>::new(rules, 0).map(boxed));
    let classes = rules.classes().len();
    if classes <= MOST_CLASSES {
        add("tuple", Built::<T, TupleSearch<T>>::new(rules, 0).map(boxed));
        add("bloom", bloom(rules, 0));
    } else {
        eprintln!("tuple, bloom: left out: {classes} classes are more than {MOST_CLASSES}");
    }
    add("quilt", Built::<T, Quilt<T>>::new(rules, 0).map(boxed));
    methods
}

/// Bloom search with head room in hundredths, and filters that are as much larger.
pub fn bloom<T: Tuple>(rules: &RuleSet<T>, head_room: u32) -> Result<Box<dyn Method<T>>> {
    Built::<T, BloomSearch<T>>::new(rules, head_room).map(boxed)
}

fn boxed<T: Tuple>(method: impl Method<T> + 'static) -> Box<dyn Method<T>> {
    Box::new(method)
}
