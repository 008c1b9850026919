//! [`Places`]: the packets of a chunk, where they lie in the worker's memory.

use wirespeed_esp::Packets;

use crate::{Frame, Memory};

/// The packets of a chunk, by the number of the frame.
pub(super) struct Places<'m> {
    pub(super) frames: &'m [Frame],
    /// The offset of the packet in each frame.
    pub(super) packets: &'m [u16],
    pub(super) memory: &'m mut Memory,
}

impl Packets for Places<'_> {
    #[inline]
    fn packet(&self, at: usize) -> &[u8] {
        &self.memory.bytes(&self.frames[at])[self.packets[at].into()..]
    }

    #[inline]
    fn packet_mut(&mut self, at: usize) -> &mut [u8] {
        &mut self.memory.bytes_mut(&self.frames[at])[self.packets[at].into()..]
    }
}
