//! [`Classifier`]: a live set of rules with its engine chosen at run time, owned by one writer.

use std::fmt::{self, Display};
use std::path::Path;
use std::sync::Arc;

use wirespeed_classify::read::{Doubts, RuleReport};
use wirespeed_classify::{
    Actions, Applied, BuildError, BuildOptions, Classes, Engine, LiveRules, Rule, RuleError, RuleNumber,
    RuleSet, RuleUpdate, UpdateError,
};
use wirespeed_fib::NextHops;
use wirespeed_gpu::classify::{Counts, Offload};
use wirespeed_gpu::offload::RemoteTable;
use wirespeed_gpu::runtime::Fleet;

use super::builder::ClassifierBuilder;
use super::device::{self, beside};
use super::erased::AnyLive;
use super::image_file::RuleImageFile;
use super::ranked::{Ranked, RuleBeside};
use super::reader::RuleReader;
use super::turnover::Turnover;
use crate::device::{DeviceSettings, all_cores};
use crate::engine::{EngineName, OnDevice, RuleTuple, Visitor, visit};
use crate::error::Error;
use crate::labels::Labels;

/// A set of rules, and what it compiles to. One owner changes it. Any number of [`RuleReader`]s look up
/// meanwhile, and never wait.
///
/// Memory: the rules, the compiled table and the actions twice, and what its engine keeps for updates. A
/// rebuild takes two more copies of the compiled table while it lasts.
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
    live: Box<dyn AnyLive<T>>,
    engine: EngineName,
    memory_cap: Option<u64>,
    /// The table on GPUs.
    offload: Option<Arc<Offload<T>>>,
    turnover: Arc<Turnover>,
    device_note: Option<String>,
    reports: Vec<RuleReport>,
    doubts: Arc<Doubts<T>>,
    /// Calls that failed.
    refused: u64,
}

impl<T: RuleTuple> Classifier<T> {
    /// Starts a classifier: its rules, and how it is to be built.
    pub fn builder() -> ClassifierBuilder<T> {
        ClassifierBuilder::new()
    }

    /// Builds the table of some rules with an engine.
    pub(super) fn build(
        rules: RuleSet<T>,
        engine: EngineName,
        options: BuildOptions,
        memory_cap: Option<u64>,
        mut device: DeviceSettings,
        (reports, doubts): (Vec<RuleReport>, Doubts<T>),
    ) -> Result<Self, Error> {
        let is_whole = doubts.is_empty();
        let (live, offload) =
            visit(engine, Build { rules, options, device: &mut device, memory_cap, is_whole })??;
        let (turnover, device_note, doubts) = (Arc::default(), device.note, Arc::new(doubts));
        let refused = 0;
        Ok(Self { live, engine, memory_cap, offload, turnover, device_note, reports, doubts, refused })
    }

    /// Opens an image file with its rules. It is ready for lookups as soon as it is read and checked. The
    /// first update builds the compiled table anew, which takes as long as building it from the rules did.
    ///
    /// Lookups run on the CPU. Fails where the file is damaged, of something else than rules of this tuple,
    /// or of an engine that is not in this build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = RuleImageFile::open(path.as_ref())?.of_tuple::<T>()?;
        let (engine, rules, doubts) = (file.engine(), file.rules()?, file.doubts()?);
        let live = visit(engine, Resume { rules, file, is_whole: doubts.is_empty() })??;
        let (offload, turnover, reports, doubts) = (None, Arc::default(), Vec::new(), Arc::new(doubts));
        let (memory_cap, device_note, refused) = (None, None, 0);
        Ok(Self { live, engine, memory_cap, offload, turnover, device_note, reports, doubts, refused })
    }

    /// Applies updates in order, and makes all of them visible to readers at once. A lookup that begins after
    /// this call sees all of them; no lookup sees a part. One call with many updates costs much less than a
    /// call for each. The call waits for guards that are older than the call before it.
    ///
    /// Fails if a rule can't have its number, or if the table has to be built anew and can't be: [the call
    /// then did not happen](crate::image::live#when-an-update-fails).
    pub fn apply(&mut self, updates: &[RuleUpdate<T>]) -> Result<Applied, Error> {
        let is_turnover = gives_again(self.rules().last_number(), updates);
        let live = &mut self.live;
        let applied = match is_turnover {
            true => self.turnover.during(|| live.apply(updates)),
            false => live.apply(updates),
        };
        self.refused += u64::from(applied.is_err());
        applied.map_err(|error| match error {
            UpdateError::Build(source) => Error::of_rules(source, self.memory_cap),
            UpdateError::Rule(source) => source.into(),
            source => Error::UpdateRules { source },
        })
    }

    /// Puts one rule in after all others, live, and returns its number, which no other rule ever had. Of
    /// rules of one priority the one that was there before wins. After an error no number is spent. For many
    /// rules use [`apply`](Self::apply).
    pub fn insert(&mut self, rule: Rule<T>) -> Result<RuleNumber, Error> {
        self.apply(&[RuleUpdate::Insert(rule)])?;
        let limit = RuleNumber::MOST;
        RuleNumber::new(self.rules().last_number()).ok_or(RuleError::Spent { limit }.into())
    }

    /// Puts one rule under a number, in place of the one that is there, live. For many rules use
    /// [`apply`](Self::apply).
    pub fn set(&mut self, number: RuleNumber, rule: Rule<T>) -> Result<Applied, Error> {
        self.apply(&[RuleUpdate::Set(number.get(), rule)])
    }

    /// Takes one rule out, live. A rule that isn't there is no error. For many rules use
    /// [`apply`](Self::apply).
    pub fn remove(&mut self, number: RuleNumber) -> Result<Applied, Error> {
        self.apply(&[RuleUpdate::Remove(number.get())])
    }

    /// A reader of the rules. Each thread takes its own.
    pub fn reader(&self) -> RuleReader<T> {
        let (offload, turnover) = (self.offload.clone(), Arc::clone(&self.turnover));
        RuleReader::new(self.live.reader(), self.engine, offload, turnover, Arc::clone(&self.doubts))
    }

    /// The rules with their numbers, as they are now.
    pub fn rules(&self) -> &RuleSet<T> {
        self.live.rules()
    }

    /// Number of rules.
    pub fn len(&self) -> usize {
        self.rules().len()
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.rules().is_empty()
    }

    /// How many masks the rules have: the paper's classes. O(n).
    pub fn classes(&self) -> usize {
        Classes::sizes(self.rules()).len()
    }

    /// Reports of the files that were read, one each: the rules that there were, and those that were [left
    /// out](ClassifierBuilder::leave_out).
    pub fn reports(&self) -> &[RuleReport] {
        &self.reports
    }

    /// The rules that were left out and could match a packet, and the assumptions under which the rules were
    /// read: of all files together, or as an image has them. Where there are such rules, ask a reader for
    /// [`verdict`](RuleReader::verdict)s.
    ///
    /// Updates leave them as they are. A rule that comes by an update and ranks before one of them is certain
    /// all the same.
    pub fn doubts(&self) -> &Doubts<T> {
        &self.doubts
    }

    /// The engine that it was built with.
    pub fn engine(&self) -> EngineName {
        self.engine
    }

    /// The GPUs that the table is on, for example for the [`fleet`](ClassifierBuilder::fleet) of another
    /// table. `None` where lookups run on the CPU alone.
    pub fn fleet(&self) -> Option<&Fleet> {
        self.offload.as_ref().map(|offload| offload.remote().copies().fleet())
    }

    /// Why lookups run on the CPU though [`Device::Auto`](crate::Device::Auto) was asked for, from the start
    /// or since a GPU failed. `None` where nothing is amiss.
    pub fn device_note(&self) -> Option<String> {
        let is_out = || self.offload.as_ref()?.remote().copies().is_out();
        self.device_note.clone().or_else(|| Some(is_out()?.to_string()))
    }

    /// Numbers of tuples that readers of this classifier looked up in batches, on the CPU and on GPUs. `None`
    /// where lookups run on the CPU alone.
    pub fn lookups(&self) -> Option<Counts> {
        self.offload.as_ref().map(|offload| offload.counts())
    }

    /// Bytes held: both copies of the compiled table and of the actions, the rules, and what the engine keeps
    /// for updates. Each GPU holds one more copy of the table.
    pub fn memory_usage(&self) -> u64 {
        self.live.memory_usage()
    }

    /// How often an update made the table be built anew.
    pub fn rebuilds(&self) -> u64 {
        self.live.rebuilds()
    }

    /// How many calls have failed, and so changed nothing.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Saves the compiled table and its rules, with what is in [doubt](Self::doubts), as an image file. A
    /// file that is there is replaced, whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.live.save(&NextHops::new(), &self.doubts, path.as_ref())
    }

    /// Saves the rules like [`save`](Self::save), with what the actions stand for, as text, for
    /// [`Labels::open`].
    ///
    /// Fails where two labels have the same text: they could not be told apart when they are read.
    pub fn save_labelled<V: Display>(&self, path: impl AsRef<Path>, labels: &Labels<V>) -> Result<(), Error> {
        self.live.save(&labels.to_texts()?, &self.doubts, path.as_ref())
    }
}

/// Whether updates put a rule under a number that was given before.
fn gives_again<T: RuleTuple>(mut last: u32, updates: &[RuleUpdate<T>]) -> bool {
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
        f.debug_struct("Classifier")
            .field("tuple", &T::NAME)
            .field("engine", &self.engine)
            .field("len", &self.len())
            .field("memory_usage", &self.memory_usage())
            .finish()
    }
}

/// Builds a live table, and a copy on GPUs that follows it where there are some.
struct Build<'d, T> {
    rules: RuleSet<T>,
    options: BuildOptions,
    device: &'d mut DeviceSettings,
    memory_cap: Option<u64>,
    /// Whether no answer can be in doubt.
    is_whole: bool,
}

/// A live table and its copy on GPUs.
type Built<T> = (Box<dyn AnyLive<T>>, Option<Arc<Offload<T>>>);

impl<T: RuleTuple> Visitor<T> for Build<'_, T> {
    type Output = Result<Built<T>, Error>;

    fn visit<E: Engine<T, Table: OnDevice>>(self) -> Self::Output {
        if self.is_whole { self.with::<E, Actions>() } else { self.with::<E, Ranked>() }
    }
}

impl<T: RuleTuple> Build<'_, T> {
    /// Builds the table with what lies beside it.
    fn with<E: Engine<T, Table: OnDevice>, B: RuleBeside<T>>(self) -> Result<Built<T>, Error> {
        let live = LiveRules::<T, E, B>::with(self.rules, self.options);
        let mut live = live.map_err(|source: BuildError| Error::of_rules(source, self.memory_cap))?;
        let Some(fleet) = self.device.fleet.clone() else { return Ok((Box::new(live), None)) };
        let (sample, by, mut offload) = (device::sample(live.rules(), &fleet), self.device.by(), None);
        let followed = live.follow(|table| {
            let made = offload.insert(Arc::new(beside(&fleet, table, &sample, by, all_cores())?));
            Ok(made.remote().follower())
        });
        self.device.or_cpu(followed)?;
        Ok((Box::new(live), offload))
    }
}

/// Makes a live table of an image.
struct Resume<T> {
    rules: RuleSet<T>,
    file: RuleImageFile,
    /// Whether no answer can be in doubt.
    is_whole: bool,
}

impl<T: RuleTuple> Visitor<T> for Resume<T> {
    type Output = Result<Box<dyn AnyLive<T>>, Error>;

    fn visit<E: Engine<T, Table: OnDevice>>(self) -> Self::Output {
        if self.is_whole { self.with::<E, Actions>() } else { self.with::<E, Ranked>() }
    }
}

impl<T: RuleTuple> Resume<T> {
    /// Resumes the table with what lies beside it.
    fn with<E: Engine<T>, B: RuleBeside<T>>(self) -> Result<Box<dyn AnyLive<T>>, Error> {
        let table = self.file.into_table()?;
        Ok(Box::new(LiveRules::<T, E, B>::resume_with(self.rules, table, BuildOptions::default())))
    }
}
