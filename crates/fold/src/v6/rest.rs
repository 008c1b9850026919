//! A lookup from any step on.

use wirespeed_fib::{NextHop, V6};
use wirespeed_image::{Element, Table, number};

use super::layout::{FoldTableV6, bits};

/// The rest of a lookup, from the chunk of a step on.
#[inline]
pub(super) fn from_step<W: Element>(
    table: &FoldTableV6,
    address: V6,
    first: usize,
    mut chunk: u32,
) -> NextHop {
    let mut found = 0;
    for level in &table.steps[first..] {
        let index = (chunk as usize) << level.stride | bits(address, level.from, level.stride);
        found = number(table.image().at::<W>(level.elements, index));
        match found.checked_sub(table.base) {
            None => break,
            Some(next) => chunk = next,
        }
    }
    NextHop(found)
}
