//! [`Interface`]: a network interface as a port sees it, and [`Unusable`]: why AF_XDP can't be used there.

use std::fmt;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

use super::sys::{self, Request};
use crate::Error;

/// A network interface of the kernel, when it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number in the kernel.
    pub index: u32,
    /// Its hardware address.
    pub mac: [u8; 6],
    /// The most bytes of a packet, without the Ethernet header.
    pub mtu: u32,
    /// The number of queues for received frames.
    pub queues: u32,
    /// Whether an administrator has set it up.
    pub is_up: bool,
    /// Whether it has a link: frames can go out and come in.
    pub is_running: bool,
    /// Whether it carries Ethernet frames.
    pub is_ethernet: bool,
    /// Whether it is one end of a pair of virtual interfaces. The other end leaves checksums unfinished.
    pub is_pair: bool,
}

/// The name of an interface's driver, with zeros behind it.
fn driver(socket: impl AsFd, name: &str) -> Option<[u8; 32]> {
    let mut words = [0_u32; 49];
    words[0] = sys::ETHTOOL_GDRVINFO;
    sys::ethtool(socket, name, &mut words).ok()?;
    let mut driver = [0; 32];
    let bytes = words[1..9].iter().flat_map(|word| word.to_ne_bytes());
    driver.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    Some(driver)
}

/// Kind of hardware address: Ethernet.
const ARPHRD_ETHER: u16 = 1;

impl Interface {
    /// Asks the kernel for an interface of this process's network namespace.
    pub fn open(name: &str) -> Result<Self, Error> {
        let failed = |cause| Error::port(name, "the kernel knows no such interface", cause);
        let socket = control().map_err(failed)?;
        let ask = |code: libc::c_ulong| Request::to(name)?.send(&socket, code);
        let index = ask(libc::SIOCGIFINDEX as _).map_err(failed)?.word();
        let hardware = ask(libc::SIOCGIFHWADDR as _).map_err(failed)?;
        let mtu = ask(libc::SIOCGIFMTU as _).map_err(failed)?.word();
        let flags = ask(libc::SIOCGIFFLAGS as _).map_err(failed)?.half();
        let mut mac = [0; 6];
        mac.copy_from_slice(&hardware.data[2..8]);
        let has = |flag: i32| flags & u16::try_from(flag).expect("a flag of 16 bits") != 0;
        Ok(Self {
            name: name.to_owned(),
            index,
            mac,
            mtu,
            queues: queues(&socket, name),
            is_up: has(libc::IFF_UP),
            is_running: has(libc::IFF_RUNNING),
            is_ethernet: hardware.half() == ARPHRD_ETHER,
            is_pair: driver(&socket, name).is_some_and(|driver| driver.starts_with(b"veth\0")),
        })
    }

    /// Asks again: an MTU, an address or a state may have changed.
    pub fn refresh(&mut self) -> Result<(), Error> {
        *self = Self::open(&self.name)?;
        Ok(())
    }

    /// Whether the driver leaves its interrupts off while somebody polls: `None` where the kernel doesn't
    /// tell.
    #[must_use]
    pub fn defers_interrupts(&self) -> Option<bool> {
        let of = |file: &str| {
            let text = fs::read_to_string(format!("/sys/class/net/{}/{file}", self.name)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        Some(of("napi_defer_hard_irqs")? > 0 && of("gro_flush_timeout")? > 0)
    }

    /// The speed of its link in megabits a second: `None` where the kernel doesn't tell.
    #[must_use]
    pub fn megabits(&self) -> Option<u32> {
        let text = fs::read_to_string(format!("/sys/class/net/{}/speed", self.name)).ok()?;
        text.trim().parse().ok()
    }

    /// The most bytes of a frame, with its Ethernet header and two VLAN tags.
    #[must_use]
    pub const fn longest_frame(&self) -> usize {
        self.mtu as usize + 14 + 8
    }

    /// Sets an offload of the interface on or off: see [`Offload`].
    pub fn set_offload(&self, offload: Offload, on: bool) -> Result<(), Error> {
        let failed = |cause| {
            let what = format!("{offload} can't be set {}", if on { "on" } else { "off" });
            sys::denied(&self.name, &what, "CAP_NET_ADMIN", cause)
        };
        let socket = control().map_err(failed)?;
        match offload.command() {
            Command::Own { set, .. } => sys::ethtool(&socket, &self.name, &mut [set, on.into()]),
            Command::Flag(flag) => {
                let mut words = [ETHTOOL_GFLAGS, 0];
                sys::ethtool(&socket, &self.name, &mut words).map_err(failed)?;
                let flags = if on { words[1] | flag } else { words[1] & !flag };
                sys::ethtool(&socket, &self.name, &mut [ETHTOOL_SFLAGS, flags])
            }
        }
        .map_err(failed)
    }

    /// Whether an offload is on. `None` where the driver doesn't know it.
    #[must_use]
    pub fn offload(&self, offload: Offload) -> Option<bool> {
        let (command, mask) = match offload.command() {
            Command::Own { is_on, .. } => (is_on, u32::MAX),
            Command::Flag(flag) => (ETHTOOL_GFLAGS, flag),
        };
        let mut words = [command, 0];
        sys::ethtool(control().ok()?, &self.name, &mut words).ok()?;
        Some(words[1] & mask != 0)
    }

    /// Sets the interface up.
    pub fn set_up(&self) -> Result<(), Error> {
        set_up(&self.name).map_err(|cause| sys::denied(&self.name, "can't be set up", "CAP_NET_ADMIN", cause))
    }

    /// Tells why AF_XDP can't be used here with buffers of this stride, as far as it shows before it is
    /// tried: a driver may still refuse when a port is opened.
    #[must_use]
    pub fn unusable(&self, stride: u32) -> Option<Unusable> {
        if !self.is_ethernet {
            return Some(Unusable::NotEthernet);
        }
        if !matches!(stride, 2048 | 4096) {
            return Some(Unusable::Stride(stride));
        }
        let capacity = stride - u32::from(crate::HEAD_ROOM);
        if self.longest_frame() > capacity as usize {
            return Some(Unusable::Mtu { mtu: self.mtu, most: capacity - 14 - 8 });
        }
        match sys::socket(libc::AF_XDP, libc::SOCK_RAW, 0) {
            Ok(_) => None,
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => Some(Unusable::Denied),
            Err(_) => Some(Unusable::Kernel),
        }
    }
}

/// A socket that requests to interfaces go through.
fn control() -> io::Result<OwnedFd> {
    sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)
}

/// Sets an interface up.
pub(super) fn set_up(name: &str) -> io::Result<()> {
    let socket = control()?;
    let mut request = Request::to(name)?.send(&socket, libc::SIOCGIFFLAGS as _)?;
    let up = u16::try_from(libc::IFF_UP).expect("a flag of 16 bits");
    let flags = request.half() | up;
    request.data[..2].copy_from_slice(&flags.to_ne_bytes());
    request.send(&socket, libc::SIOCSIFFLAGS as _)?;
    Ok(())
}

/// Gives an interface an IPv4 address that is alone in its subnet.
pub(super) fn set_address(name: &str, address: Ipv4Addr) -> io::Result<()> {
    let socket = control()?;
    for (code, address) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, Ipv4Addr::BROADCAST)] {
        let mut request = Request::to(name)?;
        // A `struct sockaddr_in`: family, port, address.
        let family = u16::try_from(libc::AF_INET).expect("a family is small");
        request.data[..2].copy_from_slice(&family.to_ne_bytes());
        request.data[4..8].copy_from_slice(&address.octets());
        request.send(&socket, code as _)?;
    }
    Ok(())
}

/// The number of queues of an interface for received frames: the driver's word, or what sysfs lists.
fn queues(socket: &OwnedFd, name: &str) -> u32 {
    // The maxima and the numbers now of: receive, transmit, other, both.
    let mut words = [0; 9];
    words[0] = sys::ETHTOOL_GCHANNELS;
    if sys::ethtool(socket, name, &mut words).is_ok() {
        let channels = words[5].saturating_add(words[8]);
        if channels > 0 {
            return channels;
        }
    }
    let Ok(queues) = fs::read_dir(format!("/sys/class/net/{name}/queues")) else { return 1 };
    let is_receive = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("rx-");
    let count = queues.filter_map(Result::ok).filter(is_receive).count();
    u32::try_from(count).unwrap_or(1).max(1)
}

/// Work on frames that an interface does beside its driver, and that can stand in a router's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offload {
    /// Checksums of TCP and UDP that are finished when a frame leaves. Between virtual interfaces nobody
    /// finishes them, and AF_XDP can't see that: where such an interface is a host's, it must be off there.
    /// Segmentation goes off with it.
    TransmitChecksum,
    /// TCP segments larger than the MTU that are cut when they leave. A router behind a virtual interface
    /// gets them whole, and they fit no buffer.
    Segmentation,
    /// Segments larger than the MTU that the kernel cuts when they leave, for every protocol.
    GenericSegmentation,
    /// TCP segments that the kernel joins when they come. AF_PACKET gets them joined, and they fit no buffer:
    /// it must be off where AF_PACKET forwards.
    GenericReceive,
    /// TCP segments that the hardware joins when they come: must be off for each router.
    LargeReceive,
    /// VLAN tags that the hardware takes off frames when they come. An XDP program takes such frames for
    /// untagged ones: it must be off where there are VLANs.
    TagStripping,
}

const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;

/// The way in which a driver is asked for an offload.
enum Command {
    /// Two commands of the offload's own.
    Own { is_on: u32, set: u32 },
    /// A bit among flags.
    Flag(u32),
}

impl Offload {
    const fn command(self) -> Command {
        match self {
            Self::TransmitChecksum => Command::Own { is_on: 0x16, set: 0x17 },
            Self::Segmentation => Command::Own { is_on: 0x1e, set: 0x1f },
            Self::GenericSegmentation => Command::Own { is_on: 0x23, set: 0x24 },
            Self::GenericReceive => Command::Own { is_on: 0x2b, set: 0x2c },
            Self::LargeReceive => Command::Flag(1 << 15),
            Self::TagStripping => Command::Flag(1 << 8),
        }
    }
}

impl fmt::Display for Offload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TransmitChecksum => "checksums of sent frames",
            Self::Segmentation => "TCP segmentation",
            Self::GenericSegmentation => "generic segmentation",
            Self::GenericReceive => "generic receive offload",
            Self::LargeReceive => "large receive offload",
            Self::TagStripping => "VLAN tag stripping",
        })
    }
}

/// The reason why AF_XDP can't be used at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unusable {
    /// The interface carries no Ethernet frames.
    NotEthernet,
    /// The interface's frames don't fit the buffers.
    Mtu {
        /// The interface's MTU.
        mtu: u32,
        /// The largest MTU that fits.
        most: u32,
    },
    /// The buffers lie a number of bytes apart that AF_XDP doesn't take.
    Stride(u32),
    /// The process may not open sockets of AF_XDP.
    Denied,
    /// The kernel was built without AF_XDP.
    Kernel,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEthernet => f.write_str("it carries no Ethernet frames"),
            Self::Mtu { mtu, most } => write!(f, "its MTU is {mtu}, and buffers take {most} at most"),
            Self::Stride(stride) => {
                write!(f, "buffers are {stride} bytes apart, and AF_XDP takes 2048 or 4096")
            }
            Self::Denied => f.write_str(
                "sockets of AF_XDP are not allowed: this needs CAP_NET_RAW, beside CAP_NET_ADMIN and CAP_BPF",
            ),
            Self::Kernel => f.write_str("the kernel has no AF_XDP"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_no_ethernet() {
        let Ok(interface) = Interface::open("lo") else {
            println!("skipped: no loopback");
            return;
        };
        assert_eq!(interface.unusable(2048), Some(Unusable::NotEthernet));
        assert!(interface.queues >= 1);
    }

    #[test]
    fn names_that_are_none_are_refused() {
        for name in ["", "no-such-interface", "nosuch0", "a/b", "a\0b"] {
            assert!(Interface::open(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn reasons_say_both_numbers() {
        let mut interface = Interface::open("lo").expect("a loopback");
        (interface.is_ethernet, interface.mtu) = (true, 9000);
        assert_eq!(interface.unusable(2048), Some(Unusable::Mtu { mtu: 9000, most: 1770 }));
        assert_eq!(interface.unusable(2112), Some(Unusable::Stride(2112)));
        let text = Unusable::Mtu { mtu: 9000, most: 1770 }.to_string();
        assert!(text.contains("9000") && text.contains("1770"), "{text}");
    }
}
