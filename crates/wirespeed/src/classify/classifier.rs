//! [`Classifier`]: a live set of rules, owned by one writer. Its engine is chosen at run time.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use wirespeed_classify::read::{Assumptions, Doubts, Effect, Lines, ReadOptions, RuleReport};
use wirespeed_classify::{
    Applied, BuildError, BuildOptions, Classes, Rule, RuleError, RuleNumber, RuleSet, RuleUpdate, UpdateError,
};
use wirespeed_fib::NextHop;

use super::builder::{ClassifierBuilder, Collected};
use super::facts::Facts;
use super::image_file::{self, RuleImageFile};
use super::reader::RuleReader;
use crate::common::TableCore;
use crate::device::DeviceSettings;
use crate::engine::RuleTuple;
use crate::error::Error;
use crate::labels::saved::SavedLabels;
use crate::memory::Cap;
use crate::methods::{save_methods, table_methods};
use crate::settings::Choice;

/// A set of rules, and the compiled table. One owner changes it. Any number of [`RuleReader`]s look up at the
/// same time, and never wait.
///
/// Memory: the rules, two copies of the compiled table and of the actions, and the engine's data for updates.
/// A rebuild temporarily takes two more copies of the compiled table.
///
/// ```
/// use wirespeed::prelude::*;
///
/// let rules: [Rule<Ipv4Tuple>; 1] = ["dport=443 proto=tcp priority=10".parse()?];
/// let mut classifier = Classifier::builder().rules(rules).build()?;
/// let reader = classifier.reader();
/// let packet = "src=192.0.2.7 dst=198.51.100.1 sport=40000 dport=443 proto=tcp".parse()?;
/// assert_eq!(reader.lookup(&packet), RuleNumber::new(1));
///
/// let number = classifier.insert("src=192.0.2.0/24 priority=20".parse()?)?;
/// assert_eq!(reader.lookup(&packet), Some(number));
/// classifier.remove(number)?;
/// classifier.remove(reader.lookup(&packet).ok_or("nothing")?)?;
/// assert_eq!(reader.lookup(&packet), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Classifier<T: RuleTuple> {
    pub(super) core: TableCore<T>,
    pub(super) reports: Vec<RuleReport>,
    pub(super) doubts: Arc<Doubts<T>>,
    /// The facts, the chain and the table of files that are loaded.
    pub(super) reading: ReadOptions,
    /// Whether files may have rules that fields don't decide.
    pub(super) leave_out: bool,
}

impl<T: RuleTuple> Classifier<T> {
    /// Starts a classifier. The builder collects the rules and the settings.
    pub fn builder() -> ClassifierBuilder<T> {
        ClassifierBuilder::new(ReadOptions::default())
    }

    /// Builds the table of some rules with an engine.
    pub(super) fn build(
        Collected { rules, reports, doubts, reading, leave_out, claims }: Collected<T>,
        choice: Choice,
        options: (Cap, BuildOptions),
        device: DeviceSettings,
    ) -> Result<Self, Error> {
        let doubts = Arc::new(doubts);
        let wanted = Facts::Verdicts(Arc::clone(&doubts));
        let core = TableCore::build(choice, rules, options, wanted, device)?;
        let core = core.with_beside(actions(&doubts)).with_labels(claims);
        Ok(Self { core, reports, doubts, reading, leave_out })
    }

    /// Opens an image file with its rules. Lookups can start as soon as the file is read and checked. The
    /// first update rebuilds the compiled table, which takes as long as a build from the rules.
    ///
    /// Lookups run on the CPU. Fails if the file is damaged, does not hold rules of this tuple, or is of an
    /// engine that is not in this build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = RuleImageFile::open(path.as_ref())?.of_tuple::<T>()?;
        let (engine, rules, doubts) = (file.engine(), file.rules()?, Arc::new(file.doubts()?));
        let wanted = Facts::Verdicts(Arc::clone(&doubts));
        let core = TableCore::resume(Choice::named(engine), rules, file.into_bare()?, wanted)?;
        let core = core.with_beside(actions(&doubts));
        let assume = doubts.assumed.iter().cloned().try_fold(Assumptions::default(), Assumptions::with)?;
        let reading = ReadOptions { assume, ..ReadOptions::default() };
        let (reports, leave_out) = (Vec::new(), !doubts.uncertain.is_empty());
        Ok(Self { core, reports, doubts, reading, leave_out })
    }

    /// Applies updates in order, and makes all of them visible to readers at once. A lookup that begins after
    /// this call sees all of them; no lookup sees a part. One call with many updates costs much less than a
    /// call for each. The call waits for guards that were taken before the previous call.
    ///
    /// Fails if a rule can't have its number, or if the table needs a rebuild that fails: [the call then did
    /// not happen](crate::image::live#when-an-update-fails).
    pub fn apply(&mut self, updates: &[RuleUpdate<T>]) -> Result<Applied, Error> {
        let is_turnover = gives_again(self.rules().last_number(), updates);
        let (of_build, turnover) = (self.core.of_build(), self.core.turnover());
        let applied = self.core.change(updates, |live| {
            let applied = turnover.during_if(is_turnover, || live.apply(updates));
            applied.map(Some).map_err(|error| of_update(error, of_build))
        });
        applied.map(Option::unwrap_or_default)
    }

    /// Inserts a rule after all others while readers look up, and returns its number, which no other rule
    /// ever had. Among rules of equal priority the older rule wins. A failed call uses up no number. For many
    /// rules use [`apply`](Self::apply).
    pub fn insert(&mut self, rule: Rule<T>) -> Result<RuleNumber, Error> {
        self.apply(&[RuleUpdate::Insert(rule)])?;
        let limit = RuleNumber::MOST;
        RuleNumber::new(self.rules().last_number()).ok_or(RuleError::Spent { limit }.into())
    }

    /// Puts a rule under a number, in place of an existing rule, while readers look up. For many rules use
    /// [`apply`](Self::apply).
    pub fn set(&mut self, number: RuleNumber, rule: Rule<T>) -> Result<Applied, Error> {
        self.apply(&[RuleUpdate::Set(number.get(), rule)])
    }

    /// Removes a rule while readers look up. A number without a rule is no error. For many rules use
    /// [`apply`](Self::apply).
    pub fn remove(&mut self, number: RuleNumber) -> Result<Applied, Error> {
        self.apply(&[RuleUpdate::Remove(number.get())])
    }

    /// A reader of the rules. Threads share it, or clone it.
    #[must_use]
    pub fn reader(&self) -> RuleReader<T> {
        RuleReader::new(self.core.reader())
    }

    /// The rules with their numbers, as they are now.
    #[must_use]
    pub fn rules(&self) -> &RuleSet<T> {
        self.core.model()
    }

    /// All rules that match a tuple, best first, as they are now. The first one is the answer of
    /// [`RuleReader::lookup`]; the others show the rules that it hides. O(rules).
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let rules: [Rule<Ipv4Tuple>; 2] = ["proto=tcp action=1".parse()?, "dport=443 action=2".parse()?];
    /// let classifier = Classifier::builder().rules(rules).build()?;
    /// let all = classifier.lookup_all(&"dport=443 proto=tcp".parse()?);
    /// assert_eq!(all.iter().map(|(number, _)| number.get()).collect::<Vec<_>>(), [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn lookup_all(&self, tuple: &T) -> Vec<(RuleNumber, &Rule<T>)> {
        self.rules().matching(tuple)
    }

    /// The number of different masks of the rules: the paper's classes. O(n).
    #[must_use]
    pub fn classes(&self) -> usize {
        Classes::sizes(self.rules()).len()
    }

    /// Reports of the files that were read, one for each: the rules in the file, and the rules that were
    /// [left out](ClassifierBuilder::leave_out).
    #[must_use]
    pub fn reports(&self) -> &[RuleReport] {
        &self.reports
    }

    /// The rules that were left out and could match a packet, and the assumptions under which the rules were
    /// read: of all files together, or of the image. If there are such rules, ask a reader for
    /// [`verdict`](RuleReader::verdict)s.
    ///
    /// Updates don't change doubts: [`replace_with_doubts`](Self::replace_with_doubts) and
    /// [`load`](Self::load) do. A rule that an update adds and that ranks before a doubt is certain.
    #[must_use]
    pub fn doubts(&self) -> &Doubts<T> {
        &self.doubts
    }

    table_methods!(rules, "tuples", "ClassifierBuilder");

    save_methods! {
        /// Saves the compiled table, its rules and its [doubts](Self::doubts) as an image file. An existing
        /// file is replaced completely or not at all.
    }

    fn save_with(&self, labels: &SavedLabels, path: &Path) -> Result<(), Error> {
        // After updates the lines of the source file may be wrong, so none are saved.
        let (rules, beside) = (self.rules(), (&*self.doubts, &Lines::default()));
        let save = |image: &_| image_file::save(image, rules, &labels.texts, beside, path).map(drop);
        self.core.with_image(|image| labels.save_beside(image, self.core.left_out(), path, save))
    }
}

/// The labels of doubts. They are in use: a doubt is compared with the rules by its action.
pub(super) fn actions<T: RuleTuple>(doubts: &Doubts<T>) -> impl Iterator<Item = NextHop> {
    let doubts = doubts.uncertain.iter().filter(|doubt| doubt.effect == Effect::Action);
    doubts.map(|doubt| NextHop(doubt.rule.action()))
}

/// Returns the error for updates that could not be made.
pub(super) fn of_update(error: UpdateError, of_build: impl Fn(BuildError) -> Error) -> Error {
    match error {
        UpdateError::Build(source) => of_build(source),
        UpdateError::Rule(source) => source.into(),
        cause => Error::UpdateRules { cause },
    }
}

/// Whether updates put a rule under a number that was given before.
pub(super) fn gives_again<T: RuleTuple>(mut last: u32, updates: &[RuleUpdate<T>]) -> bool {
    let mut is_again = false;
    for update in updates {
        match *update {
            RuleUpdate::Insert(_) => last = last.saturating_add(1),
            RuleUpdate::Set(number, _) => {
                is_again |= number <= last;
                last = last.max(number);
            }
            RuleUpdate::Remove(_) => {}
        }
    }
    is_again
}

impl<T: RuleTuple> fmt::Debug for Classifier<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f.debug_struct("Classifier").field("tuple", &T::NAME))
    }
}
