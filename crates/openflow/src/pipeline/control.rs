//! [`Control`]: changes of flows, groups, meters and ports, checked and made.
//!
//! Changes are made in the state that workers do not read yet, in which it looks things up, too
//! ([`Versions`]). Workers see the changes when they are published.

use std::sync::Arc;

use wirespeed_image::left_right::Entrances;

use super::counts::Pool;
use super::flow::{Flow, Life, Shape};
use super::front::Front;
use super::gathered::{Gathered, suits};
use super::group::Group;
use super::journal::{Before, Journal};
use super::meter::Meter;
use super::state::{Change, PortState, State, TABLES};
use super::table::Table;
use super::timers::Timers;
use super::turns::Turns;
use super::uses::{Uses, of_flow, of_group};
use super::versions::Versions;
use crate::wire::number::{ALL_TABLES, group, meter, port};
use crate::wire::{
    Action, Bucket, Command, Failure, FlowCommand, FlowMod, FlowQuery, GroupKind, GroupMod, Instructions,
    MeterMod,
};

/// The most that a switch holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) flows: usize,
    pub(crate) groups: usize,
    pub(crate) meters: usize,
    /// Bytes of the actions of flows and groups.
    pub(crate) bytes: usize,
}

/// The reason why a flow went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Went {
    Idle = 0,
    Hard = 1,
    Deleted = 2,
    GroupDeleted = 3,
}

/// News for controllers that nobody asked for.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    FlowRemoved(Arc<Flow>, Went),
    PortChanged(usize),
}

/// The side of a switch that changes it.
pub(crate) struct Control {
    versions: Versions,
    workers: usize,
    /// The counters of flows.
    counts: Arc<Pool>,
    limits: Limits,
    flows: usize,
    uses: Uses,
    timers: Timers,
    gone: Vec<(Arc<Flow>, Went)>,
    /// What takes changes back, while some are made that hold together or not at all.
    journal: Option<Journal>,
    /// The instructions of the last flow that was added: mostly those of the next one.
    instructions: Arc<Instructions>,
    events: Vec<Event>,
    turns: Turns,
    /// The number of the last election of a master.
    pub(crate) generation: Option<u64>,
    pub(crate) config: (u16, u16),
}

impl Control {
    pub(crate) fn new(state: State, workers: usize, limits: Limits) -> Self {
        Self {
            versions: Versions::new(state),
            workers,
            counts: Arc::new(Pool::new(workers)),
            limits,
            flows: 0,
            uses: Uses::default(),
            timers: Timers::default(),
            gone: Vec::new(),
            journal: None,
            instructions: Arc::default(),
            events: Vec::new(),
            turns: Turns::default(),
            generation: None,
            config: (0, 128),
        }
    }

    pub(crate) const fn limits(&self) -> Limits {
        self.limits
    }

    /// What flows use.
    pub(crate) const fn uses(&self) -> &Uses {
        &self.uses
    }

    /// Entrances for workers to what they read.
    pub(crate) fn entrances(&self) -> Entrances<State> {
        self.versions.entrances()
    }

    /// The state with all changes, those that workers do not see yet among them.
    pub(crate) fn state(&self) -> &State {
        self.versions.newest()
    }

    fn change(&mut self, change: Change) {
        if let Some(journal) = &mut self.journal {
            journal.undo.extend(self.versions.newest().undoing(&change));
        }
        self.versions.change(change);
    }

    /// Makes changes that hold together: after a failure all is as it was before the first of them.
    pub(crate) fn all_or_none<T, E>(
        &mut self,
        changes: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.begin();
        let before = Before {
            ahead: self.versions.ahead(),
            flows: self.flows,
            uses: self.uses.clone(),
            gone: self.gone.len(),
            events: self.events.len(),
        };
        self.journal = Some(Journal::new(before));
        let made = changes(self);
        let Some(Journal { undo, came, went, before }) = self.journal.take() else { return made };
        match made {
            Ok(_) => {
                came.iter().for_each(|flow| self.timers.add(flow));
                went.iter().for_each(|flow| self.end(flow));
            }
            Err(_) => {
                self.versions.take_back(before.ahead, undo.iter().rev());
                (self.flows, self.uses) = (before.flows, before.uses);
                self.gone.truncate(before.gone);
                self.events.truncate(before.events);
            }
        }
        made
    }

    /// Notes that a flow has no part in timeouts any more.
    fn end(&mut self, flow: &Arc<Flow>) {
        match &mut self.journal {
            Some(journal) => journal.went.push(Arc::clone(flow)),
            None => {
                flow.life.end();
                self.timers.ended(&flow.life);
            }
        }
    }

    /// Gets ready for many changes.
    pub(crate) fn begin(&mut self) {
        self.versions.catch_up();
    }

    /// Lets workers see all changes. Returns what controllers are to be told, with counters that are final.
    pub(crate) fn publish(&mut self) -> Vec<Event> {
        self.versions.publish();
        if !self.gone.is_empty() {
            // No worker counts for these flows any more.
            self.versions.catch_up();
            let gone = std::mem::take(&mut self.gone);
            self.events.extend(gone.into_iter().map(|(flow, went)| Event::FlowRemoved(flow, went)));
        }
        std::mem::take(&mut self.events)
    }

    /// Lets workers see all changes; what controllers are to be told stays for the next publication.
    pub(crate) fn make_seen(&mut self) {
        self.events = self.publish();
    }

    /// Ends flows whose time is over, and lets memory of flows that are gone go.
    pub(crate) fn tend(&mut self, now: u64) {
        self.versions.catch_up();
        while let Some((flow, is_idle)) = self.timers.expired(now) {
            let went = if is_idle { Went::Idle } else { Went::Hard };
            let known =
                self.state().tables[usize::from(flow.table)].get(&flow.matched(), flow.priority).cloned();
            if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.life, &flow.life)) {
                self.remove(known, went, now);
            }
        }
        self.versions.publish();
    }

    /// The flows for the classifier of a table, if one is due, and the number that tells whether it is still
    /// the last one when it is built.
    pub(crate) fn gather(&mut self, now: u64, at_once: bool) -> Option<(Gathered, u64)> {
        while let Some(number) = self.turns.next(now, at_once) {
            let table = &self.state().tables[usize::from(number)];
            let used = table.front();
            match Gathered::of(number, table) {
                // Flows changed that the classifier in use does not have.
                Some(gathered) if used.is_some_and(|used| gathered.is_in(used)) => {}
                Some(gathered) => return Some((gathered, self.turns.gathered(number))),
                None if used.is_some() => self.change(Change::Front(number, None)),
                None => {}
            }
        }
        None
    }

    /// Takes a classifier into use that was built in `took` milliseconds, unless another one is on its way.
    pub(crate) fn set_front(&mut self, front: Front, epoch: u64, took: u64) {
        let table = front.table();
        if let Some(since) = self.turns.built(table, epoch, took) {
            self.change(Change::Front(table, Some((Arc::new(front), since))));
        }
    }

    pub(crate) fn set_standalone(&mut self, is_standalone: bool) {
        if self.state().is_standalone != is_standalone {
            self.change(Change::Standalone(is_standalone));
        }
    }

    pub(crate) fn tell_spent(&mut self, tells: bool) {
        if self.state().tells_spent != tells {
            self.change(Change::TellSpent(tells));
        }
    }

    /// Notes a change of a flow that a classifier may hold.
    fn note(&mut self, flow: &Flow, is_lost: bool, now: u64) {
        let mask = &flow.shape().mask;
        let len = self.state().tables[usize::from(flow.table)].class_len(mask);
        self.turns.note(flow.table, mask, is_lost, suits(flow.table, mask, len), now);
    }

    /// Adds a flow, in the place of one with its match and priority.
    fn insert(&mut self, flow: Arc<Flow>, old: Option<&Flow>, now: u64) {
        self.note(&flow, false, now);
        old.into_iter().for_each(|old| self.uses.remove(&old.instructions));
        self.uses.add(&flow.instructions);
        self.change(Change::Insert(flow));
    }

    fn remove(&mut self, flow: Arc<Flow>, went: Went, now: u64) {
        self.flows -= 1;
        self.uses.remove(&flow.instructions);
        self.note(&flow, true, now);
        self.end(&flow);
        if flow.life.flags & FlowMod::SEND_REMOVED != 0 {
            self.gone.push((Arc::clone(&flow), went));
        }
        self.change(Change::Remove(flow));
    }

    /// Changes flows.
    pub(crate) fn flow_mod(&mut self, asked: &FlowMod, now: u64) -> Result<(), Failure> {
        let is_delete = matches!(asked.command, FlowCommand::Delete | FlowCommand::DeleteStrict);
        if asked.table >= TABLES && !(is_delete && asked.table == ALL_TABLES) {
            return Err(Failure::FLOW_TABLE);
        }
        if !is_delete {
            self.check_instructions(asked.table, &asked.instructions)?;
        }
        match asked.command {
            FlowCommand::Add => self.add(asked, now),
            FlowCommand::Modify | FlowCommand::ModifyStrict => {
                let instructions = Arc::new(asked.instructions.clone());
                let flows = self.meant(asked);
                let old = flows.iter().map(|flow| of_flow(&flow.instructions)).sum();
                self.check_bytes(of_flow(&instructions).saturating_mul(flows.len()), old)?;
                for flow in flows {
                    let reset = asked.flags & FlowMod::RESET_COUNTS != 0;
                    let changed = Arc::new(flow.changed(Arc::clone(&instructions), reset));
                    self.insert(changed, Some(&flow), now);
                }
                Ok(())
            }
            FlowCommand::Delete | FlowCommand::DeleteStrict => {
                for flow in self.meant(asked) {
                    if flow.leads_to(asked.out_port, asked.out_group) {
                        self.remove(flow, Went::Deleted, now);
                    }
                }
                Ok(())
            }
        }
    }

    /// Brings near what a change of a flow looks at first.
    pub(crate) fn prefetch(&self, asked: &FlowMod) {
        if let Some(table) = self.state().tables.get(usize::from(asked.table)) {
            table.prefetch_match(&asked.matched);
        }
    }

    fn add(&mut self, asked: &FlowMod, now: u64) -> Result<(), Failure> {
        let table = &self.state().tables[usize::from(asked.table)];
        let old = table.get(&asked.matched, asked.priority).cloned();
        if asked.flags & FlowMod::CHECK_OVERLAP != 0 && table.overlaps(&asked.matched, asked.priority) {
            return Err(Failure::FLOW_OVERLAP);
        }
        if old.is_none() && self.flows >= self.limits.flows {
            return Err(Failure::FLOW_TABLE_FULL);
        }
        let old_bytes = old.as_ref().map_or(0, |old| of_flow(&old.instructions));
        self.check_bytes(of_flow(&asked.instructions), old_bytes)?;
        let shape = table.shape(&asked.matched.mask).cloned();
        let shape = shape.unwrap_or_else(|| Arc::new(Shape::new(asked.matched.mask)));
        // The counters of a flow that is replaced go on, unless they are to begin again.
        let kept = old.as_ref().filter(|_| asked.flags & FlowMod::RESET_COUNTS == 0);
        let counts = kept.map_or_else(|| self.counts.counts(), |old| old.life.counts.clone());
        let life = Arc::new(Life::new(asked, now, counts));
        if *self.instructions != asked.instructions {
            self.instructions = Arc::new(asked.instructions.clone());
        }
        let instructions = Arc::clone(&self.instructions);
        let mut flow =
            Flow::new(asked.table, asked.priority, &asked.matched, shape, instructions, Arc::clone(&life));
        if let Some(kept) = kept {
            flow.before = kept.before;
        }
        match &old {
            Some(old) => self.end(old),
            None => self.flows += 1,
        }
        let flow = Arc::new(flow);
        match &mut self.journal {
            Some(journal) => journal.came.push(Arc::clone(&flow)),
            None => self.timers.add(&flow),
        }
        self.insert(flow, old.as_deref(), now);
        Ok(())
    }

    /// Checks that the actions of flows fit, in the place of old ones.
    fn check_bytes(&self, new: usize, old: usize) -> Result<(), Failure> {
        // Less than before is never too much.
        let fits = new <= old || self.uses.bytes_with(new, old) <= self.limits.bytes;
        fits.then_some(()).ok_or(Failure::FLOW_TABLE_FULL)
    }

    /// The flows that a change is about.
    fn meant(&self, asked: &FlowMod) -> Vec<Arc<Flow>> {
        let is_strict = matches!(asked.command, FlowCommand::ModifyStrict | FlowCommand::DeleteStrict);
        let mut flows = Vec::new();
        for table in self.tables_of(asked.table) {
            let table = &self.state().tables[table];
            if is_strict {
                flows.extend(table.get(&asked.matched, asked.priority).cloned());
            } else {
                flows.extend(table.within(&asked.matched));
            }
        }
        flows.retain(|flow| (flow.life.cookie ^ asked.cookie) & asked.cookie_mask == 0);
        flows
    }

    fn tables_of(&self, table: u8) -> std::ops::Range<usize> {
        match table {
            ALL_TABLES => 0..self.state().tables.len(),
            table => usize::from(table)..usize::from(table) + 1,
        }
    }

    /// The flows that a question is about.
    pub(crate) fn asked_for(&self, query: &FlowQuery) -> Result<Vec<Arc<Flow>>, Failure> {
        if query.table >= TABLES && query.table != ALL_TABLES {
            return Err(Failure::BAD_TABLE_ID);
        }
        let tables = self.tables_of(query.table);
        let mut flows: Vec<Arc<Flow>> =
            tables.flat_map(|table| self.state().tables[table].within(&query.matched)).collect();
        flows.retain(|flow| {
            (flow.life.cookie ^ query.cookie) & query.cookie_mask == 0
                && flow.leads_to(query.out_port, query.out_group)
        });
        Ok(flows)
    }

    fn check_instructions(&self, table: u8, instructions: &Instructions) -> Result<(), Failure> {
        if instructions.goto.is_some_and(|goto| goto <= table || goto >= TABLES) {
            return Err(Failure::INSTRUCTION_TABLE);
        }
        if instructions.meter.is_some_and(|number| !self.state().meters.contains_key(&number)) {
            return Err(Failure::METER_UNKNOWN);
        }
        instructions.actions().try_for_each(|action| self.check_action(action, false))
    }

    /// Checks what an action refers to.
    pub(crate) fn check_action(&self, action: Action, is_packet_out: bool) -> Result<(), Failure> {
        match action {
            Action::Output { port: port::TABLE, .. } if !is_packet_out => Err(Failure::ACTION_OUT_PORT),
            Action::Output { port, .. }
                if (port <= port::MAX || port == port::LOCAL) && self.state().port(port).is_none() =>
            {
                Err(Failure::ACTION_OUT_PORT)
            }
            Action::Group(number) if !self.state().groups.contains(number) => Err(Failure::ACTION_OUT_GROUP),
            Action::SetQueue(_) => Err(Failure::ACTION_QUEUE),
            _ => Ok(()),
        }
    }

    /// Changes groups.
    pub(crate) fn group_mod(&mut self, asked: &GroupMod, now: u64) -> Result<(), Failure> {
        let known = self.state().groups.get(asked.number).map(|known| Arc::clone(&known.group));
        let is_known = known.is_some();
        match asked.command {
            Command::Add | Command::Modify => {
                if asked.number > group::MAX {
                    return Err(Failure::GROUP_INVALID);
                }
                match (asked.command, is_known) {
                    (Command::Add, true) => return Err(Failure::GROUP_EXISTS),
                    (Command::Modify, false) => return Err(Failure::GROUP_UNKNOWN),
                    _ => {}
                }
                if !is_known && self.state().groups.len() >= self.limits.groups {
                    return Err(Failure::OUT_OF_GROUPS);
                }
                self.check_group(asked)?;
                let bytes = |buckets: &[Bucket]| of_group(buckets, self.workers);
                let (new, old) =
                    (bytes(&asked.buckets), known.as_ref().map_or(0, |known| bytes(&known.buckets)));
                self.check_bytes(new, old).map_err(|_| Failure::OUT_OF_BUCKETS)?;
                self.uses.change_group(new, old);
                let buckets = asked.buckets.clone();
                let made = match known {
                    Some(known) => known.changed(asked.kind, buckets, self.workers),
                    None => Group::new(asked.kind, buckets, now, self.workers),
                };
                self.change(Change::Group(asked.number, Some(Arc::new(made))));
                Ok(())
            }
            Command::Delete if asked.number == group::ALL => {
                self.remove_flows(Went::GroupDeleted, now, |flow| {
                    flow.instructions.actions().any(|action| matches!(action, Action::Group(_)))
                });
                let groups = self.state().groups.iter();
                let bytes = groups.map(|(_, group)| of_group(&group.buckets, self.workers)).sum();
                self.uses.change_group(0, bytes);
                self.change(Change::Group(group::ALL, None));
                Ok(())
            }
            Command::Delete if asked.number > group::MAX => Err(Failure::GROUP_INVALID),
            Command::Delete => {
                let Some(known) = known else { return Ok(()) };
                if self.state().groups.is_led_to(asked.number) {
                    return Err(Failure::GROUP_CHAINED);
                }
                if self.uses.of_group(asked.number) > 0 {
                    self.remove_flows(Went::GroupDeleted, now, |flow| flow.leads_to(port::ANY, asked.number));
                }
                self.uses.change_group(0, of_group(&known.buckets, self.workers));
                self.change(Change::Group(asked.number, None));
                Ok(())
            }
        }
    }

    fn check_group(&self, asked: &GroupMod) -> Result<(), Failure> {
        if asked.kind == GroupKind::Indirect && asked.buckets.len() != 1 {
            return Err(Failure::GROUP_BUCKET);
        }
        for bucket in &asked.buckets {
            let watches_port = bucket.watch_port != port::ANY;
            let watches_group = bucket.watch_group != group::ANY;
            if asked.kind == GroupKind::FastFailover {
                if !watches_port && !watches_group {
                    return Err(Failure::GROUP_WATCH);
                }
                if watches_port && self.state().port(bucket.watch_port).is_none() {
                    return Err(Failure::GROUP_WATCH);
                }
                let is_itself = bucket.watch_group == asked.number;
                if watches_group && (is_itself || !self.state().groups.contains(bucket.watch_group)) {
                    return Err(Failure::GROUP_WATCH);
                }
            }
            for &action in &bucket.actions {
                if action == Action::Group(asked.number) {
                    return Err(Failure::GROUP_LOOP);
                }
                self.check_action(action, false)?;
            }
        }
        let may_lead = self.state().groups.may_lead(asked.number, &asked.buckets);
        may_lead.then_some(()).ok_or(Failure::GROUP_LOOP)
    }

    fn remove_flows(&mut self, went: Went, now: u64, is_meant: impl Fn(&Flow) -> bool) {
        let flows: Vec<Arc<Flow>> =
            self.state().tables.iter().flat_map(Table::iter).filter(|flow| is_meant(flow)).cloned().collect();
        flows.into_iter().for_each(|flow| self.remove(flow, went, now));
    }

    /// Changes meters.
    pub(crate) fn meter_mod(&mut self, asked: &MeterMod, now: u64) -> Result<(), Failure> {
        let known = self.state().meters.get(&asked.number);
        let is_known = known.is_some();
        match asked.command {
            Command::Add if is_known => return Err(Failure::METER_EXISTS),
            Command::Modify if !is_known => return Err(Failure::METER_UNKNOWN),
            Command::Add if self.state().meters.len() >= self.limits.meters => {
                return Err(Failure::OUT_OF_METERS);
            }
            Command::Add | Command::Modify => {
                let made = match known {
                    Some(known) => known.changed(asked, self.workers),
                    None => Meter::new(asked, now, self.workers),
                };
                self.change(Change::Meter(asked.number, Some(Arc::new(made))));
            }
            Command::Delete if asked.number == meter::ALL => {
                self.remove_flows(Went::Deleted, now, |flow| flow.instructions.meter.is_some());
                let numbers: Vec<u32> = self.state().meters.keys().copied().collect();
                numbers.into_iter().for_each(|number| self.change(Change::Meter(number, None)));
            }
            Command::Delete if is_known => {
                if self.uses.of_meter(asked.number) > 0 {
                    let uses = |flow: &Flow| flow.instructions.meter == Some(asked.number);
                    self.remove_flows(Went::Deleted, now, uses);
                }
                self.change(Change::Meter(asked.number, None));
            }
            Command::Delete => {}
        }
        Ok(())
    }

    /// Changes the configuration of a port.
    pub(crate) fn port_mod(&mut self, number: u32, config: u32, mask: u32) -> Result<(), Failure> {
        let state = self.state().port(number).ok_or(Failure::PORT_BAD)?;
        if config & !PortState::ALL != 0 {
            return Err(Failure::PORT_CONFIG);
        }
        self.set_port(number, PortState { config: state.config & !mask | config & mask, ..state });
        Ok(())
    }

    /// Sets the state of a port that is there.
    pub(crate) fn set_port(&mut self, number: u32, state: PortState) {
        let Some(at) = self.state().numbering.place(number) else { return };
        if self.state().ports[at] != state {
            self.change(Change::Port(at, state));
            self.events.push(Event::PortChanged(at));
        }
    }
}
