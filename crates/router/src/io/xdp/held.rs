//! [`Held`]: the buffers that a port has given to the kernel.

use crate::{Frame, Memory};

/// A set of buffers, which the kernel has. Each buffer that the kernel gives back is held against it, so that
/// a fault there can't make two frames of one buffer.
#[derive(Debug)]
pub(super) struct Held {
    words: Vec<u64>,
    count: usize,
}

impl Held {
    /// An empty set for this many buffers.
    pub(super) fn new(buffers: u32) -> Self {
        Self { words: vec![0; buffers.div_ceil(64) as usize], count: 0 }
    }

    /// The number of buffers.
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// Puts the buffer of a frame in: its number.
    pub(super) fn put(&mut self, frame: Frame) -> u32 {
        let buffer = frame.into_buffer();
        self.words[buffer as usize / 64] |= 1 << (buffer % 64);
        self.count += 1;
        buffer
    }

    /// Takes a buffer out: the frame at this place of the memory. `None` if the set doesn't have its buffer.
    pub(super) fn take(&mut self, memory: &Memory, address: u64, len: u32) -> Option<Frame> {
        let frame = memory.frame_at(address, len)?;
        let buffer = frame.buffer();
        let word = self.words.get_mut(buffer as usize / 64)?;
        let bit = 1 << (buffer % 64);
        if *word & bit == 0 {
            let _: u32 = frame.into_buffer();
            return None;
        }
        *word &= !bit;
        self.count -= 1;
        Some(frame)
    }

    /// Gives all buffers to the memory.
    pub(super) fn give_all(&mut self, memory: &mut Memory) {
        let stride = u64::from(memory.stride());
        for at in 0..self.words.len() {
            while self.words[at] != 0 {
                let buffer = at as u64 * 64 + u64::from(self.words[at].trailing_zeros());
                let frame = self.take(memory, buffer * stride, 0);
                memory.give(frame.expect("a buffer of the memory that the set has"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_once() {
        let mut memory = Memory::new(100).expect("memory");
        let mut held = Held::new(100);
        let buffers: Vec<u32> = (0..70).map(|_| held.put(memory.take().expect("a buffer"))).collect();
        assert_eq!((held.len(), memory.free()), (70, 30));
        let address = u64::from(buffers[66]) * 2048 + 300;
        let frame = held.take(&memory, address, 60).expect("a buffer that is held");
        assert_eq!((frame.buffer(), frame.len(), frame.head_room()), (buffers[66], 60, 300));
        assert_eq!(held.take(&memory, address, 60), None);
        assert_eq!(held.take(&memory, 100 * 2048, 60), None);
        assert_eq!(held.take(&memory, 99 * 2048, 60), None);
        memory.give(frame);
        held.give_all(&mut memory);
        assert_eq!((held.len(), memory.free()), (0, 100));
    }
}
