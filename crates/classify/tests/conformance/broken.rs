//! Engines that are each wrong in one way, and the tests of the suite that see it: proof that each test can
//! fail.

use std::collections::BTreeSet;

use wirespeed_classify::conformance::real::real_classbench;
use wirespeed_classify::conformance::{
    OfRules, churn, hand_picked_sets, hostile_rules, images, large_sets, live_readers, memory_cap,
    random_sets, random_updates, refusals, refusals_at_the_cap,
};
use wirespeed_classify::linear::layout::{ENTRIES, LANES, NUMBERS, value_at};
use wirespeed_classify::linear::{Linear, LinearTable};
use wirespeed_classify::{
    BuildError, BuildOptions, Changed, Engine, Ipv4Tuple, Lookup, Outgrown, RuleSet, Step, Tuple,
};
use wirespeed_image::{Image, ImageError, Patch, PatchBuilder, PatchError, Table};
use wirespeed_table::conformance::{self as suite, Fault, must_fail};

type T = Ipv4Tuple;
type Right = LinearTable<T>;
type Built = Result<(Linear<T>, Right), BuildError>;

/// An engine with a fault.
type Faulty = suite::Faulty<T, OfRules, Linear<T>>;

/// The lanes whose words, each of a tuple, a value and a mask, a faulty scan takes for a match, best first.
fn lanes<'t>(
    table: &'t Right,
    tuple: &'t T,
    is_match: impl Fn(usize, [u32; 3]) -> bool + 't,
) -> impl Iterator<Item = usize> + 't {
    let image = table.image();
    let (entries, numbers) = (image.section::<u32>(ENTRIES), image.section::<u32>(NUMBERS));
    let is_word = move |lane: usize, word| {
        let at = value_at(T::WORDS, lane / LANES, word, lane % LANES);
        is_match(word, [tuple.words()[word], entries[at], entries[at + LANES]])
    };
    let is_taken = move |&lane: &usize| numbers[lane] != 0 && (0..T::WORDS).all(|word| is_word(lane, word));
    (0..table.groups() * LANES).filter(is_taken)
}

/// The number of a lane, 0 for none.
fn number(table: &Right, lane: Option<usize>) -> u32 {
    lane.map_or(0, |lane| table.image().section::<u32>(NUMBERS)[lane])
}

/// The lanes that match.
fn matching<'t>(table: &'t Right, tuple: &'t T) -> impl Iterator<Item = usize> + 't {
    lanes(table, tuple, |_, [word, value, mask]| word & mask == value)
}

/// The number of the entry that a faulty scan takes for the best of those that match, by priority and number.
fn best<K: Ord>(table: &Right, tuple: &T, key: impl Fn(u32, u32) -> K) -> u32 {
    let key = |&lane: &usize| key(table.priorities()[lane], number(table, Some(lane)));
    number(table, matching(table, tuple).max_by_key(key))
}

wirespeed_table::faults! {
    Fault<T, OfRules, Linear<T>>, [T, Faulty];
    /// Picks the last of equals.
    LastOfEquals: hand_picked_sets, random_sets, random_updates, churn => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            best(table, tuple, |priority, number| (priority, number))
        }
    }
    /// The lowest priority wins.
    LowestPriority: hand_picked_sets, random_sets, live_readers => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            best(table, tuple, |priority, number| (!priority, !number))
        }
    }
    /// Priorities of 8 bits, as the paper has them.
    NarrowPriority: hand_picked_sets, random_sets => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            best(table, tuple, |priority, number| (priority & 0xff, !number))
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
            let seen = T::USED.with(&T::PROTO, 0);
            let is_match = |at, [word, value, mask]: [u32; 3]| (word & mask ^ value) & seen.words()[at] == 0;
            number(table, lanes(table, tuple, is_match).next())
        }
    }
    /// Takes each word of a mask for a prefix.
    NoHoles: hand_picked_sets, random_sets => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            let prefix = |mask: u32| if mask == 0 { 0 } else { u32::MAX << mask.trailing_zeros() };
            number(table, lanes(table, tuple, |_, [word, value, mask]| word & prefix(mask) == value).next())
        }
    }
    /// Knows nothing of a rule that matches all.
    NoMatchAll: hand_picked_sets, live_readers => {
        fn lookup(&self, table: &Right, tuple: &T) -> u32 {
            let all: Vec<_> = lanes(table, tuple, |_, [_, _, mask]| mask == 0).collect();
            number(table, matching(table, tuple).find(|lane| !all.contains(lane)))
        }
    }
    /// Holds 1,000 classes.
    FewClasses: hand_picked_sets = "1,024 classes" => {
        fn build(&self, rules: &RuleSet<T>, options: &BuildOptions) -> Built {
            let (mut masks, mut few) = (BTreeSet::new(), RuleSet::new());
            for (number, rule) in rules.sorted() {
                let mask = *rule.base().mask();
                if masks.contains(&mask) || masks.len() < 1_000 && masks.insert(mask) {
                    few.insert_at(number.get(), rule.clone()).unwrap();
                }
            }
            Linear::build(&few, options)
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
    StaleRemoves: random_updates, hand_picked_sets, live_readers, churn, refusals => {
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
    /// Is outgrown by every change.
    Grudging: refusals = "builds of each call" => {
        fn take(&self, _: &mut Linear<T>, _: &Right, _: &RuleSet<T>, _: &[Changed<T>]) -> Result<(), Outgrown> {
            Err(Outgrown("patience"))
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
    NoCap: memory_cap, refusals_at_the_cap = "over the cap" => {
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
    must_fail::<T, OfRules, Linear<T>>("", &LastOfEquals, || real_classbench::<Faulty>(&["1k"]));
}
