//! [`Umem`]: the buffers of a worker, registered for the AF_XDP sockets of all its interfaces.
//!
//! The first socket registers the [`Memory`], the next ones share it, so that a frame goes from one interface
//! to another without a copy. Where sharing fails, as between a driver with zero copy and one without, the
//! memory is registered once more: a frame has the same address in both.

#![allow(unsafe_code)] // memory that is shared with the kernel

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use super::super::Port;
use super::super::sys::{self, denied};
use super::options::{Copying, Sizes, XdpOptions};
use super::port::XdpPort;
use super::program::Program;
use super::region::Region;
use super::socket::Socket;
use crate::{Error, HEAD_ROOM, Memory};

/// Trials of a queue that is taken, and the pause before each next one.
const TRIALS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// The buffers of a worker, for the AF_XDP sockets of all its interfaces.
#[derive(Debug)]
pub struct Umem {
    region: Region,
    stride: u32,
    buffers: u32,
    /// Sockets that have registered the memory, or share it.
    sockets: Vec<Shared>,
}

/// A socket that others can share the memory of, as long as it is open.
#[derive(Debug)]
struct Shared {
    socket: Weak<OwnedFd>,
    is_zero_copy: bool,
}

impl Umem {
    /// The buffers of this memory. Ports that are opened from it must be used with it alone.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        let region = Region::of(memory);
        Self { region, stride: memory.stride(), buffers: memory.buffers(), sockets: Vec::new() }
    }

    /// Opens a port for a queue of the program's interface, and redirects the queue's frames to it.
    ///
    /// Panics if `memory` is not the one that this was made of.
    pub fn open(
        &mut self,
        program: &Arc<Program>,
        queue: u32,
        options: &XdpOptions,
        memory: &mut Memory,
    ) -> Result<XdpPort, Error> {
        assert!(Region::of(memory) == self.region, "buffers of another memory");
        let name = &program.interface().name;
        if let Some(reason) = program.interface().unusable(self.stride) {
            let cause = io::ErrorKind::Unsupported.into();
            return Err(Error::port(name, format!("AF_XDP can't be used: {reason}"), cause));
        }
        let sizes = options.sizes();
        let mut socket =
            self.bound(program.interface().index, queue, sizes, options.copying).map_err(|cause| {
                let what = match cause.raw_os_error() {
                    Some(libc::EBUSY) => format!("queue {queue} has a socket of AF_XDP already"),
                    Some(libc::ENOBUFS) => {
                        "the memory is more than may be locked; this needs a higher RLIMIT_MEMLOCK, or CAP_IPC_LOCK"
                            .to_owned()
                    }
                    Some(libc::EOPNOTSUPP) if options.copying == Copying::Never => {
                        "the driver can't do without copies".to_owned()
                    }
                    _ => format!("no socket of AF_XDP for queue {queue}"),
                };
                denied(name, &what, "CAP_NET_RAW", cause)
            })?;
        if let Some(busy) = options.busy_poll {
            socket.busy_poll(busy).map_err(|(option, cause)| {
                let what = match cause.raw_os_error() {
                    Some(libc::ENOPROTOOPT) => {
                        format!("the kernel knows no busy polling of this kind ({option})")
                    }
                    _ => format!("the kernel refuses busy polling ({option})"),
                };
                denied(name, &what, "CAP_NET_ADMIN", cause)
            })?;
        }
        let is_zero_copy = socket.is_zero_copy();
        self.sockets.push(Shared { socket: Arc::downgrade(&socket.fd), is_zero_copy });
        let mut port = XdpPort::new(Arc::clone(program), queue, socket, self.region, self.buffers);
        port.refill(memory);
        let redirected = program.redirect(queue, port.socket().expect("just opened").as_fd());
        if let Err(cause) = redirected {
            port.close(memory);
            return Err(denied(name, "frames can't be redirected to a socket", "CAP_BPF", cause));
        }
        Ok(port)
    }

    /// A socket that is bound to a queue. The kernel clears a queue some time after its socket was closed, so
    /// a queue that is taken is tried again for a moment.
    fn bound(&mut self, interface: u32, queue: u32, sizes: Sizes, copying: Copying) -> io::Result<Socket> {
        for _ in 0..TRIALS {
            match self.bind(interface, queue, sizes, copying) {
                Err(cause) if cause.kind() == io::ErrorKind::ResourceBusy => thread::sleep(PAUSE),
                other => return other,
            }
        }
        self.bind(interface, queue, sizes, copying)
    }

    /// A socket that is bound to a queue, if it is free now.
    fn bind(&mut self, interface: u32, queue: u32, sizes: Sizes, copying: Copying) -> io::Result<Socket> {
        self.sockets.retain(|shared| shared.socket.strong_count() > 0);
        for shared in &self.sockets {
            // The mode is that of the other socket, and can't be asked for.
            let is_wanted = match copying {
                Copying::Auto => true,
                Copying::Never => shared.is_zero_copy,
                Copying::Always => !shared.is_zero_copy,
            };
            let Some(other) = shared.socket.upgrade().filter(|_| is_wanted) else { continue };
            let socket = Socket::new(open()?, sizes)?;
            let other = Some(other.as_fd());
            match sys::bind_xdp(&socket, interface, queue, libc::XDP_SHARED_UMEM, other) {
                Ok(()) => return Ok(socket),
                Err(cause) if cause.kind() == io::ErrorKind::ResourceBusy => return Err(cause),
                Err(_) => {}
            }
        }
        let modes: &[u16] = match copying {
            Copying::Auto => &[libc::XDP_ZEROCOPY, libc::XDP_COPY],
            Copying::Never => &[libc::XDP_ZEROCOPY],
            Copying::Always => &[libc::XDP_COPY],
        };
        let mut last = io::ErrorKind::Unsupported.into();
        for mode in modes {
            // A socket that could not be bound is not used again: the kernel may keep a part of its state.
            let socket = self.registered(sizes)?;
            match sys::bind_xdp(&socket, interface, queue, mode | libc::XDP_USE_NEED_WAKEUP, None) {
                Ok(()) => return Ok(socket),
                Err(cause) if cause.kind() == io::ErrorKind::ResourceBusy => return Err(cause),
                Err(cause) => last = cause,
            }
        }
        Err(last)
    }

    /// A socket that has registered the memory.
    fn registered(&self, sizes: Sizes) -> io::Result<Socket> {
        let fd = open()?;
        // SAFETY: the region is the mapping of the memory, as `new` saw it. The kernel keeps its pages, so it
        // may be unmapped before the socket is closed. A buffer is given to the kernel by `XdpPort` alone,
        // for a frame whose ticket it took, and `open` and `XdpPort` check that the tickets are of this
        // memory: nobody reads or writes the buffer before the kernel has given it back.
        unsafe { sys::register_memory(&fd, self.region.parts(), self.stride) }?;
        Socket::new(fd, sizes)
    }
}

/// An AF_XDP socket without memory. The kernel leaves as many bytes before a frame as a buffer has head room.
fn open() -> io::Result<Arc<OwnedFd>> {
    const { assert!(HEAD_ROOM == 256, "XDP_PACKET_HEADROOM") };
    sys::socket(libc::AF_XDP, libc::SOCK_RAW, 0).map(Arc::new)
}
