//! Rules as a [`Domain`]: each type of tuple is a domain, and a [`RuleSet`] is its model.

use std::ops::Range;

use wirespeed_table::{BuildError, Companion, Domain, Engine, Live, Lookup, Model, Undone};

use crate::error::RuleError;
use crate::rank::RuleNumber;
use crate::rule::Rule;
use crate::rules::{Changed, RuleSet};
use crate::tuple::{Ipv4Tuple, Ipv6Tuple, OpenFlow13Tuple, OpenFlowTuple, Tuple};
use crate::update::RuleUpdate;

/// A set of rules that takes updates while any number of readers looks up.
pub type LiveRules<T, E, B = ()> = Live<T, E, B>;

/// The reason why live rules could not take an update.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The rule can't have this number, or can't be in the set.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The set has outgrown its table, and another table can't be built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

macro_rules! domain {
    ($tuple:ty) => {
        impl Domain for $tuple {
            type Key<'k> = &'k Self;
            type Keys<'k> = &'k [Self];
            type Found = u32;
            type Result = u32;
            type Source = RuleSet<Self>;
            type Model = RuleSet<Self>;
            type Update = RuleUpdate<Self>;
            type Change = Changed<Self>;
            type Error = UpdateError;

            const LEAST_PART: usize = 256;
            const TOGETHER: usize = 64;
            const HEAD_ROOM: u32 = 10;
            const LATER_HEAD_ROOM: u32 = 30;

            fn match_each<L: Lookup<Self> + ?Sized>(table: &L, tuples: &[Self], found: &mut [u32]) {
                table.lookup_batch(tuples, found);
            }
        }
    };
}

domain!(Ipv4Tuple);
domain!(Ipv6Tuple);
domain!(OpenFlowTuple);
domain!(OpenFlow13Tuple);

impl<T: Tuple> Model<T> for RuleSet<T> {
    fn source(&self) -> &Self {
        self
    }

    fn len(&self) -> usize {
        Self::len(self)
    }

    fn memory_usage(&self) -> u64 {
        Self::memory_usage(self)
    }

    fn start(&mut self) {
        self.track();
    }

    fn check(&self, updates: &[&RuleUpdate<T>]) -> Result<(), UpdateError> {
        Ok(RuleUpdate::check(self.last_number(), updates.iter().copied())?)
    }

    fn apply(&mut self, updates: &[&RuleUpdate<T>], range: Range<usize>) -> usize {
        let (changes, result) = self.apply_range(updates, range);
        result.expect("the numbers were checked");
        changes
    }

    fn take_changed(&mut self, changed: &mut Vec<Changed<T>>) {
        self.append_changed(changed);
    }

    fn settle(&mut self) {
        self.keep_last_number();
    }

    fn undo(&mut self, changed: &mut Vec<Changed<T>>) -> Undone {
        self.undo_taken(changed);
        Undone::Lost
    }
}

/// Changes of one rule in a live table.
pub trait EditRules<T: Tuple> {
    /// Adds a rule after all others. An error uses no number.
    fn insert(&mut self, rule: Rule<T>) -> Result<RuleNumber, UpdateError>;

    /// Puts a rule under a number, and returns the rule that had the number. After an error the old rule is
    /// still there.
    fn set(&mut self, number: u32, rule: Rule<T>) -> Result<Option<Rule<T>>, UpdateError>;

    /// Removes a rule; `None` if no rule has the number. After an error the rule is still there.
    fn remove(&mut self, number: u32) -> Result<Option<Rule<T>>, UpdateError>;
}

impl<T: Tuple, E: Engine<T>, B: Companion<T>> EditRules<T> for Live<T, E, B> {
    fn insert(&mut self, rule: Rule<T>) -> Result<RuleNumber, UpdateError> {
        self.apply([&RuleUpdate::Insert(rule)])?;
        Ok(RuleNumber::new(self.model().last_number()).expect("the number of the rule that was inserted"))
    }

    fn set(&mut self, number: u32, rule: Rule<T>) -> Result<Option<Rule<T>>, UpdateError> {
        let before = self.model().rule(number).cloned();
        self.apply([&RuleUpdate::Set(number, rule)])?;
        Ok(before)
    }

    fn remove(&mut self, number: u32) -> Result<Option<Rule<T>>, UpdateError> {
        let before = self.model().rule(number).cloned();
        self.apply([&RuleUpdate::Remove(number)])?;
        Ok(before)
    }
}
