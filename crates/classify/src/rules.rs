//! [`RuleSet`]: rules with numbers that do not change.
//!
//! A lookup returns a rule's number. The number also decides between rules of equal priority: the lower
//! number wins. [`insert`] gives the number after the largest number ever used, so that among equals the rule
//! inserted first wins. A free number is used again only if the user gives it ([`insert_at`]): the new rule
//! then comes before rules of higher numbers.
//!
//! [`insert`]: RuleSet::insert
//! [`insert_at`]: RuleSet::insert_at

use std::ops::Range;

use rustc_hash::FxHashSet;
use wirespeed_image::{HugeVec, prefetch_all};
use wirespeed_table::sort_by_number;

use crate::error::RuleError;
use crate::free::pop;
use crate::numbers::Numbers;
use crate::pattern::Pattern;
use crate::rank::{Rank, RuleNumber};
use crate::rule::Rule;
use crate::tuple::Tuple;
use crate::update::RuleUpdate;

/// Rules under their numbers.
#[derive(Clone, Debug)]
pub struct RuleSet<T> {
    /// Rules with their numbers, in any order.
    places: HugeVec<Place<T>>,
    /// The places without a rule.
    free: Vec<u32>,
    /// Places by number.
    index: Numbers,
    /// The largest number ever given.
    last: u32,
    patterns: u64,
    heap: usize,
    changes: Option<Changes<T>>,
}

/// The place of a rule. What says that it has one is the number: an `Option` of the rule would take 8 bytes
/// more.
#[derive(Clone, Debug)]
struct Place<T> {
    /// A rule of nothing, without ranges, where there is none.
    rule: Rule<T>,
    number: Option<RuleNumber>,
}

/// An entry of an engine: a pattern, and the rank of its rule. Several entries may belong to one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<T> {
    /// The pattern.
    pub pattern: Pattern<T>,
    /// The rank of the rule, with its number and priority.
    pub rank: Rank,
}

/// A rule that was added, removed or replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed<T> {
    /// The number of the rule.
    pub number: RuleNumber,
    /// The place where the rule is, or was.
    place: u32,
    /// The rule before; `None` for a rule that was added.
    pub before: Option<Rule<T>>,
}

/// The changes since the last [`take_changed`](RuleSet::take_changed).
#[derive(Clone, Debug)]
struct Changes<T> {
    /// The rules that changed, each as before its first change.
    all: Vec<Changed<T>>,
    numbers: FxHashSet<u32>,
    /// Whether a rule changed more than once, perhaps back.
    is_again: bool,
    /// The last number when all changes were let stand.
    last: u32,
}

/// Updates between a prefetch and its use.
const AHEAD: usize = 32;

impl<T: Tuple> Place<T> {
    /// A place that has no rule.
    fn free() -> Self {
        Self { rule: Rule::new(Pattern::all(), 0, 0), number: None }
    }

    #[inline]
    fn rule(&self) -> Option<&Rule<T>> {
        self.number.is_some().then_some(&self.rule)
    }

    /// Puts a rule of a number here. Returns the rule that was here.
    #[inline(always)]
    fn put(&mut self, number: RuleNumber, rule: &Rule<T>) -> Option<Rule<T>> {
        let before = std::mem::replace(&mut self.rule, rule.clone());
        self.number.replace(number).map(|_| before)
    }

    /// Takes the rule.
    #[inline(always)]
    fn take(&mut self) -> Option<Rule<T>> {
        let before = std::mem::replace(self, Self::free());
        before.number.map(|_| before.rule)
    }
}

impl<T: Tuple> RuleSet<T> {
    /// An empty set.
    pub fn new() -> Self {
        Self {
            places: HugeVec::new(),
            free: Vec::new(),
            index: Numbers::default(),
            last: 0,
            patterns: 0,
            heap: 0,
            changes: None,
        }
    }

    /// Adds a rule after all others: its number is one more than the largest number ever used. O(1).
    pub fn insert(&mut self, rule: Rule<T>) -> Result<RuleNumber, RuleError> {
        let number = self.next()?;
        self.put(number, Some(&rule));
        Ok(number)
    }

    /// Adds a rule under a number that no rule has. O(1).
    pub fn insert_at(&mut self, number: u32, rule: Rule<T>) -> Result<RuleNumber, RuleError> {
        match self.place(number) {
            Some(_) => Err(RuleError::Taken(number)),
            None => self.set(number, rule).map(|(number, _)| number),
        }
    }

    /// Puts a rule under a number, and returns the rule that had the number. O(1).
    pub fn set(&mut self, number: u32, rule: Rule<T>) -> Result<(RuleNumber, Option<Rule<T>>), RuleError> {
        let number = checked(number)?;
        let before = self.rule(number.get()).cloned();
        self.put(number, Some(&rule));
        Ok((number, before))
    }

    /// Removes a rule; `None` if no rule has the number. O(1).
    pub fn remove(&mut self, number: u32) -> Option<Rule<T>> {
        let before = self.rule(number)?.clone();
        self.put(RuleNumber::new(number)?, None);
        Some(before)
    }

    /// Makes a change. Returns whether the set is different.
    pub fn apply(&mut self, update: &RuleUpdate<T>) -> Result<bool, RuleError> {
        match update {
            RuleUpdate::Insert(rule) => self.next().map(|number| self.put(number, Some(rule))),
            RuleUpdate::Set(number, rule) => checked(*number).map(|number| self.put(number, Some(rule))),
            RuleUpdate::Remove(number) => {
                Ok(RuleNumber::new(*number).is_some_and(|number| self.put(number, None)))
            }
        }
    }

    /// Makes changes in order, up to a change that fails. Returns the number of changes that made a
    /// difference. It is faster than single changes, because it prefetches for many changes at once.
    pub fn apply_all<'u>(
        &mut self,
        updates: impl IntoIterator<Item = &'u RuleUpdate<T>>,
    ) -> (usize, Result<(), RuleError>)
    where
        T: 'u,
    {
        let updates: Vec<_> = updates.into_iter().collect();
        self.apply_range(&updates, 0..updates.len())
    }

    /// Makes some of many changes, like [`apply_all`](Self::apply_all); those after them are next.
    pub(crate) fn apply_range(
        &mut self,
        updates: &[&RuleUpdate<T>],
        range: Range<usize>,
    ) -> (usize, Result<(), RuleError>) {
        if range.start == 0 {
            updates.iter().take(2 * AHEAD).for_each(|update| self.fetch_index(update));
            updates.iter().take(AHEAD).enumerate().for_each(|(at, update)| self.fetch(update, at));
            updates.iter().take(AHEAD / 2).for_each(|update| self.fetch_held(update));
        }
        let mut changed = 0;
        for at in range {
            let update = updates[at];
            updates.get(at + 2 * AHEAD).into_iter().for_each(|update| self.fetch_index(update));
            updates.get(at + AHEAD).into_iter().for_each(|update| self.fetch(update, AHEAD));
            updates.get(at + AHEAD / 2).into_iter().for_each(|update| self.fetch_held(update));
            match self.apply(update) {
                Ok(is_changed) => changed += usize::from(is_changed),
                Err(error) => return (changed, Err(error)),
            }
        }
        (changed, Ok(()))
    }

    /// Prefetches the index entry of the rule of a change.
    fn fetch_index(&self, update: &RuleUpdate<T>) {
        if let RuleUpdate::Set(number, _) | RuleUpdate::Remove(number) = update {
            self.index.fetch(*number);
        }
    }

    /// Prefetches the memory that the rule of a change holds beside itself.
    fn fetch_held(&self, update: &RuleUpdate<T>) {
        if let RuleUpdate::Set(number, _) | RuleUpdate::Remove(number) = update
            && let Some(rule) = self.rule(*number)
        {
            rule.fetch();
        }
    }

    /// Prefetches the memory that a change will read after a number of other changes.
    fn fetch(&self, update: &RuleUpdate<T>, after: usize) {
        if let RuleUpdate::Insert(rule) | RuleUpdate::Set(_, rule) = update {
            rule.fetch();
        }
        let there = match update {
            RuleUpdate::Set(number, _) | RuleUpdate::Remove(number) => self.place(*number),
            RuleUpdate::Insert(_) => None,
        };
        // One that comes gets this place, or one that is as near.
        let next = || self.free.len().checked_sub(1 + after).map(|at| self.free[at] as usize);
        there.or_else(next).into_iter().for_each(|place| prefetch_all(&self.places[place]));
    }

    /// The rules in their order, with the numbers 1, 2, 3 and so on. O(n log n).
    #[must_use]
    pub fn renumbered(&self) -> Self {
        self.sorted().into_iter().map(|(_, rule)| rule.clone()).collect()
    }

    /// The number of a rule that comes after all others.
    fn next(&self) -> Result<RuleNumber, RuleError> {
        RuleNumber::new(self.last.saturating_add(1)).ok_or(RuleError::Spent { limit: RuleNumber::MOST })
    }

    /// Puts a rule or none under a number. Returns whether the set is different.
    #[inline(never)] // one copy for all crates
    fn put(&mut self, number: RuleNumber, rule: Option<&Rule<T>>) -> bool {
        let found = self.index.get(number.get());
        if found.and_then(|place| self.at(place as usize)) == rule {
            return false;
        }
        if let Some(rule) = rule {
            self.last = self.last.max(number.get());
            self.patterns += rule.patterns_len() as u64;
            self.heap += rule.heap();
        }
        let (changes, counts) = (&mut self.changes, (&mut self.patterns, &mut self.heap));
        match (found, rule) {
            (Some(place), Some(rule)) => {
                let before = self.places[place as usize].put(number, rule);
                Self::note(changes, number, place, before, counts);
            }
            (Some(place), None) => {
                self.index.remove(number.get());
                self.free.push(place);
                Self::note(changes, number, place, self.places[place as usize].take(), counts);
            }
            (None, Some(rule)) => {
                let place = pop(&mut self.free).unwrap_or_else(|| {
                    self.places.make_room(1);
                    self.places.push(Place::free());
                    id_of(self.places.len() - 1)
                });
                self.index.set(number.get(), place);
                self.places[place as usize].put(number, rule);
                Self::note(changes, number, place, None, counts);
            }
            (None, None) => {}
        }
        true
    }

    /// Notes that the rule of a number is another one than this, and what that took.
    ///
    /// In line, so that a rule goes from its place to the changes as it is: by way of the stack, where it
    /// would be written in small pieces and read in large ones, it would wait until all that is written
    /// before it is in the cache.
    #[inline(always)]
    fn note(
        changes: &mut Option<Changes<T>>,
        number: RuleNumber,
        place: u32,
        before: Option<Rule<T>>,
        (patterns, heap): (&mut u64, &mut usize),
    ) {
        if let Some(rule) = &before {
            *patterns -= rule.patterns_len() as u64;
            *heap -= rule.heap();
        }
        let Some(changes) = changes else { return };
        match changes.numbers.insert(number.get()) {
            true => changes.all.push(Changed { number, place, before }),
            false => changes.is_again = true,
        }
    }

    /// The place of the rule of a number.
    #[inline]
    fn place(&self, number: u32) -> Option<usize> {
        self.index.get(number).map(|place| place as usize)
    }

    #[inline]
    fn at(&self, place: usize) -> Option<&Rule<T>> {
        self.places[place].rule()
    }

    /// The rule of a number.
    #[inline]
    pub fn rule(&self, number: u32) -> Option<&Rule<T>> {
        self.at(self.place(number)?)
    }

    /// The rule after a change; `None` for a rule that was removed. It is faster than a lookup of the number.
    #[inline]
    pub fn now(&self, changed: &Changed<T>) -> Option<&Rule<T>> {
        match self.places.get(changed.place as usize) {
            Some(Place { rule, number }) if *number == Some(changed.number) => Some(rule),
            _ => self.rule(changed.number.get()),
        }
    }

    /// The action of the rule that a lookup returned; `None` for 0.
    pub fn action(&self, result: u32) -> Option<u32> {
        self.rule(result).map(Rule::action)
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of entries: the patterns of all rules.
    pub const fn entries_len(&self) -> u64 {
        self.patterns
    }

    /// The largest number ever given: no lookup returns a larger number.
    pub const fn last_number(&self) -> u32 {
        self.last
    }

    /// The rules, in any order.
    pub fn iter(&self) -> impl Iterator<Item = (RuleNumber, &Rule<T>)> {
        self.places.iter().filter_map(|place| Some((place.number?, &place.rule)))
    }

    /// The rules by number. O(n log n).
    pub fn sorted(&self) -> Vec<(RuleNumber, &Rule<T>)> {
        let mut rules: Vec<_> = self.iter().collect();
        sort_by_number(&mut rules, |(number, _)| number.get().into());
        rules
    }

    /// The rules that match a tuple, best first. O(rules).
    pub fn matching(&self, tuple: &T) -> Vec<(RuleNumber, &Rule<T>)> {
        let mut rules: Vec<_> = self.iter().filter(|(_, rule)| rule.matches(tuple)).collect();
        sort_by_number(&mut rules, |&(number, rule)| !Rank::new(rule.priority(), number).bits());
        rules
    }

    /// The entries of all rules, in any order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<T>> {
        self.iter().flat_map(|(number, rule)| Entry::of(number, rule))
    }

    /// The entries of all rules, best first; the entries of one rule are in the order of its patterns. O(n
    /// log n).
    pub fn ranked(&self) -> Vec<Entry<T>> {
        let mut rules: Vec<_> =
            self.iter().map(|(number, rule)| (Rank::new(rule.priority(), number), number, rule)).collect();
        sort_by_number(&mut rules, |(rank, ..)| !rank.bits());
        rules.into_iter().flat_map(|(_, number, rule)| Entry::of(number, rule)).collect()
    }

    /// Collects changes from now on, for [`take_changed`](Self::take_changed).
    pub fn track(&mut self) {
        let (all, numbers) = (Vec::new(), FxHashSet::default());
        self.changes = Some(Changes { all, numbers, is_again: false, last: self.last });
    }

    /// The rules that changed since the last call (or since [`track`](Self::track)), each once. The set has
    /// them as they are now.
    pub fn take_changed(&mut self) -> Vec<Changed<T>> {
        let mut all = Vec::new();
        self.append_changed(&mut all);
        all
    }

    /// Appends the changes that [`take_changed`](Self::take_changed) returns.
    pub(crate) fn append_changed(&mut self, all: &mut Vec<Changed<T>>) {
        // Nobody else looks at them meanwhile.
        let Some(mut changes) = self.changes.take() else { return };
        changes.numbers.clear();
        if std::mem::take(&mut changes.is_again) {
            changes.all.retain(|changed| self.rule(changed.number.get()) != changed.before.as_ref());
        }
        all.append(&mut changes.all);
        self.changes = Some(changes);
    }

    /// Lets the last number stand: [`undo_taken`](Self::undo_taken) comes back to it.
    pub(crate) fn keep_last_number(&mut self) {
        if let Some(changes) = &mut self.changes {
            changes.last = self.last;
        }
    }

    /// Makes changes undone that were taken, the last one first, and the last number what was kept.
    pub(crate) fn undo_taken(&mut self, taken: &mut Vec<Changed<T>>) {
        // Nothing is noted of what is done here.
        let changes = self.changes.take();
        for changed in taken.drain(..).rev() {
            self.put(changed.number, changed.before.as_ref());
        }
        self.last = changes.as_ref().map_or(self.last, |changes| changes.last);
        self.changes = changes;
    }

    /// The size in bytes.
    pub fn memory_usage(&self) -> u64 {
        let places = self.places.capacity() * size_of::<Place<T>>() + self.free.capacity() * 4;
        (places + self.index.memory_usage() + self.heap) as u64
    }
}

/// The number of a rule, if it is valid.
fn checked(number: u32) -> Result<RuleNumber, RuleError> {
    let limit = RuleNumber::MOST;
    RuleNumber::new(number).ok_or(RuleError::Number { found: number, limit })
}

fn id_of(place: usize) -> u32 {
    u32::try_from(place).expect("no more rules than numbers")
}

impl<T: Tuple> Entry<T> {
    /// The entries of a rule.
    pub fn of(number: RuleNumber, rule: &Rule<T>) -> impl Iterator<Item = Self> + use<'_, T> {
        let rank = Rank::new(rule.priority(), number);
        rule.patterns().map(move |pattern| Self { pattern, rank })
    }
}

impl<T: Tuple> Default for RuleSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Tuple> FromIterator<Rule<T>> for RuleSet<T> {
    /// Rules with the numbers 1, 2, 3 and so on. Panics past [`RuleNumber::MOST`].
    fn from_iter<I: IntoIterator<Item = Rule<T>>>(rules: I) -> Self {
        let mut set = Self::new();
        for rule in rules {
            set.insert(rule).expect("as many numbers as rules");
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ipv4Tuple;

    fn rule(text: &str) -> Rule<Ipv4Tuple> {
        text.parse().expect("a rule")
    }

    #[test]
    fn numbers_stay_and_are_not_given_twice() {
        let mut rules = RuleSet::new();
        let numbers: Vec<_> =
            (0..3).map(|n| rules.insert(rule("tcp").with_action(n)).expect("a number").get()).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert_eq!(rules.remove(3).map(|rule| rule.action()), Some(2));
        assert_eq!(rules.remove(3), None);
        assert_eq!(rules.insert(rule("udp")).map(RuleNumber::get), Ok(4));
        assert_eq!(rules.insert_at(2, rule("udp")), Err(RuleError::Taken(2)));
        assert_eq!(rules.insert_at(3, rule("udp")).map(RuleNumber::get), Ok(3));
        assert!(rules.insert_at(0, rule("udp")).is_err() && rules.insert_at(u32::MAX, rule("udp")).is_err());
        rules.insert_at(RuleNumber::MOST, rule("icmp")).expect("the last number");
        assert_eq!(rules.insert(rule("udp")), Err(RuleError::Spent { limit: RuleNumber::MOST }));
        assert_eq!((rules.len(), rules.renumbered().last_number()), (5, 5));
    }

    #[test]
    fn many_changes_are_made_in_order_up_to_a_bad_one() {
        let mut rules = RuleSet::new();
        rules.track();
        let mut updates: Vec<_> = (0..100).map(|n| RuleUpdate::Insert(rule("tcp").with_action(n))).collect();
        updates.push(RuleUpdate::Set(7, rule("udp")));
        updates.extend([
            RuleUpdate::Remove(8),
            RuleUpdate::Remove(8),
            RuleUpdate::Set(9, rule("tcp").with_action(8)),
        ]);
        updates.extend([RuleUpdate::Set(0, rule("udp")), RuleUpdate::Remove(10)]);
        let limit = RuleNumber::MOST;
        assert_eq!(rules.apply_all(&updates), (102, Err(RuleError::Number { found: 0, limit })));
        assert_eq!((rules.len(), rules.take_changed().len()), (99, 99));
        let one = |number| rules.rule(number).cloned();
        assert_eq!([one(7), one(8), one(10)], [Some(rule("udp")), None, Some(rule("tcp").with_action(9))]);
    }

    #[test]
    fn ranked_is_best_first() {
        let rules: RuleSet<_> =
            ["tcp priority=1", "dport=5-6 priority=9", "udp priority=1"].map(rule).into_iter().collect();
        let numbers: Vec<_> = rules.ranked().iter().map(|entry| entry.rank.result()).collect();
        assert_eq!(numbers, [2, 2, 1, 3]);
        assert_eq!((rules.len(), rules.entries_len(), rules.entries().count()), (3, 4, 4));
    }

    #[test]
    fn changes_are_what_differs_in_the_end() {
        let mut rules: RuleSet<_> = ["tcp", "udp", "icmp"].map(rule).into_iter().collect();
        rules.track();
        rules.remove(1);
        rules.set(1, rule("tcp")).expect("a number");
        rules.set(2, rule("gre")).expect("a number");
        rules.set(2, rule("esp")).expect("a number");
        rules.insert(rule("ah")).expect("a number");
        let fleeting = rules.insert(rule("ah")).expect("a number");
        rules.remove(fleeting.get());
        let changed: Vec<_> = rules.take_changed().into_iter().map(|c| (c.number.get(), c.before)).collect();
        assert_eq!(changed, [(2, Some(rule("udp"))), (4, None)]);
        assert!(rules.take_changed().is_empty());
    }
}
