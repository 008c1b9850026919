//! Lists of what is free.

/// Takes the last one of a list. A list that is nearly empty gives its memory back: it may have been as long
/// as the set.
#[inline]
pub(crate) fn pop(free: &mut Vec<u32>) -> Option<u32> {
    const LEAST: usize = 64;
    let last = free.pop();
    if free.capacity() > LEAST && free.len() < free.capacity() / 8 {
        free.shrink_to((2 * free.len()).max(LEAST));
    }
    last
}
