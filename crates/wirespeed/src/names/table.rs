//! [`NameTable`]: a live table of names, owned by one writer. Its engine is chosen at run time.

use std::fmt;
use std::path::Path;

use wirespeed_fib::NextHop;
use wirespeed_namelookup::read::Labels as LabelTexts;
use wirespeed_namelookup::{Applied, BuildOptions, Name, NameDomain, NameModel, NameUpdate};

use super::NameRib;
use super::builder::NameBuilder;
use super::image_file::{self, NameImageFile};
use super::reader::NameReader;
use crate::common::TableCore;
use crate::device::DeviceSettings;
use crate::error::Error;
use crate::labels::saved::SavedLabels;
use crate::memory::Cap;
use crate::methods::{save_methods, table_methods};
use crate::settings::Choice;
use crate::uses::Claims;

/// A table of names: the names with their results, and the compiled table. One owner changes it. Any number
/// of [`NameReader`]s look up at the same time, and never wait.
///
/// Memory: the names, two copies of the compiled table, and the engine's data for updates. A rebuild
/// temporarily takes two more copies of the compiled table.
///
/// ```
/// use wirespeed::prelude::*;
///
/// let mut table = NameTable::builder().names([(NameBuf::new("/com/parc")?, NextHop(1))]).build()?;
/// let reader = table.reader();
/// assert_eq!(reader.lookup(Name::new("/com/parc/www")?), NextHop(1));
/// assert_eq!(reader.lookup(Name::new("/com/parcel")?), NextHop::NONE);
///
/// table.insert(Name::new("/com/parc/www")?, NextHop(2))?;
/// assert_eq!(reader.lookup(Name::new("/com/parc/www/index.html")?), NextHop(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NameTable {
    pub(super) core: TableCore<NameDomain>,
}

impl NameTable {
    /// Starts a table. The builder collects the names and the settings.
    pub fn builder() -> NameBuilder {
        NameBuilder::new()
    }

    /// Builds the table of some names with an engine.
    pub(super) fn build(
        names: NameModel,
        choice: Choice,
        options: (Cap, BuildOptions),
        device: DeviceSettings,
        claims: Claims,
    ) -> Result<Self, Error> {
        Ok(Self { core: TableCore::build(choice, names, options, (), device)?.with_labels(claims) })
    }

    /// Opens an image file with its names. Lookups can start as soon as the file is read and checked. The
    /// first update rebuilds the compiled table, which takes as long as a build from the names.
    ///
    /// Lookups run on the CPU. Fails if the file is damaged, does not hold names, or is of an engine that is
    /// not in this build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = NameImageFile::open(path.as_ref())?.without_list()?;
        let names = file.names()?.ok_or_else(|| Error::without(file.path(), "names"))?;
        let (engine, left_out) = (file.engine(), file.left_out()?);
        let names = NameModel::new(names, file.is_aggregated());
        let core = TableCore::resume(Choice::named(engine), names, file.into_bare()?, ())?;
        Ok(Self { core: core.with_left_out(left_out) })
    }

    /// Applies updates in order, and makes all of them visible to readers at once. A lookup that begins after
    /// this call sees all of them; no lookup sees a part. One call with many updates costs much less than a
    /// call for each. The call waits for guards that were taken before the previous call.
    ///
    /// Fails if a name has no result, or if the table needs a rebuild that fails: [the call then did not
    /// happen](crate::image::live#when-an-update-fails).
    pub fn apply(&mut self, updates: &[NameUpdate]) -> Result<Applied, Error> {
        let of_build = self.core.of_build();
        let applied = self.core.change(updates, |live| {
            with_results(updates)?;
            live.apply(updates).map(Some).map_err(of_build)
        });
        applied.map(Option::unwrap_or_default)
    }

    /// Inserts a name while readers look up, and replaces the result of an equal name. For many names use
    /// [`apply`](Self::apply).
    pub fn insert(&mut self, name: impl AsRef<Name>, next_hop: NextHop) -> Result<Applied, Error> {
        self.apply(&[NameUpdate::insert(name, next_hop)])
    }

    /// Removes a name while readers look up. For many names use [`apply`](Self::apply).
    pub fn remove(&mut self, name: impl AsRef<Name>) -> Result<Applied, Error> {
        self.apply(&[NameUpdate::remove(name)])
    }

    /// A reader of the table. Threads share it, or clone it.
    #[must_use]
    pub fn reader(&self) -> NameReader {
        NameReader::new(self.core.reader(), self.is_aggregated())
    }

    /// The names with their results, also those that aggregation left out: exact and longest match,
    /// iteration, all names beneath a name.
    #[must_use]
    pub fn entries(&self) -> &NameRib {
        self.core.model().names()
    }

    /// Every name of the table that is a prefix of `name`, with its result, shortest first. The last one is
    /// the longest match.
    ///
    /// ```
    /// use wirespeed::prelude::*;
    ///
    /// let names = [(NameBuf::new("/com")?, NextHop(1)), (NameBuf::new("/com/parc")?, NextHop(2))];
    /// let table = NameTable::builder().names(names).build()?;
    /// let all = table.lookup_all(Name::new("/com/parc/www")?);
    /// assert_eq!(all, [(Name::new("/com")?, NextHop(1)), (Name::new("/com/parc")?, NextHop(2))]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn lookup_all<'n>(&self, name: &'n Name) -> Vec<(&'n Name, NextHop)> {
        self.entries().matching(name).into_iter().map(|(name, result)| (name, NextHop(result))).collect()
    }

    table_methods!(entries, "names", "NameBuilder");

    /// Whether only the names that results need are compiled ([`NameBuilder::aggregate`]).
    #[must_use]
    pub fn is_aggregated(&self) -> bool {
        self.core.model().is_aggregated()
    }

    save_methods! {
        /// Saves the compiled table and its names as an image file. An existing file is replaced completely
        /// or not at all.
    }

    fn save_with(&self, labels: &SavedLabels, path: &Path) -> Result<(), Error> {
        let mut texts = LabelTexts::new();
        for (_, text) in labels.texts.iter() {
            texts.intern(text)?;
        }
        let (engine, names) = (self.engine(), self.entries());
        let is_aggregated = self.is_aggregated();
        let save = |image: &_| image_file::save(engine, image, names, &texts, is_aggregated, path).map(drop);
        self.core.with_image(|image| labels.save_beside(image, self.core.left_out(), path, save))
    }
}

/// Checks that every inserted name has a result.
pub(super) fn with_results(updates: &[NameUpdate]) -> Result<(), Error> {
    for update in updates {
        if let NameUpdate::Insert(name, 0) = update {
            return Err(Error::NameWithoutResult { name: name.to_string() });
        }
    }
    Ok(())
}

impl fmt::Debug for NameTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(&mut f.debug_struct("NameTable"))
    }
}
