//! [`Content`], the elements of a chunk of any width, and how elements get into an image.

use wirespeed_fib::BuildError;
use wirespeed_image::{Element, Image, SectionId, WORD};

/// The elements of a chunk, as wide as the table has them.
pub(crate) struct Content<const WORDS: usize> {
    width: usize,
    words: [u64; WORDS],
}

impl<const WORDS: usize> Content<WORDS> {
    /// All zero.
    pub(crate) fn new(width: usize) -> Self {
        Self { width, words: [0; WORDS] }
    }

    /// What a piece of a pool holds.
    pub(crate) fn of(width: usize, bytes: &[u8]) -> Self {
        let mut content = Self::new(width);
        content.copy_from(bytes);
        content
    }

    /// Takes what a piece of a pool holds. Both are as wide.
    pub(crate) fn copy_from(&mut self, bytes: &[u8]) {
        bytemuck::cast_slice_mut(&mut self.words)[..bytes.len()].copy_from_slice(bytes);
    }

    /// A content with one value in each element.
    pub(crate) fn all(width: usize, value: u32) -> Self {
        let mut content = Self::new(width);
        for at in 0..WORDS * WORD / 4 {
            content.set(at, value);
        }
        content
    }

    /// The value of all elements, where it is the same.
    pub(crate) fn uniform(&self) -> Option<u32> {
        let bytes = self.bytes();
        // What a shift by one element doesn't change.
        if bytes[self.width..] != bytes[..bytes.len() - self.width] {
            return None;
        }
        let mut value = [0; 4];
        value[..self.width].copy_from_slice(&bytes[..self.width]);
        Some(u32::from_le_bytes(value))
    }

    /// Sets an element; whether it had another value. The value fits: the width was chosen for it, or the
    /// update refused.
    #[inline]
    pub(crate) fn set(&mut self, at: usize, value: u32) -> bool {
        /// Sets an element of a known width, so that this is a load, a comparison and a store.
        fn set<const WIDTH: usize>(bytes: &mut [u8], at: usize, value: u32) -> bool {
            let element: &mut [u8; WIDTH] =
                bytes[at * WIDTH..].first_chunk_mut().expect("an element of a chunk");
            let new: &[u8; WIDTH] =
                &value.to_le_bytes()[..WIDTH].try_into().expect("at most the 4 bytes of a value");
            let other = element != new;
            *element = *new;
            other
        }
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.words);
        match self.width {
            1 => set::<1>(bytes, at, value),
            2 => set::<2>(bytes, at, value),
            _ => set::<4>(bytes, at, value),
        }
    }

    /// The bytes that a pool takes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // As many elements as there is room for of the widest.
        &bytemuck::cast_slice(&self.words)[..WORDS * WORD / 4 * self.width]
    }
}

/// Copies bytes to the front of a section of words.
pub(crate) fn fill_front(words: &mut [u64], bytes: &[u8]) {
    bytemuck::cast_slice_mut::<u64, u8>(words)[..bytes.len()].copy_from_slice(bytes);
}

/// Writes numbers into a section of 2 or 4 bytes an element.
pub(crate) fn put_all(
    image: &mut Image,
    section: SectionId,
    values: impl Iterator<Item = (usize, u32)>,
) -> Result<(), BuildError> {
    fn put<T: Element>(elements: &mut [T], values: impl Iterator<Item = (usize, u32)>) {
        for (at, value) in values {
            elements[at] =
                T::try_from(u64::from(value)).ok().expect("the width was chosen for the largest number");
        }
    }
    match image.width(section) {
        Some(2) => put(image.section_mut::<u16>(section)?, values),
        _ => put(image.section_mut::<u32>(section)?, values),
    }
    Ok(())
}
