//! Elements: type, length, value; numbers of 1, 3, 5 or 9 bytes, always the shortest.

use super::TlvError;

/// One element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element<'b> {
    pub(super) kind: u64,
    pub(super) value: &'b [u8],
    /// The offset of its first byte.
    pub(super) start: usize,
    /// The offset of its value.
    pub(super) body: usize,
}

impl Element<'_> {
    /// The offset of its end.
    pub(super) const fn end(&self) -> usize {
        self.body + self.value.len()
    }
}

/// Reads the element at `offset`.
#[inline]
pub(super) fn element(bytes: &[u8], offset: usize) -> Result<Element<'_>, TlvError> {
    let (kind, at) = number(bytes, offset)?;
    let (length, body) = number(bytes, at)?;
    let left = bytes.len() - body;
    match usize::try_from(length) {
        Ok(length) if length <= left => {
            Ok(Element { kind, value: &bytes[body..body + length], start: offset, body })
        }
        _ => Err(TlvError::Short { offset: body, wanted: length, left }),
    }
}

/// Reads the number at `offset`, which is not past the end. Also returns the offset after it.
#[inline]
fn number(bytes: &[u8], offset: usize) -> Result<(u64, usize), TlvError> {
    match bytes.get(offset) {
        None => Err(TlvError::Short { offset, wanted: 1, left: 0 }),
        Some(&small @ ..=252) => Ok((u64::from(small), offset + 1)),
        Some(&marker) => wide_number(bytes, offset, marker),
    }
}

fn wide_number(bytes: &[u8], offset: usize, marker: u8) -> Result<(u64, usize), TlvError> {
    let (width, least) = match marker {
        253 => (2, 253),
        254 => (4, 1 << 16),
        _ => (8, 1 << 32),
    };
    let start = offset + 1;
    let Some(digits) = bytes.get(start..start + width) else {
        return Err(TlvError::Short { offset: start, wanted: width as u64, left: bytes.len() - start });
    };
    let number = digits.iter().fold(0, |number, &digit| number << 8 | u64::from(digit));
    if number < least {
        return Err(TlvError::NotShortest { offset, number });
    }
    Ok((number, start + width))
}

/// Writes a number.
pub(super) fn write_number(number: u64, out: &mut Vec<u8>) {
    let digits = number.to_be_bytes();
    let width = match number {
        0..=252 => 1,
        253..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    out.extend(match width {
        1 => None,
        2 => Some(253),
        4 => Some(254),
        _ => Some(255),
    });
    out.extend_from_slice(&digits[8 - width..]);
}

/// Writes an element.
pub(super) fn write_element(kind: u64, value: &[u8], out: &mut Vec<u8>) {
    write_number(kind, out);
    write_number(value.len() as u64, out);
    out.extend_from_slice(value);
}
