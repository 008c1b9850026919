//! Images saved, opened and mapped, those of other kinds, damaged ones, and memory caps.

use std::collections::BTreeSet;

use wirespeed_fib::conformance::rounds;
use wirespeed_fib::synth::rng::Rng;
use wirespeed_image::{Image, ImageBuilder, ImageError, Patch, PatchBuilder, SectionId, Table};
use wirespeed_table::{BuildOptions, Engine, Lookup};

use super::{Tally, check_all, options, probes, tables};
use crate::domain::NameDomain;
use crate::found::Match;
use crate::names::{NameBatch, Names};
use crate::table::NameTable;

/// Saved, opened and mapped images answer as the table did; a damaged element is refused, or every lookup
/// still answers.
pub fn images<E: Engine<NameDomain>>() {
    let tally = Tally::<E>::new("images");
    let empty = |kind: &str, layout| ImageBuilder::new(kind, layout).build(None).expect("an empty image");
    let other = E::Table::from_image(empty("other", E::Table::LAYOUT));
    assert!(matches!(other, Err(ImageError::Kind { .. })), "an image of another kind is taken");
    let later = E::Table::from_image(empty(E::Table::KIND, u32::MAX));
    assert!(matches!(later, Err(ImageError::Layout { .. })), "an image of a later layout is taken");
    let bare = E::Table::from_image(empty(E::Table::KIND, E::Table::LAYOUT));
    assert!(bare.is_err(), "sections are missing");
    other_sections::<E>(&tally);
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (what, names) in tables::hand_picked() {
        let Some((_, table)) = tally.build(&names, what) else { continue };
        let path = dir.path().join("table.img");
        table.image().save(&path).expect("the image is saved");
        let opened = Image::open(&path).and_then(E::Table::from_image).expect("it is opened");
        check_all(&opened, &names, &[], what);
        #[allow(unsafe_code)]
        // SAFETY: nobody else knows of the temporary file.
        let mapped = unsafe { Image::map(&path) }.and_then(E::Table::from_image).expect("it is mapped");
        check_all(&mapped, &names, &[], what);
        damaged::<E>(&names, &table, what);
    }
    tally.finish();
}

/// Sections that are missing, of another width, or shorter: the image is refused, or lookups still answer.
fn other_sections<E: Engine<NameDomain>>(tally: &Tally<E>) {
    let names: NameTable = tables::scattered_names(60).into_iter().zip(1..).collect();
    let Some((_, table)) = tally.build(&names, "a few names") else { return };
    let entries: Vec<_> = names.iter().map(|(name, _)| name).collect();
    let image = table.image();
    let usage = image.memory_usage();
    let batch = probes::around(&entries);
    for (cut, section) in usage.iter().enumerate() {
        for (width, len) in [(0, 0), (1, section.len), (2, section.len), (4, section.len), (8, section.len)]
            .into_iter()
            .chain([0, 1, section.len / 2, section.len.saturating_sub(1)].map(|len| (section.width, len)))
        {
            if (width, len) == (section.width, section.len) {
                continue;
            }
            let mut builder = ImageBuilder::new(E::Table::KIND, E::Table::LAYOUT);
            for (at, other) in usage.iter().enumerate() {
                builder = match (at == cut, width) {
                    (true, 0) => builder,
                    (true, width) => builder.section_of_width(&other.name, width as usize, len),
                    _ => builder.section_of_width(&other.name, other.width as usize, other.len),
                };
            }
            let mut other = builder.build(None).expect("a small image");
            copy_sections(image, &mut other);
            if let Ok(taken) = E::Table::from_image(other) {
                assert!(width == section.width, "section {} of width {width} is taken", section.name);
                answers(&taken, batch.names(), "another length");
            }
        }
    }
}

/// Copies what both have of each section, element by element.
fn copy_sections(from: &Image, to: &mut Image) {
    let mut patch = PatchBuilder::new();
    for (id, section) in (0..).map(SectionId).zip(from.memory_usage()) {
        let Some(there) = to.find(&section.name) else { continue };
        let usage = &to.memory_usage()[usize::from(there.0)];
        let top = u64::MAX >> (64 - 8 * usage.width);
        for index in 0..usage.len.min(section.len) {
            patch.set(there, index, element(from, id, index) & top);
        }
    }
    to.apply(&patch.finish(Some((from.entries(), from.results())))).expect("the elements are there");
}

/// An element, whatever its width.
fn element(image: &Image, id: SectionId, index: u64) -> u64 {
    let at = usize::try_from(index).expect("an element in memory");
    match image.width(id) {
        Some(1) => image.section::<u8>(id)[at].into(),
        Some(2) => image.section::<u16>(id)[at].into(),
        Some(4) => image.section::<u32>(id)[at].into(),
        _ => image.section::<u64>(id)[at],
    }
}

/// Elements that no engine wrote, one at a time and a few together: `from_image` and `check` agree on what
/// they refuse, and what they take answers every lookup with something, single as in a batch. Each value is
/// tried in a copy of the image; where these would be too many, some values are, the same in every run.
fn damaged<E: Engine<NameDomain>>(names: &NameTable, table: &E::Table, what: &str) {
    /// Bytes of copies, and tries, of one table.
    const BUDGET: (u64, u64) = (64 << 20, 700);
    let image = table.image();
    let mut entries: Vec<_> = names.iter().map(|(name, _)| name).collect();
    // The shortest, and a long one if it isn't so long that little else gets its turn.
    entries.sort_unstable_by_key(|name| (name.len() > 500, name.components().count() % 3, name.len()));
    entries.truncate(6);
    let mut batch = probes::around(&entries);
    probes::scattered(&entries, 20).names().iter().for_each(|name| probes::add(&mut batch, name));
    let mut rng = Rng::new(11);
    let read = elements_read(table, image, &batch, &mut rng);
    let values: Vec<_> = read.iter().map(|&(id, index)| hostile_values(image, id, index)).collect();
    let tries = values.iter().map(Vec::len).sum::<usize>() as u64;
    // Of so many values one is tried. Drawn, so that each kind of value and of element has its turn.
    let one_in = (tries * image.bytes() / BUDGET.0).min(tries / 48).max(tries / BUDGET.1).max(1);
    let one_in = rounds::tried(one_in);
    for (&(id, index), values) in read.iter().zip(&values) {
        for &value in values {
            if rng.bits().is_multiple_of(one_in) {
                agree::<E>(table, &[(id, index, value)], batch.names(), what);
            }
        }
    }
    for _ in 0..(2 * tries / 27 / one_in).max(4) {
        let one = |_| {
            let at = rng.index(read.len());
            (read[at].0, read[at].1, values[at][rng.index(values[at].len())])
        };
        let some: Vec<_> = (0..3).map(one).collect();
        agree::<E>(table, &some, batch.names(), what);
    }
}

/// Elements that lookups read, some that they may not, and the ends of each section.
fn elements_read<T: Lookup<NameDomain>>(
    table: &T,
    image: &Image,
    batch: &NameBatch,
    rng: &mut Rng,
) -> Vec<(SectionId, u64)> {
    let steps = batch.names().iter().take(40).flat_map(|name| table.explain(name));
    let mut read: BTreeSet<_> = steps
        .map(|step| (image.find(step.section).expect("an explained step names its section"), step.index))
        .collect();
    if read.len() > 40 {
        let all: Vec<_> = read.into_iter().collect();
        read = (0..40).map(|_| all[rng.index(all.len())]).collect();
    }
    for (id, section) in (0..).map(SectionId).zip(image.memory_usage()) {
        if section.len > 0 {
            // The first elements of a head are its fields.
            read.extend((0..section.len.min(24)).map(|index| (id, index)));
            read.insert((id, section.len - 1));
            read.extend((0..4).map(|_| (id, rng.below(section.len))));
        }
    }
    read.into_iter().collect()
}

/// Values just inside and just outside of small tables, far outside, and near what is there.
fn hostile_values(image: &Image, id: SectionId, index: u64) -> Vec<u64> {
    let bits = 8 * image.width(id).expect("a section found is there");
    let top = u64::MAX >> (64 - bits);
    let now = element(image, id, index);
    let near = [now.wrapping_add(1) & top, now.wrapping_sub(1) & top];
    let flipped = (0..bits).map(|bit| now ^ 1 << bit);
    (0..20).chain([top / 3, top >> 1, top]).chain(near).chain(flipped).collect()
}

/// Tries values in place of what an engine wrote.
fn agree<E: Engine<NameDomain>>(
    table: &E::Table,
    values: &[(SectionId, u64, u64)],
    names: Names<'_>,
    what: &str,
) {
    let mut patch = PatchBuilder::new();
    values.iter().for_each(|&(id, index, value)| patch.set(id, index, value));
    let patch: Patch = patch.finish(None);
    let mut raw = table.image().clone();
    raw.apply(&patch).expect("the elements are there");
    let taken = E::Table::from_image(raw);
    // All that `apply` does before it writes; a copy for each value would cost more than the rest of the
    // suite.
    let patched = table.check(&patch);
    let written = || {
        let name = |id: SectionId| table.image().memory_usage()[usize::from(id.0)].name.clone();
        values.iter().map(|&(id, i, v)| format!("{}[{i}] = {v:#x}", name(id))).collect::<Vec<_>>().join(", ")
    };
    assert!(
        taken.is_ok() == patched.is_ok(),
        "{what}: {}: from_image says {:?}, check {patched:?}",
        written(),
        taken.as_ref().err().map(ToString::to_string)
    );
    if let Ok(taken) = taken {
        answers(&taken, names, &format!("{what}: {}", written()));
    }
}

/// Whatever a table says, it says it in every way of asking, and it is a result that it states and no more
/// than the name.
fn answers<T: Table + Lookup<NameDomain>>(table: &T, names: Names<'_>, what: &str) {
    let mut results = vec![u32::MAX; names.len()];
    table.lookup_batch(names, &mut results);
    let mut matches = vec![Match::NONE; names.len()];
    table.match_batch(names, &mut matches);
    for (at, name) in names.iter().enumerate() {
        let alone = table.lookup(name);
        assert!(
            alone == matches[at] && alone.result == results[at],
            "{what}: {name:?} alone {alone:?}, in a batch {:?} and {}",
            matches[at],
            results[at]
        );
        assert!(
            u64::from(alone.result) <= table.image().results(),
            "{what}: {alone:?} is past the stated results"
        );
        assert!(alone.length as usize <= name.len(), "{what}: {name:?} {alone:?} is more than the name");
        if at % 16 == 0 {
            let _ = table.explain(name);
        }
    }
}

/// A cap below what the table takes is an error; at what it takes, none.
pub fn memory_cap<E: Engine<NameDomain>>() {
    let tally = Tally::<E>::new("memory_cap");
    for (what, names) in tables::hand_picked() {
        let Some((_, table)) = tally.build(&names, what) else { continue };
        let needed = table.image().bytes();
        let cap = |bytes| BuildOptions { memory_cap: Some(bytes), ..options() };
        let held = E::build(&names, &cap(needed)).map(|(_, table)| table.image().bytes());
        assert!(held.as_ref().is_ok_and(|&bytes| bytes <= needed), "{what}: capped at {needed}, {held:?}");
        // An engine that can do with less does.
        if let Ok((_, table)) = E::build(&names, &cap(needed - 1)) {
            assert!(table.image().bytes() < needed, "{what}: over the cap of {} bytes", needed - 1);
            check_all(&table, &names, &[], what);
        }
        assert!(E::build(&names, &cap(200)).is_err(), "{what}: a table of 200 bytes");
    }
    tally.finish();
}
