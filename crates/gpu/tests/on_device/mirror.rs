//! Engines whose tables answer from the device, be it addresses, names or rules that they look up: what these
//! have in common.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use wirespeed_fold::FoldHotTable;
use wirespeed_fold::hot::layout;
use wirespeed_image::device::{OnDevice, Program};
use wirespeed_image::{Checked, Image, ImageError, Patch, PatchError, SectionId, Table};

use super::device::{Copy, Device, Shared, device, lock};

/// Marks an engine of addresses.
pub(crate) struct OfAddresses;

/// An engine whose tables answer from the device, and of what it is.
pub(crate) struct Mirrored<E, K = OfAddresses>(pub(crate) E, PhantomData<fn() -> K>);

impl<E, K> Mirrored<E, K> {
    pub(crate) fn new(engine: E) -> Self {
        Self(engine, PhantomData)
    }
}

/// A table that answers from the device's copy of its image.
pub(crate) struct MirroredTable<T, K = OfAddresses> {
    pub(crate) table: T,
    of: PhantomData<fn() -> K>,
    device: Shared,
    copy: Mutex<Option<Copy>>,
    /// Whether the device was asked in this state of the table.
    has_answered: AtomicBool,
}

impl<T, K> MirroredTable<T, K> {
    pub(crate) fn new(table: T) -> Self {
        let device = device().expect("tests ask for the device first");
        Self { table, of: PhantomData, device, copy: Mutex::new(None), has_answered: AtomicBool::new(false) }
    }

    /// Whether the device is to answer a batch of so many keys: a number that is another one each time;
    /// `None` where the table answers.
    ///
    /// Suites ask each state for its keys in one batch and then again in short ones and one by one. What
    /// comes first is the device's to answer, and all that is long; of the rest one in sixteen, as each
    /// crosses to another process several times.
    pub(crate) fn turn(&self, keys: usize) -> Option<usize> {
        static TURN: AtomicUsize = AtomicUsize::new(0);
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        let is_first = !self.has_answered.swap(true, Ordering::Relaxed);
        (is_first || !is_short(keys) || turn.is_multiple_of(16)).then_some(turn)
    }

    /// Asks the device, where the table is uploaded first if it isn't there.
    pub(crate) fn ask(&self, ask: impl FnOnce(&mut Device, &[Program]))
    where
        T: OnDevice,
    {
        let mut device = lock(&self.device);
        let mut copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = copy.get_or_insert_with(|| {
            let mut copy = device.upload(&self.table);
            if T::KIND == FoldHotTable::KIND && !hot_blocks_agree(self.table.image()) {
                copy.programs.retain(|program| !program.stem.to_string().starts_with("fold_hot_all"));
            }
            copy
        });
        ask(&mut device, &copy.programs);
    }

    /// Gives the copy back.
    fn forget(&mut self) {
        if let Some(copy) = self.copy.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            lock(&self.device).forget(&copy);
        }
    }
}

/// Whether a batch is one of the short ones, of which suites have very many.
pub(crate) const fn is_short(keys: usize) -> bool {
    keys < 128
}

/// Whether hot blocks of FOLD say what their chunks say. A CPU reads chunks alone, so it answers otherwise
/// than programs with hot blocks where the suite has damaged one of both.
fn hot_blocks_agree(image: &Image) -> bool {
    let (blocks, chunks) = (image.section::<u64>(layout::HOT), image.section::<u64>(layout::N24));
    blocks.iter().zip(chunks.chunks(layout::SHORT / 8)).all(|(block, chunk)| {
        let [b1, b2, b3, _, values @ ..] = block.to_le_bytes();
        let elements = chunk.iter().flat_map(|word| word.to_le_bytes());
        elements.zip(0..=u8::MAX).all(|(next_hop, at)| {
            let run = [b1, b2, b3].into_iter().filter(|&boundary| at >= boundary).count();
            [next_hop, u8::MAX].contains(&values[run])
        })
    })
}

impl<T: OnDevice, K> Clone for MirroredTable<T, K> {
    fn clone(&self) -> Self {
        Self::new(self.table.clone())
    }
}

impl<T, K> Drop for MirroredTable<T, K> {
    fn drop(&mut self) {
        self.forget();
    }
}

impl<T: OnDevice, K: 'static> Table for MirroredTable<T, K> {
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
