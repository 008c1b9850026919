//! Level 32: the rest of a lookup under prefixes of more than 24 bits.

use wirespeed_fib::{NextHop, V4};
use wirespeed_image::{Element, Image, SectionId, number};

use super::layout::{B18, C24, LONG, N32, Split, long_element};

/// The next hop where prefixes are longer than 24 bits.
#[cold]
pub(crate) fn lookup_long<S: Split, W: Element>(image: &Image, address: V4) -> NextHop {
    let chunk = chunk_of_32::<S>(image, address);
    NextHop(number(elements::<W>(image, N32)[chunk * LONG + long_element(address)]))
}

pub(super) fn block_of<S: Split>(image: &Image, address: V4) -> usize {
    let slot = S::slot(address);
    match image.width(B18) {
        Some(2) => image.section::<u16>(B18)[slot].into(),
        _ => image.section::<u32>(B18)[slot] as usize,
    }
}

pub(super) fn chunk_of_32<S: Split>(image: &Image, address: V4) -> usize {
    let block = block_of::<S>(image, address);
    image.section::<u32>(C24)[block * S::SHORT + S::short_element(address)] as usize
}

/// The elements of a section of words.
#[inline]
pub(super) fn elements<W: Element>(image: &Image, section: SectionId) -> &[W] {
    bytemuck::cast_slice(image.section::<u64>(section))
}
