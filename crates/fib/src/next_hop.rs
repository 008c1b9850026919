//! Next hops: indexes into the user's own table, and the texts that the indexes stand for.

use std::fmt;

use bytemuck::{Pod, Zeroable};
use rustc_hash::FxHashMap;

/// A next hop: the result of a lookup. Indexes start at 1, in the order in which next hops first appeared; 0
/// is [`NONE`](Self::NONE), no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct NextHop(pub u32);

impl NextHop {
    /// No route. Tables refuse a route with it.
    pub const NONE: Self = Self(0);

    /// Whether there is a next hop.
    #[inline]
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for NextHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The user's next hops by index. A next hop is an address, a number, a word or a group of these, kept as the
/// source's text.
#[derive(Clone, Debug, Default)]
pub struct NextHops {
    // Each text is stored twice: there are thousands of next hops for millions of routes.
    texts: Vec<Box<str>>,
    index: FxHashMap<Box<str>, NextHop>,
}

impl NextHops {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// The index of a next hop. A new next hop gets a new index. O(length).
    pub fn intern(&mut self, text: &str) -> Result<NextHop, TooManyNextHops> {
        if let Some(&known) = self.index.get(text) {
            return Ok(known);
        }
        let new = u32::try_from(self.texts.len() + 1).map(NextHop).map_err(|_| TooManyNextHops)?;
        self.texts.push(text.into());
        self.index.insert(text.into(), new);
        Ok(new)
    }

    /// The index of a next hop. `None` if it was never interned.
    pub fn find(&self, text: &str) -> Option<NextHop> {
        self.index.get(text).copied()
    }

    /// The text of an index. `None` for [`NextHop::NONE`] and for an index that was never given out.
    pub fn text(&self, next_hop: NextHop) -> Option<&str> {
        let index = usize::try_from(next_hop.0).ok()?.checked_sub(1)?;
        self.texts.get(index).map(|text| &**text)
    }

    /// The texts as bytes, for storing beside an image: each text after its length, 4 bytes little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for text in &self.texts {
            // A text is part of a line or of a JSON value, so its length is far below 4 GB.
            let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
            bytes.extend(len.to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes
    }

    /// Reads the bytes of [`to_bytes`](Self::to_bytes). `None` for other bytes.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut hops = Self::new();
        while !bytes.is_empty() {
            let (len, rest) = bytes.split_first_chunk::<4>()?;
            let (text, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*len)).ok()?)?;
            let before = hops.len();
            hops.intern(std::str::from_utf8(text).ok()?).ok()?;
            if hops.len() == before {
                return None;
            }
            bytes = rest;
        }
        Some(hops)
    }

    /// The number of next hops, which is also the largest index.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there are no next hops.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Every index with its text, in order.
    pub fn iter(&self) -> impl Iterator<Item = (NextHop, &str)> {
        (1..).map(NextHop).zip(self.texts.iter().map(|text| &**text))
    }
}

/// More than 2^32 - 1 distinct next hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {} distinct next hops", u32::MAX)]
pub struct TooManyNextHops;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_there_and_back_and_not_from_anything_else() {
        let mut hops = NextHops::new();
        for text in ["192.0.2.1", "via 192.0.2.1\ndev eth0", "", "13335"] {
            hops.intern(text).unwrap();
        }
        let bytes = hops.to_bytes();
        let back = NextHops::from_bytes(&bytes).unwrap();
        assert!(back.iter().eq(hops.iter()));
        assert!(
            (1..bytes.len()).all(|cut| {
                NextHops::from_bytes(&bytes[..cut]).is_none_or(|part| part.len() < hops.len())
            })
        );
        assert!(NextHops::from_bytes(&[bytes.clone(), bytes].concat()).is_none());
        assert!(NextHops::from_bytes(&[1, 0, 0, 0, 0xff]).is_none());
    }

    #[test]
    fn indexes_follow_first_appearance() {
        let mut hops = NextHops::new();
        assert_eq!(hops.intern("192.0.2.1"), Ok(NextHop(1)));
        assert_eq!(hops.intern("13335"), Ok(NextHop(2)));
        assert_eq!(hops.intern("192.0.2.1"), Ok(NextHop(1)));
        assert_eq!(hops.text(NextHop(2)), Some("13335"));
        assert_eq!(hops.text(NextHop::NONE), None);
        assert_eq!(hops.text(NextHop(3)), None);
        assert_eq!(hops.iter().collect::<Vec<_>>(), [(NextHop(1), "192.0.2.1"), (NextHop(2), "13335")]);
    }
}
