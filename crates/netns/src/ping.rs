//! [`ping`]: one echo of ICMP and its answer, without a program that may not be installed.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, connect, ipproto, recv, send, socket};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether an address answers an echo within a second. The error says why none can be sent; that no route
/// leads there is no error. This needs CAP_NET_RAW.
pub(crate) fn ping(to: IpAddr) -> io::Result<bool> {
    let (family, protocol, [request, reply]) = match to {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP, [8, 0]),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6, [128, 129]),
    };
    let socket = socket(family, SocketType::RAW, Some(protocol))?;
    let [.., high, low] = process::id().to_be_bytes();
    let mut echo = [request, 0, 0, 0, high, low, 0, 1];
    let sum = u32::from(request) * 256 + u32::from(u16::from_be_bytes([high, low])) + 1;
    // The kernel computes the checksum of ICMPv6 itself.
    [.., echo[2], echo[3]] = (!((sum & 0xffff) + (sum >> 16))).to_be_bytes();
    let unreachable = |error| match error {
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::INVAL => Ok(false),
        error => Err(error.into()),
    };
    // Only what comes from there is received.
    if let Err(error) = connect(&socket, &SocketAddr::new(to, 0)) {
        return unreachable(error);
    }
    if let Err(error) = send(&socket, &echo, SendFlags::empty()) {
        return unreachable(error);
    }
    let until = Instant::now() + PATIENCE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        set_socket_timeout(&socket, Timeout::Recv, Some(left))?;
        let mut bytes = [0; 128];
        let count = match recv(&socket, &mut bytes, RecvFlags::empty()) {
            Ok((count, _)) => count,
            Err(Errno::AGAIN | Errno::INTR) => continue,
            Err(error) => return unreachable(error),
        };
        // Before ICMP of IPv4 stands the packet's header.
        let header = if to.is_ipv4() { usize::from(bytes[0] & 15) * 4 } else { 0 };
        if let Some([kind, 0, _, _, a, b, ..]) = bytes[..count].get(header..)
            && (*kind, [*a, *b]) == (reply, [high, low])
        {
            return Ok(true);
        }
    }
}
