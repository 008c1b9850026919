//! [`Link`]: a controller as others see it: its role, what it wants to be told, and its outbox.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::outbox::Outbox;

/// The role of a controller (specification 1.3.5, section 6.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Role {
    Equal = 1,
    Master = 2,
    Slave = 3,
}

/// The kinds of messages that a controller gets unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    PacketIn = 0,
    PortStatus = 1,
    FlowRemoved = 2,
}

/// Reasons by kind and role: of each kind the first mask is for masters and equals, the second for slaves
/// (specification 1.3.5, section 7.3.10, and 6.3.4 for what holds at first).
const MASKS: [u32; 6] = [0b011, 0, 0b111, 0b111, 0b1111, 0];

/// A controller as others see it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) outbox: Outbox,
    role: AtomicU32,
    masks: [AtomicU32; 6],
    /// Whether both sides have greeted.
    is_ready: AtomicBool,
    /// When the last message came, in milliseconds.
    pub(crate) heard: AtomicU64,
}

impl Link {
    pub(crate) fn new(outbox: Outbox) -> Self {
        Self {
            outbox,
            role: AtomicU32::new(Role::Equal as u32),
            masks: MASKS.map(AtomicU32::new),
            is_ready: AtomicBool::new(false),
            heard: AtomicU64::new(0),
        }
    }

    pub(crate) fn role(&self) -> Role {
        match self.role.load(Ordering::Relaxed) {
            2 => Role::Master,
            3 => Role::Slave,
            _ => Role::Equal,
        }
    }

    pub(crate) fn set_role(&self, role: Role) {
        self.role.store(role as u32, Ordering::Relaxed);
    }

    pub(crate) fn masks(&self) -> [u32; 6] {
        std::array::from_fn(|at| self.masks[at].load(Ordering::Relaxed))
    }

    pub(crate) fn set_masks(&self, masks: [u32; 6]) {
        self.masks.iter().zip(masks).for_each(|(known, mask)| known.store(mask, Ordering::Relaxed));
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    pub(crate) fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Release);
    }

    /// Whether it wants a message of a kind, for a reason.
    pub(crate) fn wants(&self, kind: Kind, reason: u8) -> bool {
        let at = kind as usize * 2 + usize::from(self.role() == Role::Slave);
        self.is_ready() && self.masks[at].load(Ordering::Relaxed) & 1 << reason != 0
    }
}

/// All controllers of a switch.
#[derive(Debug, Default)]
pub(crate) struct Links(Mutex<Vec<Arc<Link>>>);

impl Links {
    pub(crate) fn add(&self, link: &Arc<Link>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(link));
    }

    pub(crate) fn remove(&self, link: &Arc<Link>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| !Arc::ptr_eq(known, link));
    }

    /// The controllers of now.
    pub(crate) fn all(&self) -> Vec<Arc<Link>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
