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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use arc_swap::ArcSwap;
use rustc_hash::{FxHashMap, FxHashSet};
use wirespeed::RuleReader;
use wirespeed::classify::{Classifier, Ipv4Tuple, Ipv6Tuple, RuleUpdate};

use crate::error::Error;
use crate::fragments::Fragments;
use crate::keepalives::Keepalives;
use crate::mapping::{Ends, Mapping};
use crate::path::TooLarge;
use crate::policy::{Action, Direction, Policy, Template};
use crate::sa::{Sa, SaConfig};
use crate::selector::{FamilyRule, Selector};

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

/// What readers share of outer packets and their fragments.
#[derive(Debug)]
struct Outer {
    fragments: Mutex<Fragments>,
    keepalives: Mutex<Keepalives>,
    /// The identification of the next packet that is cut.
    id: AtomicU32,
}

/// One state of the associations and policies.
#[derive(Clone, Debug, Default)]
pub struct State {
    sas: FxHashMap<(IpAddr, u32), Arc<Sa>>,
    /// The associations in the order in which they came: a policy takes the newest.
    order: Vec<Arc<Sa>>,
    ends: FxHashSet<IpAddr>,
    ports: Vec<u16>,
    /// The other ends of tunnels in UDP, and the associations whose packets follow them.
    mappings: FxHashMap<Ends, Arc<Mapping>>,
    followers: Vec<Arc<Sa>>,
    policies: FxHashMap<u32, Resolved>,
    /// Whether packets without a policy are dropped.
    discards_out: bool,
    discards_in: bool,
}

/// A policy with the association that its packets go out through.
#[derive(Clone, Debug)]
struct Resolved {
    policy: Policy,
    sa: Option<Arc<Sa>>,
}

/// The decision about a packet that goes out.
#[derive(Clone, Copy, Debug)]
pub enum Outbound<'s> {
    /// The packet passes in the clear.
    Pass,
    /// The packet goes through a tunnel.
    Protect(&'s Sa),
    /// A tunnel is wanted that there is no association for.
    Unkeyed,
    /// The packet is dropped.
    Discard,
}

/// The decision about a packet that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inbound {
    /// The packet goes on.
    Accept,
    /// The packet came in the clear, and a policy wants it protected.
    Unprotected,
    /// The packet is dropped: it came through another tunnel than its policy says, or its policy discards it.
    Discard,
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

/// The UDP port of ESP and IKE behind address translation (RFC 3948).
const PORT: u16 = 4500;

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

impl State {
    /// The association of a packet that came, by destination and index.
    #[inline]
    #[must_use]
    pub fn sa(&self, dst: IpAddr, spi: u32) -> Option<&Sa> {
        self.sas.get(&(dst, spi)).map(|sa| &**sa).filter(|sa| sa.direction != Some(Direction::Out))
    }

    /// A reference of one's own to an association, if it is still one of these.
    #[cfg(feature = "gpu")]
    pub(crate) fn shared(&self, sa: &Sa) -> Option<Arc<Sa>> {
        self.sas.get(&(sa.dst, sa.spi)).filter(|known| std::ptr::eq(&***known, sa)).cloned()
    }

    /// The associations, oldest first.
    pub fn sas(&self) -> impl Iterator<Item = &Sa> {
        self.order.iter().map(|sa| &**sa)
    }

    /// Whether an address is the end of a tunnel.
    #[inline]
    #[must_use]
    pub fn is_end(&self, address: IpAddr) -> bool {
        self.ends.contains(&address)
    }

    /// The UDP ports that are for ESP, in order.
    #[must_use]
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Whether a UDP port is one for ESP.
    #[inline]
    #[must_use]
    pub fn is_port(&self, port: u16) -> bool {
        self.ports.binary_search(&port).is_ok()
    }

    /// Learns from a packet that came, if it is an ICMP error which tells that the path of a tunnel takes
    /// smaller packets only. Returns whether it was one. The packet that it quotes must be one that an
    /// association sent lately, by its addresses, its ports, its index and its sequence number, and it must
    /// be larger than the size that is told. Such errors are under no seal, so one who sees packets can forge
    /// one and make packets small, down to what every path takes. That holds for ten minutes.
    #[inline]
    pub fn learn(&self, packet: &[u8]) -> bool {
        let Some(told) = TooLarge::read(packet) else { return false };
        let is_sender = |sa: &&Arc<Sa>| {
            (sa.spi, sa.src, sa.peer()) == (told.spi, told.src, (told.dst, told.ports))
                && sa.direction != Some(Direction::In)
        };
        let sa = self.sas.get(&(told.dst, told.spi)).filter(is_sender);
        let sa = sa.or_else(|| self.followers.iter().find(is_sender));
        let Some(sa) = sa.filter(|sa| sa.sent_lately(told.low)) else { return false };
        sa.path.learn(told.mtu, Instant::now());
        true
    }

    /// Whether a policy, or an association that carries its packets, is for some ports. Then a packet of it
    /// is not cut before it is sealed: later fragments have no ports, and would not be taken at the other
    /// end.
    #[must_use]
    pub fn is_for_ports(&self, policy: u32, sa: &Sa) -> bool {
        let policy = self.policies.get(&policy).map(|known| known.policy.selector);
        policy.into_iter().chain(sa.config.selector).any(|selector| selector.has_ports())
    }

    /// Decides about a packet that goes out, by the number of its policy; 0 for none.
    #[inline]
    #[must_use]
    pub fn outbound(&self, policy: u32) -> Outbound<'_> {
        match self.policies.get(&policy) {
            None if policy == 0 && !self.discards_out => Outbound::Pass,
            // A policy that is gone: the next packets are decided by what there is then.
            None => Outbound::Discard,
            Some(Resolved { policy, sa }) => match policy.action {
                Action::Pass => Outbound::Pass,
                Action::Discard => Outbound::Discard,
                Action::Protect(_) => sa.as_deref().map_or(Outbound::Unkeyed, Outbound::Protect),
            },
        }
    }

    /// Decides about a packet that came in, by the number of its policy (0 for none) and the association
    /// that it came through. A packet of a tunnel that no policy is for is discarded (RFC 4301, section 5.2,
    /// step 4): the other end of the tunnel may not send from any address.
    #[inline]
    #[must_use]
    pub fn inbound(&self, policy: u32, through: Option<&Sa>) -> Inbound {
        let action = match self.policies.get(&policy) {
            Some(known) => known.policy.action,
            None if policy == 0 && !self.discards_in && through.is_none() => Action::Pass,
            None => Action::Discard,
        };
        match (action, through) {
            (Action::Pass, _) => Inbound::Accept,
            (Action::Discard, _) => Inbound::Discard,
            (Action::Protect(_), None) => Inbound::Unprotected,
            (Action::Protect(template), Some(sa)) if template.is_met(sa) => Inbound::Accept,
            (Action::Protect(_), Some(_)) => Inbound::Discard,
        }
    }

    fn insert(&mut self, sa: Arc<Sa>) {
        self.sas.insert((sa.dst, sa.spi), Arc::clone(&sa));
        self.order.push(sa);
    }

    /// Puts an association in the place of the one with its destination and index.
    fn change(&mut self, sa: Arc<Sa>) {
        let of = (sa.dst, sa.spi);
        if let Some(place) = self.order.iter_mut().find(|other| (other.dst, other.spi) == of) {
            *place = Arc::clone(&sa);
        }
        self.sas.insert(of, sa);
    }

    fn remove(&mut self, dst: IpAddr, spi: u32) -> Option<Arc<Sa>> {
        let sa = self.sas.remove(&(dst, spi))?;
        self.order.retain(|other| !Arc::ptr_eq(other, &sa));
        Some(sa)
    }

    /// Derives what follows from associations and policies.
    fn resolve(&mut self) {
        let came = self.order.iter().filter(|sa| sa.direction != Some(Direction::Out));
        self.ends = came.map(|sa| sa.dst).collect();
        self.ports = self.order.iter().filter_map(|sa| Some(sa.ports?.dst)).collect();
        if !self.ports.is_empty() {
            self.ports.push(PORT);
        }
        self.ports.sort_unstable();
        self.ports.dedup();
        let known = std::mem::take(&mut self.mappings);
        for (sa, ports) in self.order.iter().filter_map(|sa| Some((sa, sa.ports?))) {
            let (src, dst) = ((sa.src, ports.src), (sa.dst, ports.dst));
            for (of, ends) in [(&sa.goes, [src, dst]), (&sa.came, [dst, src])] {
                let known = || known.get(&ends).cloned().unwrap_or_else(|| Arc::new(Mapping::new(ends)));
                let mapping = self.mappings.entry(ends).or_insert_with(known);
                of.get_or_init(|| Arc::clone(mapping));
            }
        }
        self.followers = self.order.iter().filter(|sa| sa.config.nat_follow).cloned().collect();
        // The newest of each tunnel: with the number that a policy asks for, and of any.
        let mut newest: FxHashMap<(IpAddr, IpAddr, u32), &Arc<Sa>> = FxHashMap::default();
        for sa in self.order.iter().filter(|sa| sa.direction != Some(Direction::In)) {
            newest.insert((sa.src, sa.dst, sa.reqid), sa);
            newest.insert((sa.src, sa.dst, 0), sa);
        }
        for resolved in self.policies.values_mut() {
            let Action::Protect(template) = resolved.policy.action else { continue };
            resolved.sa = match template.spi {
                0 => newest.get(&(template.src, template.dst, template.reqid)).map(|sa| Arc::clone(sa)),
                spi => self
                    .sas
                    .get(&(template.dst, spi))
                    .filter(|sa| template.is_met(sa) && sa.direction != Some(Direction::In))
                    .cloned(),
            };
        }
    }
}

impl Template {
    /// Whether an association is what the policy asks for.
    fn is_met(&self, sa: &Sa) -> bool {
        (self.src, self.dst) == (sa.src, sa.dst)
            && (self.reqid == 0 || self.reqid == sa.reqid)
            && (self.spi == 0 || self.spi == sa.spi)
    }
}

/// The rules of both families in one direction.
#[derive(Clone, Debug)]
pub struct FamilyReaders {
    /// The rules of IPv4: actions are numbers of policies.
    pub v4: RuleReader<Ipv4Tuple>,
    /// The rules of IPv6.
    pub v6: RuleReader<Ipv6Tuple>,
    count: Arc<AtomicUsize>,
}

impl FamilyReaders {
    /// Whether there is no rule, so that none has to be asked.
    #[must_use]
    pub fn are_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }
}

/// Security associations and policies: a reader's side, which never waits.
#[derive(Clone, Debug)]
pub struct Reader {
    state: Arc<ArcSwap<State>>,
    outer: Arc<Outer>,
    out: FamilyReaders,
    r#in: FamilyReaders,
}

impl Reader {
    /// The state of now. For policies, ask the rules first and take the state then: it knows what they found.
    #[must_use]
    pub fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    /// The fragments of ESP packets that came, shared by all readers: those of a packet may come to different
    /// threads. Others wait as long as the caller has them.
    pub fn fragments(&self) -> MutexGuard<'_, Fragments> {
        self.outer.fragments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keepalives that are to be sent now, as packets. One reader gets each; there are none more often
    /// than once a second.
    #[must_use]
    pub fn keepalives(&self, now: Instant) -> Vec<Vec<u8>> {
        // Where another thread asks, it sends them.
        let keepalives = self.outer.keepalives.try_lock();
        keepalives.map_or_else(|_| Vec::new(), |mut keepalives| keepalives.due(self.state().sas(), now))
    }

    /// An identification for the fragments of an IPv6 packet, another one for each call (RFC 8200, 4.5).
    #[must_use]
    pub fn next_id(&self) -> u32 {
        self.outer.id.fetch_add(1, Ordering::Relaxed)
    }

    /// The rules of a direction.
    #[must_use]
    pub const fn rules(&self, direction: Direction) -> &FamilyReaders {
        match direction {
            Direction::Out => &self.out,
            Direction::In => &self.r#in,
        }
    }
}
