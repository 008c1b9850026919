//! Magic numbers of captures.

/// The type of the first block of a pcapng capture.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;
