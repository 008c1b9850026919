//! Readers of lists of domains: nothing panics, strict and lenient reading agree, and a list answers as the
//! walk over all its entries.

use wirespeed_namelookup::list::{Answers, oracle::Oracle};
use wirespeed_namelookup::read::lists::{DomainList, ListFormat, ListOptions, read_list_from};
use wirespeed_namelookup::{Name, NameBuf};

/// The most entries of a list that is walked.
const WALKED: usize = 64;

/// Reads bytes in a format and in that which is recognised.
pub fn list(format: ListFormat, bytes: &[u8]) {
    for format in [Some(format), None] {
        for icann_only in [false, true] {
            read(format, icann_only, bytes);
        }
    }
}

fn read(format: Option<ListFormat>, icann_only: bool, bytes: &[u8]) {
    let options = |lenient| ListOptions { format, lenient, icann_only };
    let strictly = read_list_from(bytes, "fuzz", &options(false));
    match read_list_from(bytes, "fuzz", &options(true)) {
        Ok((list, report)) => {
            let _shown = report.to_string();
            assert_eq!(report.routes - report.repeated, list.list.len() as u64);
            if let Ok((strictly, report)) = strictly {
                assert!(report.faults() == 0 && report.truncated.is_none());
                assert_eq!(strictly.list.len(), list.list.len());
            }
            answers(list);
        }
        Err(error) => {
            let _shown = error.to_string();
            assert!(strictly.is_err(), "strict reading took what lenient reading refused: {error}");
        }
    }
}

/// Looks up each name of a small list, the name above it and a name beneath it.
fn answers(read: DomainList) {
    if read.list.len() > WALKED {
        return;
    }
    let oracle = Oracle(read.list.iter().collect());
    let resolved = read.list.resolve();
    assert_eq!(Answers::from_bytes(&resolved.answers.to_bytes()).as_ref(), Some(&resolved.answers));
    for (name, ..) in &oracle.0 {
        let mut beneath: NameBuf = name.clone();
        beneath.push(b"x").expect("names of lines are far from the limit");
        for name in [name.parent().unwrap_or(Name::ROOT), name, &beneath] {
            assert_eq!(resolved.lookup(name), oracle.lookup(name), "{name}");
            if let Some(found) = resolved.suffix(name) {
                assert!(found.suffix.is_prefix_of(name));
                assert!(found.registrable.is_none_or(|longer| found.suffix.is_prefix_of(longer)));
            }
        }
    }
}
