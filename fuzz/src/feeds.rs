//! What the fuzz targets of feeds share: whatever is read can be taken back.

use std::collections::HashSet;

use wirespeed_feeds::{Change, Recorded, Route};

/// Reads bytes in two parts, and then takes everything back. Each withdrawal must be of a prefix that was
/// told, and nothing may stay.
pub fn feed(mut recorded: Recorded, bytes: &[u8]) {
    let mut held = HashSet::new();
    let (&cut, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    let (first, second) = bytes.split_at(usize::from(cut).min(bytes.len()));
    for part in [first, second] {
        let changes = recorded.read(part).unwrap_or_else(|_| recorded.changes());
        take(&mut held, &changes);
    }
    recorded.restart();
    let changes = recorded.whole();
    take(&mut held, &changes);
    assert!(held.is_empty() && recorded.status().prefixes == 0);
}

fn take(held: &mut HashSet<(u32, String)>, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Route(Route { table, prefix, path }) => {
                assert!(path.is_usable());
                held.insert((table.0, prefix.to_string()));
            }
            Change::RouteGone { table, prefix } => assert!(held.remove(&(table.0, prefix.to_string()))),
            _ => {}
        }
    }
}
