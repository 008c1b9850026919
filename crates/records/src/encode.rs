//! [`Encoder`]: values as cells and members of a format.

use std::io::Write;

/// Writes the values of new columns as a format needs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoder(pub(crate) Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Cells after a separator, quoted where this is needed and allowed.
    Cells { separator: u8, quotes: bool },
    /// Zeek's cells: bytes that can't stand as they are become `\xHH`.
    Zeek { separator: u8, unset: Vec<u8>, empty: Vec<u8> },
    /// Members of objects.
    Json,
}

impl Encoder {
    /// Writes the bytes that come before the value of a new column of this name.
    pub(crate) fn lead(&self, name: &str) -> Vec<u8> {
        match &self.0 {
            Kind::Cells { separator, .. } | Kind::Zeek { separator, .. } => vec![*separator],
            Kind::Json => {
                let mut lead = vec![b','];
                string(name, &mut lead);
                lead.push(b':');
                lead
            }
        }
    }

    /// Writes a value, or that there is none: an empty cell, Zeek's unset field, `null`.
    pub fn write(&self, value: Option<&str>, into: &mut Vec<u8>) {
        match (&self.0, value) {
            (Kind::Cells { .. }, None) => {}
            (Kind::Cells { separator, quotes }, Some(value)) => cell(value, *separator, *quotes, into),
            (Kind::Zeek { unset, .. }, None) => into.extend_from_slice(unset),
            (Kind::Zeek { empty, .. }, Some("")) => into.extend_from_slice(empty),
            (Kind::Zeek { separator, unset, empty }, Some(value)) => {
                let is_mark = [unset, empty].iter().any(|mark| value.as_bytes() == mark.as_slice());
                for (at, byte) in value.bytes().enumerate() {
                    match byte {
                        b'\\' => into.extend_from_slice(b"\\\\"),
                        _ if byte < b' ' || byte == 0x7f || byte == *separator || (is_mark && at == 0) => {
                            hex(byte, into);
                        }
                        _ => into.push(byte),
                    }
                }
            }
            (Kind::Json, None) => into.extend_from_slice(b"null"),
            (Kind::Json, Some(value)) => string(value, into),
        }
    }
}

/// Writes a cell. Where quotes are not allowed, bytes that can't stand become blanks.
fn cell(value: &str, separator: u8, quotes: bool, into: &mut Vec<u8>) {
    let is_special = |byte: u8| byte == separator || matches!(byte, b'\n' | b'\r');
    if !quotes {
        into.extend(value.bytes().map(|byte| if is_special(byte) { b' ' } else { byte }));
        return;
    }
    let is_padded = value.starts_with(' ') || value.ends_with(' ');
    if !is_padded && !value.bytes().any(|byte| is_special(byte) || byte == b'"') {
        into.extend_from_slice(value.as_bytes());
        return;
    }
    into.push(b'"');
    for byte in value.bytes() {
        if byte == b'"' {
            into.push(b'"');
        }
        into.push(byte);
    }
    into.push(b'"');
}

fn hex(byte: u8, into: &mut Vec<u8>) {
    // Writing to a vector does not fail.
    let _ = write!(into, "\\x{byte:02x}");
}

/// Writes a JSON string.
fn string(text: &str, into: &mut Vec<u8>) {
    into.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => into.extend_from_slice(&[b'\\', byte]),
            b'\n' => into.extend_from_slice(b"\\n"),
            b'\t' => into.extend_from_slice(b"\\t"),
            b'\r' => into.extend_from_slice(b"\\r"),
            0..b' ' => {
                let _ = write!(into, "\\u{byte:04x}");
            }
            _ => into.push(byte),
        }
    }
    into.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let csv = Encoder(Kind::Cells { separator: b',', quotes: true });
        let nfdump = Encoder(Kind::Cells { separator: b',', quotes: false });
        let zeek = Encoder(Kind::Zeek { separator: b'\t', unset: b"-".to_vec(), empty: b"(empty)".to_vec() });
        let json = Encoder(Kind::Json);
        for (encoder, value, right) in [
            (&csv, None, ""),
            (&csv, Some("a b"), "a b"),
            (&csv, Some("a,\"b\"\n"), "\"a,\"\"b\"\"\n\""),
            (&csv, Some(" a"), "\" a\""),
            (&nfdump, Some("a,b"), "a b"),
            (&zeek, None, "-"),
            (&zeek, Some(""), "(empty)"),
            (&zeek, Some("-"), "\\x2d"),
            (&zeek, Some("(empty)"), "\\x28empty)"),
            (&zeek, Some("a\tb\\"), "a\\x09b\\\\"),
            (&json, None, "null"),
            (&json, Some("é\"\\\n\u{1}"), "\"é\\\"\\\\\\n\\u0001\""),
        ] {
            let mut into = Vec::new();
            encoder.write(value, &mut into);
            assert_eq!(String::from_utf8(into).unwrap(), right, "{encoder:?}");
        }
        assert_eq!(json.lead("a\"b"), b",\"a\\\"b\":");
    }
}
