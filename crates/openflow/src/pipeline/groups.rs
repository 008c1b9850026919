//! [`Groups`]: the groups, and the buckets of each that packets may go to now.
//!
//! ```text
//! bucket ─ watches ─► port, or group: live where one of its buckets is
//! bucket ─ leads to ─► group         a chain of at most 16 groups, without a ring
//! ```
//!
//! Groups may watch each other in any way. Those that are live only by each other are dead. A walk for each
//! bucket takes a time that is a power of the number of levels. So liveness is found out when a port or a
//! group changes, once for each group that this may concern. A packet reads what was found out.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::group::Group;
use crate::wire::number::{group, port};
use crate::wire::{Action, Bucket, GroupKind};

/// Groups that lead to groups, at most in a row.
const DEEPEST: usize = 16;

/// A group among the others.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) group: Arc<Group>,
    is_live: bool,
    /// The buckets that packets may go to, in their order.
    open: Vec<usize>,
}

impl Member {
    /// The buckets that get a packet of a flow with a hash.
    pub(crate) fn chosen(&self, hash: impl FnOnce() -> u32) -> &[usize] {
        let at = match self.group.kind {
            GroupKind::All => return &self.open,
            GroupKind::Indirect | GroupKind::FastFailover => 0,
            GroupKind::Select => {
                let Some(wanted) = self.group.select(hash()) else { return &[] };
                // The next one that is live, where the chosen one is not.
                let at = self.open.partition_point(|&open| open < wanted);
                if at < self.open.len() { at } else { 0 }
            }
        };
        self.open.get(at..=at).unwrap_or_default()
    }
}

/// The groups by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    members: FxHashMap<u32, Member>,
    /// A group, and one that watches it.
    watched: BTreeSet<(u32, u32)>,
    /// A group, and one that leads to it.
    led: BTreeSet<(u32, u32)>,
}

impl Groups {
    pub(crate) fn get(&self, number: u32) -> Option<&Member> {
        self.members.get(&number)
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        self.members.contains_key(&number)
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Arc<Group>)> {
        self.members.iter().map(|(&number, member)| (number, &member.group))
    }

    /// Whether another group leads to this one.
    pub(crate) fn is_led_to(&self, number: u32) -> bool {
        before(&self.led, number).next().is_some()
    }

    /// Whether a group may have these buckets: they lead neither back to it nor further than allowed.
    pub(crate) fn may_lead(&self, number: u32, buckets: &[Bucket]) -> bool {
        let next = |number: u32| self.get(number).map_or_else(Vec::new, |to| led_to(&to.group.buckets));
        let (mut beneath, mut above) = (FxHashMap::default(), FxHashMap::default());
        let deepest = longest(led_to(buckets), &next, &mut beneath);
        let back = |number: u32| before(&self.led, number).collect();
        let highest = longest(back(number), &back, &mut above);
        !beneath.contains_key(&number) && highest + 1 + deepest <= DEEPEST
    }

    /// Adds a group, in the place of the one that has its number, or removes it. All go with
    /// [`group::ALL`].
    pub(crate) fn set(&mut self, number: u32, group: Option<Arc<Group>>, is_port_live: impl Fn(u32) -> bool) {
        if number == group::ALL {
            *self = Self::default();
            return;
        }
        if let Some(old) = self.members.remove(&number) {
            watched_by(&old.group.buckets).for_each(|to| _ = self.watched.remove(&(to, number)));
            led_to(&old.group.buckets).into_iter().for_each(|to| _ = self.led.remove(&(to, number)));
        }
        if let Some(group) = group {
            self.watched.extend(watched_by(&group.buckets).map(|to| (to, number)));
            self.led.extend(led_to(&group.buckets).into_iter().map(|to| (to, number)));
            self.members.insert(number, Member { group, is_live: false, open: Vec::new() });
        }
        self.find_live(vec![number], is_port_live);
    }

    /// Finds out anew what is live, after a change of a port.
    pub(crate) fn ports_changed(&mut self, is_port_live: impl Fn(u32) -> bool) {
        self.find_live(self.members.keys().copied().collect(), is_port_live);
    }

    /// Finds out what is live of groups that changed, and of those that watch them.
    fn find_live(&mut self, changed: Vec<u32>, is_port_live: impl Fn(u32) -> bool) {
        let (mut concerned, mut seen) = (changed, FxHashSet::default());
        seen.extend(concerned.iter().copied());
        let mut at = 0;
        while at < concerned.len() {
            let number = concerned[at];
            concerned.extend(before(&self.watched, number).filter(|&watcher| seen.insert(watcher)));
            at += 1;
        }
        concerned.retain(|number| match self.members.get_mut(number) {
            Some(member) => {
                member.is_live = false;
                true
            }
            None => false,
        });
        // A group that is found live may make those live that watch it.
        let mut open = concerned.clone();
        while let Some(number) = open.pop() {
            let Some(member) = self.members.get(&number).filter(|member| !member.is_live) else { continue };
            let group = &member.group;
            if !group.buckets.iter().any(|bucket| self.is_live(group.kind, bucket, &is_port_live)) {
                continue;
            }
            open.extend(before(&self.watched, number));
            if let Some(member) = self.members.get_mut(&number) {
                member.is_live = true;
            }
        }
        for number in concerned {
            let Some(member) = self.members.get(&number) else { continue };
            let group = &member.group;
            let is_open = |bucket: &Bucket| match group.kind {
                GroupKind::Indirect => true,
                GroupKind::Select if bucket.weight == 0 => false,
                kind => self.is_live(kind, bucket, &is_port_live),
            };
            let open = (0..group.buckets.len()).filter(|&at| is_open(&group.buckets[at])).collect();
            if let Some(member) = self.members.get_mut(&number) {
                member.open = open;
            }
        }
    }

    /// Whether a bucket is live, by the port or the group that it watches.
    fn is_live(&self, kind: GroupKind, bucket: &Bucket, is_port_live: impl Fn(u32) -> bool) -> bool {
        // A bucket that watches nothing is live, except where liveness decides.
        let watches_nothing = bucket.watch_port == port::ANY && bucket.watch_group == group::ANY;
        bucket.watch_port != port::ANY && is_port_live(bucket.watch_port)
            || self.get(bucket.watch_group).is_some_and(|watched| watched.is_live)
            || watches_nothing && kind != GroupKind::FastFailover
    }
}

/// The groups that come before a group in pairs of numbers.
fn before(pairs: &BTreeSet<(u32, u32)>, number: u32) -> impl Iterator<Item = u32> + '_ {
    pairs.range((number, 0)..=(number, u32::MAX)).map(|&(_, other)| other)
}

/// The groups that buckets watch.
fn watched_by(buckets: &[Bucket]) -> impl Iterator<Item = u32> + '_ {
    buckets.iter().map(|bucket| bucket.watch_group).filter(|&number| number != group::ANY)
}

/// The groups that buckets lead to.
fn led_to(buckets: &[Bucket]) -> Vec<u32> {
    Action::groups(buckets.iter().flat_map(|bucket| &bucket.actions).copied())
}

/// The number of groups of the longest chain that begins with one of these. `known` has that of each group on
/// the way.
fn longest(start: Vec<u32>, next: &impl Fn(u32) -> Vec<u32>, known: &mut FxHashMap<u32, usize>) -> usize {
    let mut most = 0;
    for number in start {
        let len = match known.get(&number) {
            Some(&len) => len,
            None => {
                // No ring is there, and no chain is longer than allowed, so this goes no deeper.
                let len = 1 + longest(next(number), next, known);
                known.insert(number, len);
                len
            }
        };
        most = most.max(len);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(watch_port: u32, watch_group: u32, leads_to: Option<u32>) -> Bucket {
        let actions = leads_to.map(Action::Group).into_iter().collect();
        Bucket { weight: 1, watch_port, watch_group, actions }
    }

    fn add(groups: &mut Groups, number: u32, buckets: Vec<Bucket>, live: &[u32]) {
        let group = Group::new(GroupKind::FastFailover, buckets, 0, 1);
        groups.set(number, Some(Arc::new(group)), |port| live.contains(&port));
    }

    fn first(groups: &Groups, number: u32) -> Option<usize> {
        groups.get(number).unwrap().chosen(|| 0).first().copied()
    }

    /// A walk for each of eight buckets in each of 40 levels would not end.
    #[test]
    fn liveness_goes_through_any_number_of_levels_and_back() {
        let mut groups = Groups::default();
        add(&mut groups, 0, vec![bucket(1, group::ANY, None)], &[]);
        for number in 1..40 {
            add(&mut groups, number, vec![bucket(port::ANY, number - 1, None); 8], &[]);
        }
        assert_eq!(first(&groups, 39), None);
        groups.ports_changed(|port| port == 1);
        assert_eq!(first(&groups, 39), Some(0));
        groups.ports_changed(|_| false);
        assert_eq!(first(&groups, 39), None);
        add(&mut groups, 7, vec![bucket(2, group::ANY, None), bucket(1, group::ANY, None)], &[1]);
        assert_eq!([6, 7, 8, 39].map(|number| first(&groups, number)), [None, Some(1), Some(0), Some(0)]);
        groups.set(7, None, |_| true);
        assert_eq!(first(&groups, 39), None);
    }

    #[test]
    fn groups_that_live_only_by_each_other_are_dead() {
        let mut groups = Groups::default();
        let ring = |other| vec![bucket(port::ANY, other, None)];
        add(&mut groups, 1, vec![bucket(9, group::ANY, None)], &[9]);
        add(&mut groups, 2, ring(1), &[9]);
        assert_eq!(first(&groups, 2), Some(0));
        add(&mut groups, 1, ring(2), &[9]);
        assert_eq!([1, 2].map(|number| first(&groups, number)), [None, None]);
    }

    #[test]
    fn chains_are_counted_in_both_directions() {
        let mut groups = Groups::default();
        let leads = |to| vec![bucket(port::ANY, group::ANY, Some(to)); 8];
        // Two chains: 8 groups, and 9. A walk for each bucket would take a while.
        for (start, count) in [(100, 8), (200, 9)] {
            add(&mut groups, start, Vec::new(), &[]);
            for number in start + 1..start + count {
                assert!(groups.may_lead(number, &leads(number - 1)));
                add(&mut groups, number, leads(number - 1), &[]);
            }
        }
        // 8 above and 9 beneath are 17, and one less is 16.
        assert!(!groups.may_lead(100, &leads(208)));
        assert!(groups.may_lead(100, &leads(207)));
        add(&mut groups, 100, leads(207), &[]);
        // Rings: by one group and by many.
        assert!(!groups.may_lead(300, &leads(300)));
        assert!(!groups.may_lead(200, &leads(107)) && !groups.may_lead(100, &leads(101)));
        assert!(groups.is_led_to(100) && !groups.is_led_to(107) && !groups.is_led_to(208));
        add(&mut groups, 100, Vec::new(), &[]);
        assert!(!groups.may_lead(200, &leads(107)) && groups.may_lead(200, &leads(106)));
        add(&mut groups, 101, Vec::new(), &[]);
        assert!(!groups.is_led_to(100));
    }
}
