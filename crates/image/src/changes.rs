//! [`Changes`]: the writes of an update to a table. [`Elements`]: elements that the update reads again.
//!
//! An engine needs no copy of its table beside the two live copies. It reads the current table, and beside it
//! what the update at hand has written.

use rustc_hash::FxHashMap;

use crate::error::ImageError;
use crate::image::{Element, Image};
use crate::patch::{Patch, PatchBuilder};
use crate::section::SectionId;

/// Bytes of an element in sections whose elements hold several narrow elements.
pub const WORD: usize = 8;

/// Collects the writes of a patch, or drops them while a table is built.
#[derive(Debug)]
pub struct Changes<'t>(Option<Update<'t>>);

/// An update to a table.
#[derive(Debug)]
struct Update<'t> {
    /// The table before the update.
    table: &'t Image,
    patch: PatchBuilder,
    /// The last value of each element that [`Elements`] wrote.
    latest: FxHashMap<(SectionId, u64), u64>,
}

impl<'t> Changes<'t> {
    /// Drops all writes.
    pub fn none() -> Self {
        Self(None)
    }

    /// Collects the writes of an update to a table. The engine has seen all changes that are in the table,
    /// and no others.
    pub fn to(table: &'t Image) -> Self {
        Self(Some(Update { table, patch: PatchBuilder::new(), latest: FxHashMap::default() }))
    }

    /// Writes a new value of an element.
    #[inline]
    pub fn set(&mut self, section: SectionId, index: u64, value: u64) {
        if let Some(update) = &mut self.0 {
            update.patch.set(section, index, value);
        }
    }

    /// The bytes of a section before the update. Empty while a table is built.
    #[inline]
    pub(crate) fn before(&self, section: SectionId) -> &'t [u8] {
        self.0.as_ref().map_or(&[], |update| update.table.bytes_of(section))
    }

    /// The patch.
    pub fn finish(self, counts: (u64, u64)) -> Patch {
        self.0.map(|update| update.patch).unwrap_or_default().finish(Some(counts))
    }
}

/// The elements of a section, for engines that read what they have written. They are here while a table is
/// built, and afterwards in the table and in [`Changes`].
#[derive(Clone, Debug)]
pub struct Elements<T> {
    section: SectionId,
    /// `None` after the build.
    built: Option<Vec<T>>,
}

impl<T: Element + Into<u64>> Elements<T> {
    /// Makes elements that are zero, for a build.
    pub fn zeroed(section: SectionId, len: usize) -> Self {
        Self { section, built: Some(vec![T::zeroed(); len]) }
    }

    /// An element.
    #[inline]
    pub fn get(&self, at: usize, changes: &Changes<'_>) -> T {
        match (&self.built, &changes.0) {
            (Some(built), _) => built[at],
            (None, Some(update)) => {
                let latest = update.latest.get(&(self.section, at as u64));
                let value = latest.copied().unwrap_or_else(|| update.table.value(self.section, at));
                T::try_from(value).ok().expect("an element of the section")
            }
            (None, None) => unreachable!("a table that was built is read in an update"),
        }
    }

    /// Sets an element.
    #[inline]
    pub fn set(&mut self, at: usize, value: T, changes: &mut Changes<'_>) {
        match (&mut self.built, &mut changes.0) {
            (Some(built), _) => built[at] = value,
            (None, Some(update)) => {
                update.latest.insert((self.section, at as u64), value.into());
                update.patch.set(self.section, at as u64, value.into());
            }
            (None, None) => unreachable!("a table that was built is changed by an update"),
        }
    }

    /// Makes more elements that are zero, during a build.
    pub fn extend_to(&mut self, len: usize) {
        if let Some(built) = self.built.as_mut().filter(|built| built.len() < len) {
            built.resize(len, T::zeroed());
        }
    }

    /// The elements of a build. Empty afterwards.
    pub fn built(&self) -> &[T] {
        self.built.as_deref().unwrap_or_default()
    }

    /// The elements of a build, for writing.
    pub fn built_mut(&mut self) -> &mut [T] {
        self.built.as_deref_mut().unwrap_or_default()
    }

    /// Moves the elements of a build to the image: a section that is as wide, or narrower but wide enough for
    /// every element. Further elements of the section are zero.
    pub fn compile(&mut self, image: &mut Image) -> Result<(), ImageError> {
        fn put<T: Element>(to: &mut [T], from: impl Iterator<Item = u64>) {
            for (to, from) in to.iter_mut().zip(from) {
                *to = T::try_from(from).ok().expect("the width was chosen for the largest element");
            }
        }
        let built = self.built.take().unwrap_or_default();
        let values = built.iter().map(|&value| value.into());
        match image.width(self.section) {
            Some(1) => put(image.section_mut::<u8>(self.section)?, values),
            Some(2) => put(image.section_mut::<u16>(self.section)?, values),
            Some(4) => put(image.section_mut::<u32>(self.section)?, values),
            _ => put(image.section_mut::<u64>(self.section)?, values),
        }
        Ok(())
    }

    /// Bytes held.
    pub fn memory_usage(&self) -> u64 {
        self.built.as_ref().map_or(0, |built| built.capacity() * size_of::<T>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::image::ImageBuilder;

    const NARROW: SectionId = SectionId(0);

    proptest! {
        /// Updates of few elements: each reads what was written last, in the build, in updates before or in
        /// its own, and the table has it after each patch.
        #[test]
        fn elements_are_read_as_they_were_written(
            built in proptest::collection::vec(any::<u16>(), 5),
            updates in proptest::collection::vec(proptest::collection::vec((0..5usize, any::<u16>()), 0..9), 0..9),
        ) {
            let mut image = ImageBuilder::new("test", 1).section::<u16>("narrow", 6).build(None).unwrap();
            let mut elements = Elements::<u32>::zeroed(NARROW, 3);
            elements.extend_to(5);
            for (at, &value) in built.iter().enumerate() {
                elements.set(at, value.into(), &mut Changes::none());
                prop_assert_eq!(elements.get(at, &Changes::none()), u32::from(value));
            }
            elements.compile(&mut image).unwrap();
            prop_assert_eq!(elements.memory_usage(), 0);
            let mut model = [built, vec![0]].concat();
            for update in updates {
                let mut changes = Changes::to(&image);
                for (at, value) in update {
                    elements.set(at, value.into(), &mut changes);
                    model[at] = value;
                    for (at, &right) in model.iter().enumerate() {
                        prop_assert_eq!(elements.get(at, &changes), u32::from(right));
                    }
                }
                let patch = changes.finish((1, 2));
                image.apply(&patch).unwrap();
                prop_assert_eq!(image.section::<u16>(NARROW), &model[..]);
            }
        }
    }
}
