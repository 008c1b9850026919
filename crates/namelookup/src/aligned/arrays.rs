//! [`Arrays`]: the control plane's data about slots and states, beside the image.
//!
//! The transitions of a state form a ring, so that the state can be moved. Each state knows the slot of the
//! transition that leads to it, so that this transition can be set. Memory: 16 bytes a slot, 12 a base, and
//! the result.
//!
//! A byte for each slot gives the size of the slot's state. A search for a place that small states can leave
//! tests many slots, almost all in different cache lines. Without this byte it would read the cell of each
//! slot, and of the other slots of its state.

use wirespeed_image::HugeVec;

/// No slot.
pub(super) const NONE: u32 = u32::MAX;
/// What leads to the root's state.
pub(super) const TOP: u32 = u32::MAX - 1;

/// A slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) input: u32,
    /// 0: vacant.
    pub(super) link: u32,
    /// The next transition of the same state.
    next: u32,
    previous: u32,
}

/// A state, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The slot of one of its transitions.
    pub(super) head: u32,
    /// The slot of the transition that leads to it.
    pub(super) incoming: u32,
    /// How many transitions it has.
    pub(super) count: u32,
}

impl Owner {
    /// None.
    pub(super) const NONE: Self = Self::led_to_by(NONE);

    /// A state without transitions yet.
    pub(super) const fn led_to_by(incoming: u32) -> Self {
        Self { head: NONE, incoming, count: 0 }
    }
}

/// How large a state is: the next lower power of two, as a number of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Class(pub(super) u8);

impl Class {
    /// The class of a state of so many transitions; one at least.
    #[allow(clippy::cast_possible_truncation)] // below 64
    pub(super) const fn of(transitions: usize) -> Self {
        Self(transitions.ilog2() as u8)
    }
}

/// All slots and states.
#[derive(Clone, Debug)]
pub(super) struct Arrays {
    pub(super) cells: HugeVec<Cell>,
    pub(super) owners: HugeVec<Owner>,
    pub(super) results: Results,
    /// The class of the state that has each slot; nothing of a slot that is vacant.
    classes: HugeVec<Class>,
}

impl Arrays {
    /// All vacant.
    pub(super) fn new(slots: u32, width: usize) -> Self {
        let slots = slots as usize;
        Self {
            cells: HugeVec::filled(Cell::default(), slots),
            owners: HugeVec::filled(Owner::NONE, slots),
            results: Results { width, bytes: vec![0; slots * width] },
            classes: HugeVec::filled(Class(0), slots),
        }
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> u64 {
        let cells = self.cells.capacity() * size_of::<Cell>() + self.owners.capacity() * size_of::<Owner>();
        (cells + self.results.bytes.capacity() + self.classes.capacity()) as u64
    }

    /// A transition is put in a vacant slot, beside the others of the state in a place.
    pub(super) fn put(&mut self, place: usize, slot: u32, input: u32, link: u32) {
        let head = self.owners[place].head;
        let (previous, next) = if head == NONE { (slot, slot) } else { (head, self.cell(head).next) };
        self.cells[slot as usize] = Cell { input, link, next, previous };
        self.cells[previous as usize].next = slot;
        self.cells[next as usize].previous = slot;
        let owner = &mut self.owners[place];
        owner.head = slot;
        owner.count += 1;
        let count = owner.count as usize;
        self.classes[slot as usize] = Class::of(count);
        if count.is_power_of_two() {
            self.classify(place);
        }
    }

    /// A transition goes; what the slot has still, nobody reads. Whether it was the state's last.
    pub(super) fn take(&mut self, place: usize, slot: u32) -> bool {
        let Cell { next, previous, .. } = self.cell(slot);
        self.cells[slot as usize] = Cell::default();
        let was_last = next == slot;
        if !was_last {
            self.cells[previous as usize].next = next;
            self.cells[next as usize].previous = previous;
        }
        let owner = &mut self.owners[place];
        owner.head = if was_last { NONE } else { next };
        owner.count -= 1;
        if !was_last && (owner.count + 1).is_power_of_two() {
            self.classify(place);
        }
        was_last
    }

    /// Says of all slots of a state how large it is. It does so when it has become twice or half as large:
    /// O(1) a transition.
    fn classify(&mut self, place: usize) {
        let Owner { head, count, .. } = self.owners[place];
        let (class, mut slot) = (Class::of(count as usize), head);
        for _ in 0..count {
            self.classes[slot as usize] = class;
            slot = self.cell(slot).next;
        }
    }

    /// The slots of a state's transitions.
    pub(super) fn ring(&self, place: usize) -> impl Iterator<Item = u32> {
        let head = self.owners[place].head;
        let mut next = head;
        std::iter::from_fn(move || {
            let slot = (next != NONE).then_some(next)?;
            next = Some(self.cell(slot).next).filter(|&next| next != head).unwrap_or(NONE);
            Some(slot)
        })
    }

    /// How large the state is that has a slot.
    #[inline]
    pub(super) fn class(&self, slot: u32) -> Class {
        self.classes[slot as usize]
    }

    /// Whether each state's count is that of its ring, and each of its slots is of its class.
    #[cfg(feature = "conformance")]
    pub(super) fn know_sizes(&self) -> bool {
        (0..self.owners.len()).all(|place| {
            let count = self.owners[place].count as usize;
            self.ring(place).count() == count
                && self.ring(place).all(|slot| self.class(slot) == Class::of(count))
        })
    }

    /// A slot.
    #[inline]
    pub(super) fn cell(&self, slot: u32) -> Cell {
        self.cells[slot as usize]
    }
}

/// The results by slot, as wide as the image's.
#[derive(Clone, Debug)]
pub(super) struct Results {
    pub(super) width: usize,
    pub(super) bytes: Vec<u8>,
}

impl Results {
    /// The largest that there is room for.
    pub(super) const fn most(&self) -> u32 {
        u32::MAX >> (32 - 8 * self.width)
    }

    /// A slot's.
    #[inline]
    pub(super) fn of(&self, slot: u32) -> u32 {
        let mut bytes = [0; 4];
        bytes[..self.width].copy_from_slice(&self.bytes[slot as usize * self.width..][..self.width]);
        u32::from_le_bytes(bytes)
    }

    /// Sets a slot's.
    #[inline]
    pub(super) fn set(&mut self, slot: u32, result: u32) {
        let to = &mut self.bytes[slot as usize * self.width..][..self.width];
        to.copy_from_slice(&result.to_le_bytes()[..self.width]);
    }
}
