//! [`Esp`]: a gateway of IPsec tunnels, in front of another application.
//!
//! ```text
//! pre_shade    ESP packets for this gateway ─ tags, decryption, window ─► inner packets ─┐
//!              packets in the clear ───────────────────────────────────────────────────┴─ policies in ─ policies out ─┐
//!                     ┌── pass ◄────────────────────────────────────────────────────────────────────────────────────┤
//!                     ├── headers, encryption, tags ◄── protect ◄────────────────────────────────────────────────────┘
//! (shade)             │   a GPU has the packets that it opens and seals
//! post_shade          ▼   those that it opened: policies in, policies out, the next tunnel
//!              the other application: it forwards what has become of the frames
//! ```
//!
//! A packet that came through one tunnel and has to go into another one goes there. The other application
//! reads the frames when the tunnels are done with them, so it looks up at once, on the CPU.
//!
//! Senders learn the size that fits by ICMP errors, if the router has an address of their family. Packets
//! that may be cut are cut, before or behind the encryption (`cut.rs`). ESP packets that come in fragments
//! are put together, by all workers in one place. The whole has to fit a buffer, with its frame 1,792 bytes
//! of the usual ones: senders whose links take 1,500 bytes stay below. A larger one is dropped
//! ([`Reason::EspLong`]).

mod asked;
mod cut;
mod places;
mod wrap;

use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Instant;

use wirespeed_esp::gpu::{Arrived, Batch, Offload, Sealed};
use wirespeed_esp::{
    Arrival, Beginning, Direction, Envelope, Fault, Inbound, Opened, Outbound, Reader, Sa, Scratch, Sealing,
    State, Unsealed, open, seal,
};

use super::ip::icmp::{self, Limit};
use super::ip::{ERRORS_PER_SECOND, Owns};
use crate::header::{ETHERNET, TYPE_IPV4, TYPE_IPV6, be16, network};
use crate::{App, Chunk, Memory, PortId, Reason, Verdict, narrow};
use asked::{Asked, NO_TUPLE};
use places::Places;
use wrap::{strip, wrap};

/// Frames of a chunk for a GPU: 3 MB of large ones, which an H100 seals at nearly the rate of its bus.
const FOR_GPU: usize = 2048;
/// The fewest frames of such a chunk: launches take longer than the CPU needs for fewer.
const LEAST_FOR_GPU: usize = 512;

/// Takes packets into IPsec tunnels and out of them, in front of an application that forwards: an [`App`].
///
/// Packets that come out of a tunnel are checked against the policies of packets that come in, and so are
/// those that came in the clear. Frames that fail are dropped for a [`Reason`] of their own, and what was
/// decrypted of them is overwritten.
///
/// ```
/// use wirespeed::prelude::*;
/// use wirespeed_esp::Database;
/// use wirespeed_esp::read::Lines;
/// use wirespeed_router::apps::ip::Owns;
/// use wirespeed_router::apps::{Esp, Ip};
///
/// let lines = Lines::read(
///     "ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x100 reqid 1 mode tunnel \
///      aead 'rfc4106(gcm(aes))' 0x00112233445566778899aabbccddeeff01020304 128\n\
///      ip xfrm policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir out \
///      tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 1 mode tunnel\n",
/// );
/// assert!(lines.skipped.is_empty());
/// let mut database = Database::new()?;
/// database.apply(lines.changes)?;
/// let (table, routes, own) = (IpTable::builder().build()?, Labels::new(), Owns::default());
/// let app = Esp::new(Ip::new(&table.reader(), &routes, &own), database.reader(), &own);
/// # drop(app);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Esp<'t, A> {
    inner: A,
    reader: Reader,
    own: &'t Owns,
    limit: Limit,
    /// The reason of each fault.
    reasons: Box<[Reason]>,
    counts: Counts,
    spare: Vec<Read>,
    scratch: Scratch,
    asked: Asked,
    gpu: Option<RefCell<Offload>>,
    /// Chunks under way that seal at their end: see [`Pending::is_late`].
    late: usize,
    /// The port at which the host's own packets come in.
    host: Option<PortId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    opened: u64,
    sealed: u64,
    /// Errors that told the size of a path.
    learned: u64,
    /// Packets that were cut before they were sealed, and behind.
    fragmented: u64,
    /// Packets that were put together, and those that were given up.
    reassembled: u64,
    reassembly_failed: u64,
    keepalives: u64,
    /// Tunnels whose other end sent from another place.
    moved: u64,
    errors_sent: u64,
    errors_held: u64,
}

/// The packets of a chunk, as they were read.
#[derive(Debug, Default)]
struct Read {
    /// Where the packet of each frame begins.
    packets: Vec<u16>,
    /// ESP packets, by frame.
    envelopes: Vec<(u32, Envelope)>,
    /// Frames with packets that have no ESP for this gateway.
    clear: Vec<u32>,
    /// Frames whose sealed packets have to be cut, and the size that the path takes.
    long: Vec<(u32, u16)>,
}

/// A chunk of [`Esp`] under way.
#[derive(Debug)]
pub struct Pending {
    read: Read,
    opening: Option<Batch<Arrived>>,
    sealing: Option<Batch<Sealed>>,
    /// Whether its packets are sealed at its end. Numbers are given in the order of frames, so a chunk waits
    /// for packets that come out of tunnels, its own and those of chunks before it: they may have to go into
    /// the same tunnel as packets in the clear.
    is_late: bool,
}

/// Frames that were opened, each with the association that it came through.
type Through<'s> = Vec<(u32, &'s Sa)>;

impl<'t, A: App> Esp<'t, A> {
    /// Puts the tunnels of a database in front of an application. `own` is what the router is at its ports:
    /// it sends ICMP errors from there.
    ///
    /// Panics if a fault has no reason of the same name: then this crate is older than `wirespeed-esp`.
    ///
    /// Where an `Ip` behind it knows the router's own addresses as sources (`Owns::set_sources`), it has to
    /// be `Ip::behind_own_packets`: tunnel packets come from these.
    #[must_use]
    pub fn new(inner: A, reader: Reader, own: &'t Owns) -> Self {
        let of = |fault: &Fault| Reason::ALL.iter().copied().find(|reason| reason.name() == fault.name());
        let reasons = Fault::ALL.iter().map(|fault| of(fault).expect("each fault is a reason")).collect();
        Self {
            inner,
            reader,
            own,
            limit: Limit::new(ERRORS_PER_SECOND),
            reasons,
            counts: Counts::default(),
            spare: Vec::new(),
            scratch: Scratch::default(),
            asked: Asked::default(),
            gpu: None,
            late: 0,
            host: None,
        }
    }

    /// Takes packets of the host itself at a port, such as a [`HostPort`](crate::io::HostPort). They are for
    /// tunnels alone: one that no policy protects is dropped, because the host would get it back.
    #[must_use]
    pub const fn host(mut self, port: PortId) -> Self {
        self.host = Some(port);
        self
    }

    /// Gives this worker a GPU that seals and opens packets, by the measure that it was made with. Where it
    /// fails the CPU goes on: no packet is lost, and none is sent twice.
    #[must_use]
    pub fn gpu(mut self, gpu: Offload) -> Self {
        self.gpu = Some(RefCell::new(gpu));
        self
    }

    fn fail(&self, chunk: &mut Chunk, at: usize, fault: Fault) {
        let reason = self.reasons.get(fault as usize).copied().unwrap_or(Reason::Application);
        chunk.decide(at, Verdict::Drop(reason));
    }

    /// Opens the ESP packets of a chunk, or gives them to the GPU. Returns the frames whose inner packets are
    /// there.
    fn open<'s>(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        read: &Read,
        state: &'s Arc<State>,
    ) -> (Through<'s>, Option<Batch<Arrived>>) {
        let mut openings = Vec::with_capacity(read.envelopes.len());
        let mut beginning = Beginning::new(state);
        for &(frame, envelope) in &read.envelopes {
            match beginning.begin(envelope, frame as usize) {
                Ok(opening) => openings.push(opening),
                Err(fault) => self.fail(chunk, frame as usize, fault),
            }
        }
        drop(beginning);
        let mut places = Places { frames: chunk.frames(), packets: &read.packets, memory };
        if let Some(gpu) = self.gpu.as_mut().map(RefCell::get_mut) {
            return (Vec::new(), gpu.open(state, openings, &places));
        }
        let mut outcomes = Vec::with_capacity(openings.len());
        open(&openings, &mut places, &mut self.scratch, &mut outcomes);
        let mut through = Vec::with_capacity(openings.len());
        for (opening, outcome) in openings.iter().zip(outcomes) {
            if self.opened(chunk, memory, read, opening.at, outcome) {
                through.push((narrow::u32(opening.at), opening.sa()));
            }
        }
        (through, None)
    }

    /// Takes opened packets back from the GPU.
    fn take_opened<'b>(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        read: &Read,
        batch: &'b Batch<Arrived>,
    ) -> Through<'b> {
        let mut outcomes = Vec::with_capacity(batch.len());
        if let Some(gpu) = self.gpu.as_mut().map(RefCell::get_mut) {
            let mut places = Places { frames: chunk.frames(), packets: &read.packets, memory };
            gpu.opened(batch, &mut places, &mut self.scratch, &mut outcomes);
        }
        let mut through = Vec::with_capacity(outcomes.len());
        for (place, (at, outcome)) in outcomes.into_iter().enumerate() {
            if self.opened(chunk, memory, read, at, outcome) {
                through.push((narrow::u32(at), batch.sa(place)));
            }
        }
        through
    }

    /// Goes on with a packet that was opened, or drops it. Returns whether its inner packet is there.
    fn opened(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        read: &Read,
        at: usize,
        outcome: Result<Opened, Fault>,
    ) -> bool {
        match outcome {
            Ok(opened) => {
                strip(chunk, memory, at, read.packets[at].into(), opened);
                self.counts.opened += 1;
                self.counts.moved += u64::from(opened.is_moved);
                true
            }
            Err(fault) => {
                self.fail(chunk, at, fault);
                false
            }
        }
    }

    /// Asks the policies for packets that came in about those that were opened, and about those in the clear.
    fn check_inbound(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        read: &Read,
        through: &[(u32, &Sa)],
        clear: &[u32],
    ) {
        let is_asked = || !self.reader.rules(Direction::In).are_empty();
        if through.is_empty() && !is_asked() && self.reader.state().inbound(0, None) == Inbound::Accept {
            return;
        }
        let mut through: Vec<(u32, Option<&Sa>)> =
            through.iter().map(|&(frame, sa)| (frame, Some(sa))).collect();
        through.extend(clear.iter().map(|&frame| (frame, None)));
        let frames: Vec<u32> = through.iter().map(|&(frame, _)| frame).collect();
        let mut asked = std::mem::take(&mut self.asked);
        asked.ask(self.reader.rules(Direction::In), chunk, memory, &read.packets, &frames);
        let state = self.reader.state();
        for (&(frame, sa), &policy) in through.iter().zip(asked.policies()) {
            let at = frame as usize;
            match state.inbound(policy, sa) {
                _ if policy == NO_TUPLE => chunk.decide(at, Verdict::Drop(Reason::Cut)),
                Inbound::Accept => continue,
                Inbound::Unprotected => self.fail(chunk, at, Fault::Unprotected),
                Inbound::Discard => self.fail(chunk, at, Fault::Policy),
            }
            if sa.is_some() {
                // It was secret, so it goes to no capture of drops.
                memory.bytes_mut(&chunk.frames()[at])[read.packets[at].into()..].fill(0);
            }
        }
        self.asked = asked;
    }

    /// Asks the policies for packets that go out, and seals those that are to be protected, or gives them to
    /// the GPU, and waits for it if they are `late`.
    fn seal(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        read: &mut Read,
        mut frames: Vec<u32>,
        is_late: bool,
    ) -> Option<Batch<Sealed>> {
        frames.retain(|&frame| chunk.is_undecided(frame as usize));
        // Numbers in another order than frames would leave the other end's window behind.
        frames.sort_unstable();
        let mut asked = std::mem::take(&mut self.asked);
        asked.ask(self.reader.rules(Direction::Out), chunk, memory, &read.packets, &frames);
        let state = self.reader.state();
        let mut ready: Vec<(u32, Sealing<'_>)> = Vec::with_capacity(frames.len());
        // Frames in a row mostly have one policy.
        let mut last = (0, state.outbound(0));
        for (&frame, &policy) in frames.iter().zip(asked.policies()) {
            let at = frame as usize;
            if policy == NO_TUPLE {
                chunk.decide(at, Verdict::Drop(Reason::Cut));
                continue;
            }
            if policy != last.0 {
                last = (policy, state.outbound(policy));
            }
            match last.1 {
                Outbound::Pass if self.host == Some(chunk.port()) => self.fail(chunk, at, Fault::Policy),
                Outbound::Pass => {}
                Outbound::Discard => self.fail(chunk, at, Fault::Policy),
                Outbound::Unkeyed => self.fail(chunk, at, Fault::Unkeyed),
                Outbound::Protect(sa) => {
                    let start = usize::from(read.packets[at]);
                    match Sealing::begin(sa, &memory.bytes(&chunk.frames()[at])[start..]) {
                        Ok(sealing) => ready.push((frame, sealing)),
                        Err(Fault::TooBig)
                            if self.cut(chunk, memory, read, at, (policy, sa), &state, &mut ready) => {}
                        Err(fault) => {
                            self.fail(chunk, at, fault);
                            // Who sent a packet that came through a tunnel is not where the frame came from.
                            if read.clear.contains(&frame) {
                                self.tell(chunk, memory, at, start, sa, fault);
                            }
                        }
                    }
                }
            }
        }
        let mut unsealed: Vec<Unsealed<'_>> = Vec::with_capacity(ready.len());
        for run in ready.chunk_by(|(_, one), (_, other)| one.is_beside(other)) {
            let mut numbers = run[0].1.take(run.len());
            for &(frame, sealing) in run {
                let at = frame as usize;
                match wrap(chunk, memory, at, read.packets[at].into(), sealing, &mut numbers) {
                    Ok(wrapped) => {
                        unsealed.push(wrapped);
                        read.long.extend(sealing.cut_to().map(|most| (frame, most)));
                    }
                    Err(fault) => self.fail(chunk, at, fault),
                }
            }
        }
        self.counts.sealed += unsealed.len() as u64;
        let mut batch = None;
        let mut places = Places { frames: chunk.frames(), packets: &read.packets, memory };
        match self.gpu.as_mut().map(RefCell::get_mut) {
            Some(gpu) => {
                batch = gpu.seal(&state, &mut unsealed, &places);
                gpu.seal_here(&unsealed, &mut places, &mut self.scratch);
                if is_late && let Some(batch) = &batch {
                    gpu.sealed(batch, &mut places, &mut self.scratch);
                }
            }
            None => seal(&unsealed, &mut places, &mut self.scratch),
        }
        drop(unsealed);
        self.asked = asked;
        batch
    }

    /// Cuts a packet that is too large for a tunnel, if it may be cut, and lays its parts ready to be sealed.
    /// A packet of a policy for ports is sealed whole: its parts would have none. Returns whether it may be
    /// cut.
    #[cold]
    #[allow(clippy::too_many_arguments)] // what `seal` has
    fn cut<'s>(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        read: &mut Read,
        at: usize,
        (policy, sa): (u32, &'s Sa),
        state: &State,
        ready: &mut Vec<(u32, Sealing<'s>)>,
    ) -> bool {
        let start = usize::from(read.packets[at]);
        let most = sa.most_inner();
        let packet = &memory.bytes(&chunk.frames()[at])[start..];
        if !cut::may_cut(packet, most) {
            return false;
        }
        let places = if state.is_for_ports(policy, sa) {
            Some(vec![at])
        } else {
            cut::cut_v4(chunk, memory, at, start, most)
        };
        let Some(places) = places else {
            self.fail(chunk, at, Fault::Buffer);
            return true;
        };
        self.counts.fragmented += u64::from(places.len() > 1);
        read.packets.resize(chunk.len(), narrow::u16(start));
        for place in places {
            match Sealing::begin_large(sa, &memory.bytes(&chunk.frames()[place])[start..]) {
                Ok(sealing) => ready.push((narrow::u32(place), sealing)),
                Err(fault) => self.fail(chunk, place, fault),
            }
        }
        true
    }

    /// Cuts sealed packets that are larger than their paths take, and brings all parts in order.
    fn cut_sealed(&mut self, chunk: &mut Chunk, memory: &mut Memory, read: &Read) {
        for &(frame, most) in &read.long {
            let (at, start) = (frame as usize, usize::from(read.packets[frame as usize]));
            if !chunk.is_undecided(at) {
                continue;
            }
            let is_v4 = memory.bytes(&chunk.frames()[at])[start] >> 4 == 4;
            let is_cut = if is_v4 {
                cut::cut_v4(chunk, memory, at, start, most.into()).is_some()
            } else {
                cut::cut_v6(chunk, memory, at, start, most, self.reader.next_id())
            };
            if is_cut {
                self.counts.fragmented += 1;
            } else {
                self.fail(chunk, at, Fault::Buffer);
            }
        }
        chunk.settle();
    }

    /// Takes a fragment of an ESP packet. Returns what has come with the last one: the frame has the whole
    /// packet then. Else the frame is decided about.
    #[cold]
    fn join(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        at: usize,
        start: usize,
        state: &State,
    ) -> Arrival {
        let bytes = memory.bytes(&chunk.frames()[at]);
        let (link, packet) = bytes.split_at(start);
        let (whole, failed) = {
            let mut fragments = self.reader.fragments();
            (fragments.take(packet, Instant::now()), fragments.take_given_up())
        };
        self.counts.reassembly_failed += failed;
        let Some(whole) = whole else {
            self.fail(chunk, at, Fault::Fragment);
            return Arrival::Fragment;
        };
        let whole = [link, &whole].concat();
        if !memory.rewrite(chunk.frame_mut(at), &whole) {
            self.fail(chunk, at, Fault::Long);
            return Arrival::Fragment;
        }
        self.counts.reassembled += 1;
        Arrival::read(&whole[start..], |address| state.is_end(address), |port| state.is_port(port))
    }

    /// Tells the sender of a packet that it can't go into the tunnel: it is too large, or its hops are spent.
    #[cold]
    fn tell(
        &mut self,
        chunk: &mut Chunk,
        memory: &mut Memory,
        at: usize,
        start: usize,
        sa: &Sa,
        fault: Fault,
    ) {
        /// The smallest link of IPv6.
        const LEAST_V6: usize = 1280;
        let frame = memory.bytes(&chunk.frames()[at]);
        let (link, packet) = frame.split_at(start);
        let is_v4 = packet[0] >> 4 == 4;
        let most = if is_v4 { sa.most_inner() } else { sa.most_inner().max(LEAST_V6) };
        let fault = match fault {
            Fault::Expired => icmp::Fault::Expired,
            Fault::TooBig => icmp::Fault::TooBig(narrow::u16(most)),
            _ => return,
        };
        let port = chunk.port();
        let answer = if is_v4 {
            let own: Option<Ipv4Addr> = self.own.find(port, |own| own.v4);
            own.filter(|_| icmp::may_answer_v4(packet)).map(|own| icmp::error_v4(packet, fault, own))
        } else {
            let own: Option<Ipv6Addr> = self.own.find(port, |own| own.v6);
            own.filter(|_| icmp::may_answer_v6(packet, fault)).map(|own| icmp::error_v6(packet, fault, own))
        };
        let Some(answer) = answer else { return };
        let mut link = link.to_vec();
        link[..12].rotate_left(6);
        // A buffer that is taken and not sent would be lost.
        let is_allowed = self.limit.take(Instant::now());
        let made = is_allowed.then(|| memory.copy_of(&[&link[..], &answer].concat())).flatten();
        match made {
            Some(made) => {
                chunk.send(port, made);
                self.counts.errors_sent += 1;
            }
            None => self.counts.errors_held += 1,
        }
    }
}

impl<A: App> App for Esp<'_, A> {
    type Pending = Pending;

    fn pre_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory) -> Pending {
        /// Frames whose headers are on their way while one is read.
        const AHEAD: usize = 8;
        chunk.frames().iter().take(AHEAD).for_each(|frame| memory.prefetch(frame));
        let state = self.reader.state();
        // Packets in a row mostly are for one end.
        let last = Cell::new(None);
        let is_end = |address| {
            let is_end = last.get() == Some(address) || state.is_end(address);
            if is_end {
                last.set(Some(address));
            }
            is_end
        };
        let mut read = self.spare.pop().unwrap_or_default();
        read.clear();
        read.packets.resize(chunk.len(), 0);
        for at in 0..chunk.len() {
            if let Some(ahead) = chunk.frames().get(at + AHEAD) {
                memory.prefetch(ahead);
            }
            if !chunk.is_undecided(at) {
                continue;
            }
            let bytes = memory.bytes(&chunk.frames()[at]);
            // Frames of a chunk are fewer than 2^32, and headers of a frame shorter than 2^16.
            let (frame, start) = match network(bytes) {
                Ok((TYPE_IPV4 | TYPE_IPV6, start)) => (narrow::u32(at), start),
                // The other application knows what to do with others.
                _ => continue,
            };
            let (kind, packet) = (be16(bytes, start - 2), &bytes[start..]);
            let is_version = packet
                .first()
                .is_some_and(|first| matches!((kind, first >> 4), (TYPE_IPV4, 4) | (TYPE_IPV6, 6)));
            if !is_version {
                continue;
            }
            read.packets[at] = narrow::u16(start);
            if self.host == Some(chunk.port()) {
                read.clear.push(frame);
                continue;
            }
            let arrival = match Arrival::read(packet, is_end, |port| state.is_port(port)) {
                Arrival::LaterFragment if !self.reader.fragments().have_others_of(packet) => Arrival::Clear,
                Arrival::Fragment | Arrival::LaterFragment => self.join(chunk, memory, at, start, &state),
                arrival => arrival,
            };
            match arrival {
                Arrival::Clear => {
                    self.counts.learned +=
                        u64::from(state.learn(&memory.bytes(&chunk.frames()[at])[start..]));
                    read.clear.push(frame);
                }
                Arrival::Esp(envelope) => read.envelopes.push((frame, envelope)),
                Arrival::Ike => chunk.decide(at, Verdict::Kernel),
                Arrival::Keepalive => self.fail(chunk, at, Fault::Keepalive),
                // It was decided about.
                Arrival::Fragment | Arrival::LaterFragment => {}
                Arrival::Bad => self.fail(chunk, at, Fault::Outer),
            }
        }
        let (through, opening) = self.open(chunk, memory, &read, &state);
        // The host's own packets come in nowhere.
        let is_of_host = self.host == Some(chunk.port());
        let came_in: &[u32] = if is_of_host { &[] } else { &read.clear };
        self.check_inbound(chunk, memory, &read, &through, came_in);
        let is_late = self.gpu.is_some() && (self.late > 0 || opening.is_some());
        if is_late {
            self.late += 1;
            return Pending { read, opening, sealing: None, is_late };
        }
        let frames = through.iter().map(|&(frame, _)| frame).chain(read.clear.iter().copied()).collect();
        let sealing = self.seal(chunk, memory, &mut read, frames, false);
        Pending { read, opening, sealing, is_late }
    }

    fn is_ready(&self, pending: &Pending) -> bool {
        let Some(gpu) = &self.gpu else { return true };
        let mut gpu = gpu.borrow_mut();
        pending.opening.as_ref().is_none_or(|batch| gpu.is_ready(batch))
            && pending.sealing.as_ref().is_none_or(|batch| gpu.is_ready(batch))
    }

    fn post_shade(&mut self, chunk: &mut Chunk, memory: &mut Memory, pending: Pending) {
        let Pending { mut read, opening, mut sealing, is_late } = pending;
        if let Some(batch) = &sealing
            && let Some(gpu) = self.gpu.as_mut().map(RefCell::get_mut)
        {
            let mut places = Places { frames: chunk.frames(), packets: &read.packets, memory };
            gpu.sealed(batch, &mut places, &mut self.scratch);
        }
        if is_late {
            self.late -= 1;
            let mut frames = Vec::new();
            if let Some(batch) = &opening {
                let through = self.take_opened(chunk, memory, &read, batch);
                self.check_inbound(chunk, memory, &read, &through, &[]);
                frames.extend(through.iter().map(|&(frame, _)| frame));
            }
            frames.extend(&read.clear);
            sealing = self.seal(chunk, memory, &mut read, frames, true);
        }
        self.cut_sealed(chunk, memory, &read);
        if sealing.is_some() || opening.is_some_and(|batch| batch.on_device() > 0) {
            chunk.set_by_gpu();
        }
        if let Some(failure) = self.gpu.as_mut().and_then(|gpu| gpu.get_mut().take_failure()) {
            tracing::warn!(%failure, "a GPU that seals and opens packets failed: the CPU goes on");
        }
        self.spare.push(read);
        let pending = self.inner.pre_shade(chunk, memory);
        self.inner.post_shade(chunk, memory, pending);
    }

    /// Keepalives go by the routes of the first port.
    fn make(&mut self, chunk: &mut Chunk, memory: &mut Memory) {
        self.inner.make(chunk, memory);
        let packets = self.reader.keepalives(Instant::now());
        if packets.is_empty() {
            return;
        }
        for packet in packets {
            let kind = if packet[0] >> 4 == 4 { TYPE_IPV4 } else { TYPE_IPV6 };
            // The other application writes the addresses of the link.
            let frame = [&[0; ETHERNET - 2][..], &kind.to_be_bytes(), &packet].concat();
            if let Some(frame) = memory.copy_of(&frame) {
                chunk.add_own(memory, frame);
                self.counts.keepalives += 1;
            }
        }
        let pending = self.inner.pre_shade(chunk, memory);
        self.inner.post_shade(chunk, memory, pending);
    }

    fn suited_to_gpu(&self) -> Option<usize> {
        self.gpu.as_ref().filter(|gpu| gpu.borrow().is_there()).map(|_| FOR_GPU)
    }

    fn least_for_gpu(&self) -> usize {
        LEAST_FOR_GPU
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.inner.counters();
        let gpu = self.gpu.as_ref().map(|gpu| gpu.borrow().counts()).unwrap_or_default();
        counters.extend([
            ("esp_opened", self.counts.opened),
            ("esp_sealed", self.counts.sealed),
            ("esp_paths_learned", self.counts.learned),
            ("esp_fragmented", self.counts.fragmented),
            ("esp_reassembled", self.counts.reassembled),
            ("esp_reassembly_failed", self.counts.reassembly_failed),
            ("esp_keepalives_sent", self.counts.keepalives),
            ("esp_mappings_changed", self.counts.moved),
            ("esp_errors_sent", self.counts.errors_sent),
            ("esp_errors_held", self.counts.errors_held),
            ("esp_by_gpu", gpu.by_device),
            ("esp_gpu_recovered", gpu.recovered),
        ]);
        counters
    }
}

impl Read {
    fn clear(&mut self) {
        self.packets.clear();
        self.envelopes.clear();
        self.clear.clear();
        self.long.clear();
    }
}
