//! [`LiveRules`]: a set of rules, its engine and the live copies of its image, kept in step.

use wirespeed_image::ImageError;
use wirespeed_image::live::Applied;
use wirespeed_image::live::{Beside, Follower, Reader, Writer};

use crate::error::RuleError;
use crate::lookup::{BuildError, BuildOptions, ClassifyEngine};
use crate::rank::RuleNumber;
use crate::rule::Rule;
use crate::rules::{Changed, RuleSet};
use crate::tuple::Tuple;
use crate::update::RuleUpdate;

/// Why live rules could not take an update.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// A rule can't go where it is to go.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The set has outgrown its table, and another can't be built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Head room of a table that will have updates, in hundredths.
const FIRST_ROOM: u32 = 10;
/// Head room of a table that was outgrown, so that it isn't soon again.
const LATER_ROOM: u32 = 30;

fn with_room(options: &BuildOptions, least: u32) -> BuildOptions {
    BuildOptions { head_room: options.head_room.max(least), ..options.clone() }
}

/// What the engine has taken in and readers have not seen.
#[derive(Debug, Default)]
struct Taken<C> {
    is_any: bool,
    /// Its effect on what is beside the table.
    beside: C,
}

/// Updates that go through the rules and the engine together: what the one has read the other finds in the
/// cache.
const TOGETHER: usize = 64;

/// What readers get to see of the rules beside the numbers that lookups return, such as their
/// [`Actions`](crate::Actions): of the same state as the table.
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

/// A set of rules that takes updates while any number of readers look up. One owner; readers are independent
/// of it.
///
/// Memory: the rules, what the engine holds, and two copies of the image (four while it is rebuilt).
#[derive(Debug)]
pub struct LiveRules<T: Tuple, E: ClassifyEngine<T>, B: Beside = ()> {
    rules: RuleSet<T>,
    /// `None` for a table that came compiled, and after a call that failed: the next change builds. The table
    /// is that of the rules all the same.
    engine: Option<E>,
    writer: Writer<E::Table, B>,
    options: BuildOptions,
    /// What the rules were that the call under way has changed, by when they changed.
    undo: Vec<Changed<T>>,
    rebuilds: u64,
}

impl<T: Tuple, E: ClassifyEngine<T>> LiveRules<T, E> {
    /// Compiles a set and puts it live.
    pub fn new(rules: RuleSet<T>, options: BuildOptions) -> Result<Self, BuildError> {
        Self::with(rules, options)
    }

    /// Puts an image live that was compiled before from the same rules, such as one from a file, at once. The
    /// first update builds it anew: an engine does not go into an image.
    pub fn resume(rules: RuleSet<T>, table: E::Table, options: BuildOptions) -> Self {
        Self::resume_with(rules, table, options)
    }
}

impl<T: Tuple, E: ClassifyEngine<T>, B: BesideRules<T>> LiveRules<T, E, B> {
    /// Compiles a set and puts it live like [`new`](LiveRules::new), with something beside the table.
    pub fn with(mut rules: RuleSet<T>, options: BuildOptions) -> Result<Self, BuildError> {
        let (engine, table) = E::build(&rules, &with_room(&options, FIRST_ROOM))?;
        rules.track();
        let writer = Writer::with(table, B::of(&rules));
        Ok(Self { rules, engine: Some(engine), writer, options, undo: Vec::new(), rebuilds: 0 })
    }

    /// Puts an image live like [`resume`](LiveRules::resume), with something beside the table.
    pub fn resume_with(mut rules: RuleSet<T>, table: E::Table, options: BuildOptions) -> Self {
        rules.track();
        let writer = Writer::with(table, B::of(&rules));
        Self { rules, engine: None, writer, options, undo: Vec::new(), rebuilds: 0 }
    }

    /// Applies updates in order; readers that enter from now on see all of them, and none saw a part. Waits
    /// for readers that entered before the call before this one. Many updates a call cost less than one each.
    ///
    /// An error where a rule can't have its number, or the table has to be built anew and can't be: [the call
    /// then did not happen](wirespeed_image::live#when-an-update-fails).
    pub fn apply<'u>(
        &mut self,
        updates: impl IntoIterator<Item = &'u RuleUpdate<T>>,
    ) -> Result<Applied, UpdateError>
    where
        T: 'u,
    {
        let updates: Vec<_> = updates.into_iter().collect();
        let last = self.rules.last_number();
        RuleUpdate::check(last, updates.iter().copied())?;
        let (mut taken, mut changes) = (Taken::default(), 0);
        for from in (0..updates.len()).step_by(TOGETHER) {
            let range = from..updates.len().min(from + TOGETHER);
            let (changes_here, result) = self.rules.apply_range(&updates, range);
            result.expect("the numbers were checked");
            changes += changes_here;
            self.take(&mut taken);
        }
        Ok(Applied { changes, ..self.publish(taken, last)? })
    }

    /// Adds a rule after all others. After an error no number is spent, as for [`apply`](Self::apply).
    pub fn insert(&mut self, rule: Rule<T>) -> Result<RuleNumber, UpdateError> {
        let last = self.rules.last_number();
        let number = self.rules.insert(rule)?;
        self.take_and_publish(last)?;
        Ok(number)
    }

    /// Puts a rule under a number; gives back the one that was there. After an error that one is there still,
    /// as for [`apply`](Self::apply).
    pub fn set(&mut self, number: u32, rule: Rule<T>) -> Result<Option<Rule<T>>, UpdateError> {
        let last = self.rules.last_number();
        let (_, before) = self.rules.set(number, rule)?;
        self.take_and_publish(last)?;
        Ok(before)
    }

    /// Takes a rule out; `None` where there is none of that number. After an error it is there still, as for
    /// [`apply`](Self::apply).
    pub fn remove(&mut self, number: u32) -> Result<Option<Rule<T>>, UpdateError> {
        let last = self.rules.last_number();
        let before = self.rules.remove(number);
        self.take_and_publish(last)?;
        Ok(before)
    }

    fn take_and_publish(&mut self, last: u32) -> Result<Applied, BuildError> {
        let mut taken = Taken::default();
        self.take(&mut taken);
        self.publish(taken, last)
    }

    /// Has the engine take in what changed.
    fn take(&mut self, taken: &mut Taken<B::Change>) {
        let mut changed = self.rules.take_changed();
        if !changed.is_empty() {
            taken.is_any = true;
            let is_taken = |engine: &mut E| engine.take(&self.rules, &changed).is_ok();
            if !self.engine.as_mut().is_some_and(is_taken) {
                self.engine = None;
            }
            B::changed(&self.rules, &changed, &mut taken.beside);
        }
        self.undo.append(&mut changed);
        self.rules.reuse(changed);
    }

    /// Has readers see the rules as they are now. After an error the rules are what they were, with this last
    /// number.
    fn publish(&mut self, taken: Taken<B::Change>, last: u32) -> Result<Applied, BuildError> {
        /// Changes that the memory of is kept.
        const MUCH: usize = 1 << 14;
        let published = self.bring_up_to_date(taken);
        if published.is_err() {
            self.rules.undo(&mut self.undo, last);
        }
        self.undo.clear();
        self.undo.shrink_to(MUCH);
        published
    }

    /// Brings the live copies up to date, or fails before readers see anything. After an error the engine is
    /// spent: it has taken the changes in.
    fn bring_up_to_date(&mut self, taken: Taken<B::Change>) -> Result<Applied, BuildError> {
        let Taken { is_any, beside } = taken;
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
            let (engine, table) = self.built_anew()?;
            self.engine = Some(engine);
            self.writer.replace_with(table, B::replaced(&self.rules));
            self.rebuilds += 1;
            applied.rebuilt = true;
        }
        Ok(applied)
    }

    /// A table of the rules, with head room unless it is that which doesn't fit.
    fn built_anew(&self) -> Result<(E, E::Table), BuildError> {
        match E::build(&self.rules, &with_room(&self.options, LATER_ROOM)) {
            Err(BuildError::Image(ImageError::OverCap { .. })) => {
                E::build(&self.rules, &BuildOptions { tight: true, ..self.options.clone() })
            }
            built => built,
        }
    }

    /// Tells a follower, such as a copy on a GPU, of every change from now on; it is made of the table as it
    /// is now.
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
