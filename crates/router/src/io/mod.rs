//! [`Port`]: where frames come from and go to. Each port of a worker is one queue of a device.
//!
//! | port | frames come from, go to |
//! |---|---|
//! | [`memory`] | frames made in memory; a sink that takes them back |
//! | [`capture`] | pcap and pcapng files |
//! | [`PacketPort`] | an interface of Linux, by rings of AF_PACKET |
//! | [`XdpPort`] | an interface of Linux, by AF_XDP |
//! | [`HostPort`] | the host itself, by a device that is made for it |
//!
//! A worker owns its ports and the [`Memory`] whose frames they carry, so no port is shared between threads.

#[cfg(target_os = "linux")]
mod bpf;
pub mod capture;
#[cfg(target_os = "linux")]
mod checksum;
#[cfg(target_os = "linux")]
mod claim;
#[cfg(target_os = "linux")]
mod forwarding;
#[cfg(target_os = "linux")]
mod hardware;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod interface;
mod joined;
#[cfg(target_os = "linux")]
mod local;
pub mod memory;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg(target_os = "linux")]
mod packet;
#[cfg(target_os = "linux")]
mod privileges;
#[cfg(target_os = "linux")]
mod sys;
pub mod traffic;
#[cfg(target_os = "linux")]
mod transit;
#[cfg(target_os = "linux")]
mod tun;
#[cfg(target_os = "linux")]
mod tuns;
#[cfg(target_os = "linux")]
mod xdp;

use std::os::fd::RawFd;

#[cfg(target_os = "linux")]
pub use claim::Claim;
#[cfg(target_os = "linux")]
pub use forwarding::ForwardingOff;
#[cfg(target_os = "linux")]
pub use host::{HostLink, HostPort};
#[cfg(target_os = "linux")]
pub use interface::{Interface, Offload, Unusable};
#[cfg(target_os = "linux")]
pub use local::LocalAddresses;
#[cfg(target_os = "linux")]
pub use packet::{PacketOptions, PacketPort, Promiscuous};
#[cfg(target_os = "linux")]
pub use privileges::give_up_privileges;
#[cfg(target_os = "linux")]
pub use transit::{Tags, Takes, Transit};
#[cfg(target_os = "linux")]
pub use tun::{TUN_ADDRESS, Tun, TunCounts};
#[cfg(target_os = "linux")]
pub use tuns::Tuns;
#[cfg(target_os = "linux")]
pub use xdp::{Attach, BusyPoll, Copying, Program, Umem, Withheld, XdpOptions, XdpPort};

pub use joined::Joined;

use crate::{Error, Frame, Memory};

/// One queue of a device, of one worker.
pub trait Port: Send {
    /// Its name for people: that of the interface, or of the file.
    fn name(&self) -> &str;

    /// Receives at most `most` frames, and adds them at the end of `frames`. Returns how many. Never waits:
    /// without a frame the number is 0.
    fn receive(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error>;

    /// Sends frames from the start of `frames`, in order, and removes those that it took. Frames that stay
    /// have found no place: the caller keeps them. Never waits. A frame that was sent is the port's until its
    /// buffer goes back to `memory`, in this call or in a later one.
    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error>;

    /// Does what waits in the port: buffers of sent frames go back to `memory`, and the device is told of new
    /// ones. Called once a round, also when nothing is sent.
    fn poll(&mut self, memory: &mut Memory) -> Result<(), Error> {
        let _ = memory;
        Ok(())
    }

    /// The number of buffers that the port holds: of frames in its rings, and empty ones for frames to come.
    fn held(&self) -> usize;

    /// The number of those that hold frames that were given to [`send`](Self::send) and are not sent yet.
    fn unsent(&self) -> usize {
        0
    }

    /// Gives all buffers up that the port holds, because the worker ends. Frames that are not sent yet are
    /// lost; [`unsent`](Self::unsent) told how many.
    fn close(&mut self, memory: &mut Memory);

    /// Whether no frame will come any more: the end of a file.
    fn is_at_end(&self) -> bool {
        false
    }

    /// Whether frames that are not received yet stay where they are, as those of a file do, or there are
    /// none. Such a port waits while another one is full. Where all ports of a worker can wait, no frame is
    /// dropped for a full port. A device's ring would overrun, and hold up frames to ports that are not full.
    fn can_wait(&self) -> bool {
        false
    }

    /// The damage of the source, if its frames ended early.
    fn damage(&self) -> Option<&str> {
        None
    }

    /// Adds the descriptors that are readable once there is a frame, for a worker that sleeps. Returns
    /// `false` for ports that always have frames: nobody sleeps then.
    fn descriptors(&self, descriptors: &mut Vec<RawFd>) -> bool {
        let _ = descriptors;
        false
    }

    /// Counters of the device since the port was opened.
    fn counts(&self) -> PortCounts;
}

/// Waits until one of the descriptors is readable, or the time is over.
#[allow(unsafe_code)] // poll(2)
pub(crate) fn wait(descriptors: &[RawFd], milliseconds: i32) {
    let of = |&fd: &RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut list: Vec<libc::pollfd> = descriptors.iter().map(of).collect();
    // SAFETY: the list is of this length, and lives through the call. An error, such as a signal, ends the
    // wait early.
    unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, milliseconds) };
    // An interface that is down or gone ends each wait at once.
    if list.iter().any(|one| one.revents & (libc::POLLERR | libc::POLLHUP) != 0) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Counters of a port since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortCounts {
    /// Frames that were received: those that [`Port::receive`] gave.
    pub received: u64,
    /// Frames that were sent: those that [`Port::send`] took.
    pub sent: u64,
    /// Frames that the device lost before the router saw them, such as for a full ring.
    pub missed: u64,
    /// Frames that the port could not give, such as those that are larger than a buffer, or could not send,
    /// such as those that are larger than the device takes.
    pub refused: u64,
    /// Frames that found no place when they were to be sent, counted each time.
    pub full: u64,
}

impl PortCounts {
    /// Adds the counts of another queue.
    pub(crate) fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.sent += other.sent;
        self.missed += other.missed;
        self.refused += other.refused;
        self.full += other.full;
    }
}
