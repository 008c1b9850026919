//! Validated ROA payloads as rpki-client and Routinator write them.
//!
//! Readers of payloads pass over the trust anchor of each, so it is not known here: its column in CSV is
//! empty, and JSON does not have it.

use std::fmt::Display;
use std::io::Write;

use serde_json::json;

use super::WriteError;
use crate::read::Format;
use crate::rpki::Vrps;

/// Writes payloads as [`Format::VrpCsv`] or [`Format::VrpJson`], IPv4 first, in order.
///
/// ```
/// use wirespeed_fib::read::{Format, ReadOptions, read_vrps_from};
/// use wirespeed_fib::write::write_vrps;
///
/// let text = "ASN,IP Prefix,Max Length,Trust Anchor\nAS13335,1.0.0.0/24,24,\n";
/// let (vrps, _) = read_vrps_from(text.as_bytes(), "vrps", &ReadOptions::default())?;
/// let mut written = Vec::new();
/// write_vrps(&vrps, Format::VrpCsv, &mut written)?;
/// assert_eq!(written, text.as_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_vrps(vrps: &Vrps, format: Format, out: &mut dyn Write) -> Result<(), WriteError> {
    match format {
        Format::VrpCsv => {
            writeln!(out, "ASN,IP Prefix,Max Length,Trust Anchor")?;
            each(vrps, |prefix, max_len, asn| Ok(writeln!(out, "AS{asn},{prefix},{max_len},")?))
        }
        Format::VrpJson => {
            let mut start = "{\"roas\": [\n";
            each(vrps, |prefix, max_len, asn| {
                let roa = json!({"asn": asn, "prefix": prefix.to_string(), "maxLength": max_len});
                write!(out, "{start}{roa}")?;
                start = ",\n";
                Ok(())
            })?;
            let empty = if vrps.is_empty() { start } else { "" };
            Ok(writeln!(out, "{empty}\n]}}")?)
        }
        format => Err(WriteError::WrongKind { format, wanted: "VRPs" }),
    }
}

/// Gives the prefix, the longest length and the AS of each payload.
fn each(
    vrps: &Vrps,
    mut write: impl FnMut(&dyn Display, u8, u32) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    for vrp in vrps.v4.iter() {
        write(&vrp.prefix(), vrp.max_len(), vrp.asn())?;
    }
    for vrp in vrps.v6.iter() {
        write(&vrp.prefix(), vrp.max_len(), vrp.asn())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{ReadOptions, read_vrps_from};

    #[test]
    fn payloads_read_back_equal() {
        let text = "ASN,IP Prefix,Max Length,Trust Anchor\nAS1,10.0.0.0/8,24,a\nAS1,10.0.0.0/8,16,a\n\
                    AS0,2001:db8::/32,48,b\nAS4294967295,10.0.0.0/8,8,a\n";
        let read = |text: &[u8]| {
            let (vrps, report) = read_vrps_from(text, "test", &ReadOptions::default()).unwrap();
            let mut all = Vec::new();
            each(&vrps, |prefix, max_len, asn| {
                all.push(format!("{prefix} {max_len} {asn}"));
                Ok(())
            })
            .unwrap();
            (vrps, all, report.format)
        };
        let (vrps, all, _) = read(text.as_bytes());
        assert_eq!(all.len(), 4);
        for format in [Format::VrpCsv, Format::VrpJson] {
            let mut written = Vec::new();
            write_vrps(&vrps, format, &mut written).unwrap();
            let (_, again, of) = read(&written);
            assert_eq!((again, of), (all.clone(), format));
            let mut empty = Vec::new();
            write_vrps(&Vrps::default(), format, &mut empty).unwrap();
            let lenient = ReadOptions { lenient: true, ..ReadOptions::default() };
            assert!(read_vrps_from(&empty[..], "test", &lenient).unwrap().0.is_empty());
        }
        assert!(write_vrps(&vrps, Format::Csv, &mut Vec::new()).is_err());
    }
}
