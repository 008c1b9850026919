//! [`LiveNames`]: a table of names, its engine and the live copies of its image, kept in step.

use wirespeed_fib::Applied;
use wirespeed_image::ImageError;
use wirespeed_image::live::{Follower, Reader, Writer};

use crate::aggregate::Aggregated;
use crate::lookup::{BuildError, BuildOptions, NameEngine};
use crate::table::{NameTable, NodeId};
use crate::update::NameUpdate;

/// Head room of a table that will have updates, in hundredths, where [`BuildOptions::head_room`] asks for
/// less.
pub const HEAD_ROOM: u32 = 40;
/// Head room of a table that was outgrown, so that it isn't soon again.
const LATER_ROOM: u32 = 50;
/// Nodes more that the memory is there for, in hundredths of those that there are.
const MORE_NODES: usize = 20;

fn with_room(options: &BuildOptions, least: u32) -> BuildOptions {
    BuildOptions { head_room: options.head_room.max(least), ..options.clone() }
}

/// A table of names that takes updates while any number of readers look up. One owner; readers are
/// independent of it.
///
/// With [`BuildOptions::aggregate`] the image is of the reduced names: the results are the same, and lengths
/// are those of the entries that were left.
///
/// Memory: the names (with `aggregate` the reduced ones, too), what the engine holds, and two copies of the
/// image (four while it is rebuilt).
#[derive(Debug)]
pub struct LiveNames<E: NameEngine> {
    names: Held,
    /// `None` for a table that came compiled, and after a call that failed: the next change builds. The table
    /// is that of the names all the same.
    engine: Option<E>,
    writer: Writer<E::Table>,
    options: BuildOptions,
    rebuilds: u64,
}

/// The names, and with them those that are compiled.
#[derive(Debug)]
enum Held {
    Whole(NameTable),
    Aggregated(Aggregated),
}

impl Held {
    /// Takes names, and from now on tracks the changes of those that are compiled.
    fn new(mut names: NameTable, options: &BuildOptions) -> Self {
        // Or the first update that brings new names would move all nodes.
        names.prepare(names.node_count() * MORE_NODES / 100);
        let mut held = match options.aggregate {
            false => Self::Whole(names),
            true => Self::Aggregated(Aggregated::new(names)),
        };
        held.each(NameTable::track);
        held
    }

    /// Does something with every table that there is.
    fn each(&mut self, mut act: impl FnMut(&mut NameTable)) {
        match self {
            Self::Whole(names) => act(names),
            Self::Aggregated(both) => both.both_mut().into_iter().for_each(act),
        }
    }

    const fn all(&self) -> &NameTable {
        match self {
            Self::Whole(names) => names,
            Self::Aggregated(both) => both.full(),
        }
    }

    const fn compiled(&self) -> &NameTable {
        match self {
            Self::Whole(names) => names,
            Self::Aggregated(both) => both.reduced(),
        }
    }

    /// The nodes that changed of the names that are compiled; [`NameTable::settle`] or [`NameTable::undo`]
    /// comes next.
    fn news(&mut self) -> Vec<NodeId> {
        match self {
            Self::Whole(names) => names.news(),
            Self::Aggregated(both) => both.both_mut()[1].news(),
        }
    }

    /// Makes changes in order; how many changed anything.
    fn apply_all<'u>(&mut self, updates: impl IntoIterator<Item = &'u NameUpdate>) -> usize {
        match self {
            Self::Whole(names) => names.apply_all(updates),
            Self::Aggregated(both) => both.apply_all(updates),
        }
    }

    fn memory_usage(&self) -> u64 {
        match self {
            Self::Whole(names) => names.memory_usage(),
            Self::Aggregated(both) => both.memory_usage(),
        }
    }
}

impl<E: NameEngine> LiveNames<E> {
    /// Compiles a table and puts it live.
    pub fn new(names: NameTable, options: BuildOptions) -> Result<Self, BuildError> {
        let names = Held::new(names, &options);
        let (engine, table) = E::build(names.compiled(), &with_room(&options, HEAD_ROOM))?;
        Ok(Self { names, engine: Some(engine), writer: Writer::new(table), options, rebuilds: 0 })
    }

    /// Puts an image live that was compiled before from the same names, such as one from a file, at once. The
    /// first update builds it anew: an engine does not go into an image.
    pub fn resume(names: NameTable, table: E::Table, options: BuildOptions) -> Self {
        let names = Held::new(names, &options);
        Self { names, engine: None, writer: Writer::new(table), options, rebuilds: 0 }
    }

    /// Applies updates in order; readers that enter from now on see all of them, and none saw a part. Waits
    /// for readers that entered before the call before this one. Many updates a call cost less than one each.
    ///
    /// An error where the table has to be built anew and can't be: [the call then did not
    /// happen](wirespeed_image::live#when-an-update-fails).
    pub fn apply<'u>(
        &mut self,
        updates: impl IntoIterator<Item = &'u NameUpdate>,
    ) -> Result<Applied, BuildError> {
        let changes = self.names.apply_all(updates);
        match self.bring_up_to_date() {
            Ok(applied) => Ok(Applied { changes, ..applied }),
            Err(error) => {
                self.names.each(NameTable::undo);
                Err(error)
            }
        }
    }

    /// Has readers see the names as they are now, or fails before they see anything. After an error the
    /// engine is spent, if it was asked.
    fn bring_up_to_date(&mut self) -> Result<Applied, BuildError> {
        let mut applied = Applied::default();
        let changed = self.names.news();
        if changed.is_empty() {
            self.names.each(NameTable::settle);
            return Ok(applied);
        }
        let names = self.names.compiled();
        // A table that was emptied is built anew, and gives back its memory.
        if let Some(engine) = self.engine.as_mut().filter(|_| !names.is_empty()) {
            if let Ok(patch) = engine.update(names, &changed) {
                self.names.each(NameTable::settle);
                applied.writes = patch.writes().len();
                self.writer.patch(patch).expect("an engine's patch fits its own table");
                return Ok(applied);
            }
            self.engine = None;
        }
        let (engine, table) = self.built_anew()?;
        self.names.each(NameTable::settle);
        self.engine = Some(engine);
        self.writer.replace(table);
        self.rebuilds += 1;
        applied.rebuilt = true;
        Ok(applied)
    }

    /// A table of the names, with head room unless it is that which doesn't fit.
    fn built_anew(&self) -> Result<(E, E::Table), BuildError> {
        let names = self.names.compiled();
        match E::build(names, &with_room(&self.options, LATER_ROOM)) {
            Err(BuildError::Image(ImageError::OverCap { .. })) => {
                E::build(names, &BuildOptions { tight: true, ..self.options.clone() })
            }
            built => built,
        }
    }

    /// Tells a follower, such as a copy on a GPU, of every change from now on; it is made of the table as it
    /// is now.
    pub fn follow<F: Follower<E::Table> + 'static, X>(
        &mut self,
        make: impl FnOnce(&E::Table) -> Result<F, X>,
    ) -> Result<(), X> {
        self.writer.follow(make)
    }

    /// A reader of the table.
    pub fn reader(&self) -> Reader<E::Table> {
        self.writer.reader()
    }

    /// The names as they are now.
    pub const fn names(&self) -> &NameTable {
        self.names.all()
    }

    /// The names that the image holds: all, or the reduced ones.
    pub const fn compiled(&self) -> &NameTable {
        self.names.compiled()
    }

    /// Whether these are the reduced ones.
    pub const fn is_aggregated(&self) -> bool {
        matches!(self.names, Held::Aggregated(_))
    }

    /// How often an update made the table outgrow itself.
    pub const fn rebuilds(&self) -> u64 {
        self.rebuilds
    }

    /// Bytes held: both copies of the image, the engine's and the names' own.
    pub fn memory_usage(&self) -> u64 {
        let engine = self.engine.as_ref().map_or(0, E::memory_usage);
        self.writer.memory_usage() + engine + self.names.memory_usage()
    }
}
