//! Engines that are each wrong in one way, and the tests of the suite that see it: proof that each test can
//! fail.

use std::cell::Cell;
use std::collections::BTreeSet;

use wirespeed_classify::conformance::real::real_classbench;
use wirespeed_classify::conformance::{
    churn, hand_picked_sets, hostile_rules, images, large_sets, live_readers, memory_cap, random_sets,
    random_updates,
};
use wirespeed_classify::linear::layout::{ENTRIES, LANES, NUMBERS, value_at};
use wirespeed_classify::linear::{Linear, LinearTable};
use wirespeed_classify::{
    BuildError, BuildOptions, Changed, Engine, Ipv4Tuple, Lookup, Outgrown, RuleSet, Standing, Step, Tuple,
};
use wirespeed_image::{
    Checked, Image, ImageError, Patch, PatchBuilder, PatchError, SectionId, Table, rounds,
};

type T = Ipv4Tuple;
type Right = LinearTable<T>;
type Built = Result<(Linear<T>, Right), BuildError>;

/// What is wrong: each method stands for that of [`Linear`], and one of them is replaced.
trait Fault: Send + Sync {
    fn build(&self, rules: &RuleSet<T>, options: &BuildOptions) -> Built {
        Linear::build(rules, options)
    }
    fn take(
        &self,
        engine: &mut Linear<T>,
        table: &Right,
        rules: &RuleSet<T>,
        changed: &[Changed<T>],
    ) -> Result<(), Outgrown> {
        engine.take(table, rules, changed)
    }
    fn patch(
        &self,
        engine: &mut Linear<T>,
        table: &Right,
        rules: &RuleSet<T>,
        changed: &[Changed<T>],
    ) -> Result<Patch, Outgrown> {
        engine.patch(table, rules, changed)
    }
    fn open(&self, image: Image) -> Result<Right, ImageError> {
        Right::from_image(image)
    }
    fn check(&self, table: &Right, patch: &Patch) -> Result<(), PatchError> {
        table.check(patch)
    }
    fn lookup(&self, table: &Right, tuple: &T) -> u32 {
        table.lookup(tuple)
    }
    fn lookup_batch(&self, table: &Right, tuples: &[T], results: &mut [u32]) {
        tuples.iter().zip(results).for_each(|(tuple, result)| *result = self.lookup(table, tuple));
    }
    fn par_lookup_batch(&self, table: &Right, tuples: &[T], results: &mut [u32]) {
        self.lookup_batch(table, tuples, results);
    }
    fn explain(&self, table: &Right, tuple: &T) -> Vec<Step> {
        let mut steps = table.explain(tuple);
        steps.last_mut().unwrap().meaning = match self.lookup(table, tuple) {
            0 => "no match".to_owned(),
            found => format!("result {found}"),
        };
        steps
    }
}

/// No fault.
struct Flawless;

impl Fault for Flawless {}

thread_local! {
    /// The fault of what this thread builds and opens. A type for each fault would have the whole suite
    /// compiled for each.
    static FAULT: Cell<&'static dyn Fault> = const { Cell::new(&Flawless) };
}

/// Runs a test of the suite with a fault that it has to find, and say so in these words.
fn must_fail(expected: &str, fault: &'static dyn Fault, test: impl FnOnce()) {
    FAULT.set(fault);
    rounds::must_fail(expected, test);
}

/// An engine with a fault.
struct Faulty(Linear<T>, &'static dyn Fault);

/// Its table.
#[derive(Clone)]
struct FaultyTable(Right, &'static dyn Fault);

impl Engine<T> for Faulty {
    const NAME: &'static str = "faulty";
    const STANDING: Standing = Standing::Niche("tests");
    type Table = FaultyTable;

    fn build(rules: &RuleSet<T>, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError> {
        let (engine, table) = FAULT.get().build(rules, options)?;
        Ok((Self(engine, FAULT.get()), FaultyTable(table, FAULT.get())))
    }

    fn take(
        &mut self,
        table: &Self::Table,
        rules: &RuleSet<T>,
        changed: &[Changed<T>],
    ) -> Result<(), Outgrown> {
        self.1.take(&mut self.0, &table.0, rules, changed)
    }

    fn patch(
        &mut self,
        table: &Self::Table,
        rules: &RuleSet<T>,
        changed: &[Changed<T>],
    ) -> Result<Patch, Outgrown> {
        self.1.patch(&mut self.0, &table.0, rules, changed)
    }

    fn memory_usage(&self) -> u64 {
        self.0.memory_usage()
    }
}

impl Table for FaultyTable {
    const KIND: &'static str = Right::KIND;
    const LAYOUT: u32 = Right::LAYOUT;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Ok(Self(FAULT.get().open(image)?, FAULT.get()))
    }

    fn image(&self) -> &Image {
        self.0.image()
    }

    fn image_mut(&mut self, checked: Checked) -> &mut Image {
        self.0.image_mut(checked)
    }

    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        self.0.admits(section, value, results)
    }

    fn check(&self, patch: &Patch) -> Result<(), PatchError> {
        self.1.check(&self.0, patch)
    }
}

impl Lookup<T> for FaultyTable {
    fn lookup(&self, tuple: &T) -> u32 {
        self.1.lookup(&self.0, tuple)
    }

    fn lookup_batch(&self, tuples: &[T], results: &mut [u32]) {
        self.1.lookup_batch(&self.0, tuples, results);
    }

    fn par_lookup_batch(&self, tuples: &[T], results: &mut [u32]) {
        self.1.par_lookup_batch(&self.0, tuples, results);
    }

    fn explain(&self, tuple: &T) -> Vec<Step> {
        self.1.explain(&self.0, tuple)
    }
}

/// An entry as a faulty scan sees it.
struct Lane {
    value: T,
    mask: T,
    priority: u32,
    number: u32,
}

/// The entries of a table, best first.
fn lanes(table: &Right) -> impl Iterator<Item = Lane> {
    let image = table.image();
    let (entries, numbers) = (image.section::<u32>(ENTRIES), image.section::<u32>(NUMBERS));
    let lane = move |at: usize| {
        let words = |mask: usize| {
            let at = |word| value_at(T::WORDS, at / LANES, word, at % LANES) + mask * LANES;
            T::from_words(&(0..T::WORDS).map(|word| entries[at(word)]).collect::<Vec<_>>())
        };
        Lane { value: words(0), mask: words(1), priority: table.priorities()[at], number: numbers[at] }
    };
    (0..table.groups() * LANES).filter(|&at| numbers[at] != 0).map(lane)
}

/// The number of the first entry that a faulty scan takes for a match.
fn first(table: &Right, matches: impl Fn(&Lane) -> bool) -> u32 {
    lanes(table).find(|lane| matches(lane)).map_or(0, |lane| lane.number)
}

/// The number of the entry that a faulty scan takes for the best of those that match.
fn best<K: Ord>(table: &Right, tuple: &T, key: impl Fn(&Lane) -> K) -> u32 {
    let matching = lanes(table).filter(|lane| tuple.matches(&lane.value, &lane.mask));
    matching.max_by_key(key).map_or(0, |lane| lane.number)
}

/// A fault that replaces some methods, and a test module in which each of the named tests must fail
/// of it.
macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $name:ident: $($test:ident $(= $message:literal)?),+ => { $($method:item)* })+) => {
        $(
            $(#[doc = $doc])+
            struct $name;
            impl Fault for $name { $($method)* }
        )+
        /// Each fault is seen by each of the tests that are to see it.
        mod each_fails {
            $(
                #[allow(non_snake_case)]
                mod $name {
                    $(
                        #[test]
                        fn $test() {
                            let expected = concat!($($message)?);
                            super::super::must_fail(expected, &super::super::$name, super::super::$test::<super::super::T, super::super::Faulty>);
                        }
                    )+
                }
            )+
        }
    };
}

faults! {
    /// Picks the last of equals.
    LastOfEquals: hand_picked_sets, random_sets, random_updates, churn => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            best(table, tuple, |lane| (lane.priority, lane.number))
        }
    }
    /// The lowest priority wins.
    LowestPriority: hand_picked_sets, random_sets, live_readers => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            best(table, tuple, |lane| (!lane.priority, !lane.number))
        }
    }
    /// Priorities of 8 bits, as the paper has them.
    NarrowPriority: hand_picked_sets, random_sets => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            best(table, tuple, |lane| (lane.priority & 0xff, !lane.number))
        }
    }
    /// Numbers of 24 bits, as the paper has them.
    NarrowNumber: hand_picked_sets => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            table.lookup(tuple) & 0xff_ffff
        }
    }
    /// Doesn't look at the protocol.
    NoProtocol: hand_picked_sets, random_sets => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            first(table, |lane| tuple.with(&T::PROTO, 0).matches(&lane.value.with(&T::PROTO, 0), &lane.mask))
        }
    }
    /// Takes each word of a mask for a prefix.
    NoHoles: hand_picked_sets, random_sets => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            let prefix = |word: &u32| if *word == 0 { 0 } else { u32::MAX << word.trailing_zeros() };
            let filled = |mask: &T| T::from_words(&mask.words().iter().map(prefix).collect::<Vec<_>>());
            first(table, |lane| tuple.matches(&lane.value, &filled(&lane.mask)))
        }
    }
    /// Knows nothing of a rule that matches all.
    NoMatchAll: hand_picked_sets, live_readers => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            first(table, |lane| lane.mask.ones() > 0 && tuple.matches(&lane.value, &lane.mask))
        }
    }
    /// Holds 1,000 classes.
    FewClasses: hand_picked_sets = "1,024 classes" => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            if table.image().entries() < 1_000 {
                return table.lookup(tuple);
            }
            let mut masks = BTreeSet::new();
            let mut held = lanes(table).filter(|lane| masks.len() < 1_000 && masks.insert(lane.mask) || masks.contains(&lane.mask));
            held.find(|lane| tuple.matches(&lane.value, &lane.mask)).map_or(0, |lane| lane.number)
        }
    }
    /// Holds 65,536 rules.
    FewRules: large_sets = "one class of 128 K rules" => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            let found = table.lookup(tuple);
            if found > 65_536 { 0 } else { found }
        }
    }
    /// Forgets the last tuple of an odd batch.
    OddRemainder: hand_picked_sets, random_sets, images => {
        fn lookup_batch(&self, table: &Right, tuples: &[T], results: &mut [u32]) {
            let even = tuples.len() / 2 * 2;
            table.lookup_batch(&tuples[..even], &mut results[..even]);
        }
    }
    /// Mixes up the parts on several cores.
    Mixed: hand_picked_sets = "on all cores", random_sets = "on all cores" => {
        fn par_lookup_batch(&self, table: &Right, tuples: &[T], results: &mut [u32]) {
            table.lookup_batch(tuples, results);
            results.rotate_left(1);
        }
    }
    /// Explains something else than it does.
    Explained: hand_picked_sets = "explained", random_sets = "explained" => {
        fn explain(&self, table: &Right, _: &T) -> Vec<Step> {
            table.explain(&T::default())
        }
    }
    /// Takes a tuple for one whose addresses are changed about, as a sum of words does.
    Summed: hostile_rules => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            let words = tuple.words();
            match table.lookup(tuple) {
                0 => table.lookup(&T::from_words(&[words[1], words[0], words[2], words[3]])),
                found => found,
            }
        }
    }
    /// Takes much room where all ports are one.
    OutOfProportion: hostile_rules = "for random rules" => {
        fn build(&self, rules: &RuleSet<T>, options: &BuildOptions) -> Built {
            let (engine, table) = Linear::build(rules, options)?;
            let ports: BTreeSet<_> = rules.entries().map(|entry| entry.pattern.value().words()[2]).collect();
            if rules.len() < 1_000 || ports.len() > 1 {
                return Ok((engine, table));
            }
            let image = table.image().with_attachment("waste", &vec![0; 8 << 20])?;
            Ok((engine, Right::from_image(image)?))
        }
    }
    /// Leaves rules in that were removed.
    StaleRemoves: random_updates, hand_picked_sets, live_readers, churn => {
        fn take(&self, engine: &mut Linear<T>, table: &Right, rules: &RuleSet<T>, changed: &[Changed<T>]) -> Result<(), Outgrown> {
            let came: Vec<_> = changed.iter().filter(|c| rules.rule(c.number.get()).is_some()).cloned().collect();
            engine.take(table, rules, &came)
        }
    }
    /// Takes no notice of a rule that is another one than before.
    StaleRules: random_updates, churn => {
        fn take(&self, engine: &mut Linear<T>, table: &Right, rules: &RuleSet<T>, changed: &[Changed<T>]) -> Result<(), Outgrown> {
            let is_new = |c: &&Changed<T>| c.before.is_none() || rules.rule(c.number.get()).is_none();
            let some: Vec<_> = changed.iter().filter(is_new).cloned().collect();
            engine.take(table, rules, &some)
        }
    }
    /// Keeps the counts of the first table.
    StaleCounts: random_updates, hand_picked_sets => {
        fn patch(
            &self,
            engine: &mut Linear<T>,
            table: &Right,
            rules: &RuleSet<T>,
            changed: &[Changed<T>],
        ) -> Result<Patch, Outgrown> {
            let mut same = PatchBuilder::new();
            engine.patch(table, rules, changed)?.writes().iter().for_each(|w| same.set(w.section(), w.index(), w.value));
            Ok(same.finish(None))
        }
    }
    /// Is outgrown again and again.
    Leaks: churn = "not reclaimed" => {
        fn take(&self, engine: &mut Linear<T>, table: &Right, rules: &RuleSet<T>, changed: &[Changed<T>]) -> Result<(), Outgrown> {
            if rules.len() > 2_000 && rules.len().is_multiple_of(10) { Err(Outgrown("room")) } else { engine.take(table, rules, changed) }
        }
    }
    /// Keeps room for what was there once.
    Remembers: churn = "emptied, and of" => {
        fn build(&self, rules: &RuleSet<T>, options: &BuildOptions) -> Built {
            let (engine, table) = Linear::build(rules, options)?;
            let waste = vec![0; rules.last_number() as usize * 16];
            let image = table.image().with_attachment("waste", &waste)?;
            Ok((engine, Right::from_image(image)?))
        }
    }
    /// Takes no notice of a cap.
    NoCap: memory_cap => {
        fn build(&self, rules: &RuleSet<T>, options: &BuildOptions) -> Built {
            Linear::build(rules, &BuildOptions { memory_cap: None, ..options.clone() })
        }
    }
    /// Refuses small sets.
    Refuses: hand_picked_sets = "is refused" => {
        fn build(&self, rules: &RuleSet<T>, options: &BuildOptions) -> Built {
            let found = rules.entries_len();
            if found > 256 {
                return Err(BuildError::Limit { engine: "faulty", what: "entries", limit: 256, found });
            }
            Linear::build(rules, options)
        }
    }
    /// Refuses a large set without a reason.
    Unreasonable: large_sets = "holds 1000000 entries" => {
        fn build(&self, rules: &RuleSet<T>, options: &BuildOptions) -> Built {
            let found = rules.entries_len();
            if found > 100_000 {
                return Err(BuildError::Limit { engine: "faulty", what: "entries", limit: 1_000_000, found });
            }
            Linear::build(rules, options)
        }
    }
    /// Takes every patch.
    Gullible: images = "from_image says" => {
        fn check(&self, _: &Right, _: &Patch) -> Result<(), PatchError> {
            Ok(())
        }
    }
    /// Opens no image of two rules.
    Suspicious: images => {
        fn open(&self, image: Image) -> Result<Right, ImageError> {
            if image.entries() == 2 {
                return Err(ImageError::Malformed("two rules".to_owned()));
            }
            Right::from_image(image)
        }
    }
}

/// A wrong answer to real packets is seen, too; without data there is none to be seen.
#[test]
fn real_sets_see_the_last_of_equals() {
    if wirespeed_classify::conformance::real::folder().is_none() {
        return;
    }
    must_fail("", &LastOfEquals, || real_classbench::<Faulty>(&["1k"]));
}
