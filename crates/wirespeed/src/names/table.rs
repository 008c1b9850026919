//! [`NameTable`]: a live table of names with its engine chosen at run time, owned by one writer.

use std::fmt::{self, Display};
use std::path::Path;

use wirespeed_fib::NextHop;
use wirespeed_namelookup::read::Labels as LabelTexts;
use wirespeed_namelookup::{Applied, BuildOptions, Name, NameDomain, NameModel, NameUpdate};

use super::NameRib;
use super::builder::NameBuilder;
use super::image_file::{self, NameImageFile};
use super::reader::NameReader;
use crate::common::{TableCore, table_methods};
use crate::device::DeviceSettings;
use crate::engine::EngineName;
use crate::error::Error;
use crate::labels::Labels;
use crate::memory::Cap;

/// A table of names: prefixes with results, and what they compile to. One owner changes it. Any number of
/// [`NameReader`]s look up meanwhile, and never wait.
///
/// Memory: the names, the compiled table twice, and what its engine keeps for updates. A rebuild takes two
/// more copies of the compiled table while it lasts.
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
    core: TableCore<NameDomain>,
}

impl NameTable {
    /// Starts a table: its names, and how it is to be built.
    pub fn builder() -> NameBuilder {
        NameBuilder::new()
    }

    /// Builds the table of some names with an engine.
    pub(super) fn build(
        names: NameModel,
        engine: EngineName,
        options: (Cap, BuildOptions),
        device: DeviceSettings,
    ) -> Result<Self, Error> {
        Ok(Self { core: TableCore::build(engine, names, options, (), device)? })
    }

    /// Opens an image file with its names. It is ready for lookups as soon as it is read and checked. The
    /// first update builds the compiled table anew, which takes as long as building it from the names did.
    ///
    /// Lookups run on the CPU. Fails where the file is damaged, of addresses, or of an engine that is not in
    /// this build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = NameImageFile::open(path.as_ref())?;
        let names = file.names()?.ok_or_else(|| Error::without(file.path(), "names"))?;
        let (engine, names) = (file.engine(), NameModel::new(names, file.is_aggregated()));
        Ok(Self { core: TableCore::resume(engine, names, file.into_bare()?, ())? })
    }

    /// Applies updates in order, and makes all of them visible to readers at once. A lookup that begins after
    /// this call sees all of them; no lookup sees a part. One call with many updates costs much less than a
    /// call for each. The call waits for guards that are older than the call before it.
    ///
    /// Fails if a name would get no result, or if the table has to be built anew and can't be: [the call then
    /// did not happen](crate::image::live#when-an-update-fails).
    pub fn apply(&mut self, updates: &[NameUpdate]) -> Result<Applied, Error> {
        let of_build = self.core.of_build();
        self.core.change(|live| {
            with_results(updates)?;
            live.apply(updates).map_err(of_build)
        })
    }

    /// Puts one name in, live, in place of the result that it had. For many names use [`apply`](Self::apply).
    pub fn insert(&mut self, name: impl AsRef<Name>, next_hop: NextHop) -> Result<Applied, Error> {
        self.apply(&[NameUpdate::insert(name, next_hop)])
    }

    /// Takes one name out, live. For many names use [`apply`](Self::apply).
    pub fn remove(&mut self, name: impl AsRef<Name>) -> Result<Applied, Error> {
        self.apply(&[NameUpdate::remove(name)])
    }

    /// A reader of the table. Each thread takes its own.
    pub fn reader(&self) -> NameReader {
        NameReader::new(self.core.reader(), self.is_aggregated())
    }

    /// The names with their results, all of them if the table is aggregated: exact and longest matches,
    /// iteration, all names beneath one.
    pub fn entries(&self) -> &NameRib {
        self.core.model().names()
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    table_methods!("names", "NameBuilder");

    /// Whether only the names are compiled that results need ([`NameBuilder::aggregate`]).
    pub fn is_aggregated(&self) -> bool {
        self.core.model().is_aggregated()
    }

    /// Bytes held: both copies of the compiled table, the names, and what the engine keeps for updates. Each
    /// GPU holds one more copy.
    pub fn memory_usage(&self) -> u64 {
        self.core.memory_usage()
    }

    /// Saves the compiled table and its names as an image file. A file that is there is replaced, whole or
    /// not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.save_with(&LabelTexts::new(), path.as_ref())
    }

    /// Saves the table like [`save`](Self::save), with what the indexes stand for, as text, for
    /// [`Labels::open`].
    ///
    /// Fails where two labels have the same text: they could not be told apart when they are read.
    pub fn save_labelled<T: Display>(&self, path: impl AsRef<Path>, labels: &Labels<T>) -> Result<(), Error> {
        let mut texts = LabelTexts::new();
        for (next_hop, value) in labels.iter() {
            let text = value.to_string();
            if texts.intern(&text)? != next_hop.0 {
                return Err(Error::LabelsAlike { text });
            }
        }
        self.save_with(&texts, path.as_ref())
    }

    fn save_with(&self, labels: &LabelTexts, path: &Path) -> Result<(), Error> {
        let (engine, names) = (self.engine(), self.entries());
        let is_aggregated = self.is_aggregated();
        let save = |image: &_| image_file::save(engine, image, names, labels, is_aggregated, path);
        self.core.with_image(save).map(drop)
    }
}

/// Sees that every name that is put in has a result.
fn with_results(updates: &[NameUpdate]) -> Result<(), Error> {
    for update in updates {
        if let NameUpdate::Insert(name, 0) = update {
            return Err(Error::NameWithoutResult { name: name.to_string() });
        }
    }
    Ok(())
}

impl fmt::Debug for NameTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameTable")
            .field("engine", &self.engine())
            .field("len", &self.len())
            .field("memory_usage", &self.memory_usage())
            .finish()
    }
}
