//! [`Arrays`]: the next-hop arrays of a table, each distinct one kept once.
//!
//! Neighbouring elements have mostly the same next hop in every FIB, and FIBs of one network differ little,
//! so that few arrays are distinct: of the 9 million elements of 12 variations of the real table of 2026
//! between 72 and 764 thousand, by how much the FIBs differ.

use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};
use wirespeed_fib::NextHop;

/// Distinct arrays of one next hop a FIB, by id, and how many elements have each. Array 0 is no route in any
/// FIB and is not handed out.
#[derive(Clone, Debug)]
pub(super) struct Arrays {
    slots: usize,
    /// One after the other by id.
    next_hops: Vec<NextHop>,
    /// Elements that have each.
    users: Vec<u64>,
    /// The id of an array by its hash. Of two arrays with one hash only one is found again; the other is kept
    /// as often as it is asked for, which costs memory and nothing else.
    ids: FxHashMap<u64, u32>,
    free: Vec<u32>,
    /// Ids end here.
    capacity: usize,
}

/// An array that an element is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) id: u32,
    /// Whether it was not there before.
    pub(super) is_new: bool,
}

impl Arrays {
    pub(super) fn new(slots: usize, capacity: usize) -> Self {
        let (next_hops, users) = (vec![NextHop::NONE; slots], vec![0]);
        Self { slots, next_hops, users, ids: FxHashMap::default(), free: Vec::new(), capacity }
    }

    /// The array of these next hops, for one element more; `None` where there is no more room.
    pub(super) fn take(&mut self, array: &[NextHop]) -> Option<Taken> {
        debug_assert_eq!(array.len(), self.slots);
        let hash = hash(array);
        let known = self.ids.get(&hash).copied();
        if let Some(id) = known.filter(|&id| self.array(id) == array) {
            self.take_again(id);
            return Some(Taken { id, is_new: false });
        }
        let id = match self.free.pop() {
            Some(id) => {
                let at = id as usize * self.slots;
                self.next_hops[at..at + self.slots].copy_from_slice(array);
                self.users[id as usize] = 1;
                id
            }
            None if self.users.len() < self.capacity => {
                let id = u32::try_from(self.users.len()).ok()?;
                self.next_hops.extend_from_slice(array);
                self.users.push(1);
                id
            }
            None => return None,
        };
        self.ids.entry(hash).or_insert(id);
        Some(Taken { id, is_new: true })
    }

    /// An array that is in use, for one element more.
    pub(super) fn take_again(&mut self, id: u32) {
        self.users[id as usize] += 1;
    }

    /// One element less has it.
    pub(super) fn give_back(&mut self, id: u32) {
        let users = &mut self.users[id as usize];
        debug_assert!(*users > 0, "array {id} is given back by who doesn't have it");
        *users -= 1;
        if *users == 0 {
            let hash = hash(self.array(id));
            if self.ids.get(&hash) == Some(&id) {
                self.ids.remove(&hash);
            }
            self.free.push(id);
        }
    }

    /// The next hops of an array.
    pub(super) fn array(&self, id: u32) -> &[NextHop] {
        &self.next_hops[id as usize * self.slots..][..self.slots]
    }

    /// All of them by id, array 0 included.
    pub(super) fn next_hops(&self) -> &[NextHop] {
        &self.next_hops
    }

    /// One past the highest id that was handed out.
    pub(super) fn len(&self) -> usize {
        self.users.len()
    }

    /// Ids stay below this.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Room for ids below this from now on.
    pub(super) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> u64 {
        let ids = self.ids.capacity() * (size_of::<(u64, u32)>() + 1);
        let arrays =
            self.next_hops.capacity() * size_of::<NextHop>() + self.users.capacity() * size_of::<u64>();
        (ids + arrays + self.free.capacity() * size_of::<u32>()) as u64
    }
}

fn hash(array: &[NextHop]) -> u64 {
    let mut hasher = FxHasher::default();
    // As bytes, which is several next hops a step.
    hasher.write(bytemuck::cast_slice(array));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(n: u32) -> [NextHop; 2] {
        [NextHop(n), NextHop(7)]
    }

    #[test]
    fn equal_arrays_are_one_until_the_last_user_is_gone() {
        let mut arrays = Arrays::new(2, 4);
        let taken = |id, is_new| Some(Taken { id, is_new });
        assert_eq!(arrays.take(&array(1)), taken(1, true));
        assert_eq!(arrays.take(&array(2)), taken(2, true));
        assert_eq!(arrays.take(&array(1)), taken(1, false));
        arrays.give_back(1);
        assert_eq!(arrays.take(&array(3)), taken(3, true));
        assert_eq!(arrays.take(&array(4)), None, "1 is still in use");
        arrays.give_back(1);
        assert_eq!(arrays.take(&array(4)), taken(1, true));
        assert_eq!(arrays.take(&array(1)), None);
        assert_eq!((arrays.array(1), arrays.len()), (&array(4)[..], 4));
        arrays.set_capacity(5);
        assert_eq!(arrays.take(&array(1)), taken(4, true));
    }

    #[test]
    fn arrays_of_one_hash_are_told_apart() {
        let mut arrays = Arrays::new(2, 10);
        let first = arrays.take(&array(1)).unwrap().id;
        // As if the hashes were the same.
        arrays.ids.insert(hash(&array(2)), first);
        let second = arrays.take(&array(2)).unwrap();
        assert_eq!((second.is_new, arrays.array(second.id)), (true, &array(2)[..]));
        let third = arrays.take(&array(2)).unwrap();
        assert!(third.is_new && third.id != second.id);
        for id in [second.id, third.id, first] {
            arrays.give_back(id);
        }
        assert_eq!(arrays.free.len(), 3);
    }
}
