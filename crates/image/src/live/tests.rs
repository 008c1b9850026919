use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::stop::Stop;
use crate::{Image, ImageBuilder, ImageError, PatchBuilder, SectionId};

const CELLS: SectionId = SectionId(0);

/// A table whose elements are all equal in every consistent state.
#[derive(Clone, Debug)]
struct Flat(Image);

impl Flat {
    fn new(len: u64) -> Self {
        Self(ImageBuilder::new("flat", 1).section::<u32>("cells", len).build(None).unwrap())
    }
}

impl Table for Flat {
    const KIND: &'static str = "flat";
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        Ok(Self(image))
    }

    fn image(&self) -> &Image {
        &self.0
    }

    fn image_mut(&mut self, _: Checked) -> &mut Image {
        &mut self.0
    }

    fn admits(&self, _: SectionId, value: u64, _: u64) -> bool {
        value < 1_000_000
    }
}

fn all(len: u64, value: u64) -> Patch {
    let mut patch = PatchBuilder::new();
    (0..len).for_each(|i| patch.set(CELLS, i, value));
    patch.finish(Some((value, value)))
}

#[test]
fn readers_on_other_threads_never_see_a_mixture() {
    let mut writer = Writer::new(Flat::new(512));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let reader = writer.reader();
            let stop = &stop;
            scope.spawn(move || {
                let mut last = 0;
                while !stop.load(Ordering::Relaxed) {
                    let table = reader.enter();
                    let cells = table.image().section::<u32>(CELLS);
                    let value = cells[0];
                    assert!(cells.iter().all(|&cell| cell == value), "a torn state");
                    assert_eq!(u64::from(value), table.image().entries());
                    assert!(value >= last, "a change was undone");
                    last = value;
                }
            });
        }
        for value in 1..2000 {
            if value % 100 == 0 {
                let mut other = Flat::new(512 + value);
                other.apply(&all(512 + value, value)).unwrap();
                writer.replace(other);
            } else {
                let len = writer.current().image().memory_usage()[0].len;
                writer.patch(all(len, value)).unwrap();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let reader = writer.reader();
    drop(writer);
    assert_eq!(reader.enter().image().entries(), 1999);
}

/// A copy that takes part in everything.
#[derive(Clone, Debug)]
struct Copied(Arc<Mutex<Flat>>);

impl Follower<Flat> for Copied {
    fn patch(&mut self, patch: &Patch) {
        self.0.lock().unwrap().apply(patch).unwrap();
    }

    fn replace(&mut self, table: &Flat) {
        *self.0.lock().unwrap() = table.clone();
    }
}

#[test]
fn a_follower_is_told_of_every_change_and_of_no_other() {
    let mut writer = Writer::new(Flat::new(4));
    writer.patch(all(4, 7)).unwrap();
    let copied = Copied(Arc::new(Mutex::new(Flat::new(1))));
    let made = copied.clone();
    writer
        .follow(|table| {
            *made.0.lock().unwrap() = table.clone();
            Ok::<_, ()>(made.clone())
        })
        .unwrap();
    let same = |writer: &Writer<Flat>| {
        let copied = copied.0.lock().unwrap();
        assert_eq!(copied.image().section::<u32>(CELLS), writer.current().image().section::<u32>(CELLS));
    };
    same(&writer);
    writer.patch(all(4, 8)).unwrap();
    same(&writer);
    assert!(writer.patch(all(5, 9)).is_err());
    same(&writer);
    writer.replace(Flat::new(9));
    same(&writer);
    assert!(writer.follow(|_| Err::<Copied, _>(())).is_err());
    writer.patch(all(9, 3)).unwrap();
    same(&writer);
}

#[test]
fn a_patch_that_does_not_fit_changes_neither_copy() {
    let mut writer = Writer::new(Flat::new(4));
    let reader = writer.reader();
    writer.patch(all(4, 7)).unwrap();
    assert!(matches!(writer.patch(all(5, 8)), Err(PatchError::Index { .. })));
    assert!(matches!(writer.patch(all(4, 1_000_000)), Err(PatchError::Value { .. })));
    for value in [7, 9, 10] {
        writer.patch(all(4, value)).unwrap();
        assert!(reader.enter().image().section::<u32>(CELLS).iter().all(|&c| u64::from(c) == value));
    }
}

#[test]
fn changes_to_different_places_reach_both_copies() {
    let mut writer = Writer::new(Flat::new(4));
    let reader = writer.reader();
    let mut cells = [0; 4];
    for round in 1..20u32 {
        let at = round % 4;
        let mut patch = PatchBuilder::new();
        patch.set(CELLS, at.into(), round.into());
        writer.patch(patch.finish(None)).unwrap();
        cells[at as usize] = round;
        assert_eq!(reader.enter().image().section::<u32>(CELLS), cells);
    }
}

#[test]
fn a_guard_keeps_its_state_while_the_writer_goes_on() {
    let mut writer = Writer::new(Flat::new(4));
    let reader = writer.reader();
    let guard = reader.enter();
    // One change can be made beside a straggler; the next would wait for it.
    writer.patch(all(4, 1)).unwrap();
    assert_eq!(guard.image().section::<u32>(CELLS), [0; 4]);
    drop(guard);
    writer.patch(all(4, 2)).unwrap();
    assert_eq!(reader.enter().image().section::<u32>(CELLS), [2; 4]);
}

/// The value that every cell has.
#[derive(Clone, Debug)]
struct Said(u64);

impl Beside for Said {
    type Change = u64;

    fn apply(&mut self, change: &u64) {
        self.0 = *change;
    }
}

#[test]
fn what_is_beside_a_table_is_of_its_state() {
    let mut writer = Writer::with(Flat::new(64), Said(0));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (reader, stop) = (writer.reader(), &stop);
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let state = reader.enter_state();
                assert_eq!(state.table.image().entries(), state.beside.0);
            }
        });
        for value in 1..1000 {
            if value % 100 == 0 {
                let mut other = Flat::new(64);
                other.apply(&all(64, value)).unwrap();
                writer.replace_with(other, value);
            } else {
                writer.patch_with(all(64, value), value).unwrap();
            }
        }
        assert!(writer.patch_with(all(65, 1), 1).is_err());
        stop.store(true, Ordering::Relaxed);
    });
    let reader = writer.reader();
    assert_eq!((reader.enter_state().beside.0, reader.enter().image().entries()), (999, 999));
    // Both copies get it.
    writer.change_beside(7);
    for value in [7, 8, 9] {
        assert_eq!((reader.enter_state().beside.0, reader.enter().image().entries()), (value, 999));
        writer.change_beside(value + 1);
    }
}

/// A table of which twins share the first section. A patch writes elements that are not in use, and the
/// root that leads to them.
#[derive(Debug)]
struct Rooted(Image);

const ROOTS: SectionId = SectionId(1);

impl Rooted {
    fn new() -> Self {
        let builder =
            ImageBuilder::new("rooted", 1).section::<u16>("cells", 4 * 64).section::<u32>("roots", 1);
        Self(builder.build(None).unwrap())
    }

    /// Whether the elements that the root leads to are of its state.
    fn is_whole(&self) -> bool {
        let root = self.0.section::<u32>(ROOTS)[0];
        let cells = self.0.shared::<u16>(CELLS);
        let from = (root % 4) as usize * 64;
        (from..from + 64).all(|at| u32::from(cells.at(at)) == root)
    }
}

impl Clone for Rooted {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl Table for Rooted {
    const KIND: &'static str = "rooted";
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        Ok(Self(image))
    }

    fn image(&self) -> &Image {
        &self.0
    }

    fn image_mut(&mut self, _: Checked) -> &mut Image {
        &mut self.0
    }

    fn admits(&self, _: SectionId, value: u64, results: u64) -> bool {
        value <= results
    }

    fn share(&mut self, checked: Checked) {
        checked.share(&mut self.0, 1);
    }

    fn twin(&self, checked: Checked) -> Self {
        Self(checked.twin(&self.0))
    }
}

fn to(state: u64) -> Patch {
    let mut patch = PatchBuilder::new();
    (0..64).for_each(|at| patch.set(CELLS, state % 4 * 64 + at, state));
    patch.set(ROOTS, 0, state);
    patch.finish(Some((1, state)))
}

#[test]
fn copies_share_sections_that_a_patch_writes_once() {
    let mut writer = Writer::new(Rooted::new());
    let (length, own) = (Rooted::new().0.bytes(), 4u64.next_multiple_of(64) + 64);
    assert_eq!(writer.memory_usage(), length + 2 * own);
    let (reader, stop) = (writer.reader(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        for copies in [false, true] {
            let (reader, stop) = (&reader, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let table = reader.enter();
                    assert!(table.is_whole(), "a torn state");
                    if copies {
                        let mut file = Vec::new();
                        table.image().write(&mut file).unwrap();
                        let copy = Image::from_bytes(&file).unwrap();
                        let most = copy.results();
                        let cells = copy.section::<u16>(CELLS);
                        assert!(cells.iter().all(|&cell| u64::from(cell) <= most), "results are over {most}");
                        assert!(Rooted(copy).is_whole(), "a torn copy");
                    }
                }
            });
        }
        for state in 1..400 {
            writer.patch(to(state)).unwrap();
            if state % 50 == 0 {
                let mut other = Rooted::new();
                other.apply(&to(state)).unwrap();
                writer.replace(other);
            }
        }
    });
    assert!(writer.current().is_whole());
    assert_eq!(writer.current().image().section::<u32>(ROOTS), [399]);
    // A clone shares nothing.
    let clone = writer.current().clone();
    writer.patch(to(403)).unwrap();
    writer.patch(to(407)).unwrap();
    assert!(clone.is_whole() && clone.0.section::<u16>(CELLS)[3 * 64] == 399);
    let attached = writer.current().image().with_attachment("more", b"bytes").unwrap();
    assert_eq!(attached.attachment("more"), Some(&b"bytes"[..]));
    assert_eq!(attached.section::<u16>(CELLS)[3 * 64], 407);
}

#[test]
#[should_panic(expected = "shared")]
fn shared_elements_are_not_borrowed() {
    let writer = Writer::new(Rooted::new());
    let _ = writer.current().image().section::<u16>(CELLS);
}
