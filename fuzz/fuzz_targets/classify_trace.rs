//! Traces of tuples: nothing panics, and what is read, written in words, reads back equal.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_classify::read::{ReadOptions, read_trace_from};
use wirespeed_classify::write::write_trace;
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, Tuple};

fuzz_target!(|bytes: &[u8]| {
    of::<Ipv4Tuple>(bytes);
    of::<Ipv6Tuple>(bytes);
    of::<OpenFlowTuple>(bytes);
});

fn of<T: Tuple>(bytes: &[u8]) {
    let strict = ReadOptions::default();
    let lenient = ReadOptions { lenient: true, ..ReadOptions::default() };
    let strictly = read_trace_from::<T>(bytes, "fuzz", &strict);
    match read_trace_from::<T>(bytes, "fuzz", &lenient) {
        Ok((trace, report)) => {
            let _shown = report.to_string();
            assert_eq!(trace.len() as u64 + report.left_out.len() as u64, report.records);
            let mut text = Vec::new();
            write_trace(&trace, &mut text).expect("a Vec takes what is written");
            let (again, _) = read_trace_from::<T>(&text[..], "again", &strict).expect("it reads back");
            assert_eq!(again, trace);
            if let Ok((strictly, _)) = strictly {
                assert_eq!(strictly, trace);
            }
        }
        Err(error) => {
            let _shown = error.to_string();
            assert!(strictly.is_err(), "strict reading took what lenient reading refused: {error}");
        }
    }
}
