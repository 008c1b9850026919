//! [`Element`]: the element types of sections.

use bytemuck::Pod;

/// An unsigned integer type of a section's elements.
pub trait Element: Pod + Ord + Into<u64> + TryFrom<u64> + Send + Sync {}

impl Element for u8 {}
impl Element for u16 {}
impl Element for u32 {}
impl Element for u64 {}

/// Converts an element that lookups read to an integer of 32 bits. Wider values don't occur.
#[inline]
#[allow(clippy::cast_possible_truncation)]
pub fn number<T: Element>(element: T) -> u32 {
    let wide: u64 = element.into();
    wide as u32
}

/// The bytes of the narrowest element that holds a value, for
/// [`ImageBuilder::section_of_width`](super::ImageBuilder::section_of_width).
pub const fn width_for(value: u64) -> usize {
    match value {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}
