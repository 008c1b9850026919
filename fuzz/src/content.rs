//! Files by their content, and tables of names in CSV.

use std::io::Write;

use wirespeed::content::{Content, How, read};
use wirespeed_fib::merge::book::Texts;
use wirespeed_namelookup::merge::NameMerge;
use wirespeed_namelookup::read::{ReadOptions, read_table_from, recognise_csv};

/// Recognises a file, and reads it as what it is, strictly and leniently.
pub fn content(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("a file");
    let Ok(found) = Content::of_file(file.path()) else { return };
    assert_eq!(found == Content::Image, found.name().parse::<Content>().is_err(), "{found}");
    let how = |content, lenient| How { content, lenient, ..How::default() };
    let strictly = read(file.path(), &how(None, false));
    assert_eq!(strictly.is_ok(), read(file.path(), &how(Some(found), false)).is_ok());
    assert!(strictly.is_err() || read(file.path(), &how(None, true)).is_ok());
}

/// Reads a table of names in CSV, with its first column named, too.
pub fn names_csv(bytes: &[u8]) {
    let _recognised = recognise_csv(bytes, true);
    let name =
        bytes.split(|byte| b",;\t\n".contains(byte)).next().and_then(|name| std::str::from_utf8(name).ok());
    for name in [None, name] {
        let mut options = ReadOptions::default();
        options.columns.name = name.map(str::to_owned);
        let strictly = read_table_from(bytes, "fuzz", &options);
        options.lenient = true;
        let Ok((fib, report)) = read_table_from(bytes, "fuzz", &options) else {
            assert!(strictly.is_err(), "strict reading took what lenient reading refused");
            continue;
        };
        assert_eq!(report.routes - report.repeated, fib.names.len() as u64);
        if let Ok((strictly, report)) = strictly {
            assert_eq!((report.faults(), strictly.names.len()), (0, fib.names.len()));
        }
        let is_list = fib.labels.lines() > 0;
        let texts = if is_list { Texts::Members("x") } else { Texts::Values("x") };
        let (mut once, mut twice) = (NameMerge::new(), NameMerge::new());
        if once.add(&fib, texts).is_ok() {
            twice.add(&fib, texts).and_then(|()| twice.add(&fib, texts)).expect("as before");
            let (once, twice) = (once.build().expect("few"), twice.build().expect("few"));
            assert!(once.fib.names.iter().eq(twice.fib.names.iter()));
            assert!(once.fib.labels.iter().eq(twice.fib.labels.iter()));
        }
    }
}
