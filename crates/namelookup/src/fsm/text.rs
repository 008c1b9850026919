//! The text of a name for the machine: without its first slash and with a slash at the end, in steps of up to
//! `d` bytes, with a slash only at the end of a step (section 2.3; footnote 7).
//!
//! ```text
//! /com/parc/www  ──►  com/parc/www/  ──►  com/ parc / www/                        d = 4
//! a step's bytes, little-endian, zeros after them, are its input number: 0x2f6d6f63 0x63726170 0x2f 0x2f777777
//! ```
//!
//! Different bytes give different numbers: a step of fewer than `d` bytes ends with a slash, which occurs
//! nowhere else.

use crate::name::{Name, SLASH};
use crate::table::Node;

/// The most bytes of a step, the paper's d: 1 to 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride(u8);

impl Stride {
    /// One byte a step.
    pub const ONE: Self = Self(1);
    /// Four bytes a step.
    pub const FOUR: Self = Self(4);

    /// Makes a stride of 1 to 4 bytes.
    pub const fn new(bytes: u8) -> Option<Self> {
        if matches!(bytes, 1..=4) { Some(Self(bytes)) } else { None }
    }

    /// The number of bytes.
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// The number of input numbers.
    pub const fn inputs(self) -> u64 {
        1 << (8 * self.0)
    }
}

/// A step of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its bytes as a number.
    pub input: u32,
    /// The length of the name up to the step's end, if a component ends there.
    pub end: usize,
}

/// The steps of a name.
pub fn chunks(name: &Name, stride: Stride) -> impl Iterator<Item = Chunk> {
    let text = name.as_bytes().get(1..);
    let mut at = 0;
    std::iter::from_fn(move || {
        let text = text.filter(|text| at <= text.len())?;
        let (input, end) = chunk(text, at, stride);
        at = end;
        Some(Chunk { input, end })
    })
}

/// The step at a position of a text that a slash follows, and the position of the next step, which is past
/// the text if there is none.
#[inline]
pub(crate) fn chunk(text: &[u8], at: usize, stride: Stride) -> (u32, usize) {
    let rest = &text[at..];
    let raw = match rest.first_chunk::<4>() {
        Some(&bytes) => u32::from_le_bytes(bytes),
        None => {
            let mut bytes = [0; 4];
            bytes[..rest.len()].copy_from_slice(rest);
            bytes[rest.len()] = SLASH;
            u32::from_le_bytes(bytes)
        }
    };
    let (input, len) = cut(raw, stride);
    (input, at + len as usize)
}

/// The bytes of four that belong to the first step, and their number.
#[inline]
pub(crate) const fn cut(raw: u32, stride: Stride) -> (u32, u32) {
    const ONES: u32 = 0x0101_0101;
    let other = raw ^ (ONES * SLASH as u32);
    // The lowest set bit belongs to the first slash.
    let slashes = other.wrapping_sub(ONES) & !other & (ONES << 7);
    let first = slashes.trailing_zeros() / 8 + 1;
    let len = if first < stride.0 as u32 { first } else { stride.0 as u32 };
    (raw & (u32::MAX >> (32 - 8 * len)), len)
}

/// The number of bytes in a step's number.
#[inline]
pub(crate) const fn bytes_of(input: u32, stride: Stride) -> u32 {
    cut(input, stride).1
}

/// Appends the text of a node's name, with its last slash.
pub(crate) fn write_text(node: Node<'_>, text: &mut Vec<u8>) {
    let up = || std::iter::successors(Some(node), Node::parent).filter(|node| node.parent().is_some());
    let len: usize = up().map(|node| node.component().len() + 1).sum();
    let mut end = text.len() + len;
    text.resize(end, SLASH);
    for node in up() {
        let component = node.component();
        end -= 1;
        text[end - component.len()..end].copy_from_slice(component);
        end -= component.len();
    }
}
