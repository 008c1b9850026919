//! [`LiveRules`]: a set of rules, its engine and the live copies of its image, kept in step.

use wirespeed_image::live::Applied;
use wirespeed_image::live::{Beside, Follower, Reader, Writer};

use crate::lookup::{BuildError, BuildOptions, ClassifyEngine};
use crate::rank::RuleNumber;
use crate::rule::{Rule, RuleError};
use crate::rules::{Changed, RuleSet};
use crate::tuple::Tuple;

/// A change of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleUpdate<T> {
    /// A rule comes after all others, with the next number.
    Insert(Rule<T>),
    /// The rule of this number is this one from now on, whether there was one or not.
    Set(u32, Rule<T>),
    /// There is no rule of this number any more. One that isn't there is no error.
    Remove(u32),
}

/// Why live rules could not take an update.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// A rule can't go where it is to go. Updates before it were taken, those after it were not.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The set has outgrown its table, and another can't be built. The set has the updates, and readers go on with the image before
    /// them.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Head room of a table that will have updates, in hundredths.
const FIRST_ROOM: u32 = 10;
/// That of one that was outgrown, so that it isn't soon again.
const LATER_ROOM: u32 = 30;

fn with_room(options: &BuildOptions, least: u32) -> BuildOptions {
    BuildOptions { head_room: options.head_room.max(least), ..options.clone() }
}

/// What the engine has taken in and readers have not seen.
#[derive(Debug, Default)]
struct Taken<C> {
    is_any: bool,
    /// What it does to what is beside the table.
    beside: C,
}

/// Updates that go through the rules and the engine together: what the one has read the other finds in the cache.
const TOGETHER: usize = 64;

/// What readers get to see of the rules beside the numbers that lookups return, such as their [`Actions`](crate::Actions): of the same
/// state as the table.
pub trait BesideRules<T>: Beside<Change: Default> {
    /// What there is of a set.
    fn of(rules: &RuleSet<T>) -> Self;

    /// Adds to a change what further changes of some rules do to it: `rules` are those after them.
    fn changed(rules: &RuleSet<T>, changed: &[Changed<T>], change: &mut Self::Change);

    /// What makes it that of another set.
    fn replaced(rules: &RuleSet<T>) -> Self::Change;
}

/// Nothing.
impl<T> BesideRules<T> for () {
    fn of(_: &RuleSet<T>) {}
    fn changed(_: &RuleSet<T>, _: &[Changed<T>], (): &mut ()) {}
    fn replaced(_: &RuleSet<T>) {}
}

/// A set of rules that takes updates while any number of readers look up. One owner; readers are independent of it.
///
/// Memory: the rules, what the engine holds, and two copies of the image (four while it is rebuilt).
#[derive(Debug)]
pub struct LiveRules<T: Tuple, E: ClassifyEngine<T>, B: Beside = ()> {
    rules: RuleSet<T>,
    /// `None` after a rebuild that failed, and for a table that came compiled: the next update builds.
    engine: Option<E>,
    writer: Writer<E::Table, B>,
    options: BuildOptions,
    rebuilds: u64,
}

impl<T: Tuple, E: ClassifyEngine<T>> LiveRules<T, E> {
    /// Compiles a set and puts it live.
    pub fn new(rules: RuleSet<T>, options: BuildOptions) -> Result<Self, BuildError> {
        Self::with(rules, options)
    }

    /// Puts an image live that was compiled before from the same rules, such as one from a file, at once. The first update builds
    /// it anew: an engine does not go into an image.
    pub fn resume(rules: RuleSet<T>, table: E::Table, options: BuildOptions) -> Self {
        Self::resume_with(rules, table, options)
    }
}

impl<T: Tuple, E: ClassifyEngine<T>, B: BesideRules<T>> LiveRules<T, E, B> {
    /// As [`new`](LiveRules::new), with something beside the table.
    pub fn with(mut rules: RuleSet<T>, options: BuildOptions) -> Result<Self, BuildError> {
        let (engine, table) = E::build(&rules, &with_room(&options, FIRST_ROOM))?;
        rules.track();
        let writer = Writer::with(table, B::of(&rules));
        Ok(Self { rules, engine: Some(engine), writer, options, rebuilds: 0 })
    }

    /// As [`resume`](LiveRules::resume), with something beside the table.
    pub fn resume_with(mut rules: RuleSet<T>, table: E::Table, options: BuildOptions) -> Self {
        rules.track();
        let writer = Writer::with(table, B::of(&rules));
        Self { rules, engine: None, writer, options, rebuilds: 0 }
    }

    /// Applies updates in order; readers that enter from now on see all of them, and none saw a part. Waits for readers that
    /// entered before the call before this one. Many updates a call cost less than one each.
    pub fn apply<'u>(
        &mut self,
        updates: impl IntoIterator<Item = &'u RuleUpdate<T>>,
    ) -> Result<Applied, UpdateError>
    where
        T: 'u,
    {
        let updates: Vec<_> = updates.into_iter().collect();
        let (mut taken, mut changes, mut result) = (Taken::default(), 0, Ok(()));
        for from in (0..updates.len()).step_by(TOGETHER) {
            let range = from..updates.len().min(from + TOGETHER);
            let (changes_here, result_here) = self.rules.apply_range(&updates, range);
            changes += changes_here;
            self.take(&mut taken);
            result = result_here;
            if result.is_err() {
                break;
            }
        }
        let applied = self.publish(taken)?;
        result?;
        Ok(Applied { changes, ..applied })
    }

    /// Adds a rule after all others.
    pub fn insert(&mut self, rule: Rule<T>) -> Result<RuleNumber, UpdateError> {
        let number = self.rules.insert(rule)?;
        self.take_and_publish()?;
        Ok(number)
    }

    /// Puts a rule under a number; gives back the one that was there.
    pub fn set(&mut self, number: u32, rule: Rule<T>) -> Result<Option<Rule<T>>, UpdateError> {
        let (_, before) = self.rules.set(number, rule)?;
        self.take_and_publish()?;
        Ok(before)
    }

    /// Takes a rule out; `None` where there is none of that number.
    pub fn remove(&mut self, number: u32) -> Result<Option<Rule<T>>, UpdateError> {
        let before = self.rules.remove(number);
        self.take_and_publish()?;
        Ok(before)
    }

    fn take_and_publish(&mut self) -> Result<Applied, BuildError> {
        let mut taken = Taken::default();
        self.take(&mut taken);
        self.publish(taken)
    }

    /// Has the engine take in what changed.
    fn take(&mut self, taken: &mut Taken<B::Change>) {
        let changed = self.rules.take_changed();
        if !changed.is_empty() {
            taken.is_any = true;
            let is_taken = |engine: &mut E| engine.take(&self.rules, &changed).is_ok();
            if !self.engine.as_mut().is_some_and(is_taken) {
                self.engine = None;
            }
            B::changed(&self.rules, &changed, &mut taken.beside);
        }
        self.rules.reuse(changed);
    }

    /// Brings the live copies up to date.
    fn publish(&mut self, Taken { is_any, beside }: Taken<B::Change>) -> Result<Applied, BuildError> {
        let mut applied = Applied::default();
        if !is_any {
            return Ok(applied);
        }
        let rules = &self.rules;
        // A set that was emptied is built anew, and gives back its memory.
        if let Some(engine) = self.engine.as_mut().filter(|_| !rules.is_empty()) {
            let patch = engine.patch(rules);
            applied.writes = patch.writes().len();
            self.writer.patch_with(patch, beside).expect("an engine's patch fits its own table");
        } else {
            self.engine = None;
            let (engine, table) = E::build(rules, &with_room(&self.options, LATER_ROOM))?;
            self.engine = Some(engine);
            self.writer.replace_with(table, B::replaced(rules));
            self.rebuilds += 1;
            applied.rebuilt = true;
        }
        Ok(applied)
    }

    /// Tells a follower, such as a copy on a GPU, of every change from now on; it is made of the table as it is now.
    pub fn follow<F: Follower<E::Table> + 'static, X>(
        &mut self,
        make: impl FnOnce(&E::Table) -> Result<F, X>,
    ) -> Result<(), X> {
        self.writer.follow(make)
    }

    /// A reader of the table.
    pub fn reader(&self) -> Reader<E::Table, B> {
        self.writer.reader()
    }

    /// The rules as they are now.
    pub const fn rules(&self) -> &RuleSet<T> {
        &self.rules
    }

    /// How often an update made the table outgrow itself.
    pub const fn rebuilds(&self) -> u64 {
        self.rebuilds
    }

    /// Bytes held: both copies of the image, the engine's and the rules' own.
    pub fn memory_usage(&self) -> u64 {
        let engine = self.engine.as_ref().map_or(0, E::memory_usage);
        self.writer.memory_usage() + engine + self.rules.memory_usage()
    }
}
