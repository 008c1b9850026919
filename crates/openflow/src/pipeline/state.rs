//! [`State`]: all that workers read, in two copies that change in turns.
//!
//! Workers read one copy while changes go into the other ([`Copies`](wirespeed_image::left_right::Copies)),
//! so neither waits for the other. A chunk of packets is handled within one entry, so all of it sees one
//! state.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::flow::Flow;
use super::front::{Front, Since};
use super::group::Group;
use super::groups::Groups;
use super::meter::Meter;
use super::numbering::Numbering;
use super::table::Table;
use crate::wire::number::group;

/// The number of tables.
pub(crate) const TABLES: u8 = 254;

/// A port, as far as packets are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortState {
    /// The bits of `ofp_port_config`.
    pub(crate) config: u32,
    /// Whether there is no link.
    pub(crate) is_down: bool,
}

impl PortState {
    pub(crate) const DOWN: u32 = 1;
    pub(crate) const NO_RECEIVE: u32 = 1 << 2;
    pub(crate) const NO_FORWARD: u32 = 1 << 5;
    pub(crate) const NO_PACKET_IN: u32 = 1 << 6;
    pub(crate) const ALL: u32 = Self::DOWN | Self::NO_RECEIVE | Self::NO_FORWARD | Self::NO_PACKET_IN;

    pub(crate) const fn is_live(self) -> bool {
        !self.is_down && self.config & Self::DOWN == 0
    }

    pub(crate) const fn forwards(self) -> bool {
        self.is_live() && self.config & Self::NO_FORWARD == 0
    }

    pub(crate) const fn receives(self) -> bool {
        self.is_live() && self.config & Self::NO_RECEIVE == 0
    }
}

/// The state that workers read.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) tables: Vec<Table>,
    /// Whether a flow ever came to a table behind the first one.
    pub(crate) has_later: bool,
    pub(crate) groups: Groups,
    pub(crate) meters: FxHashMap<u32, Arc<Meter>>,
    /// The ports by their places.
    pub(crate) ports: Vec<PortState>,
    pub(crate) numbering: Numbering,
    /// Whether packets are forwarded without OpenFlow, because there is no controller.
    pub(crate) is_standalone: bool,
    /// Whether a packet whose time to live is spent goes to controllers.
    pub(crate) tells_spent: bool,
}

/// A change of the state.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Insert(Arc<Flow>),
    Remove(Arc<Flow>),
    /// A group, or all of them, which can only go.
    Group(u32, Option<Arc<Group>>),
    Meter(u32, Option<Arc<Meter>>),
    Port(usize, PortState),
    /// The classifier of a table, with what changed since its flows were gathered; or none.
    Front(u8, Option<(Arc<Front>, Since)>),
    Standalone(bool),
    TellSpent(bool),
}

impl State {
    /// The state of a switch with these ports.
    pub(crate) fn new(numbering: Numbering) -> Self {
        Self {
            tables: vec![Table::default(); TABLES.into()],
            has_later: false,
            groups: Groups::default(),
            meters: FxHashMap::default(),
            ports: vec![PortState::default(); numbering.count()],
            numbering,
            is_standalone: false,
            tells_spent: false,
        }
    }

    /// The port of a number: from 1 on, or LOCAL.
    #[inline]
    pub(crate) fn port(&self, number: u32) -> Option<PortState> {
        self.numbering.place(number).map(|at| self.ports[at])
    }

    /// Makes changes in their order.
    pub(crate) fn apply_all<'c>(&mut self, changes: impl Iterator<Item = &'c Change> + Clone) {
        /// Changes whose lines of memory are on their way while one is made.
        const AHEAD: usize = 8;
        let mut ahead = changes.clone().skip(AHEAD);
        for change in changes {
            if let Some(Change::Insert(flow) | Change::Remove(flow)) = ahead.next() {
                self.tables[usize::from(flow.table)].prefetch(flow);
            }
            self.apply(change);
        }
    }

    /// The changes that undo one that is about to be made, in any order.
    pub(crate) fn undoing(&self, change: &Change) -> Vec<Change> {
        let known = |flow: &Flow| {
            self.tables[usize::from(flow.table)].get(&flow.matched(), flow.priority).map(Arc::clone)
        };
        vec![match change {
            Change::Insert(flow) => {
                known(flow).map_or_else(|| Change::Remove(Arc::clone(flow)), Change::Insert)
            }
            Change::Remove(flow) => Change::Insert(Arc::clone(flow)),
            Change::Group(group::ALL, _) => {
                let all = self.groups.iter();
                return all.map(|(number, group)| Change::Group(number, Some(Arc::clone(group)))).collect();
            }
            Change::Group(number, _) => {
                let known = self.groups.get(*number).map(|member| Arc::clone(&member.group));
                Change::Group(*number, known)
            }
            Change::Meter(number, _) => Change::Meter(*number, self.meters.get(number).cloned()),
            Change::Port(at, _) => Change::Port(*at, self.ports[*at]),
            Change::Front(table, _) => {
                let used = self.tables[usize::from(*table)].front();
                Change::Front(*table, used.map(|used| (Arc::clone(&used.front), used.since().clone())))
            }
            Change::Standalone(_) => Change::Standalone(self.is_standalone),
            Change::TellSpent(_) => Change::TellSpent(self.tells_spent),
        }]
    }

    pub(crate) fn apply(&mut self, change: &Change) {
        match change {
            Change::Insert(flow) => {
                self.has_later |= flow.table > 0;
                self.tables[usize::from(flow.table)].insert(Arc::clone(flow));
            }
            Change::Remove(flow) => {
                self.tables[usize::from(flow.table)].remove(flow);
            }
            Change::Group(number, group) => {
                let is_live = |number| is_port_live(&self.ports, self.numbering, number);
                self.groups.set(*number, group.clone(), is_live);
            }
            Change::Meter(number, Some(meter)) => {
                self.meters.insert(*number, Arc::clone(meter));
            }
            Change::Meter(number, None) => {
                self.meters.remove(number);
            }
            Change::Port(at, port) => {
                let old = std::mem::replace(&mut self.ports[*at], *port);
                if old.is_live() != port.is_live() {
                    let is_live = |number| is_port_live(&self.ports, self.numbering, number);
                    self.groups.ports_changed(is_live);
                }
            }
            Change::Front(table, front) => self.tables[usize::from(*table)].set_front(front.clone()),
            Change::Standalone(is_standalone) => self.is_standalone = *is_standalone,
            Change::TellSpent(tells) => self.tells_spent = *tells,
        }
    }
}

/// Whether the port of a number is there and live.
fn is_port_live(ports: &[PortState], numbering: Numbering, number: u32) -> bool {
    numbering.place(number).is_some_and(|at| ports[at].is_live())
}
