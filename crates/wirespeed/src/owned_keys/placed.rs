//! [`Placed`]: keys in memory of their own, or written to a slot of a GPU as they come.

use std::fmt;

use wirespeed_table::Keys;

use super::own::{KeyOf, OwnedKeys};
use crate::gpu::dispatch::Why;
use crate::gpu::in_place::{InPlace, InSlot};
use crate::gpu::offload::{Answers, KeysOf, Offload, RemoteTable, Sent};
use crate::gpu::runtime::Done;

/// Keys in memory of their own; or in a slot of a GPU, if the table's keys [have a
/// form](RemoteTable::write_to) before they are sent. Otherwise they are packed when they are sent.
pub enum Placed<T: RemoteTable, Own> {
    /// Keys in memory of their own.
    Own(Own),
    /// Keys in a slot. The memory of earlier keys is kept.
    InPlace(T::Written, Own),
    /// Keys in a slot that is under way, or has come back.
    Away(<T::Written as InPlace>::Sent, Own),
}

use Placed::{Away, Own};

impl<T: RemoteTable, O: Default> Default for Placed<T, O> {
    fn default() -> Self {
        Own(O::default())
    }
}

impl<T: RemoteTable, O> From<O> for Placed<T, O> {
    fn from(own: O) -> Self {
        Own(own)
    }
}

impl<T: RemoteTable, O: OwnedKeys<T>> Placed<T, O> {
    /// Takes the memory of its own.
    fn take_own(&mut self) -> O {
        match self {
            Own(own) | Self::InPlace(_, own) | Away(_, own) => std::mem::take(own),
        }
    }

    /// Moves the keys out of a slot that has no room for the next one. Returns the memory that has room.
    #[cold]
    fn leave_slot(&mut self) -> &mut O {
        if let Self::InPlace(keys, own) = self {
            let mut own = std::mem::take(own);
            own.copy(keys.keys(), keys.len());
            *self = Own(own);
        }
        match self {
            Own(own) | Self::InPlace(_, own) | Away(_, own) => own,
        }
    }
}

impl<T: RemoteTable, O: OwnedKeys<T>> OwnedKeys<T> for Placed<T, O> {
    #[inline]
    fn keys<'k>(&'k self, done: Option<&'k Done>) -> KeysOf<'k, T> {
        match (self, done) {
            (Own(own), _) => own.keys(done),
            (Self::InPlace(keys, _), _) => keys.keys(),
            (Away(sent, _), Some(done)) => sent.keys(done),
            (Away(..), None) => unreachable!("nobody asks for keys that are under way"),
        }
    }

    #[inline]
    fn count(&self) -> usize {
        match self {
            Own(own) => own.count(),
            Self::InPlace(keys, _) => keys.len(),
            Away(sent, _) => sent.len(),
        }
    }

    fn empty(&mut self) {
        let mut own = self.take_own();
        own.empty();
        *self = Own(own);
    }

    fn make_room(&mut self, keys: usize, offload: Option<&Offload<T>>) {
        let mut own = self.take_own();
        *self = match offload.and_then(|offload| offload.write_to(keys)) {
            Some(slot) => Self::InPlace(slot, own),
            None => {
                own.make_room(keys, offload);
                Own(own)
            }
        };
    }

    #[inline]
    fn add(&mut self, key: KeyOf<'_, T>) -> bool {
        match self {
            Self::InPlace(keys, _) => keys.push(key) || self.leave_slot().add(key),
            Own(own) | Away(_, own) => own.add(key),
        }
    }

    #[inline]
    fn add_all<'k>(&mut self, keys: impl Iterator<Item = KeyOf<'k, T>>, most: usize) -> usize {
        match self {
            Self::InPlace(slot, _) => {
                // By value, because loops over some iterators are made of vector instructions.
                let (count, unfit) = slot.extend(keys, most);
                let Some((key, keys)) = unfit else { return count };
                let own = self.leave_slot();
                if !own.add(key) {
                    return count;
                }
                count + 1 + own.add_all(keys, most - count - 1)
            }
            Own(own) | Away(_, own) => own.add_all(keys, most),
        }
    }

    #[inline]
    fn copy(&mut self, keys: KeysOf<'_, T>, most: usize) -> usize {
        let keys = keys.part(0..keys.len().min(most));
        match self {
            Self::InPlace(slot, _) => match slot.extend_from(keys) {
                all if all == keys.len() => all,
                some => some + self.leave_slot().copy(keys.part(some..keys.len()), most),
            },
            Own(own) | Away(_, own) => own.copy(keys, most),
        }
    }

    fn send<R>(&mut self, offload: &Offload<T>) -> Result<Sent, Why>
    where
        T: Answers<R>,
    {
        match self {
            Own(own) => own.send::<R>(offload),
            Self::InPlace(keys, _) => {
                offload.stays_in_slot(keys.len())?;
                match std::mem::take(self) {
                    Self::InPlace(keys, own) => {
                        let (slot, form, sent) = keys.into_slot();
                        *self = Away(sent, own);
                        Ok(Sent::Slot(offload.send_slot::<R>(slot, form)))
                    }
                    Own(_) | Away(..) => Err(Why::Failed),
                }
            }
            Away(..) => Err(Why::Failed),
        }
    }

    fn is_away(&self) -> bool {
        matches!(self, Away(..))
    }
}

impl<T: RemoteTable, O: fmt::Debug> fmt::Debug for Placed<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Own(own) => f.debug_tuple("Own").field(own).finish(),
            Self::InPlace(keys, _) => f.debug_tuple("InPlace").field(keys).finish(),
            Away(sent, _) => f.debug_tuple("Away").field(sent).finish(),
        }
    }
}
