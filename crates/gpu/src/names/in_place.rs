//! [`InPlace`]: names that are written to a slot of a GPU as they come; [`Sent`]: such names in a slot that
//! was sent.

use std::sync::OnceLock;

use wirespeed_namelookup::{Name, NameBatch, NameDomain, Names};

use super::form::{ALIGN, GROUP, PACKED, Wanted, end_in, group_at, second_of, text, write_end, write_ends};
use crate::in_place::{self, InSlot, forget};
use crate::runtime::{Done, FleetBatch, Form};
use crate::simd;

/// Names in a slot, in the packed form. The slot may have no room for the bytes of as many names as it was
/// taken for, nor for a group of names of 64 KiB.
#[derive(Debug)]
pub struct InPlace {
    slot: FleetBatch,
    /// The most names.
    capacity: usize,
    written: Written,
    /// The start of the group that is being filled.
    group: usize,
    /// The most bytes of all names.
    most: usize,
    read: Read,
}

/// The place of names in a slot.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// The offset of the second part.
    second: usize,
    len: usize,
    /// Bytes of all names.
    text: usize,
}

/// The names in the form that lookups take, once somebody has read them.
type Read = OnceLock<NameBatch>;

/// Names in a slot that is under way, or has come back.
#[derive(Debug)]
pub struct Sent {
    written: Written,
    read: Read,
}

impl InPlace {
    /// Takes a slot for at most `names` names. `None` if the slot holds fewer.
    pub fn new(mut slot: FleetBatch, names: usize) -> Option<Self> {
        let written = Written { second: second_of(names), len: 0, text: 0 };
        let bytes = slot.keys().len();
        let fits = names <= slot.batch().capacity() && written.end() <= bytes;
        // The last bytes are filled up to 16.
        let most = (bytes / ALIGN * ALIGN).saturating_sub(written.second);
        fits.then(|| Self { slot, capacity: names, written, group: 0, most, read: Read::new() })
    }

    /// Whether there is room for names up to this end.
    #[inline]
    const fn has_room(&self, end: usize) -> bool {
        end <= self.most && end - self.group <= u16::MAX as usize
    }
}

impl Written {
    /// The end of the last name, filled up.
    const fn end(self) -> usize {
        self.second + self.text.next_multiple_of(ALIGN)
    }

    /// Reads the names.
    fn names<'r>(self, from: &[u8], read: &'r Read) -> Names<'r> {
        let (places, text) = from.split_at(self.second);
        let batch = read.get_or_init(|| {
            let mut batch = NameBatch::with_capacity(self.len, self.text);
            let mut start = 0;
            for at in 0..self.len {
                let end = end_in(places, at);
                let name = match &text[start..end] {
                    [] => Ok(Name::ROOT),
                    name => Name::new(name),
                };
                batch.push(name.expect("a name was written")).expect("a slot is small");
                start = end;
            }
            batch
        });
        batch.names()
    }
}

impl in_place::InPlace for InPlace {
    type Domain = NameDomain;
    type Sent = Sent;

    #[inline]
    fn push(&mut self, name: &Name) -> bool {
        let Written { second, len, text } = self.written;
        assert!(len < self.capacity, "there is room");
        if len.is_multiple_of(GROUP) {
            self.group = text;
        }
        let end = text + name.len();
        if !self.has_room(end) {
            return false;
        }
        let (places, bytes) = self.slot.batch().keys_mut().split_at_mut(second);
        bytes[text..end].copy_from_slice(name.as_bytes());
        write_end(places, len, self.group, end);
        (self.written.len, self.written.text) = (len + 1, end);
        forget(&mut self.read);
        true
    }

    fn extend_from(&mut self, names: Names<'_>) -> usize {
        assert!(names.len() <= self.capacity - self.written.len, "there is room");
        // To the start of a group, then groups, then those of the last group that have room.
        let begun = (GROUP - self.written.len % GROUP) % GROUP;
        let before = self.push_all(names.part(0..names.len().min(begun)));
        if before < begun {
            return before;
        }
        let done = before + self.write_groups(names.part(before..names.len()));
        done + self.push_all(names.part(done..names.len()))
    }

    fn keys(&self) -> Names<'_> {
        self.written.names(self.slot.keys(), &self.read)
    }

    #[inline]
    fn len(&self) -> usize {
        self.written.len
    }

    fn into_slot(mut self) -> (FleetBatch, Form, Sent) {
        let bytes = self.slot.batch().keys_mut();
        let Written { second, len, text } = self.written;
        bytes[second + text..self.written.end()].fill(0);
        // What lies between the parts crosses the bus, too.
        let near = second_of(len);
        if second - near > text {
            bytes.copy_within(second..self.written.end(), near);
            self.written.second = near;
        }
        let form = Wanted::Results.form(PACKED, len, self.written.second, self.written.end());
        (self.slot, form, Sent { written: self.written, read: self.read })
    }
}

impl InPlace {
    /// Adds names up to one that has no room, and returns how many.
    fn push_all(&mut self, names: Names<'_>) -> usize {
        names.iter().take_while(|name| in_place::InPlace::push(self, name)).count()
    }

    /// Adds names from the start of a group on, and returns how many. It ends at a group of 64 KiB and more,
    /// and at a name that has no room.
    fn write_groups(&mut self, names: Names<'_>) -> usize {
        let Written { second, len, text: start } = self.written;
        let room = self.most - start;
        let fitting = names.ends().partition_point(|&end| (end - names.start()) as usize <= room);
        let batch = self.slot.batch();
        let is_streamed = batch.is_streamed(batch.keys().len() / batch.capacity().max(1) * self.capacity);
        let (places, to) = batch.keys_mut().split_at_mut(second);
        let at = u32::try_from(start).expect("a slot is less than 4 GiB");
        let count = write_ends(names.part(0..fitting), at, &mut places[group_at(len)..]);
        if count == 0 {
            return 0;
        }
        let names = names.part(0..count);
        let bytes = text(names);
        simd::copy(bytes, &mut to[start..start + bytes.len()], is_streamed);
        let last = (count - 1) / GROUP * GROUP;
        self.group = start + text(names.part(0..last)).len();
        (self.written.len, self.written.text) = (len + count, start + bytes.len());
        forget(&mut self.read);
        count
    }
}

impl InSlot for Sent {
    type Domain = NameDomain;

    fn keys<'k>(&'k self, done: &'k Done) -> Names<'k> {
        self.written.names(done.keys(), &self.read)
    }

    fn len(&self) -> usize {
        self.written.len
    }
}
