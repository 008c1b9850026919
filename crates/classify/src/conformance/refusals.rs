//! Calls that fail: [what is promised of them](wirespeed_image::live#when-an-update-fails), with failures at
//! every step.
//!
//! An engine in a wrapper is made to fail at chosen operations of a history: a build, a taking in of changes,
//! several in turn. After every call, Ok or Err, the rules are held against a map that took the calls that
//! succeeded and no other, and readers and the actions that they see against its oracle.

use std::collections::BTreeMap;

use wirespeed_image::live::Reader;
use wirespeed_image::{Image, ImageError, Table, rounds};
use wirespeed_rng::Rng;
use wirespeed_table::conformance::{self as suite, Failing, with_failures};
use wirespeed_table::{BuildError, BuildOptions, Companion, Engine, Lookup};

use super::{options, probes, sets};
use crate::actions::Actions;
use crate::domain::{EditRules, LiveRules, UpdateError};
use crate::oracle::{Oracle, Right};
use crate::pattern::Pattern;
use crate::rank::RuleNumber;
use crate::rule::Rule;
use crate::rules::RuleSet;
use crate::tuple::Tuple;
use crate::update::RuleUpdate;

/// What rules are to be.
#[derive(Clone, Debug)]
struct Model<T> {
    rules: BTreeMap<u32, Rule<T>>,
    last: u32,
}

impl<T: Tuple> Model<T> {
    fn of(rules: &RuleSet<T>) -> Self {
        let all = rules.iter().map(|(number, rule)| (number.get(), rule.clone())).collect();
        Self { rules: all, last: rules.last_number() }
    }

    /// Makes a change; whether it changed anything.
    fn take(&mut self, update: &RuleUpdate<T>) -> bool {
        let (number, rule) = match update {
            RuleUpdate::Insert(rule) => (self.last + 1, rule),
            RuleUpdate::Set(number, rule) => (*number, rule),
            RuleUpdate::Remove(number) => return self.rules.remove(number).is_some(),
        };
        self.last = self.last.max(number);
        self.rules.insert(number, rule.clone()).as_ref() != Some(rule)
    }

    fn set(&self) -> RuleSet<T> {
        let mut set = RuleSet::new();
        for (&number, rule) in &self.rules {
            set.set(number, rule.clone()).expect("a number that there was");
        }
        set
    }
}

/// Live rules, what they are to be, and who looks on.
struct Watched<T: Tuple, E: Engine<T>> {
    live: LiveRules<T, E, Actions>,
    /// Took what the rules took.
    model: Model<T>,
    reader: Reader<E::Table, Actions>,
}

impl<T: Tuple, E: Engine<T>> Watched<T, E> {
    fn new(live: LiveRules<T, E, Actions>) -> Self {
        let (model, reader) = (Model::of(live.model()), live.reader());
        Self { live, model, reader }
    }
}

impl<T: Tuple, E: Engine<T>> suite::Watched<T> for Watched<T, E> {
    /// A single update goes by its own call.
    fn call(&mut self, updates: &[RuleUpdate<T>], what: &str) -> Result<(), UpdateError> {
        let rebuilds = self.live.rebuilds();
        let mut model = self.model.clone();
        let changes = updates.iter().filter(|update| model.take(update)).count();
        let called = match updates {
            [RuleUpdate::Insert(rule)] => {
                let number = self.live.insert(rule.clone());
                number.map(|number| assert_eq!(number.get(), model.last, "{what}"))
            }
            [RuleUpdate::Set(number, rule)] => {
                let before = self.live.set(*number, rule.clone());
                before.map(|before| assert_eq!(before.as_ref(), self.model.rules.get(number), "{what}"))
            }
            [RuleUpdate::Remove(number)] => {
                let before = self.live.remove(*number);
                before.map(|before| assert_eq!(before.as_ref(), self.model.rules.get(number), "{what}"))
            }
            updates => self.live.apply(updates).map(|applied| assert_eq!(applied.changes, changes, "{what}")),
        };
        match called {
            Ok(()) => self.model = model,
            Err(_) => assert_eq!(self.live.rebuilds(), rebuilds, "{what}"),
        }
        let state = self.reader.enter_state();
        check(
            &state.table,
            state.table.image(),
            &state.beside,
            (self.live.model(), &self.model),
            updates,
            what,
        );
        called
    }

    fn removals(&self) -> Vec<RuleUpdate<T>> {
        self.model.rules.keys().copied().map(RuleUpdate::Remove).collect()
    }

    fn rebuilds(&self) -> u64 {
        self.live.rebuilds()
    }

    fn bytes(&self) -> u64 {
        self.reader.enter().image().bytes()
    }

    fn is_over_cap(&self, error: &UpdateError) -> bool {
        matches!(error, UpdateError::Build(BuildError::Image(ImageError::OverCap { .. })))
    }

    /// A filter that grew where there was no room is smaller than one that is made anew.
    fn lets_one_go(&self) -> bool {
        E::NAME != "bloom"
    }
}

/// A table, its actions and its rules are what they are to be.
fn check<T: Tuple>(
    table: &dyn Lookup<T>,
    image: &Image,
    actions: &Actions,
    (rules, model): (&RuleSet<T>, &Model<T>),
    updates: &[RuleUpdate<T>],
    what: &str,
) {
    let (last, mut model) = (model.last, model.set());
    assert_eq!((rules.len(), rules.last_number()), (model.len(), last), "{what}");
    assert_eq!(rules.entries_len(), model.entries_len(), "{what}");
    let all = |rules: &RuleSet<T>| rules.sorted().iter().map(|&(n, r)| (n, r.clone())).collect::<Vec<_>>();
    assert!(all(rules) == all(&model), "{what}: the rules");
    assert!(*actions == <Actions as Companion<T>>::of(&model, ()), "{what}: the actions");
    assert_eq!(image.entries(), model.len() as u64, "{what}: entries");
    for update in updates {
        if let RuleUpdate::Insert(rule) | RuleUpdate::Set(_, rule) = update {
            model.insert(rule.clone()).expect("a number");
        }
    }
    let tuples = probes::around(&model, 150);
    let right = Oracle::of(rules);
    let mut found = vec![u32::MAX; tuples.len()];
    table.lookup_batch(&tuples, &mut found);
    for (tuple, &found) in tuples.iter().zip(&found) {
        assert_eq!(found, right.right(tuple), "{what}: {tuple}");
    }
}

/// Some calls, of one update, of some, and of more than are taken in at once: rules come, go, come and go in
/// one call, change places; once all go; some numbers can't be.
fn history<T: Tuple>(world: &sets::World<T>, rng: &mut Rng) -> Vec<Vec<RuleUpdate<T>>> {
    let update = |rng: &mut Rng| {
        let number = u32::try_from(1 + rng.below(60)).expect("small");
        match rng.index(10) {
            0..3 => RuleUpdate::Insert(world.rule(rng)),
            3..6 => RuleUpdate::Set(number, world.rule(rng)),
            _ => RuleUpdate::Remove(number),
        }
    };
    let mut calls: Vec<Vec<RuleUpdate<T>>> = Vec::new();
    for call in 0..10 {
        let count = [1, 1 + rng.index(15), 65 + rng.index(100)][rng.index(3)];
        calls.push((0..count).map(|_| update(rng)).collect());
        match call {
            2 => {
                // The last of them can't be made, and so none is.
                let mut updates: Vec<_> = (0..70).map(|_| update(rng)).collect();
                updates.push(RuleUpdate::Set([0, RuleNumber::MOST + 1][rng.index(2)], world.rule(rng)));
                calls.push(updates);
            }
            6 => calls.push((1..2_000).map(RuleUpdate::Remove).collect()),
            _ => {}
        }
    }
    calls
}

/// Calls of which some fail, at every operation of a history that can: what failed did not happen, and the
/// rest did.
pub fn refusals<T: Tuple, E: Engine<T>>() {
    for seed in (0..3).step_by(rounds::stride()) {
        let mut rng = Rng::new(u64::from(seed));
        let world = sets::World::<T>::new(&mut rng);
        let calls = history(&world, &mut rng);
        let start = world.rules(&mut rng, 40);
        with_failures(&mut rng, seed, (1, u32::MAX), |rng, what| {
            let live = LiveRules::<T, Failing<E>, Actions>::with(start.clone(), options(), ());
            let mut table = Watched::new(live.expect("operation 0 doesn't fail"));
            suite::play(&mut table, &calls, rng, what);
        });
    }
}

/// A set that grows until it is refused by its cap: what it has is there, and can be taken out one by one.
pub fn refusals_at_the_cap<T: Tuple, E: Engine<T>>() {
    const STEP: usize = 100;
    if rounds::leaves_to_ci() {
        return;
    }
    let mut rng = Rng::new(77);
    // No two alike, in a class for each word that doesn't count.
    let pool: Vec<_> = (0..40_000u32)
        .map(|n| {
            let value: Vec<u32> = (0..T::WORDS).map(|_| (rng.bits() >> 32) as u32).collect();
            let skipped = n as usize % T::WORDS;
            let mask: Vec<u32> =
                (0..T::WORDS).map(|word| if word == skipped { 0 } else { u32::MAX }).collect();
            Rule::new(Pattern::new(T::from_words(&value), T::from_words(&mask)), n % 7, n)
        })
        .collect();
    let set = |rules: usize| -> RuleSet<T> { pool[..rules].iter().cloned().collect() };
    let (_, larger) = E::build(&set(8 * STEP), &options()).expect("a small set is held");
    let cap = larger.image().bytes();
    let options = BuildOptions { memory_cap: Some(cap), ..options() };
    let live = LiveRules::<T, E, Actions>::with(set(4 * STEP), options, ()).expect("there is half as much");
    let mut rest = pool[4 * STEP..].iter().cloned();
    // More and more, as what there is for some hundreds may do for thousands.
    let growth = (0..24).map(|call| rest.by_ref().take(STEP << (call / 3)).map(RuleUpdate::Insert).collect());
    suite::at_the_cap(&mut Watched::new(live), cap, growth);
}
