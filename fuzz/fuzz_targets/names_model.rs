//! Random changes of a table of names: it is a sorted map at every step, what it says has changed is what
//! did, and its reduced table gives the same results.

#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use wirespeed_namelookup::oracle::Oracle;
use wirespeed_namelookup::{Aggregated, NameBuf, NameTable, NameUpdate};

// A change: a byte for what to do (result in the low two bits, 0 removes; the top bit asks for what changed),
// a byte for how long the name is, and its bytes, most of them few components.
fuzz_target!(|input: &[u8]| {
    let (mut oracle, mut table) = (Oracle::default(), NameTable::new());
    let mut both = Aggregated::new(NameTable::new());
    table.track();
    let mut before = seen(&table);
    let mut rest = input;
    while let [what, len, after @ ..] = rest {
        let (bytes, after) = after.split_at(usize::from(len % 32).min(after.len()));
        rest = after;
        let Some(name) = name(bytes) else { continue };
        let result = u32::from(what % 4);
        let (update, had) = match result {
            0 => (NameUpdate::Remove(name.clone()), oracle.0.remove(&name)),
            _ => (NameUpdate::Insert(name.clone(), result), oracle.0.insert(name.clone(), result)),
        };
        let is_new = had.unwrap_or(0) != result;
        assert_eq!((table.apply(&update), both.apply(&update)), (is_new, is_new));
        let right = oracle.lookup(&name);
        assert_eq!((table.lookup(&name), both.full().lookup(&name)), (right, right));
        assert_eq!(both.reduced().lookup(&name).result, right.result);
        if what & 0x80 != 0 {
            before = changed(&mut table, &before);
        }
    }
    changed(&mut table, &before);
    assert_eq!(table.iter().collect::<Oracle>().0, oracle.0);
    for (name, result) in &oracle.0 {
        assert_eq!(both.reduced().lookup(name).result, *result);
        let beneath = NameBuf::new(&[name.as_bytes(), b"/x"].concat()).expect("a name");
        let right = oracle.lookup(&beneath);
        assert_eq!((table.lookup(&beneath), both.reduced().lookup(&beneath).result), (right, right.result));
    }
    for (name, result) in both.reduced().iter() {
        let above = name.parent().map_or(0, |parent| both.reduced().lookup(parent).result);
        assert_ne!(above, result, "{name} could go");
    }
});

/// Each byte a component of its own or a slash before one, so that short inputs make deep names that meet.
fn name(bytes: &[u8]) -> Option<NameBuf> {
    let components = bytes.split(|&byte| byte & 7 == 0).filter(|component| !component.is_empty());
    NameBuf::from_components(components).ok()
}

/// All that is to be seen of a table.
type Seen = BTreeSet<(usize, NameBuf, u32, bool)>;

fn seen(table: &NameTable) -> Seen {
    table.nodes().map(|node| (node.id().index(), node.name(), node.result(), node.has_children())).collect()
}

/// Takes the changes, which are those since `before`; what is to be seen now.
fn changed(table: &mut NameTable, before: &Seen) -> Seen {
    let now = seen(table);
    let differ: BTreeSet<_> = now.symmetric_difference(before).map(|(id, ..)| *id).collect();
    let changed = table.take_changed();
    assert_eq!(changed.iter().map(|id| id.index()).collect::<BTreeSet<_>>(), differ);
    assert_eq!(changed.len(), differ.len());
    table.forget_gone(changed);
    now
}
