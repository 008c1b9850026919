//! Engines of names whose tables answer from the device.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bytemuck::bytes_of;
use wirespeed_gpu::driver::Shape;
use wirespeed_gpu::names::{
    Wanted, bytes_of as bytes_of_names, pack, pack_ends, pack_rows, row_bytes_of, unpack, unpack_matches,
};
use wirespeed_gpu::program::{OnDevice, Program};
use wirespeed_gpu::runtime::Form;
use wirespeed_image::{Checked, Image, ImageError, Patch, PatchError, SectionId, Table};
use wirespeed_namelookup::{
    BuildError, BuildOptions, Match, Name, NameBatch, NameEngine, NameLpm, NameTable, Names, NodeId,
    Outgrown, Step,
};

use crate::device::{Copy, Device, Shared, device, lock};

/// An engine whose tables answer from the device.
pub(crate) struct Mirrored<E>(E);

/// Tables that input numbers are cut for.
pub(crate) trait Stride {
    /// The most bytes of a number; `None` where the table's kernels take no rows.
    fn stride(&self) -> Option<usize>;
}

impl Stride for wirespeed_namelookup::ActaTable {
    fn stride(&self) -> Option<usize> {
        None
    }
}

impl<F: wirespeed_namelookup::aligned::Form> Stride for wirespeed_namelookup::aligned::AlignedTable<F> {
    fn stride(&self) -> Option<usize> {
        Some(F::STRIDE.bytes())
    }
}

impl Stride for wirespeed_namelookup::stt::SttTable {
    fn stride(&self) -> Option<usize> {
        Some(1)
    }
}

/// A table that answers from the device's copy of its image.
pub(crate) struct MirroredTable<T> {
    table: T,
    device: Shared,
    copy: Mutex<Option<Copy>>,
    /// Whether the device was asked in this state of the table.
    has_answered: AtomicBool,
}

impl<E: NameEngine<Table: OnDevice + Stride>> NameEngine for Mirrored<E> {
    const NAME: &'static str = E::NAME;
    type Table = MirroredTable<E::Table>;

    fn build(names: &NameTable, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError> {
        let (engine, table) = E::build(names, options)?;
        Ok((Self(engine), MirroredTable::new(table)))
    }

    fn update(&mut self, names: &NameTable, changed: &[NodeId]) -> Result<Patch, Outgrown> {
        self.0.update(names, changed)
    }

    fn memory_usage(&self) -> u64 {
        self.0.memory_usage()
    }
}

impl<T> MirroredTable<T> {
    pub(crate) fn new(table: T) -> Self {
        let device = device().expect("tests ask for the device first");
        Self { table, device, copy: Mutex::new(None), has_answered: AtomicBool::new(false) }
    }

    /// Gives the copy back.
    fn forget(&mut self) {
        if let Some(copy) = self.copy.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            lock(&self.device).forget(&copy);
        }
    }
}

impl<T: OnDevice> Clone for MirroredTable<T> {
    fn clone(&self) -> Self {
        Self::new(self.table.clone())
    }
}

impl<T> Drop for MirroredTable<T> {
    fn drop(&mut self) {
        self.forget();
    }
}

impl<T: OnDevice> Table for MirroredTable<T> {
    const KIND: &'static str = T::KIND;
    const LAYOUT: u32 = T::LAYOUT;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        T::from_image(image).map(Self::new)
    }

    fn image(&self) -> &Image {
        self.table.image()
    }

    fn image_mut(&mut self, checked: Checked) -> &mut Image {
        // Whoever writes past `apply` has the copy made anew.
        *self.has_answered.get_mut() = false;
        self.forget();
        self.table.image_mut(checked)
    }

    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        self.table.admits(section, value, results)
    }

    fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
        self.table.admits_at(section, index, value, results)
    }

    fn check(&self, patch: &Patch) -> Result<(), PatchError> {
        self.table.check(patch)
    }

    fn apply(&mut self, patch: &Patch) -> Result<(), PatchError> {
        self.table.apply(patch)?;
        *self.has_answered.get_mut() = false;
        if let Some(copy) = self.copy.get_mut().unwrap_or_else(PoisonError::into_inner) {
            lock(&self.device).patch(self.table.image(), &copy.sections, patch);
        }
        Ok(())
    }
}

impl<T: OnDevice + NameLpm + Stride> NameLpm for MirroredTable<T> {
    fn lookup(&self, name: &Name) -> Match {
        let batch: NameBatch = [name].into_iter().collect();
        let mut found = [Match { result: u32::MAX, length: u32::MAX }];
        self.match_batch(batch.names(), &mut found);
        found[0]
    }

    fn lookup_batch(&self, names: Names<'_>, results: &mut [u32]) {
        let mut matches = vec![Match::NONE; results.len()];
        self.match_batch(names, &mut matches);
        results.iter_mut().zip(&matches).for_each(|(to, found)| *to = found.result);
    }

    fn match_batch(&self, names: Names<'_>, matches: &mut [Match]) {
        static TURN: AtomicUsize = AtomicUsize::new(0);
        assert_eq!(names.len(), matches.len(), "a match for each name");
        // As for addresses: each state's first batch and all long ones are the device's to answer, of the rest one in sixteen.
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        let is_first = !self.has_answered.swap(true, Ordering::Relaxed);
        if !is_first && names.len() < 128 && !turn.is_multiple_of(16) {
            return self.table.match_batch(names, matches);
        }
        let mut device = lock(&self.device);
        let mut copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner);
        let Copy { programs, .. } = copy.get_or_insert_with(|| device.upload(&self.table));
        device.match_all(&programs[turn % programs.len()], names, self.table.stride(), turn, matches);
    }

    fn shape(&self) -> Option<String> {
        self.table.shape()
    }

    fn explain(&self, name: &Name) -> Vec<Step> {
        self.table.explain(name)
    }
}

impl Device {
    /// Looks names up in each form, by results and by matches, all of which are to agree.
    pub(crate) fn match_all(
        &mut self,
        program: &Program,
        names: Names<'_>,
        stride: Option<usize>,
        turn: usize,
        matches: &mut [Match],
    ) {
        let forms = [pack as Pack, pack_ends];
        let [one, other] = if turn.is_multiple_of(2) { forms } else { [forms[1], forms[0]] };
        let mut bytes = vec![0xee; bytes_of_names(names)];
        let mut ask = |device: &mut Self, pack: Pack, wanted| {
            let form = pack(names, wanted, &mut bytes).expect("there is room");
            device.look_up_names(program, &bytes, form, turn)
        };
        unpack_matches(&ask(self, one, Wanted::Matches), matches);
        agree(program, &ask(self, one, Wanted::Results), Wanted::Results, matches);
        let wanted = if turn.is_multiple_of(3) { Wanted::Matches } else { Wanted::Results };
        agree(program, &ask(self, other, wanted), wanted, matches);
        if let Some(stride) = stride {
            let mut rows = vec![0xee; row_bytes_of(names, stride)];
            for wanted in [Wanted::Results, Wanted::Matches] {
                let form = pack_rows(names, stride, wanted, &mut rows).expect("there is room");
                agree(program, &self.look_up_names(program, &rows, form, turn), wanted, matches);
            }
        }
    }

    /// Looks up names as they lie in their form; the bytes of the results.
    fn look_up_names(&mut self, program: &Program, bytes: &[u8], form: Form, turn: usize) -> Vec<u8> {
        let second = form.second().expect("names have two parts");
        let results = form.count() * form.result_bytes().unwrap_or(program.result_bytes);
        // Each part on its own, so that a sanitizer sees both ends.
        let sizes = [second, form.bytes() - second, results];
        let blocks = self.take(&sizes);
        self.write(blocks[0], &bytes[..second]);
        self.write(blocks[1], &bytes[second..form.bytes()]);
        let shapes = [(1, 32), (3, 64), (2, 96), (1, 512)];
        let (grid, threads) = shapes[turn % shapes.len()];
        let shape = Shape { blocks: grid, threads, shared: program.shared };
        let batch = crate::device::batch([blocks[0], blocks[1], blocks[2]], form.count(), 0, 0);
        if form.count() > 0 {
            self.launch(&program.kernel(form.kind()), shape, [bytes_of(&batch), &program.table]);
        }
        let mut found = vec![0; results];
        self.read(blocks[2], &mut found);
        self.give_back(&blocks);
        found
    }
}

/// Packs names into a batch's bytes.
type Pack = fn(Names<'_>, Wanted, &mut [u8]) -> Option<Form>;

/// Holds what was found in another form against matches.
fn agree(program: &Program, found: &[u8], wanted: Wanted, matches: &[Match]) {
    if wanted == Wanted::Matches {
        let mut again = vec![Match { result: u32::MAX, length: u32::MAX }; matches.len()];
        unpack_matches(found, &mut again);
        assert_eq!(again, matches, "{}: matches of another form", program.stem);
    } else {
        let mut results = vec![u32::MAX; matches.len()];
        unpack(found, program.result_bytes, &mut results);
        let right = matches.iter().map(|found| found.result);
        assert!(results.iter().copied().eq(right), "{}: results of another form", program.stem);
    }
}
