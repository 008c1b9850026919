//! [`ClassifierBuilder`]: a classifier's rules, and how it is to be built.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use wirespeed_classify::read::{ReadOptions, RuleFile, RuleReport, Source, read_rules};
use wirespeed_classify::{BuildOptions, Rule, RuleSet, Tuple};
use wirespeed_gpu::runtime::Fleet;

use super::classifier::Classifier;
use super::device;
use super::engine::{AUTO, best, best_on_gpu, choose_by};
use crate::builder::parse;
use crate::device::{Device, DeviceSettings};
use crate::error::Error;
use crate::labels::Labels;
use crate::memory::half;

/// Collects rules, and builds their classifier. Of rules of one priority the one that was added first wins, so the order of calls is the
/// order of rules. What goes wrong on the way is told by [`build`](Self::build).
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct ClassifierBuilder<T: Tuple> {
    rules: RuleSet<T>,
    reports: Vec<RuleReport>,
    leave_out: bool,
    engine: String,
    memory_cap: Option<u64>,
    head_room: u32,
    seed: Option<u64>,
    device: DeviceSettings,
    error: Option<Error>,
}

impl<T: Tuple> ClassifierBuilder<T> {
    pub(super) fn new() -> Self {
        Self {
            rules: RuleSet::new(),
            reports: Vec::new(),
            leave_out: false,
            engine: AUTO.to_owned(),
            memory_cap: None,
            head_room: 0,
            seed: None,
            device: DeviceSettings::default(),
            error: None,
        }
    }

    /// Adds rules, whose actions are indexes of the caller's own table of actions. Numbers go on from that of the last rule, in order.
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule<T>>) -> Self {
        for rule in rules {
            self = self.with(rule);
        }
        self
    }

    /// Adds rules with values, which get their indexes in `labels`: these are the rules' actions.
    pub fn labelled_rules<V: Eq + Hash>(
        mut self,
        labels: &Labels<V>,
        rules: impl IntoIterator<Item = (Rule<T>, V)>,
    ) -> Self {
        for (rule, value) in rules {
            self = match labels.intern(value) {
                Ok(action) => self.with(rule.with_action(action.0)),
                Err(error) => return self.failed(error.into()),
            };
        }
        self
    }

    fn with(mut self, rule: Rule<T>) -> Self {
        match self.rules.insert(rule) {
            Ok(_) => self,
            Err(error) => self.failed(error.into()),
        }
    }

    /// Adds rules that are there already. Where these are the first they keep their numbers; else they come after the others, in the
    /// order of theirs.
    pub fn rule_set(mut self, rules: RuleSet<T>) -> Self {
        if self.rules.is_empty() {
            self.rules = rules;
            return self;
        }
        self.rules(rules.sorted().into_iter().map(|(_, rule)| rule.clone()))
    }

    /// Adds what was read, such as with other [`ReadOptions`] than [`file`](Self::file) takes: another chain of a firewall, or another
    /// table of a switch. The names of its actions are parsed into labels; where it has none, their numbers.
    pub fn read<V: FromStr<Err: ToString> + Eq + Hash>(
        self,
        (file, report): (RuleFile<T>, RuleReport),
        labels: &Labels<V>,
    ) -> Self {
        match labelled(&file, labels) {
            Ok(rules) => self.reported(rules, report),
            Err(error) => self.failed(error),
        }
    }

    /// Adds the rules of a file: `iptables-save`, `nft -j list ruleset`, `ovs-ofctl dump-flows`, filters of ClassBench, or rules in words,
    /// `src=10.0.0.0/8 dport=443 proto=tcp priority=10 action=3`. Which it is ([`RuleFormat`](super::read::RuleFormat)) is recognised by
    /// content; plain or compressed with gzip, bzip2 or zstd. Actions as `ACCEPT`, `drop` or `output:2` are parsed into labels, and so
    /// are numbers where the format has no names: a `Labels<String>` takes any.
    ///
    /// A line that is no rule makes [`build`](Self::build) fail, with the file and the line; so does a rule that a packet's header fields
    /// can't decide, unless [`leave_out`](Self::leave_out) allows that.
    pub fn file<V: FromStr<Err: ToString> + Eq + Hash>(
        self,
        path: impl AsRef<Path>,
        labels: &Labels<V>,
    ) -> Self {
        match open(path.as_ref()) {
            Ok(read) => self.read(read, labels),
            Err(error) => self.failed(error),
        }
    }

    /// Adds the rules of a file, all with one value: filters that have no actions, say. In all else as [`file`](Self::file).
    pub fn list<V: Eq + Hash>(self, path: impl AsRef<Path>, labels: &Labels<V>, value: V) -> Self {
        let action = match labels.intern(value) {
            Ok(action) => action.0,
            Err(error) => return self.failed(error.into()),
        };
        match open::<T>(path.as_ref()) {
            Ok((file, report)) => match with_actions(&file.rules, |_| Ok(action)) {
                Ok(rules) => self.reported(rules, report),
                Err(error) => self.failed(error),
            },
            Err(error) => self.failed(error),
        }
    }

    fn reported(mut self, rules: RuleSet<T>, report: RuleReport) -> Self {
        self.reports.push(report);
        self.rule_set(rules)
    }

    /// Whether to build without the rules of files that a packet's header fields can't decide, such as those that ask for the state of a
    /// connection or jump to another chain. Without it building fails where there is one: what is left of an access list need not be
    /// what was meant. [`Classifier::reports`] says which were left out.
    pub fn leave_out(mut self, leave_out: bool) -> Self {
        self.leave_out = leave_out;
        self
    }

    /// Which engine: its name, an [`EngineName`](super::engine::EngineName), or `auto`, the best for the rules and the device, which is
    /// also what is taken where none is given.
    pub fn engine(mut self, engine: impl AsRef<str>) -> Self {
        self.engine = engine.as_ref().to_owned();
        self
    }

    /// Most bytes that the compiled table may take, both of its copies together; past it building fails. Rules come on top, and a
    /// rebuild takes as much again while it lasts. Without it half of the machine's memory is the cap, or of what the control group of the
    /// process may take.
    pub fn memory_cap(mut self, bytes: u64) -> Self {
        self.memory_cap = Some(bytes);
        self
    }

    /// Room to leave for rules to come, in hundredths of what the rules take now. Without it there is some, and the table is built anew
    /// when that is spent.
    pub fn head_room(mut self, hundredths: u32) -> Self {
        self.head_room = hundredths;
        self
    }

    /// What engines that hash draw their seed from, for tables that are to be equal byte for byte. Whoever can choose rules or packets
    /// must not know it; without it, it is random for each process.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Where batches are looked up: on the CPU, where this isn't called; on this machine's GPUs; or on either by load. Batches of
    /// [`RuleReader`](super::RuleReader)s and [`RulePipeline`](super::RulePipeline)s go there; single lookups and those through a
    /// [`RuleGuard`](super::RuleGuard) stay on the CPU. Updates reach both, and a GPU that fails costs no answer: the CPU gives it.
    ///
    /// A batch of up to 16,384 tuples, or what a slot of the GPUs holds where that is less, sees one state of the rules there too; a
    /// larger one goes in parts, each of which does.
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let rules: [Rule<Ipv4Tuple>; 1] = ["dport=443 proto=tcp".parse()?];
    /// let classifier = Classifier::builder().rules(rules).device(Device::Auto).build()?;
    /// if let Some(why) = classifier.device_note() {
    ///     println!("on the CPU: {why}");
    /// }
    /// let mut numbers = [0; 2];
    /// let tuples = ["src=192.0.2.1 dport=443 proto=tcp".parse()?, "src=192.0.2.1 dport=80 proto=tcp".parse()?];
    /// classifier.reader().lookup_batch(&tuples, &mut numbers);
    /// assert_eq!(numbers, [1, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn device(mut self, device: Device) -> Self {
        self.device.device = device;
        self
    }

    /// How long a batch may take, for [`Device::Auto`]; see [`Builder::latency_bound`](crate::Builder::latency_bound).
    pub fn latency_bound(mut self, bound: Duration) -> Self {
        self.device.latency_bound = Some(bound);
        self
    }

    /// The GPUs, where they are up already, as for another table ([`Classifier::fleet`]), or are to be started with other options. Without
    /// them all GPUs are started with [`device::options`], for this classifier alone. Slots that were made for other keys hold as many
    /// tuples as there is room for.
    pub fn fleet(mut self, fleet: Fleet) -> Self {
        self.device.fleet = Some(fleet);
        self
    }

    /// Builds the classifier.
    ///
    /// An error where a source could not be read, or not whole, no engine has that name, the rules are more than the engine or the cap
    /// allows, or only GPUs will do and none is usable.
    pub fn build(self) -> Result<Classifier<T>, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut reports = self.reports;
        if !self.leave_out
            && let Some(at) = reports.iter().position(|report| !report.left_out.is_empty())
        {
            return Err(Error::RulesLeftOut { report: Box::new(reports.swap_remove(at)) });
        }
        let mut device = self.device;
        device.open(&device::options::<T>())?;
        let best = || if device.fleet.is_some() { best_on_gpu(&self.rules) } else { best(&self.rules) };
        let engine = choose_by(&self.engine, best)?;
        // There are two copies of a live table, and an engine's cap is for one.
        let memory_cap = self.memory_cap.or_else(half);
        let options = BuildOptions {
            memory_cap: memory_cap.map(|cap| cap / 2),
            head_room: self.head_room,
            seed: self.seed,
        };
        Classifier::build(self.rules, engine, options, memory_cap, device, reports)
    }

    /// Keeps the first error.
    fn failed(mut self, error: Error) -> Self {
        self.error.get_or_insert(error);
        self
    }
}

/// Reads a file of rules, with what a packet's fields can't decide in the report.
fn open<T: Tuple>(path: &Path) -> Result<(RuleFile<T>, RuleReport), Error> {
    Ok(read_rules(&Source::Path(path.to_owned()), &ReadOptions::default())?)
}

/// The rules with the indexes that their actions have as labels, in the order in which rules bring them.
fn labelled<T: Tuple, V: FromStr<Err: ToString> + Eq + Hash>(
    file: &RuleFile<T>,
    labels: &Labels<V>,
) -> Result<RuleSet<T>, Error> {
    let mut known: HashMap<u32, u32> = HashMap::new();
    with_actions(&file.rules, |action| {
        if let Some(&label) = known.get(&action) {
            return Ok(label);
        }
        let name = usize::try_from(action).ok().and_then(|at| file.actions.get(at));
        let value = match name {
            Some(name) => parse(name)?,
            None => parse(&action.to_string())?,
        };
        let label = labels.intern(value)?.0;
        known.insert(action, label);
        Ok(label)
    })
}

/// The rules under their numbers with other actions, which are asked for in order.
fn with_actions<T: Tuple>(
    rules: &RuleSet<T>,
    mut action: impl FnMut(u32) -> Result<u32, Error>,
) -> Result<RuleSet<T>, Error> {
    let mut others = RuleSet::new();
    for (number, rule) in rules.sorted() {
        others.set(number.get(), rule.clone().with_action(action(rule.action())?))?;
    }
    Ok(others)
}
