//! [`Component`]: one component of a name on the wire.

use std::fmt;
use std::num::NonZeroU16;

use super::TlvError;
use super::element::Element;

/// The type of a component: 1 to 65535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentType(NonZeroU16);

impl ComponentType {
    /// The SHA-256 digest of the Data packet, 32 bytes.
    pub const IMPLICIT_SHA256_DIGEST: Self = Self::of(1);
    /// The SHA-256 digest of an Interest's parameters, 32 bytes.
    pub const PARAMETERS_SHA256_DIGEST: Self = Self::of(2);
    /// Any bytes.
    pub const GENERIC: Self = Self::of(8);
    /// A well-known keyword.
    pub const KEYWORD: Self = Self::of(0x20);
    /// The number of a segment.
    pub const SEGMENT: Self = Self::of(0x32);
    /// The offset of a segment's first byte.
    pub const BYTE_OFFSET: Self = Self::of(0x34);
    /// A version.
    pub const VERSION: Self = Self::of(0x36);
    /// Microseconds since 1970.
    pub const TIMESTAMP: Self = Self::of(0x38);
    /// A sequence number.
    pub const SEQUENCE_NUM: Self = Self::of(0x3a);

    const fn of(number: u16) -> Self {
        match NonZeroU16::new(number) {
            Some(number) => Self(number),
            None => panic!("no component has type 0"),
        }
    }

    /// The type with a number. `None` for 0.
    pub fn new(number: u16) -> Option<Self> {
        NonZeroU16::new(number).map(Self)
    }

    /// The number.
    pub const fn number(self) -> u16 {
        self.0.get()
    }

    /// Whether its components are digests, of 32 bytes each.
    pub const fn is_digest(self) -> bool {
        matches!(self.number(), 1 | 2)
    }
}

impl fmt::Display for ComponentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Bytes of a SHA-256 digest.
pub(super) const DIGEST: usize = 32;

/// A component: its type and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Component<'b> {
    kind: ComponentType,
    value: &'b [u8],
}

impl<'b> Component<'b> {
    /// Makes a component. A digest must have 32 bytes.
    pub fn new(kind: ComponentType, value: &'b [u8]) -> Result<Self, TlvError> {
        match kind.is_digest() && value.len() != DIGEST {
            true => Err(TlvError::Digest { offset: 0, found: value.len() }),
            false => Ok(Self { kind, value }),
        }
    }

    /// Makes a generic component.
    pub const fn generic(value: &'b [u8]) -> Self {
        Self { kind: ComponentType::GENERIC, value }
    }

    /// Its type.
    pub const fn kind(&self) -> ComponentType {
        self.kind
    }

    /// Its value.
    pub const fn value(&self) -> &'b [u8] {
        self.value
    }

    /// Its value as a number, if it has the length of a number (NonNegativeInteger: 1, 2, 4 or 8 bytes).
    pub fn number(&self) -> Option<u64> {
        matches!(self.value.len(), 1 | 2 | 4 | 8)
            .then(|| self.value.iter().fold(0, |number, &digit| number << 8 | u64::from(digit)))
    }

    #[inline]
    pub(super) fn of(element: &Element<'b>) -> Result<Self, TlvError> {
        let offset = element.start;
        let kind = u16::try_from(element.kind).ok().and_then(ComponentType::new);
        let kind = kind.ok_or(TlvError::ComponentType { offset, found: element.kind })?;
        Self::new(kind, element.value).map_err(|_| TlvError::Digest { offset, found: element.value.len() })
    }
}
