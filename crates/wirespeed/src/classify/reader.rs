//! [`RuleReader`] and [`RuleGuard`]: packet classification on any number of threads.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use wirespeed_classify::read::{Doubts, Uncertain};
use wirespeed_classify::{Actions, Companion, FrameError, Rank, RuleNumber, Step};
use wirespeed_fib::NextHop;

use super::facts::{Facts, RuleFacts};
use super::found::RuleMatch;
use super::image_file::RuleImageFile;
use super::verdict::RuleVerdict;
use crate::common::ReaderCore;
use crate::engine::{Entered, RuleTuple};
use crate::error::Error;
use crate::methods::reader_methods;

/// Looks up in a set of rules. Any number of threads share one reader, or clone it, which costs a reference
/// count. Lookups never wait for the writer. A reader stays valid after the writer is gone, and then keeps
/// the last state.
///
/// A lookup sees all updates that were applied before it began. A batch sees one state of the rules.
pub struct RuleReader<T: RuleTuple> {
    core: ReaderCore<T>,
}

impl<T: RuleTuple> RuleReader<T> {
    pub(super) const fn new(core: ReaderCore<T>) -> Self {
        Self { core }
    }

    /// Opens an image file that [`Classifier::save`](super::Classifier::save) or `lookupctl classify build`
    /// wrote, for lookups only. The reader is ready as soon as the file is read and checked. Memory holds one
    /// copy of the table.
    ///
    /// Fails if the file is damaged, does not hold rules of this tuple, or is of an engine that is not in
    /// this build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = RuleImageFile::open(path.as_ref())?.of_tuple::<T>()?;
        let (engine, rules, doubts) = (file.engine(), file.rules::<T>()?, file.doubts()?);
        let beside = <RuleFacts<T> as Companion<T>>::of(&rules, Facts::Verdicts(Arc::new(doubts)));
        let core = ReaderCore::open(engine, file.into_bare()?, beside)?;
        Ok(Self::new(core))
    }

    /// The number of the best rule that matches. `None` if no rule matches.
    #[inline]
    #[must_use]
    pub fn lookup(&self, tuple: &T) -> Option<RuleNumber> {
        RuleNumber::new(self.core.lookup(tuple))
    }

    /// The number and the action of the best rule that matches. If rules were [left
    /// out](super::ClassifierBuilder::leave_out), ask for a [`verdict`](Self::verdict) instead.
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let labels = Labels::new();
    /// let rules = [("dport=443 proto=tcp".parse()?, "web"), ("proto=udp".parse()?, "datagrams")];
    /// let reader = Classifier::<Ipv4Tuple>::builder().labelled_rules(&labels, rules).build()?.reader();
    /// let found = reader.find(&"src=192.0.2.1 proto=udp".parse()?).ok_or("nothing")?;
    /// assert_eq!((found.number.get(), labels.get(found.action).as_deref()), (2, Some(&"datagrams")));
    /// assert_eq!(reader.find(&"proto=icmp".parse()?), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn find(&self, tuple: &T) -> Option<RuleMatch> {
        self.enter().find(tuple)
    }

    /// The answer of the rules, and whether a rule that was left out could change it. Use this if the
    /// classifier was built with [`leave_out`](super::ClassifierBuilder::leave_out), or if an image has
    /// doubts. Costs O(rules left out) beside the lookup.
    ///
    /// ```
    /// use wirespeed::classify::RuleVerdict;
    /// use wirespeed::prelude::*;
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let saved = dir.path().join("rules.v4");
    /// std::fs::write(
    ///     &saved,
    ///     "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp --dport 443 -j ACCEPT\n-A INPUT -m owner --uid-owner 7 -j ACCEPT\nCOMMIT\n",
    /// )?;
    /// let labels = Labels::<String>::new();
    /// let classifier = Classifier::<Ipv4Tuple>::builder().file(&saved, &labels).leave_out(true).build()?;
    /// let reader = classifier.reader();
    /// assert!(reader.verdict(&"dport=443 proto=tcp".parse()?).is_certain());
    /// let packet = "dport=22 proto=tcp".parse()?;
    /// let RuleVerdict::Uncertain(Some(found)) = reader.verdict(&packet) else { return Err("an owner could match it".into()) };
    /// assert_eq!(labels.get(found.action).as_deref().map(String::as_str), Some("DROP"));
    /// assert_eq!(reader.enter().doubts_of(&packet).next().map(|one| one.why.place.line), Some(4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn verdict(&self, tuple: &T) -> RuleVerdict {
        self.enter().verdict(tuple)
    }

    /// Gives a [`verdict`](Self::verdict) for each tuple, at the same index of `verdicts`, in one state of
    /// the rules and their doubts. Runs like [`match_batch`](Self::match_batch), on the device that the
    /// classifier was built for. Each tuple costs O(rules left out) on the CPU.
    ///
    /// Panics when the lengths differ.
    pub fn verdict_batch(&self, tuples: &[T], verdicts: &mut [RuleVerdict]) {
        assert_eq!(tuples.len(), verdicts.len(), "a verdict for each tuple");
        self.answer(
            tuples,
            verdicts,
            |guard, verdicts| guard.verdict_batch(tuples, verdicts),
            |guard, numbers, verdicts| {
                let mut matches = vec![None; numbers.len()];
                let is_all = guard.resolve(numbers, &mut matches);
                guard.judge_all(tuples, &matches, verdicts);
                is_all
            },
        );
    }

    /// The rules that were left out and could match a packet, and the assumptions under which the rules were
    /// read, as they are now.
    #[must_use]
    pub fn doubts(&self) -> Arc<Doubts<T>> {
        Arc::clone(self.core.enter().beside.doubts())
    }

    /// Looks up tuples, and writes the number of the best matching rule to the same index of `numbers`, or 0
    /// if no rule matches. Sees one state of the rules. Much faster than single lookups; batches of a few
    /// hundred and more are fastest. Lookups run on the device that the classifier was built for
    /// ([`ClassifierBuilder::device`](super::ClassifierBuilder::device)). A large batch goes to a GPU in
    /// parts, and each part sees one state.
    ///
    /// Panics when the lengths differ.
    pub fn lookup_batch(&self, tuples: &[T], numbers: &mut [u32]) {
        self.core.lookup_batch(tuples, numbers);
    }

    /// Looks up like [`lookup_batch`](Self::lookup_batch), on all cores: the threads of the caller's `rayon`
    /// pool share the batch, in one state of the rules. Useful from about 1,000 tuples on. A batch for a GPU
    /// goes there as with [`lookup_batch`](Self::lookup_batch).
    ///
    /// Panics when the lengths differ.
    #[cfg(feature = "parallel")]
    pub fn par_lookup_batch(&self, tuples: &[T], numbers: &mut [u32]) {
        self.core.par_lookup_batch(tuples, numbers);
    }

    /// Looks up like [`lookup_batch`](Self::lookup_batch), and writes the numbers with the rules' actions, in
    /// one state.
    ///
    /// A rule may be taken out while a GPU looks a batch up, or be put in place of another
    /// ([`RuleUpdate::Set`](super::RuleUpdate)). The actions of the batch's numbers are not known any more
    /// then, and the CPU looks the batch up again.
    ///
    /// Panics when the lengths differ.
    pub fn match_batch(&self, tuples: &[T], matches: &mut [Option<RuleMatch>]) {
        assert_eq!(tuples.len(), matches.len(), "a match for each tuple");
        self.answer(
            tuples,
            matches,
            |guard, matches| guard.match_batch(tuples, matches),
            // A method's path would be for guards of one lifetime only.
            #[allow(clippy::redundant_closure_for_method_calls)]
            |guard, numbers, matches| guard.resolve(numbers, matches),
        );
    }

    /// Answers on the device that the classifier was built for. `on_cpu` looks up and answers in a state.
    /// `resolve` answers in a state with the numbers that a GPU found; false says that the state lacks one of
    /// these rules.
    fn answer<V>(
        &self,
        tuples: &[T],
        answers: &mut [V],
        on_cpu: impl Fn(&RuleGuard<'_, T>, &mut [V]),
        resolve: impl FnOnce(&RuleGuard<'_, T>, &[u32], &mut [V]) -> bool,
    ) {
        let Some(offload) = self.core.offload() else { return on_cpu(&self.enter(), answers) };
        let seen = self.core.turnover().seen();
        offload.answer(
            answers,
            |remote, answers| {
                let mut numbers = vec![0; tuples.len()];
                remote.lookup_batch(tuples, &mut numbers)?;
                let guard = self.enter();
                if !(resolve(&guard, &numbers, answers) && self.core.turnover().is_none_since(seen)) {
                    on_cpu(&guard, answers);
                }
                Ok(())
            },
            |answers| on_cpu(&self.enter(), answers),
        );
    }

    /// Makes tuples of Ethernet frames and their ingress ports, and looks them up. Writes the matching rule,
    /// or the reason why there is no tuple, to the same index of `found`. Otherwise like
    /// [`match_batch`](Self::match_batch).
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let rules: [Rule<OpenFlowTuple>; 1] = ["in_port=2 action=7".parse()?];
    /// let reader = Classifier::builder().rules(rules).build()?.reader();
    /// let frame = [0; 60];
    /// let mut found = vec![Ok(None); 3];
    /// reader.match_frames(&[(1, &frame[..]), (2, &frame), (2, &frame[..9])], &mut found);
    /// assert_eq!(found[0], Ok(None));
    /// assert_eq!(found[1].clone()?.map(|found| found.action), Some(NextHop(7)));
    /// assert!(found[2].is_err()); // cut off within the Ethernet header
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Panics when the lengths differ.
    pub fn match_frames(
        &self,
        frames: &[(u16, impl AsRef<[u8]>)],
        found: &mut [Result<Option<RuleMatch>, FrameError>],
    ) {
        assert_eq!(frames.len(), found.len(), "a result for each frame");
        let mut tuples = Vec::with_capacity(frames.len());
        for ((in_port, frame), found) in frames.iter().zip(&mut *found) {
            *found = T::of_frame(*in_port, frame.as_ref()).map(|tuple| {
                tuples.push(tuple);
                None
            });
        }
        let mut matches = vec![None; tuples.len()];
        self.match_batch(&tuples, &mut matches);
        for (to, found) in found.iter_mut().flatten().zip(matches) {
            *to = found;
        }
    }

    reader_methods! {
        T, "tuples", "crate::Classifier",
        /// ```
        /// use wirespeed::prelude::*;
        ///
        /// let rules: [Rule<Ipv4Tuple>; 1] = ["proto=tcp".parse()?];
        /// let reader = Classifier::builder().rules(rules).device(Device::Auto).build()?.reader();
        /// let tuples = vec!["proto=tcp".parse()?; 10_000];
        ///
        /// let (mut numbers, mut sum) = (vec![0; 1_000], 0);
        /// let mut pipeline = reader.pipeline();
        /// let mut batches = tuples.chunks(1_000);
        /// loop {
        ///     while pipeline.under_way() < 4 && let Some(batch) = batches.next() {
        ///         pipeline.submit(batch);
        ///     }
        ///     let Some(tuples) = pipeline.next(&mut numbers) else { break };
        ///     sum += numbers[..tuples.len()].iter().sum::<u32>();
        /// }
        /// assert_eq!(sum, 10_000);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
    }

    /// Enters one state of the rules, for lookups that belong together. They run on the CPU. While a guard is
    /// held, the writer can make one more change and then waits: hold a guard for a few batches only. A
    /// thread that holds a guard and makes two changes itself waits for ever.
    #[inline]
    pub fn enter(&self) -> RuleGuard<'_, T> {
        RuleGuard::of(&self.core)
    }
}

/// One state of a set of rules, until the guard is dropped.
#[must_use = "a state that is dropped at once protects nothing"]
pub struct RuleGuard<'a, T: RuleTuple> {
    state: Entered<'a, T>,
}

impl<'a, T: RuleTuple> RuleGuard<'a, T> {
    #[inline]
    pub(crate) fn of(core: &'a ReaderCore<T>) -> Self {
        Self { state: core.enter() }
    }

    /// [`RuleReader::lookup`] in this state.
    #[inline]
    #[must_use]
    pub fn lookup(&self, tuple: &T) -> Option<RuleNumber> {
        RuleNumber::new(self.state.table.lookup(tuple))
    }

    /// [`RuleReader::find`] in this state.
    #[must_use]
    pub fn find(&self, tuple: &T) -> Option<RuleMatch> {
        matched(self.state.beside.actions(), self.state.table.lookup(tuple))
    }

    /// [`RuleReader::verdict`] in this state.
    #[must_use]
    pub fn verdict(&self, tuple: &T) -> RuleVerdict {
        self.judge(tuple, self.find(tuple))
    }

    /// [`RuleReader::verdict_batch`] in this state.
    pub fn verdict_batch(&self, tuples: &[T], verdicts: &mut [RuleVerdict]) {
        assert_eq!(tuples.len(), verdicts.len(), "a verdict for each tuple");
        let mut matches = vec![None; tuples.len()];
        self.match_batch(tuples, &mut matches);
        self.judge_all(tuples, &matches, verdicts);
    }

    /// [`RuleReader::doubts`] in this state.
    #[must_use]
    pub fn doubts(&self) -> &Doubts<T> {
        self.state.beside.doubts()
    }

    /// The rules that were left out and could change the answer for a packet, in the order of their files.
    pub fn doubts_of(&self, tuple: &T) -> impl Iterator<Item = &Uncertain<T>> {
        self.doubts_about(tuple, self.find(tuple))
    }

    /// Says which answers of this state are certain.
    fn judge_all(&self, tuples: &[T], matches: &[Option<RuleMatch>], verdicts: &mut [RuleVerdict]) {
        for ((tuple, &found), to) in tuples.iter().zip(matches).zip(verdicts) {
            *to = self.judge(tuple, found);
        }
    }

    /// Says whether an answer of this state is certain.
    pub(crate) fn judge(&self, tuple: &T, found: Option<RuleMatch>) -> RuleVerdict {
        match self.doubts_about(tuple, found).next() {
            None => RuleVerdict::Certain(found),
            Some(_) => RuleVerdict::Uncertain(found),
        }
    }

    /// The doubts that could change an answer of this state.
    fn doubts_about(&self, tuple: &T, found: Option<RuleMatch>) -> impl Iterator<Item = &Uncertain<T>> {
        let ranked = found.and_then(|found| {
            let priority = self.state.beside.priority(found.number.get())?;
            Some((Rank::new(priority, found.number), found.action.0))
        });
        // An answer of unknown rank counts as the last of all, so that no doubt is lost.
        let (rank, action) = ranked.map_or((Rank::NONE, None), |(rank, action)| (rank, Some(action)));
        self.doubts().of_ranked(tuple, rank, action)
    }

    /// [`RuleReader::lookup_batch`] in this state.
    pub fn lookup_batch(&self, tuples: &[T], numbers: &mut [u32]) {
        self.state.table.lookup_batch(tuples, numbers);
    }

    /// [`RuleReader::par_lookup_batch`] in this state.
    #[cfg(feature = "parallel")]
    pub fn par_lookup_batch(&self, tuples: &[T], numbers: &mut [u32]) {
        self.state.table.par_lookup_batch(tuples, numbers);
    }

    /// [`RuleReader::match_batch`] in this state.
    pub fn match_batch(&self, tuples: &[T], matches: &mut [Option<RuleMatch>]) {
        assert_eq!(tuples.len(), matches.len(), "a match for each tuple");
        let mut numbers = [0; BLOCK];
        for (tuples, matches) in tuples.chunks(BLOCK).zip(matches.chunks_mut(BLOCK)) {
            let numbers = &mut numbers[..tuples.len()];
            self.lookup_batch(tuples, numbers);
            self.resolve(numbers, matches);
        }
    }

    /// The action of a rule. `None` if this state has no rule of that number. A number that was found in
    /// another state may belong to another rule now.
    #[must_use]
    pub fn action(&self, number: RuleNumber) -> Option<NextHop> {
        self.state.beside.actions().action(number.get()).map(NextHop)
    }

    /// The rule of a number that a lookup in this state returned. `None` if there is no such rule.
    #[inline]
    pub(crate) fn matched(&self, number: u32) -> Option<RuleMatch> {
        matched(self.state.beside.actions(), number)
    }

    /// Adds the rules' actions to their numbers. Returns whether all rules exist.
    fn resolve(&self, numbers: &[u32], matches: &mut [Option<RuleMatch>]) -> bool {
        let (actions, mut all) = (self.state.beside.actions(), true);
        for (&number, to) in numbers.iter().zip(matches) {
            *to = matched(actions, number);
            all &= number == 0 || to.is_some();
        }
        all
    }

    /// The shape of the compiled table as a line of text, if the engine describes it.
    #[must_use]
    pub fn shape(&self) -> Option<String> {
        self.state.table.shape()
    }

    /// The steps of one lookup as text: what is read, in order.
    pub fn explain(&self, tuple: &T) -> Vec<Step> {
        self.state.table.explain(tuple)
    }
}

/// Tuples that are looked up before their actions: enough for a fast batch, few enough for the first-level
/// cache.
const BLOCK: usize = 1024;

/// Adds the action to a number that a lookup returned.
#[inline]
fn matched(actions: &Actions, number: u32) -> Option<RuleMatch> {
    let number = RuleNumber::new(number)?;
    Some(RuleMatch { number, action: NextHop(actions.action(number.get())?) })
}

impl<T: RuleTuple> Clone for RuleReader<T> {
    fn clone(&self) -> Self {
        Self { core: self.core.clone() }
    }
}

impl<T: RuleTuple> fmt::Debug for RuleReader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleReader")
            .field("tuple", &T::NAME)
            .field("engine", &self.engine())
            .finish_non_exhaustive()
    }
}

impl<T: RuleTuple> fmt::Debug for RuleGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleGuard").finish_non_exhaustive()
    }
}
