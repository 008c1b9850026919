//! [`AddressKeys`]: addresses in memory of their own, or written to a slot of a GPU as they come.

use std::fmt::Debug;

use wirespeed_fib::Address;

use super::{MOST_AHEAD, OwnedKeys};
use crate::gpu::dispatch::Place;
use crate::gpu::ip::{InPlace, Offload, Remote, Sent};
use crate::gpu::runtime::{Done, Ticket};

/// Addresses in memory of their own, or in a slot of a GPU if the [kind](Remote::in_place) of its keys stays.
/// Otherwise they are packed when they are sent.
#[derive(Debug)]
pub enum AddressKeys<A> {
    /// Addresses in memory of their own.
    Own(Vec<A>),
    /// Addresses in a slot. The memory of earlier addresses is kept.
    InPlace(InPlace<A>, Vec<A>),
    /// Addresses in a slot that is under way, or has come back.
    Away(Sent<A>, Vec<A>),
}

use AddressKeys::{Away, Own};

impl<A> Default for AddressKeys<A> {
    fn default() -> Self {
        Own(Vec::new())
    }
}

impl<A: Address> From<Vec<A>> for AddressKeys<A> {
    fn from(own: Vec<A>) -> Self {
        Own(own)
    }
}

impl<A> AddressKeys<A> {
    /// Takes the memory of its own.
    fn take_own(&mut self) -> Vec<A> {
        match self {
            Own(own) | Self::InPlace(_, own) | Away(_, own) => std::mem::take(own),
        }
    }
}

impl<A: Address> OwnedKeys<Remote<A>> for AddressKeys<A> {
    #[inline]
    fn keys<'k>(&'k self, done: Option<&'k Done>) -> &'k [A] {
        match (self, done) {
            (Own(own), _) => own,
            (Self::InPlace(keys, _), _) => keys.keys(),
            (Away(sent, _), Some(done)) => sent.keys(done),
            (Away(..), None) => unreachable!("nobody asks for keys that are under way"),
        }
    }

    #[inline]
    fn count(&self) -> usize {
        match self {
            Own(own) => own.len(),
            Self::InPlace(keys, _) => keys.len(),
            Away(sent, _) => sent.len(),
        }
    }

    fn empty(&mut self) {
        let mut own = self.take_own();
        own.clear();
        *self = Own(own);
    }

    fn make_room(&mut self, keys: usize, offload: Option<&Offload<A>>) {
        let mut own = self.take_own();
        let slot = offload.and_then(|offload| {
            let kind = offload.remote().in_place()?;
            InPlace::new(offload.lend(keys)?, kind, keys).ok()
        });
        *self = match slot {
            Some(slot) => Self::InPlace(slot, own),
            None => {
                own.reserve(keys.min(MOST_AHEAD));
                Own(own)
            }
        };
    }

    #[inline]
    fn add(&mut self, key: A) -> bool {
        match self {
            Self::InPlace(keys, _) => keys.push(key),
            Own(own) | Away(_, own) => own.push(key),
        }
        true
    }

    #[inline]
    fn add_all<'k>(&mut self, addresses: impl Iterator<Item = A::Key<'k>>, most: usize) -> usize {
        match self {
            Self::InPlace(keys, _) => keys.extend(addresses, most),
            Own(own) | Away(_, own) => {
                let before = own.len();
                own.extend(addresses.take(most));
                own.len() - before
            }
        }
    }

    #[inline]
    fn copy(&mut self, addresses: &[A], most: usize) -> usize {
        let addresses = &addresses[..addresses.len().min(most)];
        match self {
            Self::InPlace(keys, _) => keys.extend_from(addresses),
            Own(own) | Away(_, own) => own.extend_from_slice(addresses),
        }
        addresses.len()
    }

    fn send(&mut self, offload: &Offload<A>) -> Option<Ticket> {
        match self {
            Own(own) => offload.try_send(own),
            Self::InPlace(keys, _) if offload.place_in_slot(keys.len()) == Place::Gpu => {
                match std::mem::take(self) {
                    Self::InPlace(keys, own) => {
                        let (slot, form, sent) = keys.into_slot();
                        *self = Away(sent, own);
                        Some(offload.send_slot(slot, form))
                    }
                    Own(_) | Away(..) => None,
                }
            }
            Self::InPlace(..) | Away(..) => None,
        }
    }

    fn is_away(&self) -> bool {
        matches!(self, Away(..))
    }
}
