//! [`InPlace`]: tuples that are written to a slot of a GPU as they come; [`Sent`]: such tuples in a slot that
//! was sent.

use std::sync::OnceLock;

use wirespeed_classify::Tuple;

use super::form::{GROUP, Lanes, kind};
use crate::in_place::{self, InSlot, forget};
use crate::runtime::{Done, FleetBatch, Form};

/// Tuples in a slot, as structures of arrays.
///
/// They come by slices, and a group is written when it is full. A batch that begins with a single tuple has
/// no room here: a core that writes few lines at a time waits for each, and takes less time to pack all of
/// them from memory of their own.
#[derive(Debug)]
pub struct InPlace<T> {
    slot: FleetBatch,
    kind: &'static str,
    lanes: Lanes<T>,
    len: usize,
    /// The last tuples, which are not in the slot yet.
    last: [T; GROUP],
    /// Bytes of a result.
    result_bytes: usize,
    read: Read<T>,
}

/// The tuples, once somebody has read them.
type Read<T> = OnceLock<Vec<T>>;

/// Tuples in a slot that is under way, or has come back.
#[derive(Debug)]
pub struct Sent<T> {
    lanes: Lanes<T>,
    len: usize,
    read: Read<T>,
}

impl<T: Tuple> InPlace<T> {
    /// Takes a slot for at most `tuples` tuples, with results of `result_bytes` bytes. `None` if the slot
    /// holds fewer, or if no kernel takes such tuples.
    pub fn new(mut slot: FleetBatch, tuples: usize, result_bytes: usize) -> Option<Self> {
        let (kind, lanes) = (kind::<T>()?, Lanes::new(tuples));
        let fits = tuples <= slot.batch().capacity() && lanes.bytes() <= slot.batch().keys_mut().len();
        fits.then(|| Self {
            slot,
            kind,
            lanes,
            len: 0,
            last: [T::default(); GROUP],
            result_bytes,
            read: Read::new(),
        })
    }

    /// The number of tuples in the slot.
    const fn written(&self) -> usize {
        self.len - self.len % GROUP
    }

    /// Writes the last tuples to the slot.
    fn write_last(&mut self, from: usize, count: usize) {
        self.lanes.write_all(self.slot.batch().keys_mut(), from, &self.last[..count]);
    }

    /// Adds a tuple. Panics if there is no room.
    #[inline]
    fn add(&mut self, tuple: &T) {
        assert!(self.len < self.lanes.capacity(), "there is room");
        self.last[self.len % GROUP] = *tuple;
        self.len += 1;
        if self.len.is_multiple_of(GROUP) {
            self.write_last(self.len - GROUP, GROUP);
        }
        forget(&mut self.read);
    }
}

impl<T: Tuple> in_place::InPlace for InPlace<T> {
    type Domain = T;
    type Sent = Sent<T>;

    #[inline]
    fn push(&mut self, tuple: &T) -> bool {
        if self.len == 0 {
            return false;
        }
        self.add(tuple);
        true
    }

    fn extend_from(&mut self, tuples: &[T]) -> usize {
        assert!(tuples.len() <= self.lanes.capacity() - self.len, "there is room");
        let to_full = self.len.wrapping_neg() % GROUP;
        let (head, rest) = tuples.split_at(tuples.len().min(to_full));
        head.iter().for_each(|tuple| self.add(tuple));
        let (groups, last) = rest.split_at(rest.len() - rest.len() % GROUP);
        self.lanes.write_all(self.slot.batch().keys_mut(), self.len, groups);
        self.len += groups.len();
        last.iter().for_each(|tuple| self.add(tuple));
        forget(&mut self.read);
        tuples.len()
    }

    fn keys(&self) -> &[T] {
        self.read.get_or_init(|| {
            let mut tuples = self.lanes.read(self.slot.keys(), self.written());
            tuples.extend_from_slice(&self.last[..self.len % GROUP]);
            tuples
        })
    }

    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    fn into_slot(mut self) -> (FleetBatch, Form, Sent<T>) {
        self.write_last(self.written(), self.len % GROUP);
        // Tails lie behind the last group, which a batch that is not full has earlier.
        let lanes = self.lanes.shortened(self.slot.batch().keys_mut(), self.len);
        let form = Form::parts(self.kind, self.len, lanes.second(), lanes.bytes());
        (self.slot, form.with_results_of(self.result_bytes), Sent { lanes, len: self.len, read: self.read })
    }
}

impl<T: Tuple> InSlot for Sent<T> {
    type Domain = T;

    fn keys<'k>(&'k self, done: &'k Done) -> &'k [T] {
        self.read.get_or_init(|| self.lanes.read(done.keys(), self.len))
    }

    fn len(&self) -> usize {
        self.len
    }
}
