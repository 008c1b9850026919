//! [`XdpPort`]: a queue of an interface through AF_XDP.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use libc::xdp_desc;

use super::super::{Port, PortCounts, checksum};
use super::held::Held;
use super::program::Program;
use super::region::Region;
use super::socket::Socket;
use crate::{Error, Frame, Memory};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// A queue of an interface through AF_XDP.
///
/// One [`Program`] an interface, one [`Umem`](super::Umem) a worker, one port a queue of an interface. A
/// worker that has ports at several interfaces moves frames between them by their tickets.
///
/// ```no_run
/// use std::sync::Arc;
/// use wirespeed_router::Memory;
/// use wirespeed_router::io::{Attach, Interface, LocalAddresses, Program, Tags, Umem, XdpOptions};
///
/// let local = LocalAddresses::new();
/// local.set(["192.0.2.1".parse()?])?;
/// let mut memory = Memory::new(16_384)?;
/// let mut umem = Umem::new(&memory);
/// let mut ports = Vec::new();
/// for name in ["eth0", "eth1"] {
///     let interface = Interface::open(name)?;
///     if let Some(reason) = interface.unusable(memory.stride()) {
///         println!("{name}: no AF_XDP: {reason}");
///         continue;
///     }
///     let program = Arc::new(Program::attach(&interface, &local, Tags::Kernel, Attach::Auto)?);
///     for queue in 0..interface.queues {
///         ports.push(umem.open(&program, queue, &XdpOptions::default(), &mut memory)?);
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A process needs CAP_NET_RAW for the sockets, CAP_BPF and CAP_NET_ADMIN for the programs, and CAP_IPC_LOCK
/// or a sufficient RLIMIT_MEMLOCK for the memory.
///
/// Traps:
///
/// - Each queue needs a port, or else its frames go through the kernel.
/// - A virtual interface whose peer leaves checksums to hardware delivers them unfinished, and AF_XDP can't
///   see that. At veth pairs the port finishes checksums that look so. At other virtual interfaces switch
///   [`Offload::TransmitChecksum`](crate::io::Offload::TransmitChecksum) off at the peer.
/// - Hardware that takes VLAN tags off hides them from the program: see
///   [`Offload::TagStripping`](crate::io::Offload::TagStripping).
#[derive(Debug)]
pub struct XdpPort {
    program: Arc<Program>,
    queue: u32,
    /// `None` once the port is closed.
    socket: Option<Socket>,
    region: Region,
    /// Buffers that the kernel has.
    held: Held,
    /// How many of them hold frames to send.
    sending: usize,
    is_zero_copy: bool,
    /// Whether the driver was asked for what a call can poll.
    is_driver_known: bool,
    counts: PortCounts,
    /// Losses that a closed socket told.
    missed: u64,
}

impl XdpPort {
    pub(super) fn new(
        program: Arc<Program>,
        queue: u32,
        socket: Socket,
        region: Region,
        buffers: u32,
    ) -> Self {
        Self {
            program,
            queue,
            is_zero_copy: socket.is_zero_copy(),
            socket: Some(socket),
            region,
            held: Held::new(buffers),
            sending: 0,
            is_driver_known: false,
            counts: PortCounts::default(),
            missed: 0,
        }
    }

    /// The program of its interface.
    #[must_use]
    pub const fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The number of its queue.
    #[must_use]
    pub const fn queue(&self) -> u32 {
        self.queue
    }

    /// Whether the driver reads and writes the worker's buffers, without a copy by the kernel.
    #[must_use]
    pub const fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    pub(super) const fn socket(&self) -> Option<&Socket> {
        self.socket.as_ref()
    }

    /// Panics if the frames of this memory are not those of the port's sockets.
    fn check(&self, memory: &Memory) {
        assert!(Region::of(memory) == self.region, "frames of another memory");
    }

    /// Gives free buffers to the fill ring until it is full, or none is left.
    pub(super) fn refill(&mut self, memory: &mut Memory) {
        let Some(socket) = &mut self.socket else { return };
        let stride = u64::from(memory.stride());
        let mut free = socket.fill.free(u32::MAX);
        while free > 0
            && let Some(frame) = memory.take()
        {
            let address = u64::from(self.held.put(frame)) * stride;
            assert!(socket.fill.push(address), "the ring has free entries");
            free -= 1;
        }
        socket.fill.publish();
        socket.kick_fill();
    }

    /// Takes the buffers of sent frames back.
    fn reclaim(&mut self, memory: &mut Memory) {
        let Some(socket) = &mut self.socket else { return };
        while let Some(address) = socket.completion.pop() {
            if let Some(frame) = self.held.take(memory, address, 0) {
                memory.give(frame);
                self.sending = self.sending.saturating_sub(1);
            }
        }
        socket.completion.release();
    }
}

impl Port for XdpPort {
    fn name(&self) -> &str {
        &self.program.interface().name
    }

    fn receive(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error> {
        self.check(memory);
        let Some(socket) = &mut self.socket else { return Ok(0) };
        let mut given = 0;
        while given < most
            && let Some(seen) = socket.receive.pop()
        {
            // A buffer that the kernel doesn't have can't come from it: such an entry is passed over.
            let Some(frame) = self.held.take(memory, seen.addr, seen.len) else {
                self.counts.refused += 1;
                continue;
            };
            if self.program.interface().is_pair {
                checksum::finish_if_left(memory.bytes_mut(&frame));
            }
            given += 1;
            frames.push(frame);
        }
        self.counts.received += given as u64;
        socket.receive.release();
        if given == 0 {
            socket.poll_driver();
        } else if socket.is_busy_polling()
            && !std::mem::replace(&mut self.is_driver_known, true)
            && !socket.has_napi()
        {
            let name = &self.program.interface().name;
            tracing::warn!(
                "{name}: queue {}: its driver can't be polled, so busy polling does nothing",
                self.queue
            );
        }
        self.refill(memory);
        Ok(given)
    }

    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        self.check(memory);
        self.reclaim(memory);
        let Some(socket) = &mut self.socket else { return Ok(0) };
        let possible = ETHERNET..=self.program.interface().longest_frame();
        let wanted = u32::try_from(frames.len()).unwrap_or(u32::MAX);
        let taken = frames.len().min(socket.transmit.free(wanted) as usize);
        let mut queued = 0;
        for frame in frames.drain(..taken) {
            // The kernel would pass over such a frame, and never give its buffer back.
            if !possible.contains(&frame.len()) {
                self.counts.refused += 1;
                memory.give(frame);
                continue;
            }
            let (addr, len) = (memory.offset(&frame) as u64, u32::try_from(frame.len()).expect("16 bits"));
            self.held.put(frame);
            queued += 1;
            assert!(socket.transmit.push(xdp_desc { addr, len, options: 0 }), "the ring has free entries");
        }
        self.sending += queued;
        self.counts.sent += queued as u64;
        self.counts.full += frames.len() as u64;
        socket.transmit.publish();
        let kicked = socket.kick_send();
        kicked.map_err(|cause| Error::port(self.name(), "frames can't be sent", cause))?;
        Ok(taken)
    }

    fn poll(&mut self, memory: &mut Memory) -> Result<(), Error> {
        self.check(memory);
        self.reclaim(memory);
        self.refill(memory);
        let Some(socket) = &mut self.socket else { return Ok(()) };
        let kicked = socket.kick_send();
        kicked.map_err(|cause| Error::port(self.name(), "frames can't be sent", cause))
    }

    fn held(&self) -> usize {
        self.held.len()
    }

    fn unsent(&self) -> usize {
        self.sending
    }

    /// Gives all buffers up. A driver without copies may take a moment to stop: until then it may still write
    /// to buffers that waited for frames, so the worker should use its memory for nothing else.
    fn close(&mut self, memory: &mut Memory) {
        self.check(memory);
        // The kernel removes a closed socket anyway; this way, no frame comes between.
        let _ = self.program.stop(self.queue);
        self.reclaim(memory);
        self.missed += self.socket.take().map_or(0, |socket| socket.missed());
        self.sending = 0;
        self.held.give_all(memory);
    }

    fn descriptors(&self, descriptors: &mut Vec<RawFd>) -> bool {
        let Some(socket) = &self.socket else { return true };
        descriptors.push(socket.fd.as_raw_fd());
        // Nobody polls the driver for a worker that sleeps.
        !socket.is_busy_polling()
    }

    fn counts(&self) -> PortCounts {
        let missed = self.missed + self.socket.as_ref().map_or(0, Socket::missed);
        PortCounts { missed, ..self.counts }
    }
}
