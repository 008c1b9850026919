//! Images saved, opened and mapped, those of other kinds, damaged ones, and memory caps.

use std::collections::BTreeSet;

use wirespeed_image::rounds;
use wirespeed_image::{Image, ImageBuilder, ImageError, Patch, PatchBuilder, SectionId, Table};
use wirespeed_rng::Rng;

use super::suite::{Suite, table_step};
use super::tally::Tally;
use crate::domain::{Domain, Keys};
use crate::engine::Engine;
use crate::lookup::Lookup;
use crate::options::BuildOptions;

/// Saved, opened and mapped images answer as the table did; a damaged element is refused, or every lookup
/// still answers.
pub fn images<D: Domain, S: Suite<D>, E: Engine<D>>() {
    let tally = Tally::<D, S, E>::new("images");
    let empty = |kind: &str, layout| ImageBuilder::new(kind, layout).build(None).expect("an empty image");
    let other = E::Table::from_image(empty("other", E::Table::LAYOUT));
    assert!(matches!(other, Err(ImageError::Kind { .. })), "an image of another kind is taken");
    let later = E::Table::from_image(empty(E::Table::KIND, u32::MAX));
    assert!(matches!(later, Err(ImageError::Layout { .. })), "an image of a later layout is taken");
    let bare = E::Table::from_image(empty(E::Table::KIND, E::Table::LAYOUT));
    assert!(bare.is_err(), "sections are missing");
    other_sections(&tally);
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (at, (what, source)) in S::hand_picked().into_iter().enumerate().step_by(table_step::<D, E>()) {
        let Some((_, table)) = tally.build(&source, what) else { continue };
        let path = dir.path().join("table.img");
        table.image().save(&path).expect("the image is saved");
        let opened = Image::open(&path).and_then(E::Table::from_image).expect("it is opened");
        S::check_all(&opened, &source, what);
        #[allow(unsafe_code)]
        // SAFETY: nobody else knows of the temporary file.
        let mapped = unsafe { Image::map(&path) }.and_then(E::Table::from_image).expect("it is mapped");
        if at.is_multiple_of(rounds::stride()) {
            S::check_all(&mapped, &source, what);
        }
        if S::is_damaged(at, &source) {
            damaged::<D, S, E>(&source, &table, what);
        }
    }
    tally.finish();
}

/// Images over so many bytes are not put together anew, element by element.
const LARGE: u64 = 4 << 20;

/// Sections that are missing, of another width, or shorter: the image is refused, or lookups still answer.
fn other_sections<D: Domain, S: Suite<D>, E: Engine<D>>(tally: &Tally<D, S, E>) {
    let source = S::few();
    let Some((_, table)) = tally.build(&source, "a few entries") else { return };
    let image = table.image();
    if image.bytes() > LARGE {
        return;
    }
    let usage = image.memory_usage();
    let batch = S::around(&source);
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
                assert!(
                    S::WIDTHS_VARY || width == section.width,
                    "section {} of width {width} is taken",
                    section.name
                );
                answers::<D, S>(&taken, taken.image().results(), S::keys(&batch), "another length");
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
fn damaged<D: Domain, S: Suite<D>, E: Engine<D>>(source: &D::Source, table: &E::Table, what: &str) {
    let image = table.image();
    let (batch, (bytes, most)) = (S::around(source), S::DAMAGED);
    let keys = S::keys(&batch);
    let mut rng = Rng::new(11);
    let read = elements_read::<D, S>(table, image, keys, &mut rng);
    let values: Vec<_> = read.iter().map(|&(id, index)| hostile_values(image, id, index)).collect();
    let tries = values.iter().map(Vec::len).sum::<usize>() as u64;
    // Of so many values one is tried. Drawn, so that each kind of value and of element has its turn.
    let one_in = (tries * image.bytes() / bytes).min(tries / 48).max(tries / most).max(1);
    let one_in = rounds::tried(one_in);
    for (&(id, index), values) in read.iter().zip(&values) {
        for &value in values {
            if rng.bits().is_multiple_of(one_in) {
                agree::<D, S, E>(table, &[(id, index, value)], keys, what);
            }
        }
    }
    for _ in 0..(2 * tries / 27 / one_in).max(4) {
        let one = |_| {
            let at = rng.index(read.len());
            (read[at].0, read[at].1, values[at][rng.index(values[at].len())])
        };
        let some: Vec<_> = (0..3).map(one).collect();
        agree::<D, S, E>(table, &some, keys, what);
    }
}

/// Elements that lookups read, some that they may not, and the ends of each section.
fn elements_read<D: Domain, S: Suite<D>>(
    table: &dyn Lookup<D>,
    image: &Image,
    keys: D::Keys<'_>,
    rng: &mut Rng,
) -> Vec<(SectionId, u64)> {
    let steps = (0..keys.len().min(40)).flat_map(|at| table.explain(S::key(keys, at)));
    let mut read: BTreeSet<_> = steps
        .map(|step| (image.find(step.section).expect("an explained step names its section"), step.index))
        .collect();
    if read.len() > 40 {
        let all: Vec<_> = read.into_iter().collect();
        read = (0..40).map(|_| all[rng.index(all.len())]).collect();
    }
    for (id, section) in (0..).map(SectionId).zip(image.memory_usage()) {
        if section.len > 0 && !S::SHAPES_VARY {
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
fn agree<D: Domain, S: Suite<D>, E: Engine<D>>(
    table: &E::Table,
    values: &[(SectionId, u64, u64)],
    keys: D::Keys<'_>,
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
        let what = format!("{what}: {}", written());
        answers::<D, S>(&taken, taken.image().results(), keys, &what);
    }
}

/// Whatever a table says, it says it in every way of asking, and it is a result that its image states.
fn answers<D: Domain, S: Suite<D>>(table: &dyn Lookup<D>, stated: u64, keys: D::Keys<'_>, what: &str) {
    let mut results = vec![D::Result::default(); keys.len()];
    table.lookup_batch(keys, &mut results);
    let mut found = vec![D::Found::default(); keys.len()];
    table.match_batch(keys, &mut found);
    for (at, (&found, &result)) in found.iter().zip(&results).enumerate() {
        let key = S::key(keys, at);
        let alone = table.lookup(key);
        assert!(
            alone == found && S::result(alone) == result,
            "{what}: key {at} alone {alone:?}, in a batch {found:?} and {result:?}"
        );
        assert!(S::number(result) <= stated, "{what}: {alone:?} is past the stated results, {stated}");
        assert!(S::is_possible(key, alone), "{what}: {alone:?} of key {at} can't be");
        if at % 16 == 0 {
            let _ = table.explain(key);
        }
    }
}

/// A cap below what the table takes is an error; at what it takes, none.
pub fn memory_cap<D: Domain, S: Suite<D>, E: Engine<D>>() {
    if rounds::leaves_to_ci() {
        return;
    }
    let tally = Tally::<D, S, E>::new("memory_cap");
    // Each table is built four times. A broken engine may be wrong for one of them alone.
    let step = table_step::<D, E>() * if rounds::is_broken() { 1 } else { rounds::stride() };
    for (what, source) in S::hand_picked().into_iter().step_by(step) {
        let Some((_, table)) = tally.build(&source, what) else { continue };
        let needed = table.image().bytes();
        let cap = |bytes| BuildOptions { memory_cap: Some(bytes), ..S::options() };
        let held = E::build(&source, &cap(needed)).map(|(_, table)| table.image().bytes());
        assert!(held.as_ref().is_ok_and(|&bytes| bytes <= needed), "{what}: capped at {needed}, {held:?}");
        // An engine that can do with less does.
        if let Ok((_, table)) = E::build(&source, &cap(needed - 1)) {
            assert!(!S::IS_EXACT, "{what}: a byte less does");
            assert!(table.image().bytes() < needed, "{what}: over the cap of {} bytes", needed - 1);
            S::check_all(&table, &source, what);
        }
        assert!(E::build(&source, &cap(200)).is_err(), "{what}: a table of 200 bytes");
    }
    tally.finish();
}
