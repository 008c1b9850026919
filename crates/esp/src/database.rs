//! [`Database`]: security associations and policies, changed by one writer while readers go on.
//!
//! ```text
//! changes ─► Database ─┬─ State: associations by destination and index; policies by number ─► published whole
//!                      └─ four classifiers: direction and family ─► the number of a policy
//!                                                                  Reader, one a thread
//! ```
//!
//! A reader takes a [`State`] for the packets of a chunk. An association that is removed stays in that state,
//! but it is ended, so that packets which are under way are dropped. A policy that is removed stays in the
//! state until the next changes, for readers that found its rule just before, and its number is not given
//! again.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use rustc_hash::FxHashMap;
use wirespeed::classify::{Classifier, Ipv4Tuple, Ipv6Tuple, RuleUpdate};

use crate::error::Error;
use crate::policy::{Direction, Policy};
use crate::reader::{FamilyReaders, Outer, Reader};
use crate::sa::{Sa, SaConfig};
use crate::selector::{FamilyRule, Selector};
use crate::state::{Resolved, State};

/// A change of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Adds a security association. There must be none with its index and destination.
    AddSa(Box<SaConfig>),
    /// Adds a security association, in place of that with its index and destination, if there is one. With
    /// the keys of that one, its sequence numbers, its replay window and its counters go on, and so does its
    /// place among the others. With other keys it is a new one.
    SetSa(Box<SaConfig>),
    /// Removes the security association with this destination and index.
    RemoveSa(IpAddr, u32),
    /// Removes all security associations.
    FlushSas,
    /// Adds a policy. There must be no other for its selector and direction.
    AddPolicy(Policy),
    /// Adds a policy, in place of that for its selector and direction, if there is one.
    SetPolicy(Policy),
    /// Removes the policy for a selector and a direction.
    RemovePolicy(Selector, Direction),
    /// Removes all policies.
    FlushPolicies,
    /// Says whether packets of a direction that no policy is for pass; else they are discarded.
    SetOtherwise(Direction, bool),
}

/// The rules of one family in both directions.
#[derive(Debug)]
struct Rules {
    v4: Classifier<Ipv4Tuple>,
    v6: Classifier<Ipv6Tuple>,
    /// The number of rules, for readers.
    count: Arc<AtomicUsize>,
}

/// Security associations and policies: the writer's side.
#[derive(Debug)]
pub struct Database {
    state: Arc<ArcSwap<State>>,
    outer: Arc<Outer>,
    out: Rules,
    r#in: Rules,
    /// The number of each policy.
    numbers: FxHashMap<(Selector, Direction), u32>,
    /// Policies whose rules are gone, and which readers may have found just before.
    removed: Vec<u32>,
    next: u32,
}

/// The difference that [`Database::replace`] made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replaced {
    /// Associations that are as they were.
    pub kept: usize,
    /// Associations with the keys that they had and another description. Their numbers go on.
    pub changed: usize,
    /// Associations that are new, or have other keys.
    pub added: usize,
    /// Associations that ended, because they are not among the new ones or have other keys.
    pub ended: usize,
    /// Policies that came, went, or say something else.
    pub policies: usize,
}

impl Database {
    /// An empty database, in which all packets pass.
    pub fn new() -> Result<Self, Error> {
        let rules = || -> Result<Rules, Error> {
            let (v4, v6) = (Classifier::builder().build()?, Classifier::builder().build()?);
            Ok(Rules { v4, v6, count: Arc::default() })
        };
        // Two databases, such as those before and after a restart, hardly ever use the same identifications.
        let id = getrandom::u32().map_err(|error| Error::Random(error.to_string()))?;
        Ok(Self {
            state: Arc::new(ArcSwap::from_pointee(State::default())),
            outer: Arc::new(Outer {
                fragments: Mutex::default(),
                keepalives: Mutex::default(),
                id: AtomicU32::new(id),
            }),
            out: rules()?,
            r#in: rules()?,
            numbers: FxHashMap::default(),
            removed: Vec::new(),
            next: 1,
        })
    }

    /// A reader, for a thread.
    #[must_use]
    pub fn reader(&self) -> Reader {
        let of = |rules: &Rules| FamilyReaders {
            v4: rules.v4.reader(),
            v6: rules.v6.reader(),
            count: Arc::clone(&rules.count),
        };
        Reader {
            state: Arc::clone(&self.state),
            outer: Arc::clone(&self.outer),
            out: of(&self.out),
            r#in: of(&self.r#in),
        }
    }

    /// The state of now.
    #[must_use]
    pub fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    /// Makes changes in order. Readers see them together, but for the four kinds of rules, by direction and
    /// family, which they see one after the other. One call with many changes costs much less than a call for
    /// each.
    ///
    /// Fails at the first change that can't be made. Those before it are made.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = Change>) -> Result<(), Error> {
        let mut state = self.next_state();
        let mut steps = Steps::default();
        let mut outcome = Ok(());
        for change in changes {
            outcome = self.change(&mut state, change, &mut steps);
            if outcome.is_err() {
                break;
            }
        }
        self.publish(state, &steps)?;
        outcome
    }

    /// Makes of the database what these changes make of an empty one, and changes only what differs: for a
    /// file that is read again. Readers see it as with [`apply`](Self::apply).
    ///
    /// An association that stays as it is keeps its sequence numbers, its replay window and its counters. So
    /// does one with the same destination, index and keys of which something else changes. An association
    /// with other keys is a new one. Those that are not among the new ones end.
    ///
    /// Fails at the first change that can't be made. Then nothing has changed.
    pub fn replace(&mut self, changes: impl IntoIterator<Item = Change>) -> Result<Replaced, Error> {
        let mut wanted = Self::new()?;
        wanted.apply(changes)?;
        let wanted_state = wanted.state();
        let mut state = self.next_state();
        let (mut steps, mut replaced) = (Steps::default(), Replaced::default());
        self.replace_policies(&wanted, &mut state, &mut steps, &mut replaced)?;
        (state.discards_out, state.discards_in) = (wanted_state.discards_out, wanted_state.discards_in);
        // The order is that of the new ones: a policy takes the newest.
        let old = std::mem::take(&mut state.order);
        let known = std::mem::take(&mut state.sas);
        for new in &wanted_state.order {
            let sa = match known.get(&(new.dst, new.spi)) {
                Some(known) if known.config == new.config => {
                    replaced.kept += 1;
                    Arc::clone(known)
                }
                Some(known) if known.config.keys == new.config.keys => {
                    replaced.changed += 1;
                    Arc::new(known.changed(&new.config)?)
                }
                _ => {
                    replaced.added += 1;
                    // One of its own: it may be of a tunnel whose other end is known already.
                    Arc::new(Sa::new(&new.config)?)
                }
            };
            state.insert(sa);
        }
        let is_there =
            |sa: &Arc<Sa>| state.sas.get(&(sa.dst, sa.spi)).is_some_and(|new| Arc::ptr_eq(new, sa));
        steps.ended.extend(old.into_iter().filter(|sa| !is_there(sa)));
        replaced.ended = steps.ended.len() - replaced.changed;
        self.publish(state, &steps)?;
        Ok(replaced)
    }

    /// Makes the policies those of another database. A policy that stays keeps its number, unless a new one
    /// of its priority comes before it: of equals the older one, with the lower number, comes first.
    fn replace_policies(
        &mut self,
        wanted: &Self,
        state: &mut State,
        steps: &mut Steps,
        replaced: &mut Replaced,
    ) -> Result<(), Error> {
        let wanted_state = wanted.state();
        let mut numbers: Vec<u32> = wanted.numbers.values().copied().collect();
        numbers.sort_unstable();
        let mut known = std::mem::take(&mut self.numbers);
        let mut last: FxHashMap<(Direction, u32), u32> = FxHashMap::default();
        for Resolved { policy, .. } in numbers.iter().filter_map(|number| wanted_state.policies.get(number)) {
            let Policy { selector, direction, priority, .. } = *policy;
            let last = last.entry((direction, priority)).or_default();
            let old = known.remove(&(selector, direction));
            let is_same =
                old.and_then(|old| state.policies.get(&old)).is_some_and(|known| known.policy == *policy);
            replaced.policies += usize::from(!is_same);
            *last = match old {
                Some(old) if is_same && old > *last => {
                    self.numbers.insert((selector, direction), old);
                    old
                }
                // The other database has such a rule, so this one takes it, too.
                old => {
                    let number = self.insert(state, policy, steps)?;
                    if let Some(old) = old {
                        self.remove(selector, direction, old, steps);
                    }
                    number
                }
            };
        }
        for ((selector, direction), number) in known {
            replaced.policies += 1;
            self.remove(selector, direction, number, steps);
        }
        Ok(())
    }

    /// A copy of the state, to be changed, without policies that went with the last changes: readers that
    /// found them had the time of a whole call to look them up.
    fn next_state(&mut self) -> State {
        let mut state = State::clone(&self.state.load());
        for number in self.removed.drain(..) {
            state.policies.remove(&number);
        }
        state
    }

    /// Lets readers see a state and its rules.
    fn publish(&mut self, mut state: State, steps: &Steps) -> Result<(), Error> {
        state.resolve();
        // A policy is in the state before a rule leads to it.
        self.state.store(Arc::new(state));
        steps.ended.iter().for_each(|sa| sa.end());
        self.out.apply(&steps.out)?;
        self.r#in.apply(&steps.r#in)
    }

    fn change(&mut self, state: &mut State, change: Change, steps: &mut Steps) -> Result<(), Error> {
        match change {
            Change::AddSa(config) => {
                if state.sas.contains_key(&(config.dst, config.spi)) {
                    return Err(Error::SaExists { spi: config.spi, dst: config.dst });
                }
                state.insert(Arc::new(Sa::new(&config)?));
            }
            Change::SetSa(config) => {
                let known = state.sas.get(&(config.dst, config.spi)).cloned();
                match known.filter(|known| known.config.keys == config.keys) {
                    Some(known) if known.config == *config => {}
                    Some(known) => {
                        state.change(Arc::new(known.changed(&config)?));
                        steps.ended.push(known);
                    }
                    None => {
                        let sa = Arc::new(Sa::new(&config)?);
                        steps.ended.extend(state.remove(config.dst, config.spi));
                        state.insert(sa);
                    }
                }
            }
            Change::RemoveSa(dst, spi) => {
                steps.ended.push(state.remove(dst, spi).ok_or(Error::NoSa { spi, dst })?);
            }
            Change::FlushSas => {
                steps.ended.append(&mut state.order);
                state.sas.clear();
            }
            Change::AddPolicy(policy) => {
                match self.numbers.get(&(policy.selector, policy.direction)) {
                    None => drop(self.insert(state, &policy, steps)?),
                    // Files name a policy for packets that are forwarded and for those that are taken.
                    Some(number)
                        if state.policies.get(number).is_some_and(|known| known.policy == policy) => {}
                    Some(_) => return Err(Error::PolicyExists),
                }
            }
            Change::SetPolicy(policy) => {
                let old = self.numbers.get(&(policy.selector, policy.direction)).copied();
                self.insert(state, &policy, steps)?;
                if let Some(number) = old {
                    self.remove(policy.selector, policy.direction, number, steps);
                }
            }
            Change::RemovePolicy(selector, direction) => {
                let number = self.numbers.remove(&(selector, direction)).ok_or(Error::NoPolicy)?;
                self.remove(selector, direction, number, steps);
            }
            Change::FlushPolicies => {
                for ((selector, direction), number) in std::mem::take(&mut self.numbers) {
                    self.remove(selector, direction, number, steps);
                }
            }
            Change::SetOtherwise(Direction::Out, passes) => state.discards_out = !passes,
            Change::SetOtherwise(Direction::In, passes) => state.discards_in = !passes,
        }
        Ok(())
    }

    /// Adds a policy under the next number, which is its rule's, too. Returns the number.
    fn insert(&mut self, state: &mut State, policy: &Policy, steps: &mut Steps) -> Result<u32, Error> {
        let number = self.next;
        // Of policies the lowest priority comes first, and of rules the highest.
        let rule = policy.selector.rule(u32::MAX - policy.priority, number)?;
        let updates = steps.of(policy.direction);
        match rule {
            FamilyRule::V4(rule) => updates.v4.push(RuleUpdate::Set(number, rule)),
            FamilyRule::V6(rule) => updates.v6.push(RuleUpdate::Set(number, rule)),
        }
        state.policies.insert(number, Resolved { policy: *policy, sa: None });
        self.numbers.insert((policy.selector, policy.direction), number);
        self.next += 1;
        Ok(number)
    }

    /// Removes the rule of a policy. The policy goes with the next call.
    fn remove(&mut self, selector: Selector, direction: Direction, number: u32, steps: &mut Steps) {
        let updates = steps.of(direction);
        if selector.src.addr().is_ipv4() {
            updates.v4.push(RuleUpdate::Remove(number));
        } else {
            updates.v6.push(RuleUpdate::Remove(number));
        }
        self.removed.push(number);
    }
}

/// The consequences of a list of changes.
#[derive(Debug, Default)]
struct Steps {
    out: Updates,
    r#in: Updates,
    ended: Vec<Arc<Sa>>,
}

/// Changes of the rules of one direction.
#[derive(Debug, Default)]
struct Updates {
    v4: Vec<RuleUpdate<Ipv4Tuple>>,
    v6: Vec<RuleUpdate<Ipv6Tuple>>,
}

impl Steps {
    const fn of(&mut self, direction: Direction) -> &mut Updates {
        match direction {
            Direction::Out => &mut self.out,
            Direction::In => &mut self.r#in,
        }
    }
}

impl Rules {
    fn apply(&mut self, updates: &Updates) -> Result<(), Error> {
        if !updates.v4.is_empty() {
            self.v4.apply(&updates.v4)?;
        }
        if !updates.v6.is_empty() {
            self.v6.apply(&updates.v6)?;
        }
        self.count.store(self.v4.len() + self.v6.len(), Ordering::Release);
        Ok(())
    }
}
