//! [`Frames`]: the frames of FPM: version, type, length in network order with the header, content.

use std::fmt;

/// The length of a header.
const HEADER: usize = 4;

const VERSION: u8 = 1;
const NETLINK: u8 = 1;

/// The contents of frames, as long as whole ones are there. Ends after a violation.
#[derive(Debug)]
pub(super) struct Frames<'a> {
    rest: &'a [u8],
    consumed: usize,
}

/// A header that no sender of version 1 makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Violation {
    Version(u8),
    Kind(u8),
    Length(u16),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "version {version}, but only {VERSION} is known"),
            Self::Kind(kind) => write!(f, "messages of type {kind}, but only {NETLINK}, netlink, is known"),
            Self::Length(length) => write!(f, "a frame of {length} bytes, less than its header"),
        }
    }
}

impl<'a> Frames<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, consumed: 0 }
    }

    /// The bytes of the frames so far.
    pub(super) const fn consumed(&self) -> usize {
        self.consumed
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<&'a [u8], Violation>;

    fn next(&mut self) -> Option<Self::Item> {
        let &[version, kind, high, low] = self.rest.first_chunk::<HEADER>()?;
        let length = u16::from_be_bytes([high, low]);
        let violation = if version != VERSION {
            Some(Violation::Version(version))
        } else if kind != NETLINK {
            Some(Violation::Kind(kind))
        } else if usize::from(length) < HEADER {
            Some(Violation::Length(length))
        } else {
            None
        };
        if let Some(violation) = violation {
            self.rest = &[];
            return Some(Err(violation));
        }
        let (frame, rest) = self.rest.split_at_checked(usize::from(length))?;
        self.rest = rest;
        self.consumed += frame.len();
        Some(Ok(&frame[HEADER..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_when_they_are_whole() {
        let bytes = [1, 1, 0, 6, 7, 8, 1, 1, 0, 4, 1, 1, 0, 5, 9];
        for end in 0..bytes.len() {
            let mut frames = Frames::new(&bytes[..end]);
            let whole: Vec<_> = frames.by_ref().map(Result::unwrap).collect();
            let expected: &[&[u8]] = &[&[7, 8], &[]];
            let count = usize::from(end >= 6) + usize::from(end >= 10);
            assert_eq!((&whole[..], frames.consumed()), (&expected[..count], [0, 6, 10][count]));
        }
    }

    #[test]
    fn wrong_headers_are_told() {
        let violation = |bytes: &[u8]| Frames::new(bytes).next().unwrap().unwrap_err();
        assert_eq!(violation(&[2, 1, 0, 4]), Violation::Version(2));
        assert_eq!(violation(&[1, 2, 0, 4]), Violation::Kind(2));
        assert_eq!(violation(&[1, 1, 0, 3]), Violation::Length(3));
        assert!(Frames::new(&[1, 2, 0]).next().is_none());
    }
}
