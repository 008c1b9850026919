//! Validated ROA payloads as rpki-client and Routinator write them.
//!
//! ```text
//! {"metadata":{…},"roas":[{"asn":13335,"prefix":"1.0.0.0/24","maxLength":24,"ta":"apnic",…},…],…}
//! {"metadata":{…},"roas":[{"asn":"AS13335","prefix":"1.0.0.0/24","maxLength":24,"ta":"apnic"},…],…}
//!
//! ASN,IP Prefix,Max Length,Trust Anchor[,Expires]
//! AS13335,1.0.0.0/24,24,apnic
//! ```
//!
//! Trust anchors are kept for those who write the payloads again. Time and source of a payload don't matter:
//! the program that writes the file has left out what is expired. Router keys, ASPAs and all that is beside
//! the payloads is counted as passed over.

use std::collections::HashMap;

use serde_json::Value;
use wirespeed_input::Input;

use super::any_prefix::AnyPrefix;
use super::csv::cells::Cells;
use super::csv::record::each_record;
use super::error::{End, Fault, ReadError, SkipReason};
use super::format::Format;
use super::json::{Entry, Groups, each_entry, text};
use super::report::Ledger;
use super::vrps_header::Columns;
use crate::address::{Address, V4, V6};
use crate::prefix::Prefix;
use crate::rpki::{TrustAnchors, Vrp, Vrps, asn};

/// The array of payloads.
const ROAS: &str = "roas";
/// Members of a payload: of rpki-client, Routinator and Routinator's extended form.
const MEMBERS: [&str; 6] = ["asn", "prefix", "maxLength", "ta", "expires", "source"];

pub(super) fn read(input: &mut Input<'_>, ledger: &mut Ledger) -> Result<Vrps, End> {
    let mut payloads = Payloads::default();
    match ledger.report.format {
        Format::VrpCsv => from_csv(input, ledger, &mut payloads)?,
        _ => each_entry(input, ledger, Groups::Arrays, |entry, ledger| {
            of_entry(&entry, &mut payloads, ledger)
        })?,
    }
    let Payloads { v4, v6, names, anchors_v4, anchors_v6 } = payloads;
    let mut by_place = vec![String::new(); names.len()];
    names.into_iter().for_each(|(name, place)| by_place[place] = name);
    let anchors = TrustAnchors::new(by_place, anchors_v4, anchors_v6);
    let vrps = Vrps { v4: v4.into_iter().collect(), v6: v6.into_iter().collect(), anchors };
    ledger.report.repeated = ledger.report.routes - vrps.len() as u64;
    Ok(vrps)
}

/// The payloads so far.
#[derive(Debug, Default)]
struct Payloads {
    v4: Vec<Vrp<V4>>,
    v6: Vec<Vrp<V6>>,
    /// The names of trust anchors, each with its place.
    names: HashMap<String, usize>,
    /// The payloads that have an anchor, with the place of its name.
    anchors_v4: Vec<(Vrp<V4>, usize)>,
    anchors_v6: Vec<(Vrp<V6>, usize)>,
}

impl Payloads {
    /// Adds a payload. `anchor` is empty if the file does not tell it.
    fn add(
        &mut self,
        (prefix, max_len, asn): (&str, u64, u32),
        anchor: &str,
        ledger: &mut Ledger,
    ) -> Result<(), SkipReason> {
        fn vrp<A: Address>(prefix: Prefix<A>, max_len: u64, asn: u32) -> Result<Vrp<A>, SkipReason> {
            let max_len = u8::try_from(max_len).map_err(|_| SkipReason::MaxLength)?;
            Vrp::new(prefix, max_len, asn).map_err(|_| SkipReason::MaxLength)
        }
        let anchor = anchor.trim();
        if anchor.contains(char::is_control) {
            return Err(SkipReason::Shape);
        }
        let place = match self.names.get(anchor) {
            _ if anchor.is_empty() => None,
            None => Some(self.names.len()),
            known => known.copied(),
        };
        match ledger.prefix(prefix.as_bytes())? {
            AnyPrefix::V4(prefix) => {
                let vrp = vrp(prefix, max_len, asn)?;
                self.v4.push(vrp);
                self.anchors_v4.extend(place.map(|place| (vrp, place)));
            }
            AnyPrefix::V6(prefix) => {
                let vrp = vrp(prefix, max_len, asn)?;
                self.v6.push(vrp);
                self.anchors_v6.extend(place.map(|place| (vrp, place)));
            }
        }
        if let Some(place) = place.filter(|&place| place == self.names.len()) {
            self.names.insert(anchor.to_owned(), place);
        }
        ledger.report.routes += 1;
        Ok(())
    }
}

fn of_entry(entry: &Entry<'_>, payloads: &mut Payloads, ledger: &mut Ledger) -> Result<(), Fault> {
    match (entry.group, entry.key) {
        (Some(ROAS), None) => {}
        // An array of payloads that is none.
        (_, Some(ROAS)) | (None, None) => return Err(SkipReason::Shape.into()),
        _ => return Err(SkipReason::OtherRecord.into()),
    }
    let roa = entry.value;
    let members = roa.as_object().ok_or(SkipReason::Shape)?;
    if members.keys().any(|key| !MEMBERS.contains(&key.as_str())) {
        return Err(SkipReason::Member.into());
    }
    let asn = match members.get("asn") {
        Some(Value::String(text)) => asn(text),
        Some(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
        None => return Err(SkipReason::Shape.into()),
    };
    let prefix = text(roa, "prefix")?.ok_or(SkipReason::Shape)?;
    let max_len = roa.get("maxLength").ok_or(SkipReason::Shape)?;
    let max_len = max_len.as_u64().ok_or(SkipReason::MaxLength)?;
    let anchor = text(roa, "ta")?.unwrap_or_default();
    Ok(payloads.add((prefix, max_len, asn.ok_or(SkipReason::Number)?), anchor, ledger)?)
}

fn from_csv(input: &mut Input<'_>, ledger: &mut Ledger, payloads: &mut Payloads) -> Result<(), End> {
    let mut header = None;
    let mut cells = Cells::default();
    each_record(input, ledger, |record, place, ledger| {
        let Some(columns) = &header else {
            ledger.report.records -= 1;
            header = Some(Columns::find(record).map_err(|columns| {
                let (name, problem) =
                    (ledger.report.name.clone(), "no columns ASN, IP Prefix and Max Length");
                let what = format!("{problem}; the columns are {columns}").into();
                Fault::Ended(Box::new(ReadError::Columns { name, place, what }))
            })?);
            return Ok(());
        };
        let Columns { separator, len, asn: asn_at, prefix, max_len, anchor } = *columns;
        cells.split(record, separator).map_err(SkipReason::from)?;
        let cells = cells.as_slice();
        match cells.len().cmp(&len) {
            std::cmp::Ordering::Less => return Err(SkipReason::TooFewColumns.into()),
            std::cmp::Ordering::Greater => return Err(SkipReason::TooManyColumns.into()),
            std::cmp::Ordering::Equal => {}
        }
        let asn = asn(&cells[asn_at]).ok_or(SkipReason::Number)?;
        let max_len = cells[max_len].parse().map_err(|_| SkipReason::MaxLength)?;
        let anchor = anchor.map_or("", |at| &*cells[at]);
        Ok(payloads.add((&cells[prefix], max_len, asn), anchor, ledger)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefix::PrefixError;
    use crate::read::{Place, ReadOptions, ReadReport, read_fib_from, read_vrps_from};

    const RPKI_CLIENT: &str = r#"{
	"metadata": {
		"buildmachine": "rpki.example.net",
		"buildtime": "2026-05-01T00:00:00Z",
		"roas": 3,
		"vrps": 3
	},

	"roas": [
		{ "asn": 13335, "prefix": "1.0.0.0/24", "maxLength": 24, "ta": "apnic", "expires": 1780000000 },
		{ "asn": 13335, "prefix": "1.0.0.0/24", "maxLength": 24, "ta": "arin", "expires": 1780000001 },
		{ "asn": 0, "prefix": "2001:db8::/32", "maxLength": 128, "ta": "ripe", "expires": 1780000000 }
	],

	"bgpsec_keys": [
		{ "asn": 15562, "ski": "5D41", "pubkey": "MFkw", "ta": "ripe", "expires": 1780000000 }
	],
	"aspas": [
		{ "customer_asid": 945, "expires": 1780000000, "providers": [ 1299, 6939 ] }
	]
}
"#;
    const ROUTINATOR: &str = r#"{
  "metadata": {
    "generated": 1777600000,
    "generatedTime": "2026-05-01T00:00:00Z"
  },
  "roas": [
    { "asn": "AS13335", "prefix": "1.0.0.0/24", "maxLength": 24, "ta": "apnic" },
    { "asn": "AS0", "prefix": "2001:db8::/32", "maxLength": 128, "ta": "ripe" }
  ],
  "routerKeys": [],
  "aspas": []
}"#;
    const CSV: [&str; 3] = [
        "ASN,IP Prefix,Max Length,Trust Anchor\nAS13335,1.0.0.0/24,24,apnic\nAS0,2001:db8::/32,128,ripe\n",
        "ASN,IP Prefix,Max Length,Trust Anchor,Expires\nAS13335,1.0.0.0/24,24,apnic,1780000000\n\
         AS0,2001:db8::/32,128,ripe,1780000000\n",
        "\"ASN\",\"IP Prefix\",\"Max Length\",\"Trust Anchor\"\n\
         \"AS13335\",\"1.0.0.0/24\",\"24\",\"apnic\"\n\"AS0\",\"2001:db8::/32\",\"128\",\"ripe\"\n",
    ];

    fn read_as(text: &str, lenient: bool) -> Result<(Vrps, ReadReport), ReadError> {
        read_vrps_from(text.as_bytes(), "test", &ReadOptions { lenient, ..ReadOptions::default() })
    }

    #[test]
    fn every_shape_is_recognised_and_read() {
        for text in [RPKI_CLIENT, ROUTINATOR].into_iter().chain(CSV) {
            let (vrps, report) = read_as(text, false).unwrap();
            let v4 = Vrp::new("1.0.0.0/24".parse().unwrap(), 24, 13335).unwrap();
            let v6 = Vrp::new("2001:db8::/32".parse().unwrap(), 128, 0).unwrap();
            assert!(vrps.v4.iter().eq([v4]) && vrps.v6.iter().eq([v6]), "{text}");
            assert_eq!(report.routes - report.repeated, 2);
            let message =
                read_fib_from(text.as_bytes(), "t", &ReadOptions::default()).unwrap_err().to_string();
            assert_eq!(message, format!("t: {} holds no routes", report.format));
        }
        let (_, report) = read_as(RPKI_CLIENT, false).unwrap();
        assert_eq!((report.repeated, report.skipped_for(SkipReason::OtherRecord)), (1, 3));
    }

    #[test]
    fn sorted_keys_are_recognised_whatever_comes_before_the_payloads() {
        let aspa = r#"{"customer_asid":945,"expires":1780000000,"providers":[1299]},"#.repeat(2000);
        let text = format!(
            r#"{{"aspas":[{}],"bgpsec_keys":[],"metadata":{{"vrps":1}},
               "roas":[{{"asn":1,"expires":1780000000,"maxLength":8,"prefix":"1.0.0.0/8","ta":"ripe"}}]}}"#,
            aspa.trim_end_matches(','),
        );
        let (vrps, report) = read_as(&text, false).unwrap();
        assert_eq!((vrps.len(), report.skipped_for(SkipReason::OtherRecord)), (1, 2001));
    }

    #[test]
    fn bad_payloads_are_named_and_can_be_left_out() {
        let good = r#"{"asn":1,"prefix":"1.0.0.0/8","maxLength":8}"#;
        for (roa, reason) in [
            (r#"{"asn":1,"prefix":"1.0.0.0/8","maxLength":7}"#, SkipReason::MaxLength),
            (r#"{"asn":1,"prefix":"1.0.0.0/8","maxLength":33}"#, SkipReason::MaxLength),
            (r#"{"asn":1,"prefix":"1.0.0.0/8","maxLength":300}"#, SkipReason::MaxLength),
            (r#"{"asn":1,"prefix":"1.0.0.0/8"}"#, SkipReason::Shape),
            (r#"{"asn":1,"maxLength":8}"#, SkipReason::Shape),
            (r#"{"asn":1,"prefix":"1.0.0.0/8","maxLength":8,"ta":7}"#, SkipReason::Shape),
            (r#"{"asn":1,"prefix":"1.0.0.0/8","maxLength":8,"ta":"a\nb"}"#, SkipReason::Shape),
            (r#"{"prefix":"1.0.0.0/8","maxLength":8}"#, SkipReason::Shape),
            (r#"{"asn":1,"prefix":"1.0.0.0/8","maxLength":8,"revoked":true}"#, SkipReason::Member),
            (r#"{"asn":"ASx","prefix":"1.0.0.0/8","maxLength":8}"#, SkipReason::Number),
            (r#"{"asn":4294967296,"prefix":"1.0.0.0/8","maxLength":8}"#, SkipReason::Number),
            (r#"{"asn":1,"prefix":"1.0.0.1/8","maxLength":8}"#, SkipReason::Prefix(PrefixError::HostBits)),
            ("7", SkipReason::Shape),
        ] {
            let text = format!("{{\"roas\":[{good},\n{roa}]}}");
            match read_as(&text, false) {
                Err(ReadError::Bad { place: Place::Entry(2, 2), reason: found, .. }) => {
                    assert_eq!(found, reason);
                }
                other => panic!("{roa}: {other:?}"),
            }
            let (vrps, report) = read_as(&text, true).unwrap();
            assert_eq!((vrps.len(), report.skipped_for(reason)), (1, 1), "{roa}");
        }
        for (line, reason) in [
            ("AS1,1.0.0.0/8,7,a", SkipReason::MaxLength),
            ("ASx,1.0.0.0/8,8,a", SkipReason::Number),
            ("AS1,1.0.0.0/8,8", SkipReason::TooFewColumns),
            ("AS1,1.0.0.0/8,8,a,b", SkipReason::TooManyColumns),
        ] {
            let text = format!("ASN,IP Prefix,Max Length,Trust Anchor\nAS2,2.0.0.0/8,8,a\n{line}\n");
            match read_as(&text, false) {
                Err(ReadError::Bad { place: Place::Line(3), reason: found, .. }) => assert_eq!(found, reason),
                other => panic!("{line}: {other:?}"),
            }
            assert_eq!(read_as(&text, true).unwrap().0.len(), 1);
        }
    }

    #[test]
    fn files_without_payloads_are_refused() {
        assert_eq!(read_as("10.0.0.0/8 a\n", false).unwrap_err().to_string(), "test: plain holds no VRPs");
        let none = r#"{"metadata":{},"roas":[]}"#;
        assert_eq!(
            read_as(none, false).unwrap_err().to_string(),
            "no VRPs in test (1 record of other kinds)"
        );
        let options = ReadOptions { format: Some(Format::VrpCsv), lenient: true, ..ReadOptions::default() };
        let message = read_vrps_from(&b"a,b\n"[..], "test", &options).unwrap_err().to_string();
        assert_eq!(message, "test:1: no columns ASN, IP Prefix and Max Length; the columns are a, b");
        assert!(read_as("{\"roas\":7}", false).is_err());
    }
}
