//! [`LiveTable`]: a Rib, its engine and the live copies of its table, kept in step.

pub use wirespeed_image::live::Applied;
use wirespeed_image::live::{Follower, Reader, Writer};

use crate::address::Address;
use crate::lpm::{BuildError, BuildOptions, Engine};
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::update::Update;

/// A table that takes updates while any number of readers look up. One owner; readers are independent of it.
///
/// Memory: the Rib, what the engine holds, and two copies of the table (four while it is rebuilt).
#[derive(Debug)]
pub struct LiveTable<A: Address, E: Engine<A>> {
    rib: Rib<A>,
    /// `None` after a rebuild that failed, and for a table that came compiled: the next update builds.
    engine: Option<E>,
    writer: Writer<E::Table>,
    options: BuildOptions,
    /// The longest prefix that there has been: lookups depend on so many bits.
    longest: u8,
    changed: Vec<Prefix<A>>,
    rebuilds: u64,
}

impl<A: Address, E: Engine<A>> LiveTable<A, E> {
    /// Builds the table of a Rib and puts it live.
    pub fn new(rib: Rib<A>, options: BuildOptions) -> Result<Self, BuildError> {
        let (engine, table) = E::build(&rib, &options.for_prefixes(rib.len()))?;
        Ok(Self::start(rib, Some(engine), table, options))
    }

    /// Puts a table live that was compiled before from the same Rib, such as one from a file, at once. The first update
    /// builds it anew: an engine does not go into an image.
    pub fn resume(rib: Rib<A>, table: E::Table, options: BuildOptions) -> Self {
        Self::start(rib, None, table, options)
    }

    fn start(rib: Rib<A>, engine: Option<E>, table: E::Table, options: BuildOptions) -> Self {
        let longest = rib.by_length().iter().rposition(|&count| count > 0).unwrap_or(0);
        let longest = u8::try_from(longest).expect("a length");
        let writer = Writer::new(table);
        Self { rib, engine, writer, options, longest, changed: Vec::new(), rebuilds: 0 }
    }

    /// Applies updates in order; readers that enter from now on see all of them, and none saw a part. Waits for
    /// readers that entered before the call before this one. Many updates a call cost less than one each: what
    /// they share is written once.
    ///
    /// After an error the Rib has the updates and readers go on with the table before them.
    pub fn apply<'u>(
        &mut self,
        updates: impl IntoIterator<Item = &'u Update<A>>,
    ) -> Result<Applied, BuildError> {
        let mut applied = Applied::default();
        self.changed.clear();
        let before = self.longest;
        for update in updates {
            if let Update::Announce { prefix, .. } = update {
                self.longest = self.longest.max(prefix.len());
            }
            if self.rib.apply(update) {
                applied.changes += 1;
                self.changed.push(update.prefix());
            }
        }
        if self.changed.is_empty() {
            return Ok(applied);
        }
        if self.longest > before {
            self.writer.reach(self.longest);
        }
        // A prefix that changed again and again is one change, and in order they find more of the caches warm.
        self.changed.sort_unstable();
        self.changed.dedup();
        // A table that was emptied is built anew, and gives back its memory.
        let engine = self.engine.as_mut().filter(|_| !self.rib.is_empty());
        let table = self.writer.current();
        let patch = engine.and_then(|engine| engine.update_beside(&table, &self.rib, &self.changed).ok());
        drop(table);
        if let Some(patch) = patch {
            applied.writes = patch.writes().len();
            self.writer.patch(patch).expect("an engine's patch fits its own table");
        } else {
            self.engine = None;
            let (engine, table) = E::build(&self.rib, &self.options.for_prefixes(self.rib.len()))?;
            self.engine = Some(engine);
            self.writer.replace(table);
            self.rebuilds += 1;
            applied.rebuilt = true;
        }
        Ok(applied)
    }

    /// Tells a follower, such as a copy on a GPU, of every change from now on; it is made of the table as it is now.
    pub fn follow<F: Follower<E::Table> + 'static, X>(
        &mut self,
        make: impl FnOnce(&E::Table) -> Result<F, X>,
    ) -> Result<(), X> {
        self.writer.follow(make)
    }

    /// How many first bits of an address lookups may depend on: the length of the longest prefix that there has been.
    pub fn reach(&self) -> u8 {
        self.longest
    }

    /// A reader of the table.
    pub fn reader(&self) -> Reader<E::Table> {
        self.writer.reader()
    }

    /// The routes as they are now.
    pub fn rib(&self) -> &Rib<A> {
        &self.rib
    }

    /// How often an update made the table outgrow itself.
    pub fn rebuilds(&self) -> u64 {
        self.rebuilds
    }

    /// Bytes held: both copies of the table, the engine's and the Rib's own.
    pub fn memory_usage(&self) -> u64 {
        let engine = self.engine.as_ref().map_or(0, E::memory_usage);
        self.writer.memory_usage() + engine + self.rib.memory_usage() as u64
    }
}
