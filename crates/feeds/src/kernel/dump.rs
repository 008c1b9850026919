//! [`dump`]: all objects of a kind, into the state.

use std::io;
use std::time::Duration;

use super::backlog::Backlog;
use super::socket::{Received, Socket};
use crate::error::Error;
use crate::netlink::{DumpOf, Event, Messages, dump_request, flags, read};
use crate::state::{Origin, State};
use crate::status::Status;

/// A dump during which objects changed is made this often.
const ATTEMPTS: u32 = 3;

/// How long the kernel may keep silent in the middle of a dump.
const PATIENCE: Duration = Duration::from_secs(30);

/// Kernels before 5.3 have no next-hop objects.
const EOPNOTSUPP: i32 = 95;

/// The outcome of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dumped {
    Whole,
    /// Objects changed in each attempt, so some may be missing.
    Interrupted,
}

/// Reads all objects of a kind into the state. Takes events meanwhile, so that the kernel's buffer does not
/// overrun. Calls `between` after each datagram.
pub(super) fn dump(
    of: DumpOf,
    requests: &mut Requests,
    backlog: (&mut Socket, &mut Backlog),
    state: &mut State,
    status: &mut Status,
    between: &mut dyn FnMut(&mut State, &mut Status) -> bool,
) -> Result<Dumped, Error> {
    let (events, backlog) = backlog;
    for _ in 0..ATTEMPTS {
        let sequence = requests.ask(of)?;
        let mut is_whole = true;
        loop {
            let Some(end) = requests.read(sequence, &mut is_whole, state, status)? else {
                backlog.take_from(events)?;
                if !between(state, status) {
                    return Ok(Dumped::Interrupted);
                }
                continue;
            };
            match end {
                0 | EOPNOTSUPP => break,
                error => {
                    let error = io::Error::from_raw_os_error(error);
                    return Err(Error::Netlink { action: "dump", error });
                }
            }
        }
        if is_whole {
            return Ok(Dumped::Whole);
        }
    }
    Ok(Dumped::Interrupted)
}

/// The socket of requests.
#[derive(Debug)]
pub(super) struct Requests {
    socket: Socket,
    sequence: u32,
}

impl Requests {
    pub(super) fn open() -> Result<Self, Error> {
        Ok(Self { socket: Socket::for_requests()?, sequence: 0 })
    }

    fn ask(&mut self, of: DumpOf) -> Result<u32, Error> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&dump_request(of, self.sequence))?;
        Ok(self.sequence)
    }

    /// Reads a datagram of the dump. The kernel's error number, or 0, if it is the last one.
    fn read(
        &mut self,
        sequence: u32,
        is_whole: &mut bool,
        state: &mut State,
        status: &mut Status,
    ) -> Result<Option<i32>, Error> {
        self.socket.wait(PATIENCE)?;
        let datagram = match self.socket.receive()? {
            Received::Datagram(datagram) => datagram,
            Received::Overrun => {
                *is_whole = false;
                return Ok(None);
            }
            Received::Nothing => {
                let error = io::ErrorKind::TimedOut.into();
                return Err(Error::Netlink { action: "read a dump", error });
            }
        };
        for message in Messages::new(datagram) {
            status.messages += 1;
            let message = match message {
                Ok(message) if message.sequence == sequence => message,
                // The rest of a dump that was given up.
                Ok(_) => continue,
                Err(fault) => {
                    status.skip(fault.into());
                    continue;
                }
            };
            *is_whole &= message.flags & flags::DUMP_INTERRUPTED == 0;
            match read(&message) {
                Ok(Event::Done(error) | Event::Error(error)) => return Ok(Some(error)),
                Ok(event) => state.apply(event, message.flags, Origin::Dump, status),
                Err(fault) => status.skip(fault.into()),
            }
        }
        Ok(None)
    }
}
