//! Components as text: `value`, `type=value`, `sha256digest=…`.

use super::component::{Component, ComponentType, DIGEST};
use crate::name::SLASH;

/// The reason why a text is no NDN URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UriError {
    /// No slash at the start, after the scheme if there is one.
    #[error("an NDN name starts with a slash")]
    NoSlash,
    /// Two slashes in a row.
    #[error("a component is empty (write ... for an empty one)")]
    EmptyComponent,
    /// One or two periods alone, which would be a relative URI.
    #[error("a component of {0} periods is not valid")]
    Periods(usize),
    /// A percent sign without two hexadecimal digits.
    #[error("a % without two hexadecimal digits")]
    Percent,
    /// The text before `=` is neither a type from 1 to 65535 nor a known word.
    #[error("not a type of component before =")]
    Type,
    /// A digest that does not have 32 bytes, or 64 hexadecimal digits.
    #[error("not a digest of 32 bytes")]
    Digest,
    /// The text after `seg=` and similar words is not a decimal number of 64 bits.
    #[error("not a number after =")]
    Number,
}

const SHA256: &str = "sha256digest";
const PARAMETERS: &str = "params-sha256";

/// Types whose values are numbers, by their words.
const NUMBERS: [(&str, ComponentType); 5] = [
    ("seg", ComponentType::SEGMENT),
    ("off", ComponentType::BYTE_OFFSET),
    ("v", ComponentType::VERSION),
    ("t", ComponentType::TIMESTAMP),
    ("seq", ComponentType::SEQUENCE_NUM),
];

/// Writes a component in its canonical form.
pub(super) fn write_component(component: &Component<'_>, out: &mut Vec<u8>) {
    match component.kind() {
        ComponentType::GENERIC => write_value(component.value(), out),
        ComponentType::IMPLICIT_SHA256_DIGEST => write_digest(SHA256, component.value(), out),
        ComponentType::PARAMETERS_SHA256_DIGEST => write_digest(PARAMETERS, component.value(), out),
        kind => {
            out.extend_from_slice(format!("{kind}=").as_bytes());
            write_value(component.value(), out);
        }
    }
}

fn write_digest(word: &str, digest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(word.as_bytes());
    out.push(b'=');
    digest.iter().for_each(|&b| out.extend_from_slice(&hex(b, b"0123456789abcdef")));
}

fn write_value(value: &[u8], out: &mut Vec<u8>) {
    if value.iter().all(|&b| b == b'.') {
        out.extend_from_slice(b"...");
    }
    for &b in value {
        match UNRESERVED[usize::from(b)] {
            true => out.push(b),
            false => {
                out.push(b'%');
                out.extend_from_slice(&hex(b, b"0123456789ABCDEF"));
            }
        }
    }
}

fn hex(b: u8, digits: &[u8; 16]) -> [u8; 2] {
    [digits[usize::from(b >> 4)], digits[usize::from(b & 15)]]
}

/// Bytes that are not percent-encoded (RFC 3986, 2.3).
const UNRESERVED: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0u8;
    while b < 128 {
        table[b as usize] = b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
        b += 1;
    }
    table
};

/// The path of a URI, from its first slash on.
pub(super) fn path(uri: &[u8]) -> Result<&[u8], UriError> {
    let path = match uri.strip_prefix(b"ndn:") {
        None => uri,
        Some(rest) => match rest.strip_prefix(b"//") {
            None => rest,
            // An authority without a path means the root.
            Some(rest) => rest.iter().position(|&b| b == SLASH).map_or(&b"/"[..], |at| &rest[at..]),
        },
    };
    if path.first() == Some(&SLASH) { Ok(path) } else { Err(UriError::NoSlash) }
}

/// Reads a component, its value into `value`.
pub(super) fn read_component(text: &[u8], value: &mut Vec<u8>) -> Result<ComponentType, UriError> {
    let Some(equals) = text.iter().position(|&b| b == b'=') else {
        read_value(text, value)?;
        return Ok(ComponentType::GENERIC);
    };
    let (word, text) = (&text[..equals], &text[equals + 1..]);
    let word = std::str::from_utf8(word).map_err(|_| UriError::Type)?;
    for (digest, kind) in [
        (SHA256, ComponentType::IMPLICIT_SHA256_DIGEST),
        (PARAMETERS, ComponentType::PARAMETERS_SHA256_DIGEST),
    ] {
        if word == digest {
            read_digest(text, value)?;
            return Ok(kind);
        }
    }
    if let Some(&(_, kind)) = NUMBERS.iter().find(|&&(known, _)| known == word) {
        read_number(text, value)?;
        return Ok(kind);
    }
    let is_number = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) && !word.starts_with('0');
    let kind = word.parse().ok().filter(|_| is_number).and_then(ComponentType::new).ok_or(UriError::Type)?;
    read_value(text, value)?;
    if kind.is_digest() && value.len() != DIGEST {
        return Err(UriError::Digest);
    }
    Ok(kind)
}

fn read_value(mut text: &[u8], value: &mut Vec<u8>) -> Result<(), UriError> {
    while let Some((&b, rest)) = text.split_first() {
        text = rest;
        if b != b'%' {
            value.push(b);
            continue;
        }
        let (digits, rest) = text.split_first_chunk::<2>().ok_or(UriError::Percent)?;
        value.push(unhex(*digits).ok_or(UriError::Percent)?);
        text = rest;
    }
    if value.iter().all(|&b| b == b'.') {
        match value.len().checked_sub(3) {
            Some(periods) => value.truncate(periods),
            None if value.is_empty() => return Err(UriError::EmptyComponent),
            None => return Err(UriError::Periods(value.len())),
        }
    }
    Ok(())
}

fn read_digest(text: &[u8], value: &mut Vec<u8>) -> Result<(), UriError> {
    let (digits, []) = text.as_chunks::<2>() else { return Err(UriError::Digest) };
    if digits.len() != DIGEST {
        return Err(UriError::Digest);
    }
    for &digits in digits {
        value.push(unhex(digits).ok_or(UriError::Digest)?);
    }
    Ok(())
}

/// A decimal number, as a NonNegativeInteger.
fn read_number(text: &[u8], value: &mut Vec<u8>) -> Result<(), UriError> {
    let text = std::str::from_utf8(text).map_err(|_| UriError::Number)?;
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number: u64 = text.parse().ok().filter(|_| is_number).ok_or(UriError::Number)?;
    let width = match number {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    value.extend_from_slice(&number.to_be_bytes()[8 - width..]);
    Ok(())
}

fn unhex(digits: [u8; 2]) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(digits[0])? << 4 | digit(digits[1])?)
}
