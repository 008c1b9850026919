//! Requests to the kernel: dumps.

use super::attributes::{AF_INET, AF_INET6};
use super::message::flags;

/// What a dump lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DumpOf {
    Links,
    Addresses,
    Neighbours,
    Rules,
    NextHops,
    RoutesV4,
    RoutesV6,
}

impl DumpOf {
    /// The message type, the family, and the length of the message's fixed part.
    const fn request(self) -> (u16, u8, usize) {
        match self {
            Self::Links => (18, 0, 16),
            Self::Addresses => (22, 0, 8),
            Self::Neighbours => (30, 0, 12),
            Self::Rules => (34, 0, 12),
            Self::NextHops => (106, 0, 8),
            Self::RoutesV4 => (26, AF_INET, 12),
            Self::RoutesV6 => (26, AF_INET6, 12),
        }
    }
}

/// The request of a dump.
pub(crate) fn dump_request(of: DumpOf, sequence: u32) -> Vec<u8> {
    let (kind, family, fixed) = of.request();
    let length = u32::try_from(16 + fixed).expect("at most 32");
    let mut bytes = Vec::with_capacity(16 + fixed);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((flags::REQUEST | flags::DUMP).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.push(family);
    bytes.resize(16 + fixed, 0);
    bytes
}
