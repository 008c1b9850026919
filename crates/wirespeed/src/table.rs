//! [`Table`]: a live table with its engine chosen at run time, owned by one writer.

use std::fmt;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use wirespeed_fib::{
    Address, Applied, BuildError, BuildOptions, Engine, LiveTable, NextHop, NextHops, Prefix, Rib, Strides,
    Update, V4, V6,
};
use wirespeed_gpu::ip::{Counts, Offload};
use wirespeed_gpu::offload::RemoteTable;
use wirespeed_gpu::runtime::Fleet;

use crate::builder::Builder;
use crate::device::{DeviceSettings, all_cores, beside};
use crate::engine::{Addresses, EngineName, OnDevice, Visitor, visit};
use crate::erased::AnyLive;
use crate::error::Error;
use crate::image_file::ImageFile;
use crate::labels::Labels;
use crate::memory::Cap;
use crate::reader::{Reader, open_image};

/// An IPv4 table.
pub type Ipv4Table = Table<V4>;
/// An IPv6 table.
pub type Ipv6Table = Table<V6>;
/// A reader of an IPv4 table.
pub type Ipv4Reader = Reader<V4>;
/// A reader of an IPv6 table.
pub type Ipv6Reader = Reader<V6>;

/// A table of one family: routes, and what they compile to. One owner changes it. Any number of [`Reader`]s
/// look up meanwhile, and never wait.
///
/// Memory: the routes, the compiled table twice, and what its engine keeps for updates. A rebuild takes two
/// more copies of the compiled table while it lasts.
///
/// ```
/// use wirespeed::prelude::*;
///
/// let mut table = Ipv4Table::builder().routes([("10.0.0.0/8".parse::<Ipv4Net>()?, NextHop(1))]).build()?;
/// let reader = table.reader();
/// assert_eq!(reader.lookup(Ipv4Addr::new(10, 1, 2, 3)), NextHop(1));
///
/// table.insert("10.1.0.0/16".parse::<Ipv4Net>()?, NextHop(2))?;
/// assert_eq!(reader.lookup(Ipv4Addr::new(10, 1, 2, 3)), NextHop(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Table<A: Addresses> {
    live: Box<dyn AnyLive<A>>,
    engine: EngineName,
    cap: Cap,
    /// The table on GPUs.
    offload: Option<Arc<Offload<A>>>,
    device_note: Option<String>,
    /// Calls that failed.
    refused: u64,
}

impl<A: Addresses> Table<A> {
    /// Starts a table: its routes, and how it is to be built.
    pub fn builder() -> Builder<A> {
        Builder::new()
    }

    /// Builds the table of some routes with an engine.
    pub(crate) fn build(
        rib: Rib<A>,
        engine: EngineName,
        next_hops: u32,
        cap: Cap,
        mut device: DeviceSettings,
    ) -> Result<Self, Error> {
        let strides = Strides::default();
        let strides = if device.fleet.is_some() { strides.on_gpu() } else { strides };
        let options = BuildOptions { results: next_hops, strides, ..cap.options() };
        let of_build = |source| Error::of_build(A::FAMILY, engine, source, cap);
        let (live, offload) = visit(engine, Build { rib, options, device: &mut device, of_build })??;
        Ok(Self { live, engine, cap, offload, device_note: device.note, refused: 0 })
    }

    /// Opens an image file with its routes. It is ready for lookups as soon as it is read and checked. The
    /// first update builds the compiled table anew, which takes as long as building it from the routes did.
    ///
    /// Lookups run on the CPU. Fails where the file is damaged, of the other family, or of an engine that is
    /// not in this build.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = open_image::<A>(path.as_ref())?;
        let rib = file.routes()?.ok_or_else(|| Error::ImageWithoutRoutes { path: file.path().to_owned() })?;
        let engine = file.engine();
        let live = visit(engine, Resume { rib, file })??;
        let (offload, device_note) = (None, None);
        Ok(Self { live, engine, cap: Cap::Named, offload, device_note, refused: 0 })
    }

    /// Applies updates in order, and makes all of them visible to readers at once. A lookup that begins after
    /// this call sees all of them; no lookup sees a part. One call with many updates costs much less than a
    /// call for each. The call waits for guards that are older than the call before it.
    ///
    /// Fails if a route would lead to [`NextHop::NONE`], or if the table has to be built anew and can't be:
    /// [the call then did not happen](crate::image::live#when-an-update-fails).
    pub fn apply(&mut self, updates: &[Update<A>]) -> Result<Applied, Error> {
        // Nobody objects, so there is what was done.
        self.apply_if(updates, &mut || true).map(Option::unwrap_or_default)
    }

    /// [`apply`](Self::apply), with a question when nothing can fail any more: where the answer is no, the
    /// call did not happen, and there is `None`.
    pub(crate) fn apply_if(
        &mut self,
        updates: &[Update<A>],
        is_agreed: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Applied>, Error> {
        let of_build = |source| Error::of_build(A::FAMILY, self.engine, source, self.cap);
        let applied = with_next_hops(updates.iter().filter_map(announced))
            .and_then(|()| self.live.apply_if(updates, is_agreed).map_err(of_build));
        self.refused += u64::from(applied.is_err());
        applied
    }

    /// Puts one route in, live, in place of what its prefix had. For many routes use [`apply`](Self::apply).
    pub fn insert(&mut self, prefix: impl Into<Prefix<A>>, next_hop: NextHop) -> Result<Applied, Error> {
        self.apply(&[Update::announce(prefix, next_hop)])
    }

    /// Takes one route out, live. For many routes use [`apply`](Self::apply).
    pub fn withdraw(&mut self, prefix: impl Into<Prefix<A>>) -> Result<Applied, Error> {
        self.apply(&[Update::withdraw(prefix)])
    }

    /// A reader of the table. Each thread takes its own.
    pub fn reader(&self) -> Reader<A> {
        Reader::new(self.live.reader(), self.engine).with_offload(self.offload.clone())
    }

    /// The routes: exact and longest matches with the prefix that matched, what a prefix covers, iteration in
    /// order.
    pub fn routes(&self) -> &Rib<A> {
        self.live.rib()
    }

    /// Number of prefixes.
    pub fn len(&self) -> usize {
        self.routes().len()
    }

    /// Whether there is no prefix.
    pub fn is_empty(&self) -> bool {
        self.routes().is_empty()
    }

    /// The engine that it was built with.
    pub fn engine(&self) -> EngineName {
        self.engine
    }

    /// The GPUs that the table is on, for example for the [`fleet`](crate::Builder::fleet) of another table.
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

    /// Numbers of addresses that readers of this table looked up in batches, on the CPU and on GPUs. `None`
    /// where lookups run on the CPU alone.
    pub fn lookups(&self) -> Option<Counts> {
        self.offload.as_ref().map(|offload| offload.counts())
    }

    /// Bytes held: both copies of the compiled table, the routes, and what the engine keeps for updates. Each
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

    /// Saves the compiled table and its routes as an image file. A file that is there is replaced, whole or
    /// not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.live.save(&NextHops::new(), path.as_ref())
    }

    /// Saves the table like [`save`](Self::save), with what the indexes stand for, as text, for
    /// [`Labels::open`].
    ///
    /// Fails where two labels have the same text: they could not be told apart when they are read.
    pub fn save_labelled<T: Display>(&self, path: impl AsRef<Path>, labels: &Labels<T>) -> Result<(), Error> {
        self.live.save(&labels.to_texts()?, path.as_ref())
    }
}

/// The route that an update puts in.
pub(crate) fn announced<A: Address>(update: &Update<A>) -> Option<(Prefix<A>, NextHop)> {
    match *update {
        Update::Announce { prefix, next_hop } => Some((prefix, next_hop?)),
        Update::Withdraw { .. } => None,
    }
}

/// Sees that every route has a next hop: a route without one hides the routes that cover it, and nobody means
/// that.
pub(crate) fn with_next_hops<A: Address>(
    routes: impl IntoIterator<Item = (Prefix<A>, NextHop)>,
) -> Result<(), Error> {
    match routes.into_iter().find(|(_, next_hop)| !next_hop.is_some()) {
        Some((prefix, _)) => Err(Error::RouteWithoutNextHop { prefix: prefix.to_string() }),
        None => Ok(()),
    }
}

impl<A: Addresses> fmt::Debug for Table<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("family", &A::FAMILY)
            .field("engine", &self.engine)
            .field("len", &self.len())
            .field("memory_usage", &self.memory_usage())
            .finish()
    }
}

/// Builds a live table, and a copy on GPUs that follows it where there are some.
struct Build<'d, A: Address, F> {
    rib: Rib<A>,
    options: BuildOptions,
    device: &'d mut DeviceSettings,
    of_build: F,
}

/// A live table and its copy on GPUs.
type Built<A> = (Box<dyn AnyLive<A>>, Option<Arc<Offload<A>>>);

impl<A: Addresses, F: FnOnce(BuildError) -> Error> Visitor<A> for Build<'_, A, F> {
    type Output = Result<Built<A>, Error>;

    fn visit<E: Engine<A, Table: OnDevice>>(self) -> Self::Output {
        let mut live = LiveTable::<A, E>::new(self.rib, self.options).map_err(self.of_build)?;
        let Some(fleet) = self.device.fleet.clone() else { return Ok((Box::new(live), None)) };
        let (bits, by, mut offload) = (live.reach(), self.device.by(), None);
        let followed = live.follow(|table| {
            let made = offload.insert(Arc::new(beside(&fleet, table, bits, by, all_cores())?));
            Ok(made.remote().follower())
        });
        self.device.or_cpu(followed)?;
        Ok((Box::new(live), offload))
    }
}

/// Makes a live table of an image.
struct Resume<A: Address> {
    rib: Rib<A>,
    file: ImageFile,
}

impl<A: Addresses> Visitor<A> for Resume<A> {
    type Output = Result<Box<dyn AnyLive<A>>, Error>;

    fn visit<E: Engine<A, Table: OnDevice>>(self) -> Self::Output {
        let table = self.file.into_bare_table()?;
        Ok(Box::new(LiveTable::<A, E>::resume(self.rib, table, Cap::Named.options())))
    }
}
