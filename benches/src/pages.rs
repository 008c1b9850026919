//! [`Huge`]: a slice in huge pages, for keys.
//!
//! Network software keeps its packets in huge pages. With small ones the walk through millions of 16-byte
//! keys costs every table TLB misses that have nothing to do with it, and the faster the table the larger
//! their share.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use anyhow::Result;
use bytemuck::Pod;
use memmap2::{Advice, Mmap, MmapMut};

const PAGE: usize = 2 << 20;

/// Values that don't change, in huge pages where the system has them.
#[derive(Clone, Debug)]
pub struct Huge<T> {
    map: Arc<Mmap>,
    start: usize,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Pod> Huge<T> {
    /// A copy.
    pub fn copy(values: &[T]) -> Result<Self> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let mut map = MmapMut::map_anon(bytes.len().next_multiple_of(PAGE) + PAGE)?;
        #[cfg(target_os = "linux")]
        let _ = map.advise(Advice::HugePage);
        let start = map.as_ptr().align_offset(PAGE);
        map[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(Self { map: Arc::new(map.make_read_only()?), start, len: bytes.len(), of: PhantomData })
    }
}

impl<T: Pod> Deref for Huge<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.map[self.start..self.start + self.len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_copied() {
        let values: Vec<u128> = (0..1000).map(|at| at << 90 | at).collect();
        assert_eq!(*Huge::copy(&values).expect("there is memory"), values[..]);
        assert!(Huge::<u32>::copy(&[]).expect("there is memory").is_empty());
    }
}
