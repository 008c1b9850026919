//! Tables without the types of their engines. The engine is chosen at run time, and one virtual call reaches
//! it for each batch or single lookup. The call enters the table and looks up; the compiler optimises both
//! together.
//!
//! | | a compiled table | a live table | its reader |
//! |---|---|---|---|
//! | made by | [`Served::compile`], [`Served::adopt`] | [`Served::live`], [`Served::resume`] | [`AnyLive::reader`], [`Served::open`] |
//! | is | [`AnyTable`] | [`AnyLive`] | [`AnyReader`] |

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wirespeed_image::live::{self, Applied, State};
use wirespeed_image::{Image, ImageError, Table};
use wirespeed_table::{BuildError, BuildOptions, Engine, Live, Lookup};

use super::{EngineName, KeyHint, OnDevice, Served, Visitor, Wanted};
use crate::gpu::GpuError;
use crate::gpu::offload::RemoteTable;
use crate::gpu::runtime::Fleet;

/// A table of any engine.
pub trait AnyTable<D: Served>: Lookup<D> {
    /// The image of the table.
    fn image(&self) -> &Image;

    /// Copies the table to GPUs.
    fn upload(&self, fleet: &Fleet, hint: KeyHint<'_, D>) -> Result<D::Remote, GpuError>;
}

impl<D: Served, T: OnDevice + Lookup<D>> AnyTable<D> for T {
    fn image(&self) -> &Image {
        Table::image(self)
    }

    fn upload(&self, fleet: &Fleet, hint: KeyHint<'_, D>) -> Result<D::Remote, GpuError> {
        D::Remote::upload(fleet, self, hint)
    }
}

/// A table that an engine compiled.
pub struct Compiled<D: Served> {
    /// The engine.
    pub engine: EngineName,
    /// The table.
    pub table: Box<dyn AnyTable<D>>,
    /// Bytes that the engine holds beside the table for updates.
    pub control_plane: u64,
    /// The time that the build took.
    pub build_time: Duration,
}

impl<D: Served> fmt::Debug for Compiled<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled")
            .field("engine", &self.engine)
            .field("bytes", &self.table.image().bytes())
            .finish_non_exhaustive()
    }
}

/// A live table of any engine.
pub trait AnyLive<D: Served>: Send + Sync {
    /// [`Live::apply_wanting`].
    fn apply_wanting(
        &mut self,
        updates: &[D::Update],
        wanted: Option<Wanted<D>>,
        is_agreed: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Applied>, D::Error>;

    /// [`Live::apply_if`].
    fn apply_if(
        &mut self,
        updates: &[D::Update],
        is_agreed: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Applied>, D::Error> {
        self.apply_wanting(updates, None, is_agreed)
    }

    /// [`Live::apply`].
    fn apply(&mut self, updates: &[D::Update]) -> Result<Applied, D::Error> {
        // `is_agreed` never says no, so there is always a result.
        self.apply_if(updates, &mut || true).map(Option::unwrap_or_default)
    }

    /// [`Live::replace_wanting`].
    fn replace_wanting(
        &mut self,
        model: D::Model,
        wanted: Option<Wanted<D>>,
        is_agreed: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Applied>, BuildError>;

    /// [`Live::replace_if`].
    fn replace_if(
        &mut self,
        model: D::Model,
        is_agreed: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Applied>, BuildError> {
        self.replace_wanting(model, None, is_agreed)
    }

    /// A reader of the table.
    fn reader(&self) -> Arc<dyn AnyReader<D>>;

    /// [`Live::model`].
    fn model(&self) -> &D::Model;

    /// [`Live::reach`].
    fn reach(&self) -> u8;

    /// [`Live::rebuilds`].
    fn rebuilds(&self) -> u64;

    /// [`Live::memory_usage`].
    fn memory_usage(&self) -> u64;

    /// Copies the table to GPUs, which follow it from now on.
    fn upload(&mut self, fleet: &Fleet, hint: KeyHint<'_, D>) -> Result<D::Remote, GpuError>;
}

impl<D: Served, E: Engine<D, Table: OnDevice>> AnyLive<D> for Live<D, E, D::Beside> {
    fn apply_wanting(
        &mut self,
        updates: &[D::Update],
        wanted: Option<Wanted<D>>,
        is_agreed: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Applied>, D::Error> {
        Self::apply_wanting(self, updates, wanted, is_agreed)
    }

    fn replace_wanting(
        &mut self,
        model: D::Model,
        wanted: Option<Wanted<D>>,
        is_agreed: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Applied>, BuildError> {
        Self::replace_wanting(self, model, wanted, is_agreed)
    }

    fn reader(&self) -> Arc<dyn AnyReader<D>> {
        Arc::new(Self::reader(self))
    }

    fn model(&self) -> &D::Model {
        Self::model(self)
    }

    fn reach(&self) -> u8 {
        Self::reach(self)
    }

    fn rebuilds(&self) -> u64 {
        Self::rebuilds(self)
    }

    fn memory_usage(&self) -> u64 {
        Self::memory_usage(self) + 2 * D::memory_of(&Self::reader(self).enter_state().beside)
    }

    fn upload(&mut self, fleet: &Fleet, hint: KeyHint<'_, D>) -> Result<D::Remote, GpuError> {
        let mut remote = None;
        self.follow(|table| {
            let uploaded = D::Remote::upload(fleet, table, hint)?;
            Ok::<_, GpuError>(remote.insert(uploaded).follower())
        })?;
        Ok(remote.expect("the follower was made of it"))
    }
}

/// A reader of any engine's table.
pub trait AnyReader<D: Served>: Send + Sync {
    /// Enters one state of the table, until the returned value is dropped.
    fn enter(&self) -> Entered<'_, D>;

    /// Looks one key up.
    fn lookup(&self, key: D::Key<'_>) -> D::Found;

    /// Looks a batch up in one state of the table, by one virtual call.
    ///
    /// Panics when the lengths differ.
    fn lookup_batch(&self, keys: D::Keys<'_>, results: &mut [D::Result]);
}

/// A state of any engine's table, with the data beside it.
type AnyState<D> = State<dyn AnyTable<D>, <D as Served>::Beside>;

/// One state of any engine's table, held by a reader.
#[must_use = "a state that is dropped at once protects nothing"]
pub struct Entered<'a, D: Served>(Held<'a, D>);

enum Held<'a, D: Served> {
    /// A state of a live table, protected from its writer.
    Live(live::Guard<'a, AnyState<D>>),
    /// A state of a table that never changes.
    Fixed(&'a AnyState<D>),
}

impl<D: Served> fmt::Debug for Entered<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").field("kind", &self.table.image().kind()).finish_non_exhaustive()
    }
}

impl<D: Served> Deref for Entered<'_, D> {
    type Target = AnyState<D>;

    #[inline]
    fn deref(&self) -> &AnyState<D> {
        match &self.0 {
            Held::Live(guard) => guard,
            Held::Fixed(state) => state,
        }
    }
}

impl<D: Served, T: OnDevice + Lookup<D>> AnyReader<D> for live::Reader<T, D::Beside> {
    fn enter(&self) -> Entered<'_, D> {
        Entered(Held::Live(live::Guard::map(self.enter_state(), |state| state as &AnyState<D>)))
    }

    fn lookup(&self, key: D::Key<'_>) -> D::Found {
        Self::enter(self).lookup(key)
    }

    fn lookup_batch(&self, keys: D::Keys<'_>, results: &mut [D::Result]) {
        Self::enter(self).lookup_batch(keys, results);
    }
}

impl<D: Served, T: OnDevice + Lookup<D>> AnyReader<D> for State<T, D::Beside> {
    fn enter(&self) -> Entered<'_, D> {
        Entered(Held::Fixed(self))
    }

    fn lookup(&self, key: D::Key<'_>) -> D::Found {
        self.table.lookup(key)
    }

    fn lookup_batch(&self, keys: D::Keys<'_>, results: &mut [D::Result]) {
        self.table.lookup_batch(keys, results);
    }
}

/// Compiles a table.
pub(super) struct Compile<'a, D: Served> {
    pub(super) engine: EngineName,
    pub(super) source: &'a D::Source,
    pub(super) options: &'a BuildOptions,
}

impl<D: Served> Visitor<D> for Compile<'_, D> {
    type Output = Result<Compiled<D>, BuildError>;

    fn visit<E: Engine<D, Table: OnDevice>>(self) -> Self::Output {
        let Self { engine, source, options } = self;
        let began = Instant::now();
        let (control_plane, table) = E::build(source, options)?;
        let (control_plane, build_time) = (control_plane.memory_usage(), began.elapsed());
        Ok(Compiled { engine, table: Box::new(table), control_plane, build_time })
    }
}

/// Makes a table of an image.
pub(super) struct Adopt(pub(super) Image);

impl<D: Served> Visitor<D> for Adopt {
    type Output = Result<Box<dyn AnyTable<D>>, ImageError>;

    fn visit<E: Engine<D, Table: OnDevice>>(self) -> Self::Output {
        Ok(Box::new(E::Table::from_image(self.0)?))
    }
}

/// Makes a reader of an image.
pub(super) struct Open<D: Served> {
    pub(super) image: Image,
    pub(super) beside: D::Beside,
}

impl<D: Served> Visitor<D> for Open<D> {
    type Output = Result<Arc<dyn AnyReader<D>>, ImageError>;

    fn visit<E: Engine<D, Table: OnDevice>>(self) -> Self::Output {
        let table = E::Table::from_image(self.image)?;
        Ok(Arc::new(State { beside: self.beside, table }))
    }
}

/// Builds a live table.
pub(super) struct GoLive<D: Served> {
    pub(super) model: D::Model,
    pub(super) options: BuildOptions,
    pub(super) wanted: Wanted<D>,
}

impl<D: Served> Visitor<D> for GoLive<D> {
    type Output = Result<Box<dyn AnyLive<D>>, BuildError>;

    fn visit<E: Engine<D, Table: OnDevice>>(self) -> Self::Output {
        Ok(Box::new(Live::<D, E, D::Beside>::with(self.model, self.options, self.wanted)?))
    }
}

/// Makes a live table of an image.
pub(super) struct Resume<D: Served> {
    pub(super) model: D::Model,
    pub(super) image: Image,
    pub(super) options: BuildOptions,
    pub(super) wanted: Wanted<D>,
}

impl<D: Served> Visitor<D> for Resume<D> {
    type Output = Result<Box<dyn AnyLive<D>>, ImageError>;

    fn visit<E: Engine<D, Table: OnDevice>>(self) -> Self::Output {
        let table = E::Table::from_image(self.image)?;
        Ok(Box::new(Live::<D, E, D::Beside>::resume_with(self.model, table, self.options, self.wanted)))
    }
}
