//! [`Names`]: many names in one block of memory, for batches of lookups.
//!
//! ```text
//! bytes   /com/parc/www/org/example/net        one after the other
//! ends              13          25   29         where each ends, so that name i is bytes[ends[i - 1]..ends[i]]
//! ```

use crate::name::{Name, NameError};

/// Many names in one block of memory, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Names<'b> {
    bytes: &'b [u8],
    /// The start of the first name.
    start: u32,
    ends: &'b [u32],
}

impl<'b> Names<'b> {
    /// The number of names.
    #[inline]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no names.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The name at an index. Panics if there is none.
    #[inline]
    pub fn name(&self, at: usize) -> &'b Name {
        let start = if at == 0 { self.start } else { self.ends[at - 1] };
        Name::new_unchecked(&self.bytes[start as usize..self.ends[at] as usize])
    }

    /// All names in order.
    pub fn iter(&self) -> impl Iterator<Item = &'b Name> + use<'b> {
        let names = *self;
        (0..names.len()).map(move |at| names.name(at))
    }

    /// The bytes of all names. They may include neighbouring names; [`ends`](Self::ends) count from their
    /// start.
    pub const fn bytes(&self) -> &'b [u8] {
        self.bytes
    }

    /// The start of the first name in [`bytes`](Self::bytes).
    pub const fn start(&self) -> u32 {
        self.start
    }

    /// The end of each name in [`bytes`](Self::bytes).
    pub const fn ends(&self) -> &'b [u32] {
        self.ends
    }

    /// The names of a range. Panics like a slice if the range is past the end.
    #[must_use]
    pub fn part(&self, range: std::ops::Range<usize>) -> Self {
        let start = if range.start == 0 { self.start } else { self.ends[range.start - 1] };
        Self { bytes: self.bytes, start, ends: &self.ends[range] }
    }
}

impl<'b> From<&'b NameBatch> for Names<'b> {
    fn from(batch: &'b NameBatch) -> Self {
        batch.names()
    }
}

/// Many names in one block of memory, which can be filled and reused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameBatch {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl NameBatch {
    /// The most bytes of all names. It is a little less than 32 bits allow, because lookups continue to the
    /// slash after the last byte, and read a few bytes at once.
    pub const MAX_BYTES: usize = u32::MAX as usize - 63;

    /// Makes an empty batch.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new() }
    }

    /// Makes an empty batch with this capacity.
    pub fn with_capacity(names: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(names) }
    }

    /// Adds a name. Fails, and adds nothing, if all names would be over [`MAX_BYTES`](Self::MAX_BYTES).
    pub fn push(&mut self, name: &Name) -> Result<(), NameError> {
        let found = self.bytes.len() + name.len();
        let end = u32::try_from(found).ok().filter(|_| found <= Self::MAX_BYTES);
        let Some(end) = end else {
            return Err(NameError::TooLong { found, limit: Self::MAX_BYTES });
        };
        self.bytes.extend_from_slice(name.as_bytes());
        self.ends.push(end);
        Ok(())
    }

    /// Adds names. Fails, and adds none, if all names would be over [`MAX_BYTES`](Self::MAX_BYTES).
    pub fn push_all(&mut self, names: Names<'_>) -> Result<(), NameError> {
        let Some(&last) = names.ends.last() else { return Ok(()) };
        let bytes = &names.bytes[names.start as usize..last as usize];
        let found = self.bytes.len() + bytes.len();
        if found > Self::MAX_BYTES {
            return Err(NameError::TooLong { found, limit: Self::MAX_BYTES });
        }
        // What is under the limit has 32 bits.
        let start = self.ends.last().copied().unwrap_or(0);
        self.ends.extend(names.ends.iter().map(|&end| start + (end - names.start)));
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// All names.
    pub fn names(&self) -> Names<'_> {
        Names { bytes: &self.bytes, start: 0, ends: &self.ends }
    }

    /// The number of names.
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no names.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Removes all names, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

impl<'n> FromIterator<&'n Name> for NameBatch {
    /// Panics past [`MAX_BYTES`](NameBatch::MAX_BYTES).
    fn from_iter<I: IntoIterator<Item = &'n Name>>(names: I) -> Self {
        let mut batch = Self::new();
        names.into_iter().for_each(|name| batch.push(name).expect("under 4 GiB"));
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MATA's lookups step over the slash that follows the last byte, and count where they are in 32 bits.
    #[test]
    fn what_follows_the_last_byte_has_an_index() {
        assert!(u32::try_from(NameBatch::MAX_BYTES + 4).is_ok());
    }

    #[test]
    fn names_come_back_in_order_and_in_parts() {
        let texts = ["/com/parc/www", "/", "/org/example", "/net"];
        let batch: NameBatch = texts.iter().map(|text| Name::new(text).unwrap()).collect();
        let all: Vec<_> = batch.names().iter().map(ToString::to_string).collect();
        assert_eq!(all, texts);
        let part = batch.names().part(1..3);
        assert_eq!(part.iter().map(ToString::to_string).collect::<Vec<_>>(), texts[1..3]);
        assert_eq!(part.part(1..2).name(0).to_string(), texts[2]);
        let mut more: NameBatch = batch.names().part(3..4).iter().collect();
        more.push_all(part).unwrap();
        more.push_all(part.part(1..1)).unwrap();
        let all: Vec<_> = more.names().iter().map(ToString::to_string).collect();
        assert_eq!(all, [texts[3], texts[1], texts[2]]);
    }
}
