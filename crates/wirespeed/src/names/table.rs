//! [`NameTable`]: a live table of names with its engine chosen at run time, owned by one writer.

use std::fmt::{self, Display};
use std::path::Path;
use std::sync::Arc;

use wirespeed_fib::NextHop;
use wirespeed_gpu::names::{Counts, Offload};
use wirespeed_gpu::offload::RemoteTable;
use wirespeed_gpu::runtime::Fleet;
use wirespeed_namelookup::read::Labels as LabelTexts;
use wirespeed_namelookup::{
    Applied, BuildError, BuildOptions, Engine, LiveNames, Name, NameDomain, NameModel, NameUpdate,
};

use super::builder::NameBuilder;
use super::device::beside;
use super::erased::AnyLive;
use super::image_file::NameImageFile;
use super::reader::NameReader;
use super::{NameRib, device};
use crate::device::{DeviceSettings, all_cores};
use crate::engine::{EngineName, OnDevice, Visitor, visit};
use crate::error::Error;
use crate::labels::Labels;

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
    live: Box<dyn AnyLive>,
    engine: EngineName,
    memory_cap: Option<u64>,
    is_aggregated: bool,
    /// The table on GPUs.
    offload: Option<Arc<Offload>>,
    device_note: Option<String>,
    /// Calls that failed.
    refused: u64,
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
        options: BuildOptions,
        memory_cap: Option<u64>,
        mut device: DeviceSettings,
    ) -> Result<Self, Error> {
        let is_aggregated = names.is_aggregated();
        let of_names = |source| Error::of_names(source, memory_cap);
        let (live, offload) = visit(engine, Build { names, options, device: &mut device, of_names })??;
        Ok(Self { live, engine, memory_cap, is_aggregated, offload, device_note: device.note, refused: 0 })
    }

    /// Opens an image file with its names. It is ready for lookups as soon as it is read and checked. The
    /// first update builds the compiled table anew, which takes as long as building it from the names did.
    ///
    /// Lookups run on the CPU. Fails where the file is damaged, of addresses, or of an engine that is not in
    /// this build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = NameImageFile::open(path.as_ref())?;
        let names = file.names()?.ok_or_else(|| Error::ImageWithoutNames { path: file.path().to_owned() })?;
        let (engine, is_aggregated) = (file.engine(), file.is_aggregated());
        let live = visit(engine, Resume { names, file })??;
        let (offload, device_note) = (None, None);
        Ok(Self { live, engine, memory_cap: None, is_aggregated, offload, device_note, refused: 0 })
    }

    /// Applies updates in order, and makes all of them visible to readers at once. A lookup that begins after
    /// this call sees all of them; no lookup sees a part. One call with many updates costs much less than a
    /// call for each. The call waits for guards that are older than the call before it.
    ///
    /// Fails if a name would get no result, or if the table has to be built anew and can't be: [the call then
    /// did not happen](crate::image::live#when-an-update-fails).
    pub fn apply(&mut self, updates: &[NameUpdate]) -> Result<Applied, Error> {
        let of_names = |source| Error::of_names(source, self.memory_cap);
        let applied = with_results(updates).and_then(|()| self.live.apply(updates).map_err(of_names));
        self.refused += u64::from(applied.is_err());
        applied
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
        NameReader::new(self.live.reader(), self.engine, self.is_aggregated, self.offload.clone())
    }

    /// The names with their results, all of them if the table is aggregated: exact and longest matches,
    /// iteration, all names beneath one.
    pub fn entries(&self) -> &NameRib {
        self.live.rib()
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// The engine that it was built with.
    pub fn engine(&self) -> EngineName {
        self.engine
    }

    /// Whether only the names are compiled that results need ([`NameBuilder::aggregate`]).
    pub fn is_aggregated(&self) -> bool {
        self.is_aggregated
    }

    /// The GPUs that the table is on, for example for the [`fleet`](NameBuilder::fleet) of another table.
    /// `None` where lookups run on the CPU alone.
    pub fn fleet(&self) -> Option<&Fleet> {
        self.offload.as_ref().map(|offload| offload.remote().copies().fleet())
    }

    /// Why lookups run on the CPU though [`Device::Auto`](crate::Device::Auto) was asked for, from the start
    /// or since a GPU failed. `None` where nothing is amiss.
    pub fn device_note(&self) -> Option<String> {
        let is_out = || self.offload.as_ref()?.remote().copies().is_out();
        self.device_note.clone().or_else(|| Some(is_out()?.to_string()))
    }

    /// Numbers of names that readers of this table looked up in batches, on the CPU and on GPUs. `None` where
    /// lookups run on the CPU alone.
    pub fn lookups(&self) -> Option<Counts> {
        self.offload.as_ref().map(|offload| offload.counts())
    }

    /// Bytes held: both copies of the compiled table, the names, and what the engine keeps for updates. Each
    /// GPU holds one more copy.
    pub fn memory_usage(&self) -> u64 {
        self.live.memory_usage()
    }

    /// How often an update made the table be built anew.
    pub fn rebuilds(&self) -> u64 {
        self.live.rebuilds()
    }

    /// How many calls have failed, and so changed nothing.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Saves the compiled table and its names as an image file. A file that is there is replaced, whole or
    /// not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.live.save(&LabelTexts::new(), path.as_ref())
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
        self.live.save(&texts, path.as_ref())
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
            .field("engine", &self.engine)
            .field("len", &self.len())
            .field("memory_usage", &self.memory_usage())
            .finish()
    }
}

/// Builds a live table, and a copy on GPUs that follows it where there are some.
struct Build<'d, F> {
    names: NameModel,
    options: BuildOptions,
    device: &'d mut DeviceSettings,
    of_names: F,
}

/// A live table and its copy on GPUs.
type Built = (Box<dyn AnyLive>, Option<Arc<Offload>>);

impl<F: FnOnce(BuildError) -> Error> Visitor<NameDomain> for Build<'_, F> {
    type Output = Result<Built, Error>;

    fn visit<E: Engine<NameDomain, Table: OnDevice>>(self) -> Self::Output {
        let mut live = LiveNames::<E>::new(self.names, self.options).map_err(self.of_names)?;
        let Some(fleet) = self.device.fleet.clone() else { return Ok((Box::new(live), None)) };
        let (sample, by, mut offload) =
            (device::sample(live.model().names(), &fleet), self.device.by(), None);
        let followed = live.follow(|table| {
            let made = offload.insert(Arc::new(beside(&fleet, table, &sample, by, all_cores())?));
            Ok(made.remote().follower())
        });
        self.device.or_cpu(followed)?;
        Ok((Box::new(live), offload))
    }
}

/// Makes a live table of an image.
struct Resume {
    names: NameRib,
    file: NameImageFile,
}

impl Visitor<NameDomain> for Resume {
    type Output = Result<Box<dyn AnyLive>, Error>;

    fn visit<E: Engine<NameDomain, Table: OnDevice>>(self) -> Self::Output {
        let names = NameModel::new(self.names, self.file.is_aggregated());
        let table = self.file.into_table()?;
        Ok(Box::new(LiveNames::<E>::resume(names, table, BuildOptions::default())))
    }
}
