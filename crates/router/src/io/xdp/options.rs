//! [`XdpOptions`]: the sizes of a port's rings, and whether the kernel may copy.

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
    /// Whether the worker's calls do the driver's work, in place of interrupts.
    pub busy_poll: Option<BusyPoll>,
}

impl Default for XdpOptions {
    fn default() -> Self {
        Self { receive: 2048, transmit: 2048, fill: 4096, copying: Copying::Auto, busy_poll: None }
    }
}

impl XdpOptions {
    /// Entries of the rings.
    pub(super) fn sizes(&self) -> Sizes {
        let entries = |wanted: u32| wanted.clamp(1, 1 << 20).next_power_of_two();
        Sizes { fill: entries(self.fill), receive: entries(self.receive), transmit: entries(self.transmit) }
    }
}

/// Busy polling: the worker's own calls do the driver's work, on the worker's core, in place of interrupts.
///
/// The driver leaves its interrupts off only where the interface's `napi_defer_hard_irqs` and
/// `gro_flush_timeout`, files under `/sys/class/net/IF`, are not 0. Without them it polls beside interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BusyPoll {
    /// The most time that a call may poll, in microseconds.
    pub microseconds: u32,
    /// Frames that a call handles at most.
    pub budget: u32,
}

impl Default for BusyPoll {
    fn default() -> Self {
        Self { microseconds: 20, budget: 256 }
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

/// Entries of the rings: powers of two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) fill: u32,
    pub(super) receive: u32,
    pub(super) transmit: u32,
}
