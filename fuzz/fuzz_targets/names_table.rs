//! Tables and updates of names in every form: nothing panics, strict and lenient reading agree, and what is
//! read, written in plain, reads back equal.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_namelookup::read::{
    Labels, NameFib, NameFormat, ReadOptions, collect_updates_from, read_paths_from, read_table_from,
};
use wirespeed_namelookup::write::{WriteError, write_table, write_updates};

fuzz_target!(|bytes: &[u8]| {
    for format in NameFormat::ALL.map(Some).into_iter().chain([None]) {
        table(format, bytes);
        updates(format, bytes);
    }
});

fn table(format: Option<NameFormat>, bytes: &[u8]) {
    let options = |lenient| ReadOptions { format, lenient, ..ReadOptions::default() };
    let _ = read_paths_from(bytes, "fuzz", &options(true));
    let strictly = read_table_from(bytes, "fuzz", &options(false));
    match read_table_from(bytes, "fuzz", &options(true)) {
        Ok((fib, report)) => {
            let _shown = report.to_string();
            assert_eq!(report.routes - report.repeated, fib.names.len() as u64);
            if let Some(text) = plain(&fib) {
                let format = Some(NameFormat::Names);
                let again =
                    read_table_from(&text[..], "again", &ReadOptions { format, ..ReadOptions::default() });
                match again {
                    Ok((again, report)) => {
                        assert_eq!(report.repeated, 0);
                        assert_eq!(plain(&again), Some(text));
                    }
                    Err(error) => assert!(fib.names.is_empty(), "{error}"),
                }
            }
            if let Ok((strictly, report)) = strictly {
                assert!(report.faults() == 0 && report.truncated.is_none());
                assert_eq!(plain(&strictly), plain(&fib));
            }
        }
        Err(error) => {
            let _shown = error.to_string();
            assert!(strictly.is_err(), "strict reading took what lenient reading refused: {error}");
        }
    }
}

/// The table in plain, where lines can hold it.
fn plain(fib: &NameFib) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    match write_table(&fib.names, &fib.labels, &mut text) {
        Ok(()) => Some(text),
        // Only lengths: no name that was read has a blank in it, and each result has its label.
        Err(WriteError::TooLong { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn updates(format: Option<NameFormat>, bytes: &[u8]) {
    for lenient in [false, true] {
        let mut labels = Labels::new();
        let Ok((updates, report)) = collect_updates_from(
            bytes,
            "fuzz",
            &ReadOptions { format, lenient, ..ReadOptions::default() },
            &mut labels,
        ) else {
            continue;
        };
        assert_eq!(report.routes, updates.len() as u64);
        let mut text = Vec::new();
        if write_updates(&updates, &labels, &mut text).is_err() {
            continue;
        }
        let mut again_labels = Labels::new();
        let options =
            ReadOptions { format: Some(NameFormat::Names), lenient: true, ..ReadOptions::default() };
        let (again, _) = collect_updates_from(&text[..], "again", &options, &mut again_labels)
            .expect("what was written reads back");
        assert_eq!(again, updates);
        assert!(again_labels.iter().eq(labels.iter().take(again_labels.len())));
    }
}
