//! [`PacketPort`]: a queue of an interface through AF_PACKET, for interfaces without AF_XDP.
//!
//! ```text
//! interface ──► blocks of frames, the kernel's or ours ──► one copy ──► buffers of Memory
//! interface ◄── slots, one a frame                     ◄── one copy ◄── buffers of Memory
//! ```
//!
//! Both rings are one mapping that is shared with the kernel. A frame is copied once on its way in and once
//! on its way out: the rings are the kernel's memory, not the worker's.

mod receive;
mod transmit;

use std::cell::Cell;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use receive::Receive;
use transmit::Transmit;

use super::interface::Interface;
use super::sys::{self, Mapping};
use super::transit::Transit;
use super::{Port, PortCounts};
use crate::{Error, Frame, Memory};

/// Options of a port of AF_PACKET.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PacketOptions {
    /// Bytes of the ring of received frames, at least 256 KiB.
    pub receive_bytes: u32,
    /// Milliseconds after which a block that isn't full is handed over, at least 1.
    pub wait_ms: u32,
    /// The number of frames that fit the ring of frames to send.
    pub transmit_frames: u32,
    /// The group of sockets that share an interface's frames by a hash of their flow, if it has several
    /// workers. The number must not be in use by another program in this network namespace. A frame that
    /// comes while a socket joins the group may come by two of them.
    pub fanout: Option<u16>,
    /// Hands frames to the driver without queueing discipline: faster, and frames are lost where the device
    /// is busy.
    pub bypass: bool,
    /// Takes frames to other hardware addresses too.
    pub promiscuous: bool,
    /// Gives only the frames that are taken; the kernel has the others anyway.
    pub transit: Option<Transit>,
}

impl Default for PacketOptions {
    fn default() -> Self {
        Self {
            receive_bytes: 4 << 20,
            wait_ms: 1,
            transmit_frames: 1024,
            fanout: None,
            bypass: false,
            promiscuous: false,
            transit: None,
        }
    }
}

/// A queue of an interface through AF_PACKET. A frame is copied once on its way in and once on its way out.
///
/// A socket of packets gets a copy of each frame, and the kernel goes on with the frame itself. So:
///
/// - the kernel must not forward too: [`ForwardingOff`](super::ForwardingOff) switches that off, or
///   [`Withheld`](super::Withheld) keeps the frames from it;
/// - frames to the router itself are answered by the kernel. With [`PacketOptions::transit`] the port passes
///   them over, as the XDP program does.
///
/// The kernel changes frames before a socket sees them, and the port sets this right: it puts VLAN tags back
/// and finishes checksums. It can't cut segments that were joined: these fit no buffer and count as refused,
/// so [`Offload::GenericReceive`](super::Offload::GenericReceive) must be off.
///
/// The kernel hands a block over when it is full, or when its oldest frame has waited for
/// [`PacketOptions::wait_ms`]: a lone frame waits so long.
#[derive(Debug)]
pub struct PacketPort {
    name: String,
    /// `None` once the port is closed.
    live: Option<Live>,
    transit: Option<Transit>,
    counts: PortCounts,
    /// Losses that the kernel told: it starts again from 0 each time it is asked.
    missed: Cell<u64>,
}

/// An interface that takes frames to other hardware addresses, too, as long as this is kept.
#[derive(Debug)]
pub struct Promiscuous {
    _socket: OwnedFd,
}

impl Promiscuous {
    /// Makes an interface promiscuous. This needs CAP_NET_RAW.
    pub fn at(interface: &Interface) -> Result<Self, Error> {
        let name = &interface.name;
        let failed = |cause| sys::denied(name, "can't be promiscuous", "CAP_NET_RAW", cause);
        // Without a protocol the socket gets no frames.
        let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0).map_err(failed)?;
        join_all(&socket, interface.index).map_err(failed)?;
        Ok(Self { _socket: socket })
    }
}

/// Lets an interface take frames to other hardware addresses as long as a socket is open.
fn join_all(socket: &OwnedFd, interface: u32) -> std::io::Result<()> {
    // An index, a type of two bytes, a length of two bytes, no address.
    let [first, second] = PROMISCUOUS.to_ne_bytes();
    let promiscuous = [interface, u32::from_ne_bytes([first, second, 0, 0]), 0, 0];
    sys::set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, promiscuous)
}

/// The socket and its rings. The rings go before the mapping that they point into.
#[derive(Debug)]
struct Live {
    receive: Receive,
    transmit: Transmit,
    _mapping: Mapping,
    socket: OwnedFd,
}

/// Every protocol.
const ETH_P_ALL: u16 = 3;

/// Version 3 of the rings, with blocks.
const TPACKET_V3: i32 = 2;

/// Kind of membership: every frame, whatever its hardware address.
const PROMISCUOUS: u16 = 1;

/// Bytes of frames that may wait in the kernel for the device.
const SEND_BUFFER: i32 = 8 << 20;

impl PacketPort {
    /// Opens a port at an interface. This needs CAP_NET_RAW.
    pub fn open(interface: &Interface, options: &PacketOptions) -> Result<Self, Error> {
        let name = &interface.name;
        let failed = |what: &'static str| move |cause| sys::denied(name, what, "CAP_NET_RAW", cause);
        // The protocol is set when the socket is bound, so no frame of another interface comes before.
        let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
            .map_err(failed("no socket of AF_PACKET can be opened"))?;
        let set = |name, value: i32| sys::set_option(&socket, libc::SOL_PACKET, name, value);
        set(libc::PACKET_VERSION, TPACKET_V3).map_err(failed("the kernel has no TPACKET_V3"))?;
        set(libc::PACKET_IGNORE_OUTGOING, 1).map_err(failed("the kernel shows frames that it sends"))?;
        // A frame that the kernel can't send is passed over. Otherwise the ring would stop there.
        set(libc::PACKET_LOSS, 1).map_err(failed("bad frames would stop the ring"))?;
        if options.bypass {
            set(libc::PACKET_QDISC_BYPASS, 1).map_err(failed("the queueing discipline stays"))?;
        }
        // Frames that come have a header of virtio, too, before the place that is told of them.
        let takes_virtio = set(libc::PACKET_VNET_HDR, 1).is_ok();
        // Without the right to a larger buffer there is less in flight, and nothing else changes.
        let _ = sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BUFFER);

        let receive = receive::Shape::new(options.receive_bytes, options.wait_ms);
        let transmit = transmit::Shape::new(options.transmit_frames, interface.longest_frame(), takes_virtio);
        sys::set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, receive.request())
            .map_err(failed("no ring of received frames"))?;
        sys::set_option(&socket, libc::SOL_PACKET, libc::PACKET_TX_RING, transmit.request())
            .map_err(failed("no ring of frames to send"))?;
        let mapping = Mapping::of(&socket, 0, receive.bytes() + transmit.bytes())
            .map_err(failed("the rings can't be mapped"))?;
        let live = Live {
            transmit: Transmit::new(&mapping, receive.bytes(), transmit, interface.mtu),
            receive: Receive::new(&mapping, receive),
            _mapping: mapping,
            socket,
        };
        sys::bind_packet(&live.socket, interface.index, ETH_P_ALL).map_err(failed("can't be bound"))?;
        if options.promiscuous {
            join_all(&live.socket, interface.index).map_err(failed("can't be promiscuous"))?;
        }
        if let Some(group) = options.fanout {
            let mode = libc::PACKET_FANOUT_HASH;
            let value = u32::from(group) | mode << 16;
            sys::set_option(&live.socket, libc::SOL_PACKET, libc::PACKET_FANOUT, value)
                .map_err(failed("the group of sockets can't be joined"))?;
        }
        Ok(Self {
            name: name.clone(),
            live: Some(live),
            transit: options.transit.clone(),
            counts: PortCounts::default(),
            missed: Cell::new(0),
        })
    }
}

impl Port for PacketPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn receive(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error> {
        let Some(live) = &mut self.live else { return Ok(0) };
        let filter = self.transit.as_ref().map(Transit::now);
        let keeps = |bytes: &[u8]| filter.as_ref().is_none_or(|filter| filter.forwards(bytes));
        Ok(live.receive.frames(memory, frames, most, keeps, &mut self.counts))
    }

    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        let Some(live) = &mut self.live else { return Ok(0) };
        let taken = live.transmit.put(memory, frames, &mut self.counts);
        self.counts.full += frames.len() as u64;
        live.transmit.kick(&live.socket).map_err(|cause| self.lost(cause))?;
        Ok(taken)
    }

    fn poll(&mut self, _: &mut Memory) -> Result<(), Error> {
        let Some(live) = &mut self.live else { return Ok(()) };
        live.transmit.kick(&live.socket).map_err(|cause| self.lost(cause))
    }

    fn held(&self) -> usize {
        0 // frames are copied to the rings
    }

    fn close(&mut self, _: &mut Memory) {
        self.ask_missed();
        self.live = None;
    }

    fn descriptors(&self, descriptors: &mut Vec<RawFd>) -> bool {
        descriptors.extend(self.live.as_ref().map(|live| live.socket.as_raw_fd()));
        true
    }

    fn counts(&self) -> PortCounts {
        self.ask_missed();
        PortCounts { missed: self.missed.get(), ..self.counts }
    }
}

impl PacketPort {
    /// The error of an interface that is gone.
    fn lost(&self, cause: std::io::Error) -> Error {
        Error::port(&self.name, "frames can't be sent", cause)
    }

    /// Adds what the kernel lost since it was asked last.
    fn ask_missed(&self) {
        let Some(live) = &self.live else { return };
        // Frames that were seen, those that were lost, and how often the ring was full.
        if let Ok([_, lost, _]) =
            sys::option(&live.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, [0_u32; 3])
        {
            self.missed.set(self.missed.get() + u64::from(lost));
        }
    }
}
