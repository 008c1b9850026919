//! [`Session`]: one controller's messages, from the bytes of its connection to changes and answers.
//!
//! A run of changes of flows is made under one lock. Changes are published before anything else is answered,
//! and once nothing more has come. So a controller that sends many at once pays for few publications.

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use super::answer::{Later, answer, flows};
use super::bundles::Bundles;
use super::change::{change, commit};
use super::link::{Link, Links, Role};
use super::outbox::{Closed, Outbox};
use super::tell;
use crate::pipeline::control::Control;
use crate::pipeline::state::TABLES;
use crate::switch::{Shared, Switch};
use crate::wire::number::port as ports;
use crate::wire::reply::{bare, begin, end, error};
use crate::wire::{Failure, HEADER, Header, Multipart, Out, Request, VERSION};

/// Errors that wait while a run of changes is made.
const MOST_ERRORS: usize = 256;
/// Messages that are read before one is handled: lines of memory for them are on their way meanwhile.
const AHEAD: usize = 8;

/// A controller's messages.
pub(crate) struct Talk {
    switch: Switch,
    links: Arc<Links>,
    pub(crate) link: Arc<Link>,
    /// The start of a message whose end has not come yet.
    partial: Vec<u8>,
    is_greeted: bool,
    /// When the first of the changes was made that may not be published yet.
    unpublished: Option<Instant>,
    bundles: Bundles,
}

impl Talk {
    pub(crate) fn new(switch: Switch, links: Arc<Links>, link: Arc<Link>) -> Self {
        let bundles = Bundles::new(switch.clone());
        Self { switch, links, link, partial: Vec::new(), is_greeted: false, unpublished: None, bundles }
    }

    /// Greets.
    pub(crate) fn begin(&self) -> Result<(), Closed> {
        let mut hello = begin(0, 0);
        // The bit map of versions.
        hello.u16(1);
        hello.u16(8);
        hello.u32(1 << VERSION);
        self.link.outbox.push(end(hello))
    }

    /// Takes bytes as they come: any number of messages, and parts of them. The last changes of flows are
    /// made, and not published. `Err` ends the connection.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        let mut rest = bytes;
        let mut partial = std::mem::take(&mut self.partial);
        if !partial.is_empty() {
            // A message is shorter than 2^16, so this is bounded.
            let wanted = loop {
                let wanted = Header::of(&partial).map_or(HEADER, |header| usize::from(header.len));
                let missing = wanted.saturating_sub(partial.len());
                if missing == 0 {
                    break wanted;
                }
                if rest.is_empty() {
                    self.partial = partial;
                    return Ok(());
                }
                let (more, after) = rest.split_at(missing.min(rest.len()));
                partial.extend(more);
                rest = after;
            };
            self.messages(&partial[..wanted.max(HEADER).min(partial.len())])?;
        }
        let used = self.messages(rest)?;
        self.partial = rest[used..].to_vec();
        Ok(())
    }

    /// Handles all whole messages at the start of bytes, and returns how many bytes that are.
    fn messages(&mut self, bytes: &[u8]) -> Result<usize, Closed> {
        let switch = self.switch.clone();
        let shared = &*switch.0;
        let (mut used, mut ahead) = (0, 0);
        let mut waiting = VecDeque::with_capacity(AHEAD);
        let mut run: Option<MutexGuard<'_, Control>> = None;
        let mut errors = Vec::new();
        let mut ended = Ok(());
        loop {
            while waiting.len() < AHEAD
                && let Some(header) = Header::of(&bytes[ahead..])
                && let Some(message) = bytes.get(ahead..ahead + usize::from(header.len).max(HEADER))
            {
                ahead += message.len();
                let request = Request::read(message);
                if let (Some(control), Ok(Request::FlowMod(asked))) = (&run, &request) {
                    control.prefetch(asked);
                }
                waiting.push_back((header, message, request));
            }
            let Some((header, message, request)) = waiting.pop_front() else { break };
            if usize::from(header.len) < HEADER {
                // Nothing says where the next message begins.
                errors.push(error(Failure::BAD_LEN, message, header.xid));
                ended = Err(Closed);
                break;
            }
            used += message.len();
            let is_slave = self.link.role() == Role::Slave;
            if let (Ok(Request::FlowMod(asked)), true, false) = (&request, self.is_greeted, is_slave) {
                let control = run.get_or_insert_with(|| {
                    let mut control = shared.control();
                    control.begin();
                    control
                });
                self.unpublished.get_or_insert_with(Instant::now);
                if let Err(failure) = control.flow_mod(asked, shared.now()) {
                    errors.push(error(failure, message, header.xid));
                }
                if errors.len() < MOST_ERRORS {
                    continue;
                }
            }
            self.publish(run.take());
            self.tell(&mut errors)?;
            if matches!(request, Ok(Request::FlowMod(_))) && self.is_greeted && !is_slave {
                continue;
            }
            ended = self.one(shared, header, message, request);
            if ended.is_err() {
                break;
            }
        }
        drop(run);
        self.tell(&mut errors)?;
        ended.map(|()| used)
    }

    /// The time since the first change that may not be published.
    pub(crate) fn unpublished(&self) -> Option<Duration> {
        self.unpublished.map(|since| since.elapsed())
    }

    /// Lets workers see all changes, and forgets bundles that nobody goes on with.
    pub(crate) fn settle(&mut self) {
        self.publish(None);
        self.bundles.expire(self.switch.0.now());
    }

    /// Ends a run of changes: workers see them, and those before it.
    fn publish(&mut self, run: Option<MutexGuard<'_, Control>>) {
        if self.unpublished.take().is_some() {
            let mut control = run.unwrap_or_else(|| self.switch.0.control());
            let events = control.publish();
            drop(control);
            tell::events(&self.switch.0, &self.links, events);
        }
    }

    /// Tells errors.
    fn tell(&self, errors: &mut Vec<Vec<u8>>) -> Result<(), Closed> {
        errors.drain(..).try_for_each(|error| self.link.outbox.push(error))
    }

    /// Handles a message.
    fn one(
        &mut self,
        shared: &Shared,
        header: Header,
        message: &[u8],
        request: Result<Request, Failure>,
    ) -> Result<(), Closed> {
        let link = Arc::clone(&self.link);
        let refuse = |failure: Failure| link.outbox.push(error(failure, message, header.xid));
        if !self.is_greeted {
            let failure = match request {
                Ok(Request::Hello { is_known: true }) => {
                    self.is_greeted = true;
                    self.link.set_ready();
                    return Ok(());
                }
                Ok(Request::Hello { .. }) => Failure::HELLO_INCOMPATIBLE,
                _ => Failure::BAD_TYPE,
            };
            refuse(failure)?;
            return Err(Closed);
        }
        let request = match request {
            Ok(request) => request,
            Err(failure) => return refuse(failure),
        };
        if request.is_change() && self.link.role() == Role::Slave {
            return refuse(Failure::IS_SLAVE);
        }
        match self.handle(shared, header.xid, message, request) {
            Ok(sent) => sent,
            Err(failure) => refuse(failure),
        }
    }

    fn handle(
        &mut self,
        shared: &Shared,
        xid: u32,
        message: &[u8],
        request: Request,
    ) -> Result<Result<(), Closed>, Failure> {
        let outbox = &self.link.outbox;
        let now = shared.now();
        Ok(match request {
            Request::Hello { .. } | Request::Error | Request::EchoReply => Ok(()),
            Request::EchoRequest => {
                let mut out = begin(3, xid);
                out.extend(&message[HEADER..]);
                outbox.push(end(out))
            }
            Request::Features => {
                let mut out = begin(6, xid);
                out.u64(shared.options.datapath);
                // No buffers.
                out.u32(0);
                out.u8(TABLES);
                out.zeros(3);
                // Statistics of flows, tables, ports and groups.
                out.u32(0b1111);
                out.u32(0);
                outbox.push(end(out))
            }
            Request::GetConfig => {
                let (flags, miss_len) = shared.control().config;
                let mut out = begin(8, xid);
                out.u16(flags);
                out.u16(miss_len);
                outbox.push(end(out))
            }
            // Fragments are handled as they come; dropping and reassembling them is refused.
            Request::SetConfig { flags, .. } if flags != 0 => return Err(Failure::CONFIG_FLAGS),
            Request::SetConfig { flags, miss_len } => {
                shared.control().config = (flags, miss_len);
                Ok(())
            }
            Request::PacketOut(_)
            | Request::FlowMod(_)
            | Request::GroupMod(_)
            | Request::MeterMod(_)
            | Request::PortMod { .. }
            | Request::TableMod { .. } => {
                let mut control = shared.control();
                if let Some(packet) = change(shared, &mut control, request, now)? {
                    shared.packet_out(&control, &packet);
                }
                self.changed(control);
                Ok(())
            }
            Request::BundleAdd(asked) => {
                self.bundles.add(&asked, xid, now)?;
                Ok(())
            }
            Request::BundleControl(asked) => {
                if let Some(messages) = self.bundles.step(asked, now)? {
                    let mut control = shared.control();
                    if let Err((failure, failed)) = commit(shared, &mut control, &messages, now) {
                        drop(control);
                        let number = Header::of(failed).map_or(xid, |header| header.xid);
                        if let Err(closed) = outbox.push(error(failure, failed, number)) {
                            return Ok(Err(closed));
                        }
                        return Err(Failure::BUNDLE_MSG_FAILED);
                    }
                    self.changed(control);
                }
                outbox.push(asked.reply(xid))
            }
            Request::Multipart(asked) => return self.multipart(shared, xid, &asked),
            Request::Barrier => outbox.push(bare(21, xid)),
            Request::QueueConfig(number) => {
                let is_port = shared.options.numbering().place(number).is_some();
                if number != ports::ANY && !is_port {
                    return Err(Failure::QUEUE_PORT);
                }
                let mut out = begin(23, xid);
                out.u32(number);
                out.zeros(4);
                outbox.push(end(out))
            }
            Request::Role { role, generation } => {
                let (role, generation) = self.role(shared, role, generation)?;
                let mut out = begin(25, xid);
                out.u32(role as u32);
                out.zeros(4);
                out.u64(generation);
                outbox.push(end(out))
            }
            Request::GetAsync => {
                let mut out = begin(27, xid);
                self.link.masks().into_iter().for_each(|mask| out.u32(mask));
                outbox.push(end(out))
            }
            Request::SetAsync(masks) => {
                self.link.set_masks(masks);
                self.tell_spent(&mut shared.control());
                Ok(())
            }
        })
    }

    /// Lets workers see changes, and tells controllers what came of them.
    fn changed(&self, mut control: MutexGuard<'_, Control>) {
        let events = control.publish();
        drop(control);
        tell::events(&self.switch.0, &self.links, events);
    }

    /// Workers give packets whose time to live is spent only if somebody wants them.
    fn tell_spent(&self, control: &mut Control) {
        let wants = |link: &Arc<Link>| (link.masks()[0] | link.masks()[1]) & 0b100 != 0;
        control.tell_spent(self.links.all().iter().any(wants));
        control.make_seen();
    }

    fn multipart(&self, shared: &Shared, xid: u32, asked: &Multipart) -> Result<Result<(), Closed>, Failure> {
        // What has no flows is short: it is sent once the lock is free, since sending may wait.
        let mut messages = Vec::new();
        let later = answer(shared, &shared.control(), asked, xid, &mut |message| messages.push(message))?;
        let mut sent = messages.into_iter().try_for_each(|message| self.link.outbox.push(message));
        if let Later::Flows(found) = later {
            flows(shared, &found, xid, &mut |message| {
                sent = sent.and_then(|()| self.link.outbox.push(message));
            });
        }
        Ok(sent)
    }

    /// Changes the role, and tells it with the number of the election.
    fn role(&self, shared: &Shared, role: u32, generation: u64) -> Result<(Role, u64), Failure> {
        let asked = match role {
            0 => None,
            1 => Some(Role::Equal),
            2 => Some(Role::Master),
            3 => Some(Role::Slave),
            _ => return Err(Failure::ROLE_BAD),
        };
        let mut control = shared.control();
        if let Some(asked) = asked {
            if asked != Role::Equal {
                // An election is older if the difference is negative (specification 1.3.5, section 6.3.4).
                let is_stale = |known: u64| generation.wrapping_sub(known) > u64::MAX / 2;
                if control.generation.is_some_and(is_stale) {
                    return Err(Failure::ROLE_STALE);
                }
                control.generation = Some(generation);
            }
            if asked == Role::Master {
                let others = self.links.all();
                let masters = others.iter().filter(|link| link.role() == Role::Master);
                masters.for_each(|link| link.set_role(Role::Slave));
            }
            self.link.set_role(asked);
        }
        Ok((self.link.role(), control.generation.unwrap_or(u64::MAX)))
    }
}

/// A controller's side of a connection without a connection: bytes go in, and answers come out. Tests drive a
/// switch with it.
pub struct Session {
    talk: Talk,
    is_open: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("is_open", &self.is_open).finish_non_exhaustive()
    }
}

impl Session {
    /// A session with a switch, whose greeting waits.
    #[must_use]
    pub fn new(switch: &Switch) -> Self {
        let links = Arc::new(Links::default());
        // Nobody takes what waits while messages are handled, so there is no bound.
        let link = Arc::new(Link::new(Outbox::with_bound(usize::MAX)));
        links.add(&link);
        let talk = Talk::new(switch.clone(), links, link);
        let is_open = talk.begin().is_ok();
        Self { talk, is_open }
    }

    /// Takes bytes of the controller, and returns what the switch sends. Packets for controllers that wait
    /// are sent, too. `None` once the switch has ended the session.
    pub fn receive(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if !self.is_open {
            return None;
        }
        self.is_open = self.talk.receive(bytes).is_ok();
        self.talk.settle();
        self.packets();
        Some(self.talk.link.outbox.take(Duration::ZERO).unwrap_or_default())
    }

    /// Sends packets that wait, and events of timeouts.
    fn packets(&self) {
        let shared = &self.talk.switch.0;
        // A channel that is open takes them itself.
        if let Ok(waiting) = shared.waiting.try_lock() {
            waiting.try_iter().for_each(|packet| tell::packet_in(&self.talk.links, &packet));
        }
        let events = shared.control().publish();
        tell::events(shared, &self.talk.links, events);
    }
}
