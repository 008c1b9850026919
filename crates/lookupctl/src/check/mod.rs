//! `verify` of addresses, names and rules: engines are held against the truth, compiled and live, before and
//! after updates, on this machine's cores and on its GPUs.

mod arguments;
pub(crate) mod subject;
pub(crate) mod verdict;

use std::fmt::Display;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::{Serialize, Serializer};
use subject::{Lookups, Subject};
use verdict::{Line, Verdict};
use wirespeed::Fleet;
use wirespeed::engine::{EngineName, OwnedKeys, Served, Wanted};
use wirespeed_input::plural;
use wirespeed_table::{BuildOptions, Model};

use crate::Outcome;
use crate::device::On;
use crate::output::{Output, progress};
use crate::tables::{self, cannot_build, cannot_upload};
use crate::threads::share_out;

pub(crate) use arguments::{CheckArguments, copies, updated};

/// Updates that readers see appear at once.
const GROUP: usize = 1024;

/// One state of a table: what is right, and which keys to ask for.
pub(crate) trait Truth<D: Served>: Sync {
    /// The lookups that are checked.
    type Lookups: Lookups<D>;
    /// A wrong answer.
    type Mismatch: Display + Serialize + Clone + Ord + Send;
    /// Memory that a core keeps from one part to the next.
    type Scratch: Default + Send;
    /// More to tell, on the line of the verdict and in JSON.
    type Aside: Display + Serialize;

    /// An entry of the table, in the singular: for the key in JSON, which is its plural, and for people.
    const ENTRIES: [&'static str; 2];
    /// A key that is looked up, in the singular: for the key in JSON, which is its plural, and for people.
    const KEYS: &'static str;

    /// Entries of the table.
    fn entries(&self) -> usize;

    /// The parts of the keys, which cores share.
    fn parts(&self) -> usize;

    /// Checks a table at the keys of a part, in each way of looking up.
    fn check(
        &self,
        part: usize,
        table: &Subject<'_, D>,
        scratch: &mut Self::Scratch,
        verdict: &mut Verdict<Self::Mismatch>,
    );

    /// Keys like those to come, for the choice of a kernel; there may be none.
    fn sample(&self) -> D::Owned;

    /// What else to tell.
    fn aside(&self) -> Self::Aside;
}

/// What every engine has to pass.
pub(crate) struct Job<'a, D: Served, T> {
    pub(crate) model: D::Model,
    pub(crate) updates: &'a [D::Update],
    pub(crate) before: T,
    /// The state after the updates, if there are any.
    pub(crate) after: Option<T>,
    pub(crate) wanted: Wanted<D>,
    pub(crate) fleet: Option<Fleet>,
    pub(crate) threads: usize,
    pub(crate) build: BuildOptions,
}

impl<D: Served<Model: Clone>, T: Truth<D>> Job<'_, D, T> {
    /// Checks engines, and tells what each came to.
    pub(crate) fn tell(&self, engines: &[EngineName], json: bool) -> Result<Outcome> {
        verdict::tell(engines, json, |engine| self.check(engine))
    }

    /// One engine, in each state.
    pub(crate) fn check(&self, engine: EngineName) -> Result<Vec<Report<T::Mismatch, T::Aside>>> {
        match &self.after {
            None => self.compiled(engine),
            Some(after) => self.live(engine, after),
        }
    }

    /// A table that stays.
    fn compiled(&self, engine: EngineName) -> Result<Vec<Report<T::Mismatch, T::Aside>>> {
        let began = Instant::now();
        let state = State { engine, truth: &self.before, updates: 0, began };
        let compiled = tables::compile::<D>(engine, self.model.source(), &self.build)?;
        let Some(fleet) = &self.fleet else {
            return Ok(vec![self.report(state, Subject::Cpu(&*compiled.table), None)?]);
        };
        let sample = self.before.sample();
        let reaches = T::Lookups::reaches(self.model.reach()).into_iter();
        let on_gpu = reaches.map(|reach| {
            let remote = compiled.table.upload(fleet, D::key_hint(sample.keys(None), reach));
            let remote = remote.with_context(|| cannot_upload(engine))?;
            self.report(state, Subject::on_gpu(&remote), T::Lookups::key_bytes(&remote))
        });
        on_gpu.collect()
    }

    /// A live table: checks, applies the updates, checks again.
    fn live(&self, engine: EngineName, after: &T) -> Result<Vec<Report<T::Mismatch, T::Aside>>> {
        let began = Instant::now();
        let live = D::live(engine, self.model.clone(), self.build.clone(), self.wanted.clone())?;
        let mut live = live.with_context(|| cannot_build(engine))?;
        let sample = self.before.sample();
        let hint = D::key_hint(sample.keys(None), live.reach());
        let upload = |fleet| live.upload(fleet, hint).with_context(|| cannot_upload(engine));
        let remote = self.fleet.as_ref().map(upload).transpose()?;
        let (reader, key_bytes) = (live.reader(), remote.as_ref().and_then(T::Lookups::key_bytes));
        let report = |state| {
            let entered = reader.enter();
            let subject = remote.as_ref().map_or(Subject::Cpu(&entered.table), Subject::on_gpu);
            self.report(state, subject, key_bytes)
        };
        let before = report(State { engine, truth: &self.before, updates: 0, began })?;
        let began = Instant::now();
        for group in self.updates.chunks(GROUP) {
            live.apply(group).context("the updated table can't be built")?;
        }
        let after = report(State { engine, truth: after, updates: self.updates.len(), began })?;
        Ok(vec![before, after])
    }

    fn report(
        &self,
        state: State<'_, T>,
        subject: Subject<'_, D>,
        key_bytes: Option<usize>,
    ) -> Result<Report<T::Mismatch, T::Aside>> {
        let State { engine, truth, updates, began } = state;
        let device = if subject.is_on_gpu() { On::Gpu } else { On::Cpu };
        let verdict = check(truth, subject, self.threads, engine.as_str())?;
        Ok(Report {
            engine: engine.as_str(),
            device: device.name(),
            key_bytes,
            counts: Counts {
                entries: (T::ENTRIES, truth.entries() as u64),
                keys: (T::KEYS, verdict.checked),
            },
            updates,
            mismatches: verdict.mismatches,
            aside: truth.aside(),
            seconds: began.elapsed().as_secs_f64(),
            first: verdict.first,
        })
    }
}

/// Holds a table against the truth. An error if a GPU gives no answers: no answer is no right answer.
pub(crate) fn check<D: Served, T: Truth<D>>(
    truth: &T,
    subject: Subject<'_, D>,
    threads: usize,
    what: &'static str,
) -> Result<Verdict<T::Mismatch>> {
    let bar = progress(truth.parts() as u64, what);
    let parts = share_out(truth.parts(), threads, Default::default, |(verdict, scratch), part| {
        truth.check(part, &subject, scratch, verdict);
        bar.inc(1);
    });
    bar.finish_and_clear();
    match subject.failure() {
        None => Ok(Verdict::sum(parts.into_iter().map(|(verdict, _)| verdict))),
        Some(why) => Err(why).with_context(|| format!("{what} on the GPU")),
    }
}

/// An engine in a state.
struct State<'a, T> {
    engine: EngineName,
    truth: &'a T,
    updates: usize,
    began: Instant,
}

impl<T> Clone for State<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for State<'_, T> {}

/// What one engine came to in one state.
#[derive(Debug, Serialize)]
pub(crate) struct Report<M, X> {
    pub(crate) engine: &'static str,
    pub(crate) device: &'static str,
    /// Bytes of the keys that went to a GPU. They are of as few as prefixes allow, and may get more with
    /// updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_bytes: Option<usize>,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    updates: usize,
    pub(crate) mismatches: u64,
    #[serde(flatten)]
    aside: X,
    seconds: f64,
    first: Vec<M>,
}

/// How many entries and keys there were. In JSON each count has its own key.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Entries of the table: one's name in JSON, its name for people, how many there are.
    entries: ([&'static str; 2], u64),
    /// Keys that were looked up: one's name, how many there are.
    pub(crate) keys: (&'static str, u64),
}

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { entries: ([key, _], entries), keys } = self;
        serializer.collect_map([(plural(2, key), entries), (plural(2, keys.0), &keys.1)])
    }
}

impl<M: Display + Serialize, X: Display + Serialize> verdict::Report for Report<M, X> {
    fn mismatches(&self) -> u64 {
        self.mismatches
    }

    fn print(&self, output: &mut Output) -> Result<()> {
        let line = Line {
            engine: self.engine,
            is_on_gpu: self.device == On::Gpu.name(),
            key_bytes: self.key_bytes,
            table: (self.counts.entries.1, self.counts.entries.0[1]),
            updates: self.updates,
            keys: (self.counts.keys.1, self.counts.keys.0),
            mismatches: self.mismatches,
            seconds: self.seconds,
        };
        output.line(format_args!("{line}{}", self.aside))?;
        self.first.iter().try_for_each(|wrong| output.line(format_args!("  {wrong}")))
    }
}

#[cfg(test)]
impl<'a, D: Served, T> Job<'a, D, T> {
    /// A job of a test.
    pub(crate) fn of_test(
        model: D::Model,
        updates: &'a [D::Update],
        (before, after): (T, Option<T>),
        wanted: Wanted<D>,
        fleet: Option<Fleet>,
    ) -> Self {
        Self { model, updates, before, after, wanted, fleet, threads: 2, build: BuildOptions::default() }
    }
}

/// Checks that a table of other entries is found out on a GPU, and that a lost GPU is an error. Returns what
/// is wrong.
#[cfg(test)]
pub(crate) fn found_out<D: Served, T: Truth<D>>(
    truth: &T,
    remote: &D::Remote,
    loss: &std::sync::atomic::AtomicBool,
) -> Vec<T::Mismatch> {
    let verdict = check(truth, Subject::on_gpu(remote), 2, "other").unwrap();
    assert!(verdict.mismatches > 0);
    loss.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(check(truth, Subject::on_gpu(remote), 2, "lost").is_err(), "no answer is no right answer");
    verdict.first
}
