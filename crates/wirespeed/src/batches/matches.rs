//! [`RuleMatches`]: the rules and actions that a batch's numbers stand for, in one state of the rules.

use std::fmt;

use super::Answers;
use crate::classify::{RuleGuard, RuleMatch, RuleVerdict};
use crate::engine::RuleTuple;

/// The matches of a batch of tuples, in the order of its tuples and in one state of the rules:
/// [`Answers::matches`]. Actions and verdicts are found when they are asked for, so nothing is allocated.
#[must_use = "a state that is dropped at once protects nothing"]
pub struct RuleMatches<'a, T: RuleTuple> {
    answers: &'a Answers<T>,
    state: RuleGuard<'a, T>,
}

impl<T: RuleTuple> Answers<T> {
    /// Enters the present state of the rules, and gives the number and the action of each tuple's rule there:
    /// all of one state, like [`RuleReader::match_batch`](crate::RuleReader::match_batch).
    ///
    /// A rule may have been taken out since the batch was looked up, or be put in place of another. The
    /// actions of the batch's numbers are not known any more then. So the CPU looks the batch up again in the
    /// present state, and [`numbers`](Self::numbers) are those of that state from then on. Each number is
    /// checked, which takes a read of its action.
    ///
    /// While the matches are held, the writer can make one more change and then waits, as with
    /// [`RuleReader::enter`](crate::RuleReader::enter). There is no other guard to hold. For [labels that
    /// end](crate::Labels#labels-that-end) enter the labels before this call, and resolve actions by that
    /// guard.
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let labels = Labels::new();
    /// let rules = [("dport=443 proto=tcp".parse()?, "web"), ("proto=udp".parse()?, "datagrams")];
    /// let reader = Classifier::<Ipv4Tuple>::builder().labelled_rules(&labels, rules).build()?.reader();
    /// let mut batch = reader.batches().batch(2).ok_or("as many are out as may be")?;
    /// batch.push(&"src=192.0.2.1 proto=udp".parse()?)?;
    /// batch.push(&"proto=icmp".parse()?)?;
    /// let mut answers = batch.submit().wait();
    /// let known = labels.enter();
    /// let matches = answers.matches();
    /// let found = matches.get(0).ok_or("nothing")?;
    /// assert_eq!((found.number.get(), known.get(found.action)), (2, Some(&"datagrams")));
    /// assert_eq!(matches.get(1), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn matches(&mut self) -> RuleMatches<'_, T> {
        let (numbers, reader) = (self.numbers(), &self.lent.source.reader);
        let before = reader.turnover().seen();
        let state = RuleGuard::of(reader);
        let is_known = numbers.all(|number| number == 0 || state.matched(number).is_some());
        // The count is read after the actions: a change of hands that they show has begun by then.
        if !(is_known && reader.turnover().is_none_since(self.seen)) {
            let (tuples, numbers) = self.lent.memory.with_answers();
            state.lookup_batch(tuples, numbers);
            (self.is_from_gpu, self.seen) = (false, before);
        }
        RuleMatches { answers: self, state }
    }
}

impl<'a, T: RuleTuple> RuleMatches<'a, T> {
    /// The number of tuples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether there are no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// The number and the action of the best rule that matches the tuple at an index. `None` if no rule
    /// matches. If rules were [left out](crate::classify::ClassifierBuilder::leave_out), ask for a
    /// [`verdict`](Self::verdict) instead. Panics if there is no such tuple.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<RuleMatch> {
        self.state.matched(self.answers.numbers().get(index))
    }

    /// The answer for the tuple at an index, and whether a rule that was left out could change it. Costs
    /// O(rules left out). Panics if there is no such tuple.
    #[must_use]
    pub fn verdict(&self, index: usize) -> RuleVerdict {
        let found = self.get(index);
        // Tuples that lie in a slot are read for doubts alone.
        match self.state.doubts().is_empty() {
            true => RuleVerdict::Certain(found),
            false => self.state.judge(&self.answers.keys()[index], found),
        }
    }

    /// The matches, in order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<RuleMatch>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The verdicts, in order.
    #[must_use]
    pub fn verdicts(&self) -> impl ExactSizeIterator<Item = RuleVerdict> {
        (0..self.len()).map(|index| self.verdict(index))
    }

    /// The state of the rules, for questions about single tuples, such as
    /// [`doubts_of`](RuleGuard::doubts_of).
    pub const fn state(&self) -> &RuleGuard<'a, T> {
        &self.state
    }
}

impl<T: RuleTuple> fmt::Debug for RuleMatches<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleMatches").field("len", &self.len()).finish_non_exhaustive()
    }
}
