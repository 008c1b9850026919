//! Images saved, opened and mapped, those of other kinds, damaged ones, and memory caps.

use std::collections::BTreeSet;

use wirespeed_image::rounds;
use wirespeed_image::{Image, ImageBuilder, ImageError, Patch, PatchBuilder, SectionId, Table};
use wirespeed_rng::Rng;
use wirespeed_table::{BuildOptions, Engine, Lookup};

use super::{Tally, check_all, options, probes, sets};
use crate::rules::RuleSet;
use crate::tuple::Tuple;

/// Saved, opened and mapped images answer as the table did; a damaged element is refused, or every lookup
/// still answers.
pub fn images<T: Tuple, E: Engine<T>>() {
    let tally = Tally::<T, E>::new("images");
    let empty = |kind: &str, layout| ImageBuilder::new(kind, layout).build(None).expect("an empty image");
    let other = E::Table::from_image(empty("other", E::Table::LAYOUT));
    assert!(matches!(other, Err(ImageError::Kind { .. })), "an image of another kind is taken");
    let later = E::Table::from_image(empty(E::Table::KIND, u32::MAX));
    assert!(matches!(later, Err(ImageError::Layout { .. })), "an image of a later layout is taken");
    let bare = E::Table::from_image(empty(E::Table::KIND, E::Table::LAYOUT));
    assert!(bare.is_err(), "sections are missing");
    other_sections::<T, E>(&tally);
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (what, rules) in sets::hand_picked::<T>() {
        let Some((_, table)) = tally.build(&rules, what) else { continue };
        let path = dir.path().join("table.img");
        table.image().save(&path).expect("the image is saved");
        let opened = Image::open(&path).and_then(E::Table::from_image).expect("it is opened");
        check_all(&opened, &rules, &[], what);
        #[allow(unsafe_code)]
        // SAFETY: nobody else knows of the temporary file.
        let mapped = unsafe { Image::map(&path) }.and_then(E::Table::from_image).expect("it is mapped");
        check_all(&mapped, &rules, &[], what);
        // Copies of what takes a class or more for each rule would cost more than they show.
        if rules.len() <= 300 {
            damaged::<T, E>(&rules, &table, what);
        }
    }
    tally.finish();
}

/// Sections that are missing, of another width, or shorter: the image is refused, or lookups still answer.
fn other_sections<T: Tuple, E: Engine<T>>(tally: &Tally<T, E>) {
    let mut rng = Rng::new(5);
    let rules = sets::World::<T>::new(&mut rng).rules(&mut rng, 60);
    let Some((_, table)) = tally.build(&rules, "a few rules") else { return };
    let image = table.image();
    let usage = image.memory_usage();
    let tuples = probes::around(&rules, 20);
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
                answers(&taken, &tuples, "another length");
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
fn damaged<T: Tuple, E: Engine<T>>(rules: &RuleSet<T>, table: &E::Table, what: &str) {
    /// Bytes of copies, and tries, of one table.
    const BUDGET: (u64, u64) = (64 << 20, 1_500);
    let image = table.image();
    let tuples = probes::around(rules, 6);
    let mut rng = Rng::new(11);
    let read = elements_read(table, image, &tuples, &mut rng);
    let values: Vec<_> = read.iter().map(|&(id, index)| hostile_values(image, id, index)).collect();
    let tries = values.iter().map(Vec::len).sum::<usize>() as u64;
    // Of so many values one is tried. Drawn, so that each kind of value and of element has its turn.
    let one_in = (tries * image.bytes() / BUDGET.0).min(tries / 48).max(tries / BUDGET.1).max(1);
    let one_in = rounds::tried(one_in);
    for (&(id, index), values) in read.iter().zip(&values) {
        for &value in values {
            if rng.bits().is_multiple_of(one_in) {
                agree::<T, E>(table, &[(id, index, value)], &tuples, what);
            }
        }
    }
    for _ in 0..(2 * tries / 27 / one_in).max(4) {
        let one = |_| {
            let at = rng.index(read.len());
            (read[at].0, read[at].1, values[at][rng.index(values[at].len())])
        };
        let some: Vec<_> = (0..3).map(one).collect();
        agree::<T, E>(table, &some, &tuples, what);
    }
}

/// Elements that lookups read, some that they may not, and the ends of each section.
fn elements_read<T: Tuple, C: Lookup<T>>(
    table: &C,
    image: &Image,
    tuples: &[T],
    rng: &mut Rng,
) -> Vec<(SectionId, u64)> {
    let steps = tuples.iter().take(40).flat_map(|tuple| table.explain(tuple));
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
fn agree<T: Tuple, E: Engine<T>>(
    table: &E::Table,
    values: &[(SectionId, u64, u64)],
    tuples: &[T],
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
        answers(&taken, tuples, &format!("{what}: {}", written()));
    }
}

/// Whatever a table says, it says it in every way of asking, and it is a number that it states.
fn answers<T: Tuple, C: Table + Lookup<T>>(table: &C, tuples: &[T], what: &str) {
    let mut results = vec![u32::MAX; tuples.len()];
    table.lookup_batch(tuples, &mut results);
    for (at, (tuple, &result)) in tuples.iter().zip(&results).enumerate() {
        let alone = table.lookup(tuple);
        assert!(alone == result, "{what}: {tuple} alone {alone}, in a batch {result}");
        assert!(u64::from(alone) <= table.image().results(), "{what}: {alone} is past the stated results");
        if at % 16 == 0 {
            let _ = table.explain(tuple);
        }
    }
}

/// A cap below what the table takes is an error; at what it takes, none.
pub fn memory_cap<T: Tuple, E: Engine<T>>() {
    let tally = Tally::<T, E>::new("memory_cap");
    for (what, rules) in sets::hand_picked::<T>() {
        let Some((_, table)) = tally.build(&rules, what) else { continue };
        let needed = table.image().bytes();
        let cap = |bytes| BuildOptions { memory_cap: Some(bytes), ..options() };
        let held = E::build(&rules, &cap(needed)).map(|(_, table)| table.image().bytes());
        assert!(held.as_ref().is_ok_and(|&bytes| bytes <= needed), "{what}: capped at {needed}, {held:?}");
        // An engine that can do with less does.
        if let Ok((_, table)) = E::build(&rules, &cap(needed - 1)) {
            assert!(table.image().bytes() < needed, "{what}: over the cap of {} bytes", needed - 1);
            check_all(&table, &rules, &[], what);
        }
        assert!(E::build(&rules, &cap(200)).is_err(), "{what}: a table of 200 bytes");
    }
    tally.finish();
}
