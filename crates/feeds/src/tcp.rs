//! [`Connection`]: a sender's bytes, as far as they are not read. [`wait`]: for any of several connections.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

use crate::error::Error;

/// Bytes that are read at once, at most.
const CHUNK: usize = 256 << 10;

/// A connection, with the bytes that came and were not consumed.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    pub(crate) from: SocketAddr,
    buffer: Vec<u8>,
    /// The bytes of the buffer that are not consumed.
    start: usize,
    end: usize,
}

impl Connection {
    /// Bytes that came and were not consumed.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Drops the first bytes.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
    }

    /// Takes the bytes, to be given back before the next is read.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        self.buffer.drain(..self.start);
        self.end -= self.start;
        self.start = 0;
        self.buffer.truncate(self.end);
        self.end = 0;
        std::mem::take(&mut self.buffer)
    }

    /// Gives the bytes back, of which the first are consumed.
    pub(crate) fn give_back(&mut self, bytes: Vec<u8>, consumed: usize) {
        self.end = bytes.len();
        self.buffer = bytes;
        self.consume(consumed);
    }

    /// Reads what there is. False at the end of the connection.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        self.buffer.resize(self.end + CHUNK, 0);
        match self.stream.read(&mut self.buffer[self.end..]) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.end += count;
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Starts to listen.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    let failed = |error| Error::Listen { address, error };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// Takes a connection that waits; `None` if none does, or if it is gone again.
pub(crate) fn accept(listener: &TcpListener) -> Option<Connection> {
    let (stream, from) = listener.accept().ok()?;
    stream.set_nonblocking(true).ok()?;
    // A sender that vanished without a word is found out in half a minute. Without these options it lasts
    // longer, and nothing else changes.
    let _ = sockopt::set_socket_keepalive(&stream, true);
    let _ = sockopt::set_tcp_keepidle(&stream, Duration::from_secs(10));
    let _ = sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(5));
    let _ = sockopt::set_tcp_keepcnt(&stream, 4);
    Some(Connection { stream, from, buffer: Vec::new(), start: 0, end: 0 })
}

/// Waits until a connection comes or has bytes, at most as long as `timeout`. Says which of the connections
/// have bytes or ended.
pub(crate) fn wait<'a>(
    listener: &TcpListener,
    connections: impl Iterator<Item = &'a Connection>,
    timeout: Duration,
) -> Vec<bool> {
    let timeout = Timespec::try_from(timeout).unwrap_or_default();
    let mut descriptors = vec![PollFd::new(listener, PollFlags::IN)];
    descriptors.extend(connections.map(|connection| PollFd::new(connection, PollFlags::IN)));
    match poll(&mut descriptors, Some(&timeout)) {
        Ok(_) => descriptors[1..].iter().map(|descriptor| !descriptor.revents().is_empty()).collect(),
        // Interrupted: nothing is known.
        Err(_) => vec![false; descriptors.len() - 1],
    }
}
