#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use wirespeed_fib::merge::Merge;
use wirespeed_fib::read::{ReadOptions, read_fib_from};

// Sources apart by lines of `--`. Each prefix of a source has a record in the merged table, unless no source
// tells a field of it.
fuzz_target!(|bytes: &[u8]| {
    let options = ReadOptions { lenient: true, ..ReadOptions::default() };
    let text = String::from_utf8_lossy(bytes);
    let sources: Vec<_> = text
        .split("\n--\n")
        .take(4)
        .filter_map(|source| read_fib_from(source.as_bytes(), "fuzz", &options).ok())
        .collect();
    let mut merge = Merge::new();
    for (at, (fib, report)) in sources.iter().enumerate() {
        let name = format!("source{at}");
        let added = match report.is_list {
            true => merge.add_members(fib, &name),
            false => merge.add_table(fib, &name),
        };
        // A value with characters that no field has is refused.
        if added.is_err() {
            return;
        }
    }
    let merged = merge.build().expect("few records");
    assert_eq!(merged.records.len(), merged.fib.next_hops.len());
    let mut absent = BTreeSet::new();
    for (fib, _) in &sources {
        let v4 = fib.v4.iter().map(|(prefix, _)| (prefix.to_string(), merged.fib.v4.get(prefix)));
        let v6 = fib.v6.iter().map(|(prefix, _)| (prefix.to_string(), merged.fib.v6.get(prefix)));
        absent.extend(v4.chain(v6).filter(|(_, record)| record.is_none()).map(|(prefix, _)| prefix));
    }
    assert_eq!(merged.empty, absent.len() as u64);
});
