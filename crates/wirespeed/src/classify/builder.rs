//! [`ClassifierBuilder`]: collects the rules and settings of a classifier.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem;
use std::path::Path;
use std::str::FromStr;

use wirespeed_classify::read::{
    Doubts, Effect, ReadOptions, RuleFile, RuleFormat, RuleReport, Source, read_rules,
};
use wirespeed_classify::{Rule, RuleSet};

use super::classifier::Classifier;
use crate::engine::RuleTuple;
use crate::error::Error;
use crate::labels::{Labels, parse};
use crate::memory::Cap;
use crate::settings::{Draft, settings_methods};
use crate::uses::Claims;

/// Collects rules, and builds their classifier. Among rules of equal priority the rule that was added first
/// wins, so the order of calls is the order of rules. [`build`](Self::build) reports the first error of all
/// calls.
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct ClassifierBuilder<T: RuleTuple> {
    rules: RuleSet<T>,
    reports: Vec<RuleReport>,
    doubts: Doubts<T>,
    /// The facts, the chain and the table of files that are added.
    reading: ReadOptions,
    leave_out: bool,
    draft: Draft,
}

impl<T: RuleTuple> ClassifierBuilder<T> {
    #[inline(never)] // one copy for all crates
    pub(super) fn new(reading: ReadOptions) -> Self {
        Self {
            rules: RuleSet::new(),
            reports: Vec::new(),
            doubts: Doubts::none(),
            reading,
            leave_out: false,
            draft: Draft::default(),
        }
    }

    /// Adds rules whose actions are indexes of the caller's own table of actions. Numbers continue after the
    /// last rule, in order.
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule<T>>) -> Self {
        for rule in rules {
            self = self.with(rule);
        }
        self
    }

    /// Adds rules with values of the caller's type as actions. Each value gets an index in `labels`.
    pub fn labelled_rules<V: Eq + Hash>(
        mut self,
        labels: &Labels<V>,
        rules: impl IntoIterator<Item = (Rule<T>, V)>,
    ) -> Self {
        self.draft.claims.attach(labels.counts());
        for (rule, value) in rules {
            self = match labels.intern_for(&mut self.draft.claims, value) {
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

    /// Adds the rules of a set. If the builder has no rules yet they keep their numbers. Otherwise they come
    /// after the others, in the order of their numbers.
    pub fn rule_set(mut self, rules: RuleSet<T>) -> Self {
        if self.rules.is_empty() {
            self.rules = rules;
            return self;
        }
        self.rules(rules.sorted().into_iter().map(|(_, rule)| rule.clone()))
    }

    /// States a fact about all packets that tuples don't hold, as `KEY=VALUE`: `ct=new` (every packet begins
    /// a connection), `in=eth0` (every packet came in by that interface). It decides rules of files that
    /// depend on the fact and are undecided without it. The keys are listed at
    /// [`AssumptionKey`](super::read::AssumptionKey). Call it before the files are added.
    ///
    /// Makes [`build`](Self::build) fail if a file was added before, if the key or the value does not exist,
    /// or if the key was stated with another value.
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let saved = dir.path().join("rules.v4");
    /// std::fs::write(
    ///     &saved,
    ///     "*filter\n:INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\n\
    ///      -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n-A INPUT -p tcp --dport 443 -j ACCEPT\nCOMMIT\n",
    /// )?;
    /// let verdicts = Labels::<String>::new();
    /// let builder = Classifier::<Ipv4Tuple>::builder().assume("ct=new").assume("in=eth0");
    /// let classifier = builder.file(&saved, &verdicts).build()?;
    /// assert!(classifier.doubts().is_empty()); // whole, for such packets
    /// assert_eq!(classifier.doubts().assumed.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn assume(mut self, fact: impl AsRef<str>) -> Self {
        let fact = fact.as_ref();
        if let Some(report) = self.reports.first() {
            let (fact, file) = (fact.to_owned(), report.name.clone());
            return self.failed(Error::AssumedLate { fact, file });
        }
        match fact.parse().and_then(|fact| mem::take(&mut self.reading.assume).with(fact)) {
            Ok(assume) => {
                self.reading.assume = assume;
                self
            }
            Err(error) => self.failed(error.into()),
        }
    }

    /// Chooses the chain of files that are added after it or [loaded](Classifier::load) later: of
    /// `iptables-save` (by default `INPUT`) or of nft (by default the only one with a filter hook); security
    /// groups of AWS, by ids or names with commas between; or the network policy of Kubernetes, by `NAME` or
    /// `NAMESPACE/NAME` (by default the only one).
    ///
    /// Makes [`build`](Self::build) fail if a file has no such chain, or is of a format without chains.
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let saved = dir.path().join("rules.v4");
    /// std::fs::write(
    ///     &saved,
    ///     "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n-A FORWARD -p tcp --dport 443 -j ACCEPT\nCOMMIT\n",
    /// )?;
    /// let verdicts = Labels::<String>::new();
    /// let classifier = Classifier::<Ipv4Tuple>::builder().chain("FORWARD").file(&saved, &verdicts).build()?;
    /// assert_eq!(classifier.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn chain(mut self, chain: impl Into<String>) -> Self {
        self.reading.chain = Some(chain.into());
        self
    }

    /// Chooses the table of files like [`chain`](Self::chain): of `iptables-save` (by default `filter`) or of
    /// nft (by default the only one with such a chain); `ingress` (the default) or `egress` of security
    /// groups and network policies. Makes [`build`](Self::build) fail like [`chain`](Self::chain).
    pub fn rule_table(mut self, table: impl Into<String>) -> Self {
        self.reading.table_name = Some(table.into());
        self
    }

    /// Names the format of files that are added after it or [loaded](Classifier::load) later. By default it
    /// is recognised by content.
    pub fn format(mut self, format: RuleFormat) -> Self {
        self.reading.format = Some(format);
        self
    }

    /// Adds rules that were read, for example with other [`ReadOptions`] than [`file`](Self::file) uses:
    /// another table of a switch. The names of actions are parsed into
    /// labels. If there are no names the numbers are parsed.
    pub fn read<V: FromStr<Err: ToString> + Eq + Hash>(
        self,
        read: (RuleFile<T>, RuleReport),
        labels: &Labels<V>,
    ) -> Self {
        self.read_from(None, read, labels)
    }

    /// Adds rules that were read, from this file if it is known.
    fn read_from<V: FromStr<Err: ToString> + Eq + Hash>(
        mut self,
        path: Option<&Path>,
        (file, report): (RuleFile<T>, RuleReport),
        labels: &Labels<V>,
    ) -> Self {
        self.draft.claims.attach(labels.counts());
        let claims = &mut self.draft.claims;
        let (mut known, actions) = (HashMap::new(), &file.actions);
        let mut label = |action| label_of(&mut known, actions, (labels, &mut *claims), action);
        let rules = match with_actions(&file.rules, &mut label) {
            Ok(rules) => rules,
            Err(error) => {
                return self.failed(match path {
                    Some(path) => error.in_file(path),
                    None => error,
                });
            }
        };
        let mut doubts = file.doubts;
        with_labels(&mut doubts, label);
        self.reported(rules, doubts, report)
    }

    /// Adds the rules of a file: `iptables-save`, `nft -j list ruleset`, `ovs-ofctl dump-flows`, ClassBench
    /// filters, security groups of AWS, network policies of Kubernetes, or rules as text,
    /// `src=10.0.0.0/8 dport=443 proto=tcp priority=10 action=3`. The format
    /// ([`RuleFormat`](super::read::RuleFormat)) is recognised by content, plain or compressed with gzip,
    /// bzip2 or zstd. Actions such as `ACCEPT`, `drop` or `output:2` are parsed into labels. If the format
    /// has no names for actions the numbers are parsed: a `Labels<String>` takes any.
    ///
    /// A line that is not a rule makes [`build`](Self::build) fail, with the file and the line. A rule that
    /// header fields can't decide makes it fail, too, unless the facts that it needs are
    /// [assumed](Self::assume), or [`leave_out`](Self::leave_out) allows it.
    pub fn file<V: FromStr<Err: ToString> + Eq + Hash>(
        self,
        path: impl AsRef<Path>,
        labels: &Labels<V>,
    ) -> Self {
        let path = path.as_ref();
        match self.open(path) {
            Ok(read) => self.read_from(Some(path), read, labels),
            Err(error) => self.failed(error),
        }
    }

    /// Adds the rules of a file, all with one value as action, for example filters that have no actions.
    /// Otherwise like [`file`](Self::file).
    pub fn list<V: Eq + Hash>(mut self, path: impl AsRef<Path>, labels: &Labels<V>, value: V) -> Self {
        self.draft.claims.attach(labels.counts());
        let action = match labels.intern_for(&mut self.draft.claims, value) {
            Ok(action) => action.0,
            Err(error) => return self.failed(error.into()),
        };
        match self.open(path.as_ref()) {
            Ok((file, report)) => match (with_actions(&file.rules, |_| Ok(action)), file.doubts) {
                (Ok(rules), mut doubts) => {
                    doubts
                        .uncertain
                        .iter_mut()
                        .for_each(|one| one.rule = one.rule.clone().with_action(action));
                    self.reported(rules, doubts, report)
                }
                (Err(error), _) => self.failed(error),
            },
            Err(error) => self.failed(error),
        }
    }

    fn open(&self, path: &Path) -> Result<(RuleFile<T>, RuleReport), Error> {
        read_file(path, &self.reading)
    }

    fn reported(mut self, rules: RuleSet<T>, mut doubts: Doubts<T>, mut report: RuleReport) -> Self {
        // Rules in doubt count as left out, also in reports of other callers.
        if report.left_out.is_empty() {
            report.left_out.extend(doubts.uncertain.iter().map(|one| one.why.clone()));
        }
        self.reports.push(report);
        if !self.rules.is_empty() {
            // These rules come after the others, in order, so the position of each doubt moves with them.
            let numbers: Vec<u32> = rules.sorted().iter().map(|(number, _)| number.get()).collect();
            doubts.renumber(|before| {
                let ahead = numbers.partition_point(|&number| number < before);
                u32::try_from(ahead).map_or(u32::MAX, |ahead| ahead.saturating_add(1))
            });
        }
        let shift = if self.rules.is_empty() { 0 } else { self.rules.last_number() };
        self.doubts.append(doubts, shift);
        self.rule_set(rules)
    }

    /// Sets whether to build without the rules of files that header fields can't decide, such as rules that
    /// test the owner of a socket, or the state of a connection without an [assumption](Self::assume). By
    /// default building fails if there is such a rule.
    ///
    /// The answer may then differ from the firewall's: ask for [`verdict`](super::RuleReader::verdict)s, not
    /// only for [`find`](super::RuleReader::find) or [`lookup`](super::RuleReader::lookup). A verdict is
    /// [uncertain](super::RuleVerdict::Uncertain) if a rule that was left out could change it.
    /// [`Classifier::doubts`] lists these rules, and a saved image keeps them. The choice holds for files
    /// that are [loaded](Classifier::load) later, too.
    pub fn leave_out(mut self, leave_out: bool) -> Self {
        self.leave_out = leave_out;
        self
    }

    settings_methods! {
        /// Limits the bytes that both copies of the compiled table may take together. A table that needs more
        /// is not built. The rules are not counted. A rebuild temporarily takes the same amount again. The
        /// default is half of the machine's memory, or half of the limit of the process's control group.
        memory_cap;

        /// Leaves head room for future rules, in hundredths of the space that the rules take now. Some head
        /// room is left by default. When it is used up the table is rebuilt.
        head_room;

        /// Sets the device that looks batches up: the CPU (the default), this machine's GPUs, or either by
        /// load. This applies to batches of [`RuleReader`](super::RuleReader)s and
        /// [`RulePipeline`](super::RulePipeline)s. Single lookups and lookups through a
        /// [`RuleGuard`](super::RuleGuard) stay on the CPU. Updates reach both. If a GPU fails, the CPU
        /// answers.
        ///
        /// A batch on GPUs sees one state of the rules if it has at most 16,384 tuples, or fewer if the GPUs'
        /// slots hold fewer. A larger batch goes in parts, and each part sees one state.
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
        device;

        /// Gives the GPUs for the classifier, if they are started already, for example for another table
        /// ([`Classifier::fleet`]), or need other options. The default is to start all GPUs with
        /// [`Served::gpu_options`](crate::engine::Served::gpu_options), for this classifier only. Slots that
        /// were made for other keys hold as many tuples as fit.
        fleet;
    }

    /// Builds the classifier.
    ///
    /// Fails if a source could not be read, or not completely, if no engine has the name, the rules exceed a
    /// limit of the engine or the cap, or if [`Device::Gpu`](crate::Device::Gpu) was asked for and no GPU is
    /// usable.
    #[inline(never)] // one copy for all crates
    pub fn build(mut self) -> Result<Classifier<T>, Error> {
        let mut settings = mem::take(&mut self.draft.settings);
        let collected = self.collected()?;
        let (choice, options) = settings.resolve::<T>(&collected.rules, Cap::Named)?;
        Classifier::build(collected, choice, options, settings.device)
    }

    /// The rules that were added, and what lies beside them.
    pub(super) fn collected(self) -> Result<Collected<T>, Error> {
        let Self { rules, mut reports, doubts, reading, leave_out, draft } = self;
        let (_, claims) = draft.finish()?;
        if !leave_out && let Some(at) = reports.iter().position(|report| !report.left_out.is_empty()) {
            return Err(Error::RulesLeftOut { report: Box::new(reports.swap_remove(at)) });
        }
        Ok(Collected { rules, reports, doubts, reading, leave_out, claims })
    }
}

/// The rules of a builder, and what lies beside them.
pub(super) struct Collected<T> {
    pub(super) rules: RuleSet<T>,
    pub(super) reports: Vec<RuleReport>,
    pub(super) doubts: Doubts<T>,
    pub(super) reading: ReadOptions,
    pub(super) leave_out: bool,
    pub(super) claims: Claims,
}

/// Reads a file of rules. The report lists the rules that header fields can't decide. Fails if a chain or a
/// table is chosen, and the format has none.
pub(crate) fn read_file<T: RuleTuple>(
    path: &Path,
    options: &ReadOptions,
) -> Result<(RuleFile<T>, RuleReport), Error> {
    let read = read_rules(&Source::Path(path.to_owned()), options)?;
    let format = read.1.format;
    match (options.chain.is_some() || options.table_name.is_some()) && !format.has_chains() {
        true => Err(Error::NoChains { file: read.1.name, format }),
        false => Ok(read),
    }
}

/// The label index of an action of a file. Known actions are not parsed again.
fn label_of<V: FromStr<Err: ToString> + Eq + Hash>(
    known: &mut HashMap<u32, u32>,
    actions: &[String],
    (labels, claims): (&Labels<V>, &mut Claims),
    action: u32,
) -> Result<u32, Error> {
    if let Some(&label) = known.get(&action) {
        return Ok(label);
    }
    let name = usize::try_from(action).ok().and_then(|at| actions.get(at));
    let value = match name {
        Some(name) => parse(name)?,
        None => parse(&action.to_string())?,
    };
    let label = labels.intern_for(claims, value)?.0;
    known.insert(action, label);
    Ok(label)
}

/// Replaces the actions of doubts by those of the caller's labels.
pub(super) fn with_labels<T: RuleTuple>(
    doubts: &mut Doubts<T>,
    mut label: impl FnMut(u32) -> Result<u32, Error>,
) {
    for one in doubts.uncertain.iter_mut().filter(|one| one.effect == Effect::Action) {
        match label(one.rule.action()) {
            Ok(label) => one.rule = one.rule.clone().with_action(label),
            // An action that the labels can't express can't be compared with the others.
            Err(_) => one.effect = Effect::Any,
        }
    }
}

/// The rules under the same numbers with other actions. `action` is called in the order of the rules.
pub(super) fn with_actions<T: RuleTuple>(
    rules: &RuleSet<T>,
    mut action: impl FnMut(u32) -> Result<u32, Error>,
) -> Result<RuleSet<T>, Error> {
    let mut others = RuleSet::new();
    for (number, rule) in rules.sorted() {
        others.set(number.get(), rule.clone().with_action(action(rule.action())?))?;
    }
    Ok(others)
}
