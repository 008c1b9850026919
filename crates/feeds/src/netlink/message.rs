//! [`Messages`]: the messages of a datagram or frame.

use super::Fault;
use super::attributes::{u16_at, u32_at};

/// The length of a message's header: length, type, flags, sequence, port.
const HEADER: usize = 16;

/// Message types that are not about routing.
pub(crate) mod kind {
    pub(crate) const ERROR: u16 = 2;
    pub(crate) const DONE: u16 = 3;
    pub(crate) const OVERRUN: u16 = 4;
}

/// Flags of a message.
pub(crate) mod flags {
    /// A request.
    pub(crate) const REQUEST: u16 = 0x1;
    /// The objects changed during the dump, which may have missed some.
    pub(crate) const DUMP_INTERRUPTED: u16 = 0x10;
    /// Asks for all objects; a flag of requests.
    pub(crate) const DUMP: u16 = 0x300;
    /// Makes the object if it is not there; a flag of requests.
    pub(crate) const CREATE: u16 = 0x400;
    /// Says that the object replaced an older one; a flag of notifications.
    pub(crate) const REPLACE: u16 = 0x100;
    /// Says that the object came after those like it; a flag of notifications.
    pub(crate) const APPEND: u16 = 0x800;
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) sequence: u32,
    pub(crate) body: &'a [u8],
}

/// The messages of a datagram or frame, in order. Ends after the first fault.
#[derive(Clone, Debug)]
pub(crate) struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.rest);
        let header = (u32_at(bytes, 0), u16_at(bytes, 4), u16_at(bytes, 6), u32_at(bytes, 8));
        let (Some(length), Some(kind), Some(flags), Some(sequence)) = header else {
            return Some(Err(Fault::Truncated));
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length < HEADER {
            return Some(Err(Fault::Malformed));
        }
        let Some(body) = bytes.get(HEADER..length) else { return Some(Err(Fault::Truncated)) };
        // The padding of the last message may be left out.
        self.rest = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Ok(Message { kind, flags, sequence, body }))
    }
}
