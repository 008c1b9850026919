//! Traces of names in every form: nothing panics, each name is one, and what is read, written in plain, reads
//! back equal.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_namelookup::Name;
use wirespeed_namelookup::read::{NameFormat, ReadOptions, read_trace_from};
use wirespeed_namelookup::write::write_trace;

fuzz_target!(|bytes: &[u8]| {
    for format in NameFormat::ALL.map(Some).into_iter().chain([None]) {
        let Ok((trace, report)) =
            read_trace_from(bytes, "fuzz", &ReadOptions { format, lenient: true, ..ReadOptions::default() })
        else {
            continue;
        };
        assert_eq!(report.routes, trace.len() as u64);
        for name in trace.names().iter().filter(|name| !name.is_empty()) {
            assert_eq!(Name::new(name.as_bytes()), Ok(name));
        }
        let mut text = Vec::new();
        if trace.is_empty() || write_trace(trace.names(), &mut text).is_err() {
            continue;
        }
        let options = ReadOptions { format: Some(NameFormat::Names), ..ReadOptions::default() };
        let (again, _) = read_trace_from(&text[..], "again", &options).expect("what was written reads back");
        assert_eq!(again, trace);
    }
});
