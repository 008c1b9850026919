//! [`Tun`]: a device by which packets go to the kernel that a router has taken and can't forward itself, such
//! as those to a next hop that nobody has resolved yet.
//!
//! The kernel takes each packet as if it came at an interface: it routes it, resolves the next hop, answers
//! with ICMP. So the device passes the kernel's checks of where a packet may come from: see [`Tun::open`].

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

use super::interface;
use super::sys::{self, Request, denied};
use crate::header::{TYPE_IPV4, TYPE_IPV6, network};
use crate::{Error, Kernel, PortId};

/// A device by which packets go to the kernel. It is gone when this is dropped, or when the process dies.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    counts: TunCounts,
}

/// The address of a device that has no other: reserved for that by RFC 7600.
pub const TUN_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

/// Counters of a [`Tun`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TunCounts {
    /// Packets that the kernel took.
    pub given: u64,
    /// Bytes of these.
    pub given_bytes: u64,
    /// Packets that the kernel had no place for.
    pub full: u64,
    /// Packets that the kernel refused: those that are neither IPv4 nor IPv6.
    pub refused: u64,
}

impl Tun {
    /// Makes a device of this name (`%d` in it becomes a number) and sets it up.
    ///
    /// - The filter of reverse paths lets its packets through: their sources are behind other interfaces.
    ///   Where the filter is on for all interfaces (`net.ipv4.conf.all.rp_filter`), it can't be off here.
    ///   Then it is loose, and the device gets the address [`TUN_ADDRESS`], without which a loose filter lets
    ///   nothing through.
    /// - The kernel forwards packets that come from it.
    /// - It gets no IPv6 address, so it says nothing by itself.
    pub fn open(name: &str) -> Result<Self, Error> {
        let failed = |what: &'static str| move |cause| denied(name, what, "CAP_NET_ADMIN", cause);
        let file = sys::open_nonblocking("/dev/net/tun").map_err(failed("/dev/net/tun can't be opened"))?;
        let mut request = Request::to(name).map_err(failed("can't be a device's name"))?;
        let flags = u16::try_from(libc::IFF_TUN | libc::IFF_NO_PI).expect("flags of 16 bits");
        request.data[..2].copy_from_slice(&flags.to_ne_bytes());
        let made = request.send(&file, libc::TUNSETIFF as _).map_err(failed("the device can't be made"))?;
        let end = made.name.iter().position(|&byte| byte == 0).unwrap_or(made.name.len());
        let name = String::from_utf8_lossy(&made.name[..end]).into_owned();
        // Without an address of its own, the device asks for no routers when it is set up.
        let _ = set(&name, "ipv6", "addr_gen_mode", "1");
        let filter = fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter");
        let is_filtered = filter.is_ok_and(|mode| mode.trim() != "0");
        let loosest = if is_filtered { "2" } else { "0" };
        for (key, value) in [("rp_filter", loosest), ("forwarding", "1")] {
            set(&name, "ipv4", key, value)
                .map_err(|cause| denied(&name, &format!("{key} can't be set"), "CAP_NET_ADMIN", cause))?;
        }
        if is_filtered {
            interface::set_address(&name, TUN_ADDRESS)
                .map_err(|cause| denied(&name, "can't have an address", "CAP_NET_ADMIN", cause))?;
        }
        interface::set_up(&name).map_err(|cause| denied(&name, "can't be set up", "CAP_NET_ADMIN", cause))?;
        Ok(Self { file, name, counts: TunCounts::default() })
    }

    /// The name of the device.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives an IPv4 or IPv6 packet, without Ethernet header, to the kernel. Returns `false`, and counts, if
    /// the kernel does not take it.
    pub fn to_kernel(&mut self, packet: &[u8]) -> Result<bool, Error> {
        match self.file.write(packet) {
            Ok(_) => {
                self.counts.given += 1;
                self.counts.given_bytes += packet.len() as u64;
                return Ok(true);
            }
            Err(cause) if cause.kind() == io::ErrorKind::InvalidInput => self.counts.refused += 1,
            Err(cause) => match cause.raw_os_error() {
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => self.counts.full += 1,
                _ => return Err(Error::port(&self.name, "packets can't be given to the kernel", cause)),
            },
        }
        Ok(false)
    }

    /// Counters since it was opened.
    #[must_use]
    pub const fn counts(&self) -> TunCounts {
        self.counts
    }
}

impl Kernel for Tun {
    /// Gives the packet in a frame to the kernel. Packets that are neither IPv4 nor IPv6 are counted as
    /// refused: the kernel has no use for them here.
    fn take(&mut self, _: PortId, frame: &[u8]) {
        match network(frame) {
            Ok((TYPE_IPV4 | TYPE_IPV6, at)) => {
                if let Err(error) = self.to_kernel(&frame[at..]) {
                    tracing::warn!("{error}");
                }
            }
            _ => self.counts.refused += 1,
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Sets a parameter of an interface.
pub(super) fn set(name: &str, family: &str, key: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/net/{family}/conf/{name}/{key}"), value)
}
