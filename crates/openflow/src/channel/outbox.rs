//! [`Outbox`]: messages that wait to be sent to a controller, with a bound in bytes.
//!
//! Answers wait for room, so a controller that does not read is not read either. What nobody asked for is
//! lost when there is no room, and counted.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that may wait.
const MOST: usize = 4 << 20;

/// The channel is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed;

#[derive(Debug, Default)]
struct Inside {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
    is_closed: bool,
    lost: u64,
}

/// Messages that wait to be sent.
#[derive(Debug)]
pub(crate) struct Outbox {
    inside: Mutex<Inside>,
    changed: Condvar,
    most: usize,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self::with_bound(MOST)
    }

    /// An outbox that takes this many bytes and one message more.
    pub(crate) fn with_bound(most: usize) -> Self {
        Self { inside: Mutex::default(), changed: Condvar::new(), most }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message once there is room.
    pub(crate) fn push(&self, message: Vec<u8>) -> Result<(), Closed> {
        let mut inside = self.lock();
        while inside.bytes > self.most && !inside.is_closed {
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
        self.add(inside, message)
    }

    /// Adds a message if there is room.
    pub(crate) fn try_push(&self, message: Vec<u8>) -> Result<(), Closed> {
        let mut inside = self.lock();
        if inside.bytes > self.most {
            inside.lost += 1;
            return Ok(());
        }
        self.add(inside, message)
    }

    fn add(&self, mut inside: MutexGuard<'_, Inside>, message: Vec<u8>) -> Result<(), Closed> {
        if inside.is_closed {
            return Err(Closed);
        }
        inside.bytes += message.len();
        inside.messages.push_back(message);
        self.changed.notify_all();
        Ok(())
    }

    /// Takes what waits, at most for a time. `Err` once it is closed and empty.
    pub(crate) fn take(&self, wait: Duration) -> Result<Vec<u8>, Closed> {
        let inside = self.lock();
        let is_waiting = |inside: &mut Inside| inside.messages.is_empty() && !inside.is_closed;
        let (mut inside, _) =
            self.changed.wait_timeout_while(inside, wait, is_waiting).unwrap_or_else(PoisonError::into_inner);
        if inside.messages.is_empty() && inside.is_closed {
            return Err(Closed);
        }
        let bytes: Vec<u8> = inside.messages.drain(..).flatten().collect();
        inside.bytes = 0;
        self.changed.notify_all();
        Ok(bytes)
    }

    /// Refuses all that comes from now on. What waits can still be taken.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// The number of messages that found no room.
    pub(crate) fn lost(&self) -> u64 {
        self.lock().lost
    }
}
