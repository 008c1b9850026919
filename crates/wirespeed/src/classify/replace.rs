//! All rules of a classifier replaced in one step: [`Classifier::replace`], [`Classifier::load`].

use std::hash::Hash;
use std::path::Path;
use std::str::FromStr;

use wirespeed_classify::read::Doubts;
use wirespeed_classify::{Applied, RuleError, RuleNumber, RuleSet, RuleUpdate};
use wirespeed_fib::NextHop;

use super::builder::{ClassifierBuilder, Collected, with_actions};
use super::classifier::{Classifier, gives_again, of_update};
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
    /// Fails like [`apply`](Self::apply), and if rules of this classifier are in
    /// [doubt](Self::doubts), because readers keep the doubts: the call then did not happen.
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
        let replaced = self.replace_by(true, rules)?;
        self.reports.clear();
        Ok(replaced)
    }

    /// [Replaces](Self::replace) all rules by those of a file: rules in any format of
    /// [`ClassifierBuilder::file`], read with the facts that the builder
    /// [assumed](ClassifierBuilder::assume), or an image with its rules. Actions get labels.
    /// [`reports`](Self::reports) then has the report of this file.
    ///
    /// Fails if the file can't be read, or if rules in it are left out or in doubt. The classifier then stays
    /// as it was. A [`Reloader`](crate::Reloader) calls it when the file has changed.
    pub fn load<V: FromStr<Err: ToString> + Eq + Hash>(
        &mut self,
        path: impl AsRef<Path>,
        labels: &Labels<V>,
    ) -> Result<Applied, Error> {
        let path = path.as_ref();
        let Collected { rules, reports, doubts, claims: _claims, .. } = match is_image(path)? {
            true => rules_of_image(path, labels)?,
            false => ClassifierBuilder::new(self.assume.clone()).file(path, labels).collected()?,
        };
        without_doubts(&doubts)?;
        self.attach_labels(labels);
        let replaced = self.replace_by(false, rules)?;
        self.reports = reports;
        Ok(replaced)
    }

    /// Replaces all rules. `is_interned` says whether the caller interned the labels of the rules.
    fn replace_by(&mut self, is_interned: bool, mut rules: RuleSet<T>) -> Result<Applied, Error> {
        let doubts = without_doubts(self.doubts());
        let (updates, last) = (difference(self.rules(), &rules), self.rules().last_number());
        let (is_turnover, len) = (gives_again(last, &updates), rules.len());
        // Updates give no numbers but those of rules.
        let has_removed = rules.last_number() > last && rules.rule(rules.last_number()).is_none();
        let (of_build, turnover) = (self.core.of_build(), &self.turnover);
        let replaced = self.core.replace(is_interned, (&updates, len), |live, is_few| {
            doubts?;
            if is_few && !has_removed {
                let applied = turnover.during_if(is_turnover, || live.apply(&updates));
                return applied.map(Some).map_err(|error| of_update(error, of_build));
            }
            number_from(&mut rules, last).ok_or(RuleError::Spent { limit: RuleNumber::MOST })?;
            let replaced = turnover.during_if(is_turnover, || live.replace_if(rules, &mut || true));
            replaced.map_err(of_build)
        });
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
    let (rules, doubts) = (file.rules::<T>()?, file.doubts()?);
    let has_actions = rules.iter().any(|(_, rule)| rule.action() != 0);
    let label = labels_of_image(path, has_actions, labels, &mut claims)?;
    let label = |action: u32| match label.get(action as usize) {
        Some(label) if action == 0 || label.is_some() => Ok(label.0),
        _ => Err(Error::NoLabel { next_hop: NextHop(action) }),
    };
    let rules = with_actions(&rules, label)?;
    Ok(Collected { rules, reports: Vec::new(), doubts, assume: Default::default(), claims })
}

/// Checks that no rule is in doubt.
fn without_doubts<T: RuleTuple>(doubts: &Doubts<T>) -> Result<(), Error> {
    match doubts.uncertain.len() + doubts.widened().len() {
        0 => Ok(()),
        rules => Err(Error::RulesInDoubt { rules }),
    }
}

/// The updates that make the new rules of the old ones.
fn difference<T: RuleTuple>(old: &RuleSet<T>, new: &RuleSet<T>) -> Vec<RuleUpdate<T>> {
    let gone = old.iter().filter(|(number, _)| new.rule(number.get()).is_none());
    let other = new.iter().filter(|(number, rule)| old.rule(number.get()) != Some(*rule));
    let other = other.map(|(number, rule)| RuleUpdate::Set(number.get(), rule.clone()));
    gone.map(|(number, _)| RuleUpdate::Remove(number.get())).chain(other).collect()
}
