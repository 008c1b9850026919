//! [`Secret`]: bytes of a key, which are overwritten when they are dropped, and are never printed.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Bytes of a key. They are overwritten when this is dropped, and `Debug` tells their number alone.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes the bytes of a key.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Reads hexadecimal digits, two for each byte, behind `0x`. `None` for other text.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?.as_bytes();
        if !digits.len().is_multiple_of(2) {
            return None;
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(digits.len() / 2));
        for pair in digits.chunks_exact(2) {
            let of = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
            bytes.push(of(pair[0])? << 4 | of(pair[1])?);
        }
        Some(Self(bytes))
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Secret {
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes.to_vec())
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_not_told() {
        let key = Secret::from_hex("0x00ffA5").unwrap();
        assert_eq!(key, Secret::from(&[0, 0xff, 0xa5][..]));
        assert_eq!(format!("{key:?}"), "Secret(3 bytes)");
        for bad in ["", "00ff", "0x0", "0x0g", "0xé"] {
            assert_eq!(Secret::from_hex(bad), None, "{bad}");
        }
    }
}
