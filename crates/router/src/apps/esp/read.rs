//! [`Read`]: the packets of a chunk.

use wirespeed_esp::Envelope;

/// The packets of a chunk, as they were read.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// The offset of the packet in each frame.
    pub(super) packets: Vec<u16>,
    /// ESP packets, by frame.
    pub(super) envelopes: Vec<(u32, Envelope)>,
    /// Frames with packets that have no ESP for this gateway.
    pub(super) clear: Vec<u32>,
    /// Frames whose sealed packets have to be cut, and the size that the path takes.
    pub(super) long: Vec<(u32, u16)>,
}

impl Read {
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.envelopes.clear();
        self.clear.clear();
        self.long.clear();
    }
}
