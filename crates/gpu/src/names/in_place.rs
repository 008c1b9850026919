//! [`InPlace`]: names that are written to a slot of a GPU as they come; [`Sent`]: such names in a slot that
//! was sent.

use std::sync::OnceLock;

use wirespeed_namelookup::{Name, NameBatch, NameDomain, Names};

use super::form::{ALIGN, GROUP, PACKED, Wanted, end_in, second_of, text, write_end};
use crate::in_place::{self, InSlot, forget};
use crate::runtime::{Done, FleetBatch, Form};

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
        let fits = names <= slot.batch().capacity() && written.end() <= slot.batch().keys_mut().len();
        // The last bytes are filled up to 16.
        let most = (slot.batch().keys_mut().len() / ALIGN * ALIGN).saturating_sub(written.second);
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
        let mut done = 0;
        while done < names.len() {
            // To the end of a group.
            let len = self.written.len;
            let part = names.part(done..names.len().min(done + GROUP - len % GROUP));
            if !self.write_part(part) {
                // Of the last group some may fit.
                return done + part.iter().take_while(|name| self.push(name)).count();
            }
            done += part.len();
        }
        done
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
    /// Writes names of one group. Returns `false`, and writes none, if not all have room.
    fn write_part(&mut self, names: Names<'_>) -> bool {
        let Written { second, len, text: start } = self.written;
        if len.is_multiple_of(GROUP) {
            self.group = start;
        }
        let bytes = text(names);
        let end = start + bytes.len();
        if !self.has_room(end) {
            return false;
        }
        let (places, to) = self.slot.batch().keys_mut().split_at_mut(second);
        to[start..end].copy_from_slice(bytes);
        for (&end, at) in names.ends().iter().zip(len..) {
            write_end(places, at, self.group, start + (end - names.start()) as usize);
        }
        (self.written.len, self.written.text) = (len + names.len(), end);
        forget(&mut self.read);
        true
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
