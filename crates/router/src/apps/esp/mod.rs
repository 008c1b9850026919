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
mod opening;
mod places;
mod read;
mod sealing;
mod tell;
mod wrap;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::Instant;

use wirespeed_esp::gpu::{Arrived, Batch, Offload, Sealed};
use wirespeed_esp::{Arrival, Fault, Reader, Scratch};

use super::ip::icmp::Limit;
use super::ip::{ERRORS_PER_SECOND, Owns};
use crate::any_app::{AnyApp, any};
use crate::header::{ETHERNET, TYPE_IPV4, TYPE_IPV6, be16, network};
use crate::{App, Chunk, Memory, PortId, Reason, Verdict, narrow};
use asked::Asked;
use places::Places;
use read::Read;

/// Frames of a chunk for a GPU: 3 MB of large ones, which an H100 seals at nearly the rate of its bus.
const FOR_GPU: usize = 2048;
/// The fewest frames of such a chunk: launches take longer than the CPU needs for fewer.
const LEAST_FOR_GPU: usize = 512;

/// Events that a worker tells in a second at most. All are counted.
const EVENTS_PER_SECOND: u32 = 10;

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
pub struct Esp<'t> {
    inner: Box<dyn AnyApp + 't>,
    reader: Reader,
    own: &'t Owns,
    limit: Limit,
    /// The bound of events that are told.
    events: Limit,
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

impl fmt::Debug for Esp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Esp").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl<'t> Esp<'t> {
    /// Puts the tunnels of a database in front of an application. `own` is what the router is at its ports:
    /// it sends ICMP errors from there.
    ///
    /// Panics if a fault has no reason of the same name: then this crate is older than `wirespeed-esp`.
    ///
    /// Where an `Ip` behind it knows the router's own addresses as sources (`Owns::set_sources`), it has to
    /// be `Ip::behind_own_packets`: tunnel packets come from these.
    #[must_use]
    pub fn new(inner: impl App + 't, reader: Reader, own: &'t Owns) -> Self {
        let of = |fault: &Fault| Reason::ALL.iter().copied().find(|reason| reason.name() == fault.name());
        let reasons = Fault::ALL.iter().map(|fault| of(fault).expect("each fault is a reason")).collect();
        Self {
            inner: any(inner),
            reader,
            own,
            limit: Limit::new(ERRORS_PER_SECOND),
            events: Limit::new(EVENTS_PER_SECOND),
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

    /// Whether the GPU is asked for a chunk: for those of its size, and for all if it has to have them.
    fn asks_gpu(&self, chunk: &Chunk) -> bool {
        self.gpu.as_ref().is_some_and(|gpu| {
            let gpu = gpu.borrow();
            gpu.is_there() && (gpu.is_always() || chunk.is_for_gpu())
        })
    }

    fn fail(&self, chunk: &mut Chunk, at: usize, fault: Fault) {
        let reason = self.reasons.get(fault as usize).copied().unwrap_or(Reason::Application);
        chunk.decide(at, Verdict::Drop(reason));
    }
}

impl App for Esp<'_> {
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
        let is_late = self.late > 0 || opening.is_some();
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
        self.inner.pre_shade(chunk, memory);
        self.inner.post_shade(chunk, memory);
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
        self.inner.pre_shade(chunk, memory);
        self.inner.post_shade(chunk, memory);
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
