//! The names that tables are asked for: those at which an engine is most likely to be wrong, and random ones.

use wirespeed_fib::synth::rng::Rng;

use crate::name::{Name, NameBuf};
use crate::names::NameBatch;

/// Names around each of those given: the name, its parents (of very many, some), its siblings, the name with
/// a component more, with a byte more, with a byte less and with another byte, at its end, at the end of its
/// first component, and anywhere.
pub fn around<N: AsRef<Name>>(names: impl IntoIterator<Item = N>) -> NameBatch {
    let mut rng = Rng::new(5);
    let mut batch = NameBatch::new();
    add(&mut batch, Name::ROOT);
    for name in names {
        let name = name.as_ref();
        add(&mut batch, name);
        let depth = name.components().count();
        let some = 1 + depth / 8;
        let parents = name.prefixes().enumerate().skip(1);
        parents.filter(|(up, _)| *up <= 4 || up % some == 0).for_each(|(_, parent)| add(&mut batch, parent));
        edits(name.as_bytes(), &mut rng).iter().filter_map(|edit| Name::new(edit).ok()).for_each(|edited| {
            add(&mut batch, edited);
        });
    }
    batch
}

/// Bytes near those of a name; not all of them are names.
fn edits(name: &[u8], rng: &mut Rng) -> Vec<Vec<u8>> {
    let with = |tail: &[u8]| [name, tail].concat();
    let last = name.iter().rposition(|&b| b == b'/').map_or(&[][..], |slash| &name[slash..]);
    let first = name.iter().skip(1).position(|&b| b == b'/').map_or(name.len(), |at| at + 1);
    let mut edits = vec![with(b"/x"), with(b"/\0"), with(last), with(b"/a/b/c/d"), with(b"x"), with(b"\0")];
    if !name.is_empty() {
        edits.push(name[..name.len() - 1].to_vec());
        edits.push([&name[..name.len() - last.len()], b"/x"].concat());
        for at in [name.len() - 1, first - 1, name.len() - last.len() + 1, rng.index(name.len())] {
            let mut other = name.to_vec();
            // The neighbour, or the same letter in another case.
            other[at] ^= if rng.chance(0.7) { 1 } else { 0x20 };
            edits.push(other);
        }
        edits.push([&name[..first], b"x", &name[first..]].concat());
        edits.push([&name[..first - 1], &name[first..]].concat());
        let at = rng.index(name.len());
        edits.push([&name[..at], b"/", &name[at..]].concat());
    }
    edits
}

/// Random names of the components of those given and of others, the same in every run.
pub fn scattered(names: &[NameBuf], count: usize) -> NameBatch {
    let mut rng = Rng::new(1);
    let mut batch = NameBatch::new();
    for _ in 0..count {
        let mut name = NameBuf::root();
        if !names.is_empty() {
            // The beginning of one and then pieces of others.
            let from = &names[rng.index(names.len())];
            let keep = rng.index(from.components().take(12).count() + 1);
            from.components().take(keep).for_each(|component| push(&mut name, component));
            for _ in 0..rng.index(3) {
                let other = &names[rng.index(names.len())];
                let which = rng.index(other.components().take(12).count().max(1));
                other.components().nth(which).into_iter().for_each(|component| push(&mut name, component));
            }
        }
        for _ in 0..rng.index(3) {
            push(&mut name, &component(&mut rng));
        }
        add(&mut batch, &name);
    }
    batch
}

/// A random component of 1 to 20 bytes, short ones more often.
pub(super) fn component(rng: &mut Rng) -> Vec<u8> {
    let len = 1 + rng.index(20).min(rng.index(20));
    (0..len).map(|_| rng.bits().to_le_bytes()[0]).map(|byte| if byte == b'/' { b'.' } else { byte }).collect()
}

fn push(name: &mut NameBuf, component: &[u8]) {
    name.push(component).expect("a component of a short name");
}

/// Adds a name; the suite's are far from filling a batch.
pub(super) fn add(batch: &mut NameBatch, name: &Name) {
    batch.push(name).expect("a batch has room");
}
