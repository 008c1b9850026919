//! [`HostPort`]: a device of the host's own that this process makes. What the host sends by it comes in at
//! the port, and what goes out of the port the host receives.
//!
//! | kind | frames | for |
//! |---|---|---|
//! | [`HostLink::Ethernet`] (TAP) | as the host sends them | the port LOCAL of a switch |
//! | [`HostLink::Packets`] (TUN) | packets, with a header of Ethernet that is made for them | what the host sends into tunnels |
//!
//! A system call moves one frame: such a port is for what a host itself says, and not for transit.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

use super::interface;
use super::sys::{self, Request, denied};
use super::{Port, PortCounts};
use crate::header::{ETHERNET, Mac, TYPE_IPV4, TYPE_IPV6, be16};
use crate::{Error, Frame, Memory, narrow};

/// The kind of packets that a device carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostLink {
    /// Frames of Ethernet. The host asks for neighbours there, as on any link.
    Ethernet,
    /// IPv4 and IPv6 packets. The host routes them to the device, without neighbours.
    Packets,
}

/// A queue of a device that the host has. The device is gone with its last queue, or when the process dies.
#[derive(Debug)]
pub struct HostPort {
    file: File,
    name: String,
    link: HostLink,
    counts: PortCounts,
}

/// The addresses of frames of packets: of the router, and of the host.
const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 1]);
const HOST: Mac = Mac([2, 0, 0, 0, 0, 2]);

impl HostPort {
    /// Makes a device of this name with so many queues, and sets it up. The name must be new.
    ///
    /// Fails without CAP_NET_ADMIN, or where an interface has the name.
    pub fn open(name: &str, link: HostLink, queues: usize) -> Result<Vec<Self>, Error> {
        let failed = |what: &'static str| move |cause| denied(name, what, "CAP_NET_ADMIN", cause);
        if name.contains('%') {
            return Err(failed("can't be a device's name")(io::ErrorKind::InvalidInput.into()));
        }
        if interface::Interface::open(name).is_ok() {
            return Err(failed("there is an interface of that name")(io::ErrorKind::AlreadyExists.into()));
        }
        let kind = match link {
            HostLink::Ethernet => libc::IFF_TAP,
            HostLink::Packets => libc::IFF_TUN,
        };
        let flags = u16::try_from(kind | libc::IFF_NO_PI | libc::IFF_MULTI_QUEUE).expect("flags of 16 bits");
        let queue = || -> Result<Self, Error> {
            let file =
                sys::open_nonblocking("/dev/net/tun").map_err(failed("/dev/net/tun can't be opened"))?;
            let mut request = Request::to(name).map_err(failed("can't be a device's name"))?;
            request.data[..2].copy_from_slice(&flags.to_ne_bytes());
            request.send(&file, libc::TUNSETIFF as _).map_err(failed("the device can't be made"))?;
            Ok(Self { file, name: name.to_owned(), link, counts: PortCounts::default() })
        };
        let all = (0..queues.max(1)).map(|_| queue()).collect::<Result<Vec<_>, _>>()?;
        if link == HostLink::Packets {
            // Without an address of its own, the device asks for no routers when it is set up.
            let _ = super::tun::set(name, "ipv6", "addr_gen_mode", "1");
            // Errors about its packets come from an address of the host itself.
            super::tun::set(name, "ipv4", "accept_local", "1")
                .map_err(failed("accept_local can't be set"))?;
        }
        interface::set_up(name).map_err(failed("can't be set up"))?;
        Ok(all)
    }

    /// Reads a frame to a buffer. `None` where none waits.
    fn read(&mut self, memory: &mut Memory) -> Result<Option<Frame>, Error> {
        let room = memory.capacity();
        let Some(mut frame) = memory.take_for(room) else { return Ok(None) };
        let head = if self.link == HostLink::Packets { ETHERNET } else { 0 };
        loop {
            let read = self.file.read(&mut memory.bytes_mut(&frame)[head..]);
            let len = match read {
                Ok(len) => len,
                Err(cause) => {
                    memory.give(frame);
                    return match cause.raw_os_error() {
                        Some(libc::EAGAIN | libc::EINTR) => Ok(None),
                        _ => Err(Error::port(&self.name, "the host's packets can't be read", cause)),
                    };
                }
            };
            // The kernel cuts what does not fit without a word.
            let is_whole = len > 0 && head + len < room;
            if is_whole && (head == 0 || begin(&mut memory.bytes_mut(&frame)[..head + len])) {
                frame.truncate(narrow::u16(head + len));
                return Ok(Some(frame));
            }
            self.counts.refused += 1;
        }
    }
}

/// Writes the header before a packet. `false` for one that is neither IPv4 nor IPv6.
fn begin(frame: &mut [u8]) -> bool {
    let kind = match frame[ETHERNET] >> 4 {
        4 => TYPE_IPV4,
        6 => TYPE_IPV6,
        _ => return false,
    };
    frame[..6].copy_from_slice(&ROUTER.0);
    frame[6..12].copy_from_slice(&HOST.0);
    frame[12..ETHERNET].copy_from_slice(&kind.to_be_bytes());
    true
}

impl Port for HostPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn receive(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error> {
        let mut received = 0;
        while received < most
            && let Some(frame) = self.read(memory)?
        {
            frames.push(frame);
            received += 1;
        }
        self.counts.received += received as u64;
        Ok(received)
    }

    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        let mut sent = 0;
        for frame in &*frames {
            let bytes = memory.bytes(frame);
            let bytes = match self.link {
                HostLink::Ethernet => Some(bytes),
                // Other packets have no place on this link.
                HostLink::Packets => bytes
                    .get(ETHERNET..)
                    .filter(|_| matches!(be16(bytes, ETHERNET - 2), TYPE_IPV4 | TYPE_IPV6)),
            };
            let written = bytes.map(|bytes| self.file.write(bytes));
            match written {
                Some(Ok(_)) => {}
                Some(Err(cause)) => match cause.raw_os_error() {
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => {
                        self.counts.full += 1;
                        break;
                    }
                    // The device is down, or the frame is none.
                    Some(libc::EIO | libc::EINVAL) => self.counts.refused += 1,
                    _ => return Err(Error::port(&self.name, "frames can't be given to the host", cause)),
                },
                None => self.counts.refused += 1,
            }
            sent += 1;
        }
        frames.drain(..sent).for_each(|frame| memory.give(frame));
        self.counts.sent += sent as u64;
        Ok(sent)
    }

    fn held(&self) -> usize {
        0
    }

    fn close(&mut self, _: &mut Memory) {}

    fn descriptors(&self, descriptors: &mut Vec<RawFd>) -> bool {
        descriptors.push(self.file.as_raw_fd());
        true
    }

    fn counts(&self) -> PortCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_get_a_header_and_others_do_not() {
        for (first, kind) in [(0x45, Some(TYPE_IPV4)), (0x60, Some(TYPE_IPV6)), (0x10, None)] {
            let mut frame = vec![0; ETHERNET + 20];
            frame[ETHERNET] = first;
            assert_eq!(begin(&mut frame), kind.is_some());
            assert_eq!(kind.unwrap_or(0), be16(&frame, 12));
        }
    }
}
