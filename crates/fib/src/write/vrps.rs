//! Validated ROA payloads as rpki-client and Routinator write them.
//!
//! A payload of several trust anchors is written once for each. If its anchor is not known, its cell in CSV
//! is empty, and JSON does not have the member. The time at which a payload expires is not written.

use std::fmt::Display;
use std::io::Write;

use serde_json::json;

use super::WriteError;
use crate::read::Format;
use crate::rpki::Vrps;

/// Writes payloads with their trust anchors as [`Format::VrpCsv`] or [`Format::VrpJson`], IPv4 first, in
/// order.
///
/// ```
/// use wirespeed_fib::read::{Format, ReadOptions, read_vrps_from};
/// use wirespeed_fib::write::write_vrps;
///
/// let text = "ASN,IP Prefix,Max Length,Trust Anchor\nAS13335,1.0.0.0/24,24,apnic\n";
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
            each(vrps, |prefix, max_len, asn, anchor| {
                let anchor = match anchor.contains([',', '"', ';', '\t', '|']) {
                    true => format!("\"{}\"", anchor.replace('"', "\"\"")),
                    false => anchor.to_owned(),
                };
                Ok(writeln!(out, "AS{asn},{prefix},{max_len},{anchor}")?)
            })
        }
        Format::VrpJson => {
            let mut start = "{\"roas\": [\n";
            each(vrps, |prefix, max_len, asn, anchor| {
                let mut roa = json!({"asn": asn, "prefix": prefix.to_string(), "maxLength": max_len});
                if !anchor.is_empty() {
                    roa["ta"] = anchor.into();
                }
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

/// Gives the prefix, the longest length, the AS and a trust anchor of each payload: one after the other if it
/// has several, and an empty one if none is known.
fn each(
    vrps: &Vrps,
    mut write: impl FnMut(&dyn Display, u8, u32, &str) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    fn or_none<'n>(names: impl Iterator<Item = &'n str>) -> impl Iterator<Item = &'n str> {
        let mut names = names.peekable();
        let none = names.peek().is_none().then_some("");
        names.chain(none)
    }
    let anchors = &vrps.anchors;
    for vrp in vrps.v4.iter() {
        let mut of = or_none(anchors.of_v4(vrp));
        of.try_for_each(|anchor| write(&vrp.prefix(), vrp.max_len(), vrp.asn(), anchor))?;
    }
    for vrp in vrps.v6.iter() {
        let mut of = or_none(anchors.of_v6(vrp));
        of.try_for_each(|anchor| write(&vrp.prefix(), vrp.max_len(), vrp.asn(), anchor))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{ReadOptions, read_vrps_from};

    #[test]
    fn payloads_read_back_equal() {
        let text = "ASN,IP Prefix,Max Length,Trust Anchor\nAS1,10.0.0.0/8,24,ripe\nAS1,10.0.0.0/8,16,a\n\
                    AS0,2001:db8::/32,48,\"b, \"\"c\"\"\"\nAS4294967295,10.0.0.0/8,8,\nAS1,10.0.0.0/8,24,apnic\n";
        let read = |text: &[u8]| {
            let (vrps, report) = read_vrps_from(text, "test", &ReadOptions::default()).unwrap();
            let mut all = Vec::new();
            each(&vrps, |prefix, max_len, asn, anchor| {
                all.push(format!("{prefix} {max_len} {asn} {anchor}"));
                Ok(())
            })
            .unwrap();
            (vrps, all, report.format)
        };
        let (vrps, all, _) = read(text.as_bytes());
        let right = [
            "10.0.0.0/8 16 1 a",
            "10.0.0.0/8 24 1 apnic",
            "10.0.0.0/8 24 1 ripe",
            "10.0.0.0/8 8 4294967295 ",
            "2001:db8::/32 48 0 b, \"c\"",
        ];
        assert_eq!(
            (all.as_slice(), vrps.len(), vrps.without_anchor()),
            (&right.map(str::to_owned)[..], 4, 1)
        );
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
