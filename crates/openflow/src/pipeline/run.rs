//! [`Run`]: a packet's way through tables, meters, actions and groups (specification 1.3.5, section 5).

use std::sync::Arc;

use wirespeed_router::Reason;

use super::answers::Known;
use super::counts::Counts;
use super::edit::{Packet, Stopped};
use super::flow::Flow;
use super::group::Group;
use super::learn::Learned;
use super::meter::Metered;
use super::set::ActionSet;
use super::state::{PortState, State, TABLES};
use crate::wire::number::{group, port};
use crate::wire::{Action, Field};

/// Buckets that one packet may go through: groups of groups could make of a packet any number.
const MOST_BUCKETS: u32 = 4096;

/// Where packets go to.
pub(crate) trait Sink {
    /// Sends bytes out of a port that is there, and tells what became of them.
    fn output(&mut self, port: u32, bytes: &[u8]) -> Output;
    /// Notes that a flow outputs to a port that the packet does not go out of, and why.
    fn unsent(&mut self, reason: Reason);
    /// Gives a packet to controllers.
    fn packet_in(&mut self, packet: PacketIn);
    /// The memory of where addresses are.
    fn learned(&mut self) -> &mut Learned;
}

/// The fate of bytes for a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// They are sent.
    Sent,
    /// They wait for a worker, which counts them when it has them.
    Waits,
    /// There is no place for them.
    Lost,
}

/// The reason why a packet goes to a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Why {
    NoMatch = 0,
    Action = 1,
    Spent = 2,
}

/// A packet for controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PacketIn {
    pub(crate) why: Why,
    pub(crate) table: u8,
    pub(crate) cookie: u64,
    pub(crate) in_port: u32,
    pub(crate) metadata: u64,
    pub(crate) tunnel: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The counters of tables and ports.
#[derive(Debug)]
pub(crate) struct Tallies {
    /// Packets that were looked up in each table, and bytes.
    pub(crate) looked_up: Vec<Counts>,
    /// Packets that matched in each table.
    pub(crate) matched: Vec<Counts>,
    pub(crate) received: Vec<Counts>,
    pub(crate) sent: Vec<Counts>,
    /// Packets that found no place on their way to a port.
    pub(crate) lost: Vec<Counts>,
    /// Packets that came in at a port that takes none.
    pub(crate) refused: Vec<Counts>,
}

impl Tallies {
    pub(crate) fn new(ports: usize, workers: usize) -> Self {
        let counts = |number: usize| (0..number).map(|_| Counts::new(workers)).collect::<Vec<_>>();
        Self {
            looked_up: counts(TABLES.into()),
            matched: counts(TABLES.into()),
            received: counts(ports),
            sent: counts(ports),
            lost: counts(ports),
            refused: counts(ports),
        }
    }
}

/// The fate of a packet that goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its flows were executed.
    Done,
    /// No flow matches it.
    NoFlow,
    /// A meter drops it.
    Metered,
    /// An action stopped it.
    Stopped(Stopped),
}

/// The surroundings of a packet on its way.
pub(crate) struct Run<'s, S> {
    pub(crate) state: &'s State,
    pub(crate) tallies: &'s Tallies,
    pub(crate) worker: usize,
    /// The time in nanoseconds.
    pub(crate) now: u64,
    pub(crate) sink: &'s mut S,
    /// The flows that the packet finds in tables behind the first one, as far as they are known.
    pub(crate) known: Known<'s>,
}

/// Where on its way a packet is.
#[derive(Clone, Copy)]
struct Place {
    table: u8,
    cookie: u64,
    is_miss: bool,
    budget: u32,
}

impl<S: Sink> Run<'_, S> {
    /// Takes a packet through the tables. The flow of the first one may be known.
    pub(crate) fn tables(&mut self, packet: &mut Packet, first: Option<&Arc<Flow>>) -> Fate {
        let state = self.state;
        let mut set = ActionSet::default();
        let mut place = Place { table: 0, cookie: 0, is_miss: false, budget: MOST_BUCKETS };
        let mut first = first;
        loop {
            let table = usize::from(place.table);
            let bytes = packet.bytes.len() as u64;
            let flow = match first.take() {
                // Whoever knows it has counted the lookup.
                Some(flow) => flow,
                None => {
                    self.tallies.looked_up[table].add(self.worker, 1, bytes);
                    packet.refresh();
                    // A packet of a controller may come to the first table with a tunnel, and from a port
                    // that no frame comes in at: classifiers do not know of such.
                    let in_port = self.in_port(packet);
                    let alone = || match state.numbering.place(in_port) {
                        Some(_) if table > 0 => state.tables[table].find(&packet.key),
                        _ => state.tables[table].lookup(&packet.key),
                    };
                    let known = if table > 0 { self.known.take(place.table, &packet.key) } else { None };
                    let hit = known.unwrap_or_else(alone);
                    let Some(flow) = hit.and_then(|hit| hit.flow()) else { return Fate::NoFlow };
                    self.tallies.matched[table].add(self.worker, 1, bytes);
                    flow
                }
            };
            flow.count(self.worker, bytes, self.now / 1_000_000);
            (place.cookie, place.is_miss) = (flow.life.cookie, flow.is_miss());
            let instructions = &*flow.instructions;
            if let Some(meter) = instructions.meter.and_then(|number| state.meters.get(&number)) {
                match meter.take(self.worker, bytes, self.now) {
                    Metered::Pass => {}
                    Metered::Drop => return Fate::Metered,
                    Metered::Remark(levels) => packet.remark(levels),
                }
            }
            if let Err(stopped) = self.list(packet, &instructions.apply, &mut place) {
                return Fate::Stopped(stopped);
            }
            if instructions.clear {
                set.clear();
            }
            set.write(&instructions.write);
            if let Some(metadata) = instructions.metadata {
                packet.write_metadata(metadata);
            }
            match instructions.goto {
                Some(table) if table > place.table && table < TABLES => place.table = table,
                _ => break,
            }
        }
        // An action set says that its packets come from it, not from a miss (specification 1.3.5, 7.4.1).
        match self.set(packet, &set, &mut place) {
            Ok(()) => Fate::Done,
            Err(stopped) => Fate::Stopped(stopped),
        }
    }

    /// Applies a list of actions of a controller.
    pub(crate) fn actions(&mut self, packet: &mut Packet, actions: &[Action]) -> Result<(), Stopped> {
        let mut place = Place { table: 0, cookie: u64::MAX, is_miss: false, budget: MOST_BUCKETS };
        self.list(packet, actions, &mut place)
    }

    /// Forwards a packet as a switch without OpenFlow does.
    pub(crate) fn normal(&mut self, packet: &mut Packet) {
        packet.refresh();
        let in_port = self.in_port(packet);
        let Some(addresses) = packet.addresses() else { return };
        #[allow(clippy::cast_possible_truncation)] // 13 bits
        let vlan = packet.key.of(Field::VlanVid) as u16;
        match self.sink.learned().learn(addresses, vlan, in_port, self.now / 1_000_000) {
            Some(port) if port != in_port => {
                self.send(packet, port);
            }
            Some(_) => {}
            None => self.flood(packet, in_port),
        }
    }

    fn list(&mut self, packet: &mut Packet, actions: &[Action], place: &mut Place) -> Result<(), Stopped> {
        actions.iter().try_for_each(|&action| self.act(packet, action, place))
    }

    fn set(&mut self, packet: &mut Packet, set: &ActionSet, place: &mut Place) -> Result<(), Stopped> {
        set.iter().try_for_each(|action| self.act(packet, action, place))
    }

    fn act(&mut self, packet: &mut Packet, action: Action, place: &mut Place) -> Result<(), Stopped> {
        match action {
            Action::Output { port, .. } => self.output(packet, port, *place),
            Action::Group(number) => self.group(packet, number, place),
            _ => {
                let changed = packet.change(action);
                if changed == Err(Stopped::Spent) && self.state.tells_spent {
                    self.tell(packet, Why::Spent, *place);
                }
                return changed;
            }
        }
        Ok(())
    }

    #[allow(clippy::unused_self, clippy::cast_possible_truncation)] // a port has 32 bits
    fn in_port(&self, packet: &Packet) -> u32 {
        packet.key.of(Field::InPort) as u32
    }

    fn output(&mut self, packet: &mut Packet, to: u32, place: Place) {
        let in_port = self.in_port(packet);
        match to {
            port::IN_PORT => {
                if !self.send(packet, in_port) {
                    self.sink.unsent(Reason::NoPort);
                }
            }
            port::ALL | port::FLOOD => self.flood(packet, in_port),
            port::CONTROLLER => {
                let why = if place.is_miss { Why::NoMatch } else { Why::Action };
                self.tell(packet, why, place);
            }
            port::NORMAL => self.normal(packet),
            port::TABLE => {
                // Checked to be of packet-out only, so it is at most one time.
                let mut copy = packet.clone();
                self.tables(&mut copy, None);
            }
            // A packet does not go back, unless it is said so.
            to if to != in_port => {
                if !self.send(packet, to) {
                    self.sink.unsent(Reason::NoPort);
                }
            }
            _ => self.sink.unsent(Reason::SamePort),
        }
    }

    fn flood(&mut self, packet: &Packet, in_port: u32) {
        for to in self.state.numbering.all().filter(|&to| to != in_port) {
            self.send(packet, to);
        }
    }

    /// Sends a packet out of a port, and tells whether the port is there and up.
    fn send(&mut self, packet: &Packet, to: u32) -> bool {
        let Some(at) = self.state.numbering.place(to) else { return false };
        let goes = self.state.ports[at].forwards();
        if goes {
            let counts = match self.sink.output(to, &packet.bytes) {
                Output::Sent => Some(&self.tallies.sent),
                Output::Waits => None,
                Output::Lost => Some(&self.tallies.lost),
            };
            counts.into_iter().for_each(|of| of[at].add(self.worker, 1, packet.bytes.len() as u64));
        }
        goes
    }

    #[allow(clippy::cast_possible_truncation)] // fields of 64 bits
    fn tell(&mut self, packet: &Packet, why: Why, place: Place) {
        let in_port = self.in_port(packet);
        if self.state.port(in_port).is_some_and(|port| port.config & PortState::NO_PACKET_IN != 0) {
            return;
        }
        self.sink.packet_in(PacketIn {
            why,
            table: place.table,
            cookie: place.cookie,
            in_port,
            metadata: packet.key.of(Field::Metadata) as u64,
            tunnel: packet.key.of(Field::TunnelId) as u64,
            bytes: packet.bytes.clone(),
        });
    }

    fn group(&mut self, packet: &mut Packet, number: u32, place: &mut Place) {
        let Some(member) = self.state.groups.get(number) else { return };
        let group = &*member.group;
        debug_assert!(number <= group::MAX, "reserved numbers are refused");
        group.counts.add(self.worker, 1, packet.bytes.len() as u64);
        for &bucket in member.chosen(|| packet.flow_hash()) {
            self.bucket(packet, group, bucket, place);
        }
    }

    /// Gives a copy of the packet to a bucket: what it changes there, it does not change outside.
    fn bucket(&mut self, packet: &Packet, group: &Group, bucket: usize, place: &mut Place) {
        let Some(budget) = place.budget.checked_sub(1) else { return };
        place.budget = budget;
        group.of_bucket[bucket].add(self.worker, 1, packet.bytes.len() as u64);
        let mut copy = packet.clone();
        // A copy that is stopped ends here, and the packet goes on.
        if self.set(&mut copy, &group.sets[bucket], place) == Err(Stopped::Part) {
            self.sink.unsent(Reason::Fragment);
        }
    }
}
