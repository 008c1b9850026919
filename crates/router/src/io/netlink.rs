//! [`Netlink`]: requests to the kernel's routing by netlink (`rtnetlink(7)`).

use std::fs::File;
use std::io::{self, Read, Write};

use super::sys::{self, denied};
use crate::Error;

const RTM_NEWLINK: u16 = 16;

const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;

const IFLA_MASTER: u16 = 10;

/// A socket for requests.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: File,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket. This needs no privilege, but the requests do.
    pub(crate) fn open() -> Result<Self, Error> {
        let socket = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)
            .map_err(|cause| Error::port("netlink", "can't open a socket", cause))?;
        Ok(Self { socket: File::from(socket), sequence: 0 })
    }

    /// Makes an interface a member of a VRF.
    pub(crate) fn set_master(&mut self, interface: u32, master: u32) -> Result<(), Error> {
        // Family, padding, type of device, interface, flags, changed flags.
        let mut body = vec![0; 4];
        body.extend(interface.to_ne_bytes());
        body.extend([0; 8]);
        attribute(&mut body, IFLA_MASTER, &master.to_ne_bytes());
        self.request(RTM_NEWLINK, &body)
            .map_err(|cause| denied("netlink", "a device can't join the VRF", "CAP_NET_ADMIN", cause))
    }

    /// Sends a request, and takes the kernel's answer: it is there when the request is sent.
    fn request(&mut self, kind: u16, body: &[u8]) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let length = u32::try_from(16 + body.len()).expect("requests are short");
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend((REQUEST | ACKNOWLEDGE).to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend(0_u32.to_ne_bytes());
        message.extend(body);
        self.socket.write_all(&message)?;
        let mut answer = [0; 4096];
        loop {
            let bytes = self.socket.read(&mut answer)?;
            match acknowledged(&answer[..bytes], self.sequence) {
                None => {}
                Some(0) => return Ok(()),
                Some(error) => return Err(io::Error::from_raw_os_error(error)),
            }
        }
    }
}

/// The error number of an answer, or 0; `None` if it is the answer to another request.
fn acknowledged(answer: &[u8], sequence: u32) -> Option<i32> {
    let word = |at: usize| Some(u32::from_ne_bytes(*answer.get(at..)?.first_chunk()?));
    (word(8)? == sequence).then_some(())?;
    // Header of 16 bytes, then the error as a negative number.
    Some(word(16)?.cast_signed().wrapping_neg())
}

fn attribute(to: &mut Vec<u8>, number: u16, value: &[u8]) {
    let length = u16::try_from(4 + value.len()).expect("values are short");
    to.extend(length.to_ne_bytes());
    to.extend(number.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}
