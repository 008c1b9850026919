//! [`Backlog`]: events that come during a dump.

use super::socket::{Received, Socket};
use crate::error::Error;
use crate::netlink::{Event, Messages, read};
use crate::state::{Origin, State};
use crate::status::Status;

/// The events that came during a dump, as bytes: a twelfth of what the kernel's buffer takes for them.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    bytes: Vec<u8>,
    is_overrun: bool,
}

/// Bytes that a backlog holds at most.
const CAP: usize = 128 << 20;

impl Backlog {
    /// Takes all events that the socket has.
    pub(super) fn take_from(&mut self, events: &mut Socket) -> Result<(), Error> {
        loop {
            match events.receive()? {
                Received::Nothing => return Ok(()),
                Received::Overrun => self.is_overrun = true,
                // What comes after an overrun is of no use: the dump starts again.
                Received::Datagram(_) if self.is_overrun => {}
                Received::Datagram(datagram) => {
                    self.bytes.extend_from_slice(datagram);
                    self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
                    self.is_overrun = self.bytes.len() > CAP;
                }
            }
        }
    }

    /// Whether events are missing.
    pub(super) fn is_overrun(&self) -> bool {
        self.is_overrun
    }

    /// Applies the events to a state.
    pub(super) fn apply_to(&self, state: &mut State, status: &mut Status) {
        apply(&self.bytes, Origin::Backlog, state, status);
    }
}

/// Applies the events of a datagram to a state. Whether the kernel says that it lost some.
pub(super) fn apply(datagram: &[u8], origin: Origin, state: &mut State, status: &mut Status) -> bool {
    let mut lost = false;
    for message in Messages::new(datagram) {
        status.messages += 1;
        match message.and_then(|message| Ok((read(&message)?, message.flags))) {
            Ok((Event::Overrun, _)) => lost = true,
            Ok((event, flags)) => state.apply(event, flags, origin, status),
            Err(fault) => status.skip(fault.into()),
        }
    }
    lost
}
