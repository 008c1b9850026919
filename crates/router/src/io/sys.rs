//! Calls of the operating system for live ports: sockets and their options, mappings, requests to
//! interfaces. The functions are safe to call; files of ports hold rules of rings alone.

#![allow(unsafe_code)] // system calls

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::mem::{align_of, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

use crate::Error;

/// Values that the kernel reads and writes as bytes: without pointers, and with every pattern of bits
/// possible.
///
/// # Safety
///
/// The type has these properties.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: an integer.
unsafe impl Plain for i32 {}
// SAFETY: integers alone.
unsafe impl Plain for [u32; 2] {}
// SAFETY: integers alone.
unsafe impl Plain for [u32; 3] {}
// SAFETY: integers alone.
unsafe impl Plain for [u32; 4] {}
// SAFETY: integers alone.
unsafe impl Plain for [u32; 7] {}
// SAFETY: integers alone.
unsafe impl Plain for [u64; 6] {}
// SAFETY: integers alone: four rings of four offsets.
unsafe impl Plain for [[u64; 4]; 4] {}

/// The result of a call that says -1 for an error.
fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// An error of a port, which names the capability that is missing if that is the reason.
pub(super) fn denied(port: &str, what: &str, capability: &str, cause: io::Error) -> Error {
    if cause.kind() == io::ErrorKind::PermissionDenied {
        return Error::port(port, format!("{what}; this needs {capability}"), cause);
    }
    Error::port(port, what, cause)
}

/// Opens a socket that ends with the process's programs, and that never waits.
pub(super) fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes integers alone.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, protocol) };
    checked(fd.into())?;
    // SAFETY: the kernel just opened it, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The number of bytes of a value, for the kernel.
fn size<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).expect("options are small")
}

/// Sets an option of a socket.
pub(super) fn set_option<T: Plain>(socket: impl AsFd, level: i32, name: i32, value: T) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads as many bytes as `value` has.
    checked(unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), size::<T>()) }.into())?;
    Ok(())
}

/// Reads an option of a socket. A kernel that knows fewer fields leaves the others at `value`'s.
pub(super) fn option<T: Plain>(socket: impl AsFd, level: i32, name: i32, mut value: T) -> io::Result<T> {
    let mut len = size::<T>();
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `len` bytes, as many as `value` has, and every pattern is a value.
    checked(unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &raw mut len) }.into())?;
    Ok(value)
}

/// Binds a socket of packets to an interface.
pub(super) fn bind_packet(socket: impl AsFd, interface: u32, protocol: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).expect("a family is small"),
        sll_protocol: protocol.to_be(),
        sll_ifindex: interface.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    bind(socket, &address)
}

/// Binds a socket of AF_XDP to a queue of an interface.
pub(super) fn bind_xdp(
    socket: impl AsFd,
    interface: u32,
    queue: u32,
    flags: u16,
    shared: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: u16::try_from(libc::AF_XDP).expect("a family is small"),
        sxdp_flags: flags,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: shared.map_or(0, |fd| fd.as_raw_fd().cast_unsigned()),
    };
    bind(socket, &address)
}

fn bind<T>(socket: impl AsFd, address: &T) -> io::Result<()> {
    let at = ptr::from_ref(address).cast();
    // SAFETY: the kernel reads as many bytes as `address` has.
    checked(unsafe { libc::bind(socket.as_fd().as_raw_fd(), at, size::<T>()) }.into())?;
    Ok(())
}

/// Registers buffers as the memory of an AF_XDP socket.
///
/// # Safety
///
/// The region is mapped anonymous memory that the caller owns. Nobody reads or writes a buffer in it while
/// the kernel has it: from when its address is put on a ring for the kernel, until the kernel gives it back.
pub(super) unsafe fn register_memory(
    socket: impl AsFd,
    region: (NonNull<u8>, usize),
    chunk: u32,
) -> io::Result<()> {
    let registration = libc::xdp_umem_reg {
        addr: region.0.as_ptr() as u64,
        len: region.1 as u64,
        chunk_size: chunk,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    let (fd, value) = (socket.as_fd().as_raw_fd(), &raw const registration);
    let size = size::<libc::xdp_umem_reg>();
    // SAFETY: the kernel reads as many bytes as `registration` has. The caller answers for the region.
    checked(unsafe { libc::setsockopt(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, value.cast(), size) }.into())?;
    Ok(())
}

/// Tells the kernel to send what lies in a socket's ring.
pub(super) fn kick_send(socket: impl AsFd) -> io::Result<()> {
    // SAFETY: passes no memory.
    let sent = unsafe {
        libc::sendto(socket.as_fd().as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0)
    };
    checked(sent as libc::c_long)?;
    Ok(())
}

/// Tells the kernel to fill a socket's ring of received frames.
pub(super) fn kick_receive(socket: impl AsFd) -> io::Result<()> {
    let (fd, none) = (socket.as_fd().as_raw_fd(), ptr::null_mut());
    // SAFETY: passes no memory.
    let received =
        unsafe { libc::recvfrom(fd, ptr::null_mut(), 0, libc::MSG_DONTWAIT, none, ptr::null_mut()) };
    checked(received as libc::c_long)?;
    Ok(())
}

/// Memory that is shared with the kernel. Its owner reaches it by pointers that [`at`](Self::at) checks.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is not bound to a thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives pointers alone; whoever reads or writes through them answers for that.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a part of a descriptor.
    pub(super) fn of(fd: impl AsFd, offset: i64, len: usize) -> io::Result<Self> {
        Self::map(fd.as_fd().as_raw_fd(), offset, len, libc::MAP_SHARED | libc::MAP_POPULATE)
    }

    /// Maps memory of its own, for tests of rings.
    #[cfg(test)]
    pub(super) fn anonymous(len: usize) -> io::Result<Self> {
        Self::map(-1, 0, len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)
    }

    fn map(fd: i32, offset: i64, len: usize, flags: i32) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: asks for new pages at a place that the kernel picks, so nothing is unmapped.
        let base = unsafe { libc::mmap(ptr::null_mut(), len, access, flags, fd, offset) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { base, len })
    }

    /// The place of `count` values at an offset, if they are in the mapping and aligned.
    pub(super) fn at<T>(&self, offset: usize, count: usize) -> Option<NonNull<T>> {
        let end = count.checked_mul(size_of::<T>())?.checked_add(offset)?;
        let is_there = end <= self.len && offset.is_multiple_of(align_of::<T>());
        // SAFETY: the offset is at most the mapping's length. Mappings are aligned to pages.
        is_there.then(|| unsafe { self.base.add(offset) }.cast())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: these pages were mapped by `map` and belong to this value alone.
        unsafe { libc::munmap(self.base.as_ptr().cast::<c_void>(), self.len) };
    }
}

/// A request to an interface: its name, and 24 bytes that each request reads as its own (`struct ifreq`).
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) name: [u8; libc::IFNAMSIZ],
    pub(super) data: [u8; 24],
}

impl Request {
    /// A request to the interface of this name.
    pub(super) fn to(name: &str) -> io::Result<Self> {
        let mut request = Self { name: [0; libc::IFNAMSIZ], data: [0; 24] };
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains(['\0', '/']) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a name of an interface"));
        }
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        Ok(request)
    }

    /// Sends a request whose 24 bytes hold no pointer: the bytes that the kernel answers.
    ///
    /// `code` is one of the requests that take a `struct ifreq` without a pointer in it.
    pub(super) fn send(mut self, fd: impl AsFd, code: libc::c_ulong) -> io::Result<Self> {
        assert!(code != libc::SIOCETHTOOL as libc::c_ulong, "SIOCETHTOOL has a pointer");
        // SAFETY: the kernel reads and writes a `struct ifreq`, whose 40 bytes `self` has.
        checked(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), code, &raw mut self) }.into())?;
        Ok(self)
    }

    /// The first word that the kernel answered.
    pub(super) fn word(&self) -> u32 {
        u32::from_ne_bytes([self.data[0], self.data[1], self.data[2], self.data[3]])
    }

    /// The first half word that the kernel answered.
    pub(super) fn half(&self) -> u16 {
        u16::from_ne_bytes([self.data[0], self.data[1]])
    }
}

/// Asks an interface's driver: words that the command reads and writes, the first of which is its number.
///
/// `W` is the number of words of the command's structure. Commands with arrays that follow are not for this.
pub(super) fn ethtool<const W: usize>(fd: impl AsFd, name: &str, words: &mut [u32; W]) -> io::Result<()> {
    let needed = match words[0] {
        ETHTOOL_GCHANNELS => 9,
        ETHTOOL_GDRVINFO => 49,
        _ => 2,
    };
    assert!(W >= needed, "the command {:#x} takes {needed} words", words[0]);
    let mut request = Request::to(name)?;
    request.data[..size_of::<usize>()].copy_from_slice(&(words.as_mut_ptr() as usize).to_ne_bytes());
    // SAFETY: the kernel reads and writes a `struct ifreq`, and the command's words that it points to: two
    // words, the nine of ETHTOOL_GCHANNELS, or the 49 of ETHTOOL_GDRVINFO, which are there.
    checked(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) }.into())?;
    Ok(())
}

/// Reads what the driver is called: 49 words, the name from the second on.
pub(super) const ETHTOOL_GDRVINFO: u32 = 0x3;

/// Reads how many queues an interface has: nine words.
pub(super) const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// Opens a file that never waits.
pub(super) fn open_nonblocking(path: &str) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path)
}
