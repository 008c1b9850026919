//! All rules of a classifier replaced in one step: [`Classifier::replace`], [`Classifier::load`].

use std::hash::Hash;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use wirespeed_classify::read::Doubts;
use wirespeed_classify::{Applied, RuleError, RuleNumber, RuleSet, RuleUpdate};
use wirespeed_fib::NextHop;

use super::builder::{ClassifierBuilder, Collected, with_actions, with_labels};
use super::classifier::{Classifier, actions, gives_again, of_update};
use super::facts::Facts;
use super::image_file::{RuleImageFile, number_from};
use crate::engine::RuleTuple;
use crate::error::Error;
use crate::labels::Labels;
use crate::load::{is_image, labels_of_image};
use crate::uses::Claims;

impl<T: RuleTuple> Classifier<T> {
    /// Replaces all rules and their actions. Readers see the old rules or the new ones, and nothing between.
    /// If few rules differ, only these are updated; otherwise a table is built beside the current one, which
    /// takes as much memory again until the call returns. The engine and the settings stay. `changes` of the
    /// result counts the numbers whose rules differ. If labels are attached, [intern](Labels::intern) one for
    /// each rule, also for rules that stay.
    ///
    /// The rules have the numbers of the set. A number may then belong to another rule than before.
    /// [`insert`](Self::insert) goes on giving numbers that no rule had.
    ///
    /// The set is whole: no answer of it is in [doubt](Self::doubts), whatever was in doubt before.
    /// [`replace_with_doubts`](Self::replace_with_doubts) takes a set that is not.
    ///
    /// Fails like [`apply`](Self::apply): the call then did not happen.
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let rules = |texts: [&str; 2]| texts.into_iter().map(|text| text.parse().unwrap()).collect::<RuleSet<Ipv4Tuple>>();
    /// let old = rules(["dport=443 proto=tcp action=1", "proto=udp action=2"]);
    /// let mut classifier = Classifier::builder().rule_set(old).build()?;
    /// let reader = classifier.reader();
    /// let applied = classifier.replace(rules(["dport=443 proto=tcp action=1", "proto=udp action=3"]))?;
    /// assert_eq!(applied.changes, 1);
    /// assert_eq!(reader.find(&"proto=udp".parse()?).map(|found| found.action), Some(NextHop(3)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace(&mut self, rules: RuleSet<T>) -> Result<Applied, Error> {
        self.replace_with_doubts(rules, Doubts::none())
    }

    /// [Replaces](Self::replace) all rules, and with them what is in doubt: rules that were left out of the
    /// set and could change its answers, such as [`RuleFile::doubts`](super::read::RuleFile::doubts). Readers
    /// see rules and doubts change together. If labels are attached, intern one for each doubt that could
    /// give an [action](super::read::Effect::Action), too.
    ///
    /// ```
    /// use wirespeed::classify::read::{ReadOptions, read_rules_from};
    /// use wirespeed::prelude::*;
    ///
    /// let saved = "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp --dport 443 -j ACCEPT\n\
    ///              -A INPUT -m owner --uid-owner 7 -j ACCEPT\nCOMMIT\n";
    /// let (file, _) = read_rules_from::<Ipv4Tuple>(saved.as_bytes(), "saved", &ReadOptions::default())?;
    /// let mut classifier = Classifier::<Ipv4Tuple>::builder().build()?;
    /// let reader = classifier.reader();
    /// classifier.replace_with_doubts(file.rules, file.doubts)?;
    /// assert!(reader.verdict(&"dport=443 proto=tcp".parse()?).is_certain());
    /// assert!(!reader.verdict(&"dport=22 proto=tcp".parse()?).is_certain());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace_with_doubts(&mut self, rules: RuleSet<T>, doubts: Doubts<T>) -> Result<Applied, Error> {
        let replaced = self.replace_by(true, rules, doubts)?;
        self.reports.clear();
        Ok(replaced)
    }

    /// [Replaces](Self::replace) all rules by those of a file: rules in any format of
    /// [`ClassifierBuilder::file`], read with the facts that the builder
    /// [assumed](ClassifierBuilder::assume) and the [chain](ClassifierBuilder::chain) that it chose, or an
    /// image with its rules. Actions get labels.
    /// [`reports`](Self::reports) then has the report of this file.
    ///
    /// Fails if the file can't be read, or if it has rules that header fields can't decide and the classifier
    /// was built without [`leave_out`](ClassifierBuilder::leave_out). The classifier then stays as it was.
    /// One that was opened from an image with such rules counts as built with it. A
    /// [`Reloader`](crate::Reloader) calls `load` when the file has changed.
    pub fn load<V: FromStr<Err: ToString> + Eq + Hash>(
        &mut self,
        path: impl AsRef<Path>,
        labels: &Labels<V>,
    ) -> Result<Applied, Error> {
        let path = path.as_ref();
        let builder = || ClassifierBuilder::new(self.reading.clone()).leave_out(self.leave_out);
        let Collected { rules, reports, doubts, claims: _claims, .. } = match is_image(path)? {
            true => rules_of_image(path, labels)?,
            false => builder().file(path, labels).collected()?,
        };
        if !(self.leave_out || doubts.uncertain.is_empty()) {
            return Err(Error::RulesInDoubt { path: path.to_owned(), rules: doubts.uncertain.len() });
        }
        self.attach_labels(labels);
        let replaced = self.replace_by(false, rules, doubts)?;
        self.reports = reports;
        Ok(replaced)
    }

    /// Replaces all rules and doubts. `is_interned` says whether the caller interned their labels.
    fn replace_by(
        &mut self,
        is_interned: bool,
        mut rules: RuleSet<T>,
        doubts: Doubts<T>,
    ) -> Result<Applied, Error> {
        let (is_other, doubts) = (*self.doubts != doubts, Arc::new(doubts));
        let wanted = is_other.then(|| Facts::Verdicts(Arc::clone(&doubts)));
        let (updates, last) = (difference(self.rules(), &rules), self.rules().last_number());
        // A GPU's answers are of rules alone: what is in doubt about them must not change meanwhile.
        let (is_turnover, len) = (is_other || gives_again(last, &updates), rules.len());
        // Updates give no numbers but those of rules.
        let has_removed = rules.last_number() > last && rules.rule(rules.last_number()).is_none();
        let (of_build, turnover) = (self.core.of_build(), self.core.turnover());
        self.core.join_beside(actions(&doubts));
        let replaced = self.core.replace(is_interned, (&updates, len), |live, is_few| {
            if is_few && !has_removed {
                let applied =
                    turnover.during_if(is_turnover, || live.apply_wanting(&updates, wanted, &mut || true));
                return applied.map_err(|error| of_update(error, of_build));
            }
            number_from(&mut rules, last).ok_or(RuleError::Spent { limit: RuleNumber::MOST })?;
            let replaced =
                turnover.during_if(is_turnover, || live.replace_wanting(rules, wanted, &mut || true));
            replaced.map_err(of_build)
        });
        let settled: Vec<_> = actions(&doubts).filter(|_| is_interned && replaced.is_ok()).collect();
        let gone = if replaced.is_ok() { std::mem::replace(&mut self.doubts, doubts) } else { doubts };
        self.core.leave_beside(actions(&gone), &settled);
        // Nobody says no, so there is always a result.
        replaced.map(Option::unwrap_or_default)
    }
}

/// The rules of an image file, with labels; and the claims that keep these.
fn rules_of_image<T: RuleTuple, V: FromStr<Err: ToString> + Eq + Hash>(
    path: &Path,
    labels: &Labels<V>,
) -> Result<Collected<T>, Error> {
    let (file, mut claims) = (RuleImageFile::open(path)?.of_tuple::<T>()?, Claims::default());
    let (rules, mut doubts) = (file.rules::<T>()?, file.doubts()?);
    let has_actions = rules.iter().any(|(_, rule)| rule.action() != 0);
    let label = labels_of_image(path, has_actions, labels, &mut claims)?;
    let label = |action: u32| match label.get(action as usize) {
        Some(label) if action == 0 || label.is_some() => Ok(label.0),
        _ => Err(Error::NoLabel { next_hop: NextHop(action) }),
    };
    let rules = with_actions(&rules, label)?;
    with_labels(&mut doubts, label);
    Ok(Collected { rules, reports: Vec::new(), doubts, reading: Default::default(), leave_out: true, claims })
}

/// The updates that make the new rules of the old ones.
fn difference<T: RuleTuple>(old: &RuleSet<T>, new: &RuleSet<T>) -> Vec<RuleUpdate<T>> {
    let gone = old.iter().filter(|(number, _)| new.rule(number.get()).is_none());
    let other = new.iter().filter(|(number, rule)| old.rule(number.get()) != Some(*rule));
    let other = other.map(|(number, rule)| RuleUpdate::Set(number.get(), rule.clone()));
    gone.map(|(number, _)| RuleUpdate::Remove(number.get())).chain(other).collect()
}
