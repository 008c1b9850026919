//! [`Live`]: a table that changes and its labels, behind the lock that calls of C wait for.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use wirespeed::prelude::*;

use crate::boundary::{Failure, place, text};
use crate::labels::{Text, Texts, check_no_numbers};

/// A table of the façade, as a handle has it.
pub(crate) trait Held {
    /// The table as it takes changes. Names may be a list of domains, which takes none.
    type Live;

    /// The table, to change it. Fails for a list of domains.
    fn live(&mut self) -> Result<&mut Self::Live, Failure>;
    fn attach_labels(live: &mut Self::Live, labels: &Labels<Text>);
    fn load(live: &mut Self::Live, path: &Path, labels: &Labels<Text>) -> Result<(), Failure>;
    fn save(&self, path: &Path, labels: &Labels<Text>) -> Result<(), wirespeed::Error>;
    fn len(&self) -> usize;
}

/// A table that its handle, and through it several threads of C, may change.
pub(crate) struct Live<T>(Mutex<State<T>>);

pub(crate) struct State<T> {
    pub(crate) table: T,
    pub(crate) texts: Texts,
}

impl<T: Held> Live<T> {
    pub(crate) fn of(table: T, texts: Texts) -> Self {
        Self(Mutex::new(State { table, texts }))
    }

    /// The table and its labels. Fails after a defect: their state is then unknown.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, State<T>>, Failure> {
        crate::boundary::lock(&self.0)
    }

    /// Writes the number of entries.
    ///
    /// # Safety
    ///
    /// The pointer keeps the rules of the header.
    pub(crate) unsafe fn len(&self, count: *mut usize) -> Result<(), Failure> {
        // SAFETY: the caller vouches for it.
        let count = unsafe { place(count, "count") }?;
        count.write(self.lock()?.table.len());
        Ok(())
    }

    /// Makes changes that lead to these numbers.
    pub(crate) fn change<R>(
        &self,
        numbers: &[NextHop],
        change: impl FnOnce(&mut T::Live) -> Result<R, wirespeed::Error>,
    ) -> Result<(), Failure> {
        let State { table, texts } = &mut *self.lock()?;
        let table = table.live()?;
        texts.claimed(numbers, || Ok(change(table).map(drop)?))
    }

    /// Makes a change that leads to a label, and gets its number.
    pub(crate) fn change_to(
        &self,
        label: &str,
        change: impl FnOnce(&mut T::Live, NextHop) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let State { table, texts } = &mut *self.lock()?;
        let is_empty = table.len() == 0;
        let table = table.live()?;
        check_no_numbers(texts, is_empty)?;
        texts.with(label, |number, labels| {
            T::attach_labels(table, labels);
            change(table, number)
        })
    }

    /// Replaces all entries by those of a file.
    ///
    /// # Safety
    ///
    /// The pointer keeps the rules of the header.
    pub(crate) unsafe fn load(&self, path: *const c_char) -> Result<(), Failure> {
        // SAFETY: the caller vouches for it.
        let path = Path::new(unsafe { text(path, "path") }?);
        let State { table, texts } = &mut *self.lock()?;
        let is_empty = table.len() == 0;
        let table = table.live()?;
        check_no_numbers(texts, is_empty)?;
        let loaded = T::load(table, path, texts.labels());
        texts.hold();
        loaded
    }

    /// Saves the table as an image file.
    ///
    /// # Safety
    ///
    /// The pointer keeps the rules of the header.
    pub(crate) unsafe fn save(&self, path: *const c_char) -> Result<(), Failure> {
        // SAFETY: the caller vouches for it.
        let path = Path::new(unsafe { text(path, "path") }?);
        let State { table, texts } = &*self.lock()?;
        Ok(table.save(path, texts.labels())?)
    }

    /// Lets the labels that no entry leads to end.
    pub(crate) fn forget_labels(&self) -> Result<(), Failure> {
        self.lock()?.texts.forget();
        Ok(())
    }
}
