//! [`State`] and [`Block`]: what SHA-1 works on.

/// A block of a message.
pub(super) type Block = [u8; 64];

/// The five words of a state.
pub(super) type State = [u32; 5];

/// The state before the first block (FIPS 180-4, 5.3.1).
pub(super) const START: State = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
