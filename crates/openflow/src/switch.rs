//! [`Switch`]: what workers and controllers share.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use wirespeed::{Device, Fleet};
use wirespeed_image::left_right::Entrances;
use wirespeed_router::{Mac, PortId, Reason};

use crate::error::Error;
use crate::inject::{Injected, Injector};
use crate::pipeline::answers::Known;
use crate::pipeline::control::{Control, Limits};
use crate::pipeline::edit::Packet;
use crate::pipeline::front::{Devices, MOST_PORTS};
use crate::pipeline::learn::Learned;
use crate::pipeline::numbering::Numbering;
use crate::pipeline::run::{Output, PacketIn, Run, Sink, Tallies};
use crate::pipeline::state::{PortState, State};
use crate::wire::number::port;
use crate::wire::{Failure, FlowMod, GroupMod, MeterMod, PacketOut};

/// Packets that wait for controllers, and frames that wait to be sent for them.
const WAITING: usize = 1024;

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// The name, of which controllers are told 15 bytes.
    pub name: String,
    /// The link-layer address.
    pub mac: Mac,
    /// The speed in kilobits a second.
    pub kbps: u32,
}

/// The mode of a switch without a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fail {
    /// The switch goes on with the flows that it has.
    #[default]
    Secure,
    /// The switch forwards like one that learns addresses, until a controller comes.
    Standalone,
}

/// Settings of a switch.
#[derive(Clone, Debug)]
pub struct SwitchOptions {
    /// The number that controllers know it by.
    pub datapath: u64,
    /// The ports. Their numbers are 1, 2, … in this order, and the router's are one less.
    pub ports: Vec<PortInfo>,
    /// The port LOCAL, by which the switch's own host sends and receives; the router's port behind the
    /// others. Without one, flows that output there are refused.
    pub local: Option<PortInfo>,
    /// The number of workers.
    pub workers: usize,
    /// The device that looks wildcards up in batches.
    pub device: Device,
    /// The GPUs for this, if they are open already; else the device opens them.
    pub fleet: Option<Fleet>,
    /// The mode without a controller.
    pub fail: Fail,
    /// The most flows of all tables.
    pub most_flows: usize,
    /// The most groups.
    pub most_groups: usize,
    /// The most meters.
    pub most_meters: usize,
    /// The most bytes of the actions of all flows and of the buckets of all groups. Flows with equal actions
    /// count as if each had its own.
    pub most_bytes: usize,
    /// The most bytes of messages in bundles of all controllers, which wait to be committed.
    pub most_bundle_bytes: usize,
}

impl Default for SwitchOptions {
    fn default() -> Self {
        Self {
            datapath: 1,
            ports: Vec::new(),
            local: None,
            workers: 1,
            device: Device::Cpu,
            fleet: None,
            fail: Fail::Secure,
            most_flows: 4_000_000,
            most_groups: 65_536,
            most_meters: 65_536,
            most_bytes: 1 << 30,
            most_bundle_bytes: 1 << 28,
        }
    }
}

impl SwitchOptions {
    /// The numbers of the ports.
    pub(crate) fn numbering(&self) -> Numbering {
        Numbering { others: self.ports.len(), has_local: self.local.is_some() }
    }

    /// The port in a place among the router's.
    pub(crate) fn port(&self, at: usize) -> Option<&PortInfo> {
        self.ports.get(at).or_else(|| self.local.as_ref().filter(|_| at == self.ports.len()))
    }

    /// Settings for ports of these names.
    #[must_use]
    pub fn with_ports(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let port = |(at, name): (u16, _)| {
            let [high, low] = at.to_be_bytes();
            PortInfo { name: Into::into(name), mac: Mac([2, 0, 0, 1, high, low]), kbps: 10_000_000 }
        };
        Self { ports: (1..).zip(names).map(port).collect(), ..Self::default() }
    }
}

/// The state that workers and controllers share.
pub(crate) struct Shared {
    pub(crate) options: SwitchOptions,
    control: Mutex<Control>,
    pub(crate) tallies: Tallies,
    pub(crate) entrances: Entrances<State>,
    start: Instant,
    /// The number of workers that have their application.
    pub(crate) taken: AtomicUsize,
    pub(crate) packet_ins: SyncSender<PacketIn>,
    pub(crate) waiting: Mutex<Receiver<PacketIn>>,
    /// Packets that found no place on their way to a controller.
    pub(crate) lost: AtomicU64,
    /// The bytes of messages in bundles.
    pub(crate) bundled: AtomicUsize,
    injected: SyncSender<Injected>,
    injections: Mutex<Option<Receiver<Injected>>>,
    learned: Mutex<Learned>,
    devices: Mutex<Devices>,
}

/// A switch: a handle that is cheap to clone.
#[derive(Clone)]
pub struct Switch(pub(crate) Arc<Shared>);

impl std::fmt::Debug for Switch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Switch").field("options", &self.0.options).finish_non_exhaustive()
    }
}

impl Switch {
    /// A switch without flows: it drops all packets.
    pub fn new(options: SwitchOptions) -> Result<Self, Error> {
        let ports = options.ports.len();
        if ports == 0 || ports > usize::from(MOST_PORTS) {
            return Err(Error::Ports { found: ports, most: MOST_PORTS.into() });
        }
        // A place more for what is done for controllers.
        let places = options.workers + 1;
        let mut state = State::new(options.numbering());
        state.is_standalone = options.fail == Fail::Standalone;
        let limits = Limits {
            flows: options.most_flows,
            groups: options.most_groups,
            meters: options.most_meters,
            bytes: options.most_bytes,
        };
        let (packet_ins, waiting) = sync_channel(WAITING);
        let (injected, injections) = sync_channel(WAITING);
        let control = Control::new(state, places, limits);
        Ok(Self(Arc::new(Shared {
            entrances: control.entrances(),
            control: Mutex::new(control),
            tallies: Tallies::new(options.numbering().count(), places),
            start: Instant::now(),
            taken: AtomicUsize::new(0),
            packet_ins,
            waiting: Mutex::new(waiting),
            lost: AtomicU64::new(0),
            bundled: AtomicUsize::new(0),
            injected,
            injections: Mutex::new(Some(injections)),
            learned: Mutex::default(),
            devices: Mutex::new(Devices::new(options.device, options.fleet.clone())),
            options,
        })))
    }

    /// The port from which one worker takes frames that controllers send: its last port. `None` once it was
    /// given.
    #[must_use]
    pub fn injector(&self) -> Option<Injector> {
        let taken = self.0.injections.lock().unwrap_or_else(PoisonError::into_inner).take();
        let switch = self.clone();
        taken
            .map(|frames| Injector::new(frames, Box::new(move |port, bytes| switch.0.too_large(port, bytes))))
    }

    /// Changes flows as a controller does, and lets workers see it.
    pub fn flow_mod(&self, asked: &FlowMod) -> Result<(), Failure> {
        self.flow_mods(std::slice::from_ref(asked)).map_err(|(_, failure)| failure)
    }

    /// Changes flows one after the other, and lets workers see all changes at once. The first failure ends
    /// it: which change failed, and why. Changes before it hold.
    pub fn flow_mods(&self, asked: &[FlowMod]) -> Result<(), (usize, Failure)> {
        let now = self.0.now();
        let mut control = self.0.control();
        control.begin();
        let changed = asked
            .iter()
            .enumerate()
            .try_for_each(|(at, one)| control.flow_mod(one, now).map_err(|failure| (at, failure)));
        control.make_seen();
        changed
    }

    /// Changes groups as a controller does, and lets workers see it.
    pub fn group_mod(&self, asked: &GroupMod) -> Result<(), Failure> {
        let mut control = self.0.control();
        control.group_mod(asked, self.0.now())?;
        control.make_seen();
        Ok(())
    }

    /// Changes meters as a controller does, and lets workers see it.
    pub fn meter_mod(&self, asked: &MeterMod) -> Result<(), Failure> {
        let mut control = self.0.control();
        control.meter_mod(asked, self.0.now())?;
        control.make_seen();
        Ok(())
    }

    /// The number of flows of all tables.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.0.control().state().tables.iter().map(crate::pipeline::table::Table::len).sum()
    }

    /// Builds the classifier for wildcards if one is due, and ends flows whose time is over. A
    /// [`Channel`](crate::Channel) does this by itself, ten times a second; this is for switches without one.
    pub fn keep_time(&self) {
        self.0.tend(false);
        self.0.control().make_seen();
    }

    /// Builds the classifier for wildcards if one is due, without waiting until flows have stayed as they are
    /// for a while: for flows that are all there before frames come.
    pub fn settle(&self) {
        self.0.tend(true);
        self.0.control().make_seen();
    }

    /// Whether it forwards like a switch that learns addresses, because there is no controller.
    #[must_use]
    pub fn is_standalone(&self) -> bool {
        self.0.control().state().is_standalone
    }

    /// Whether the classifier for wildcards of a table is in use.
    #[must_use]
    pub fn has_classifier(&self, table: u8) -> bool {
        self.0.control().state().tables.get(usize::from(table)).is_some_and(|table| table.front().is_some())
    }

    /// Tells whether a port has a link. Numbers are from 1 on, and that of LOCAL; others do nothing.
    pub fn set_link(&self, number: u32, is_up: bool) {
        let mut control = self.0.control();
        if let Some(state) = control.state().port(number) {
            control.set_port(number, PortState { is_down: !is_up, ..state });
            control.make_seen();
        }
    }
}

impl Shared {
    pub(crate) fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn devices(&self) -> MutexGuard<'_, Devices> {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The router's port of a number in OpenFlow.
    pub(crate) fn port_of(&self, number: u32) -> Option<PortId> {
        // A port that is there has fewer than 16 bits.
        self.options.numbering().place(number).and_then(|at| u16::try_from(at).ok()).map(PortId)
    }

    /// The time since the start, in nanoseconds.
    pub(crate) fn nanoseconds(&self) -> u64 {
        // 584 years.
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The time since the start, in milliseconds.
    pub(crate) fn now(&self) -> u64 {
        self.nanoseconds() / 1_000_000
    }

    /// Counts a frame of a controller that no buffer of a worker can hold.
    pub(crate) fn too_large(&self, port: u32, bytes: usize) {
        // The lock is for the place of what is done for controllers, in which one thread at a time counts.
        let _control = self.control();
        if let Some(at) = self.options.numbering().place(port) {
            self.tallies.lost[at].add(self.options.workers, 1, bytes as u64);
        }
    }

    /// Does the regular work: timeouts, and the classifier, which is built without the lock, once wildcards
    /// have been quiet or at once.
    pub(crate) fn tend(&self, at_once: bool) {
        self.control().tend(self.now());
        loop {
            let now = self.now();
            let gathered = self.control().gather(now, at_once);
            let Some((gathered, epoch)) = gathered else { return };
            if let Some(front) = gathered.build(&mut self.devices()) {
                self.control().set_front(front, epoch, self.now() - now);
            }
            // Other tables have to wait for the next time, so that controllers need not.
            if !at_once {
                return;
            }
        }
    }

    /// Checks a packet that a controller sends.
    pub(crate) fn check_packet_out(&self, control: &Control, asked: &PacketOut) -> Result<(), Failure> {
        let is_named = asked.in_port > port::MAX && asked.in_port != port::LOCAL;
        let is_port = is_named || control.state().port(asked.in_port).is_some();
        if !is_port {
            return Err(Failure::BAD_PORT);
        }
        asked.actions.iter().try_for_each(|&action| control.check_action(action, true))
    }

    /// Sends a packet as a controller says, after its check.
    pub(crate) fn packet_out(&self, control: &Control, asked: &PacketOut) {
        let mut sink =
            Out { shared: self, learned: self.learned.lock().unwrap_or_else(PoisonError::into_inner) };
        let mut run = Run {
            state: control.state(),
            tallies: &self.tallies,
            worker: self.options.workers,
            now: self.nanoseconds(),
            sink: &mut sink,
            known: Known::default(),
        };
        let mut packet = Packet::new(asked.data.clone(), asked.in_port);
        // A packet that is stopped is dropped, which is no failure of the request.
        let _ = run.actions(&mut packet, &asked.actions);
    }
}

/// Where packets of controllers go to: the worker with the injector takes them.
struct Out<'s> {
    shared: &'s Shared,
    learned: MutexGuard<'s, Learned>,
}

impl Sink for Out<'_> {
    fn output(&mut self, port: u32, bytes: &[u8]) -> Output {
        let injected = Injected { port, bytes: bytes.to_vec() };
        if self.shared.injected.try_send(injected).is_ok() {
            return Output::Waits;
        }
        self.shared.lost.fetch_add(1, Ordering::Relaxed);
        Output::Lost
    }

    fn unsent(&mut self, _: Reason) {}

    fn packet_in(&mut self, packet: PacketIn) {
        if self.shared.packet_ins.try_send(packet).is_err() {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn learned(&mut self) -> &mut Learned {
        &mut self.learned
    }
}
