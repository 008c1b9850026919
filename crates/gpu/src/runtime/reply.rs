//! [`Reply`]: the place where a slot waits for the holder of its ticket.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use super::locked;
use super::slot::Slot;

/// A slot's way back from the owner. It belongs to the slot and serves one batch after another.
#[derive(Default)]
pub(super) struct Reply {
    /// Whether the state is `Came`. It is polled without the lock.
    is_there: AtomicBool,
    state: Mutex<State>,
    came: Condvar,
}

#[derive(Default)]
enum State {
    #[default]
    UnderWay,
    /// The slot comes later, and a thread sleeps until then.
    Awaited,
    Came(Box<Slot>),
    /// The ticket was dropped.
    Unwanted,
}

impl Reply {
    /// Hands over a slot that is done. Returns it if the ticket was dropped.
    pub(super) fn complete(&self, slot: Box<Slot>) -> Option<Box<Slot>> {
        let mut state = locked(&self.state);
        let was = std::mem::take(&mut *state);
        if matches!(was, State::Unwanted) {
            return Some(slot);
        }
        *state = State::Came(slot);
        self.is_there.store(true, Ordering::Release);
        drop(state);
        if matches!(was, State::Awaited) {
            self.came.notify_one();
        }
        None
    }

    /// Whether the slot is there.
    pub(super) fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Acquire)
    }

    /// Takes the slot if it is there.
    pub(super) fn try_take(&self) -> Option<Box<Slot>> {
        if !self.is_there() {
            return None;
        }
        self.taken(&mut locked(&self.state))
    }

    /// Waits for the slot, polling for a while at first. `None` if the deadline comes first.
    pub(super) fn take(&self, spin: Duration, deadline: Option<Instant>) -> Option<Box<Slot>> {
        let began = Instant::now();
        while began.elapsed() < spin {
            if let Some(slot) = self.try_take() {
                return Some(slot);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return None;
            }
            // Reading the clock is pause enough; the pause instruction may cost a virtual machine an exit.
        }
        let mut state = locked(&self.state);
        loop {
            if let Some(slot) = self.taken(&mut state) {
                return Some(slot);
            }
            *state = State::Awaited;
            let left = match deadline {
                None => Duration::from_secs(3600),
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
            };
            if left.is_zero() {
                *state = State::UnderWay;
                return None;
            }
            state = self.came.wait_timeout(state, left).unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    /// Says that nobody will take the slot. Returns the slot if it has come.
    pub(super) fn abandon(&self) -> Option<Box<Slot>> {
        let mut state = locked(&self.state);
        let slot = self.taken(&mut state);
        if slot.is_none() {
            *state = State::Unwanted;
        }
        slot
    }

    fn taken(&self, state: &mut State) -> Option<Box<Slot>> {
        if !matches!(state, State::Came(_)) {
            return None;
        }
        self.is_there.store(false, Ordering::Relaxed);
        match std::mem::take(state) {
            State::Came(slot) => Some(slot),
            _ => None,
        }
    }
}
