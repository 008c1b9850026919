//! [`XdpOptions`]: the sizes of a port's rings, and whether the kernel may copy.

use super::socket::Sizes;

/// Options of a port of AF_XDP.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct XdpOptions {
    /// Frames that fit the ring of received ones: rounded up to a power of two.
    pub receive: u32,
    /// Frames that fit the ring of those to send.
    pub transmit: u32,
    /// Empty buffers that wait for frames. A driver without copies needs as many as its own ring has, and
    /// those of the ring of received frames.
    pub fill: u32,
    /// Whether the kernel may copy frames.
    pub copying: Copying,
}

impl Default for XdpOptions {
    fn default() -> Self {
        Self { receive: 2048, transmit: 2048, fill: 4096, copying: Copying::Auto }
    }
}

impl XdpOptions {
    /// Entries of the rings.
    pub(super) fn sizes(&self) -> Sizes {
        let entries = |wanted: u32| wanted.clamp(1, 1 << 20).next_power_of_two();
        Sizes { fill: entries(self.fill), receive: entries(self.receive), transmit: entries(self.transmit) }
    }
}

/// Copies between the kernel's frames and the worker's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copying {
    /// None where the driver can do without.
    #[default]
    Auto,
    /// None: an error where the driver can't.
    Never,
    /// One for each frame in and one for each frame out, by the kernel.
    Always,
}
