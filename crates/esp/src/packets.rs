//! [`Packets`]: packets that lie somewhere, by number.

/// Packets that lie somewhere, by number. Each begins at its IP header. Several are read at once, and one is
/// written at a time, so that they may lie in the buffers of a router.
pub trait Packets {
    /// The bytes of a packet.
    ///
    /// Panics if there is none.
    fn packet(&self, at: usize) -> &[u8];

    /// The bytes of a packet, to be changed.
    ///
    /// Panics if there is none.
    fn packet_mut(&mut self, at: usize) -> &mut [u8];
}

impl Packets for [Vec<u8>] {
    fn packet(&self, at: usize) -> &[u8] {
        &self[at]
    }

    fn packet_mut(&mut self, at: usize) -> &mut [u8] {
        &mut self[at]
    }
}
