//! All names of a table replaced in one step: [`NameTable::replace`], [`NameTable::load`].

use std::hash::Hash;
use std::path::Path;
use std::str::FromStr;

use wirespeed_namelookup::{Applied, NameModel, NameUpdate};

use super::NameRib;
use super::builder::relabel;
use super::image_file::NameImageFile;
use super::table::{NameTable, with_results};
use crate::error::Error;
use crate::labels::Labels;
use crate::load::{is_image, labels_of_image};
use crate::uses::Claims;

impl NameTable {
    /// Replaces all names. Readers see the old names or the new ones, and nothing between. If few names
    /// differ, only these are updated; otherwise a table is built beside the current one, which takes as much
    /// memory again until the call returns. The engine and the settings stay. `changes` of the result counts
    /// the names that differ. If labels are attached, [intern](Labels::intern) one for each name, also for
    /// names that stay.
    ///
    /// Fails like [`apply`](Self::apply): the call then did not happen.
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let name = NameBuf::new("/com/parc")?;
    /// let mut table = NameTable::builder().names([(&name, NextHop(1))]).build()?;
    /// let reader = table.reader();
    /// let applied = table.replace([(NameBuf::new("/org")?, 2)].into_iter().collect())?;
    /// assert_eq!(applied.changes, 2); // a name less, a name more
    /// assert_eq!(reader.lookup(&name), NextHop::NONE);
    /// assert_eq!(reader.lookup(Name::new("/org/kernel")?), NextHop(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace(&mut self, names: NameRib) -> Result<Applied, Error> {
        self.replace_by(true, names)
    }

    /// [Replaces](Self::replace) all names by those of a file: names in any format of
    /// [`NameBuilder::file`](super::NameBuilder::file), or an image with its names. Results get labels.
    ///
    /// Fails if the file can't be read. The table then stays as it was. A [`Reloader`](crate::Reloader) calls
    /// it when the file has changed.
    pub fn load<T: FromStr<Err: ToString> + Eq + Hash>(
        &mut self,
        path: impl AsRef<Path>,
        labels: &Labels<T>,
    ) -> Result<Applied, Error> {
        let path = path.as_ref();
        let (names, _claims) = match is_image(path)? {
            true => names_of_image(path, labels)?,
            false => Self::builder().file(path, labels).into_names()?,
        };
        self.attach_labels(labels);
        self.replace_by(false, names)
    }

    /// Replaces all names. `is_interned` says whether the caller interned the labels of the names.
    fn replace_by(&mut self, is_interned: bool, names: NameRib) -> Result<Applied, Error> {
        let (updates, len) = (difference(self.entries(), &names), names.len());
        let (of_build, is_aggregated) = (self.core.of_build(), self.is_aggregated());
        let replaced = self.core.replace(is_interned, (&updates, len), |live, is_few| {
            with_results(&updates)?;
            match is_few {
                true => live.apply(&updates).map(Some),
                false => live.replace_if(NameModel::new(names, is_aggregated), &mut || true),
            }
            .map_err(of_build)
        });
        // Nobody says no, so there is always a result.
        replaced.map(Option::unwrap_or_default)
    }
}

/// The names of an image file, with labels; and the claims that keep these.
fn names_of_image<T: FromStr<Err: ToString> + Eq + Hash>(
    path: &Path,
    labels: &Labels<T>,
) -> Result<(NameRib, Claims), Error> {
    let (file, mut claims) = (NameImageFile::open(path)?.without_list()?, Claims::default());
    let names = file.names()?.ok_or_else(|| Error::without(path, "names"))?;
    let label = labels_of_image(path, !names.is_empty(), labels, &mut claims)?;
    Ok((relabel(names, &label)?, claims))
}

/// The updates that make the new names of the old ones.
fn difference(old: &NameRib, new: &NameRib) -> Vec<NameUpdate> {
    let gone = old.iter().filter(|(name, _)| new.result(name) == 0).map(|(name, _)| NameUpdate::Remove(name));
    let other = new.iter().filter(|(name, result)| old.result(name) != *result);
    gone.chain(other.map(|(name, result)| NameUpdate::Insert(name, result))).collect()
}
