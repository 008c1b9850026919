//! [`LiveTable`]: a Rib, its engine and the live copies of its table, kept in step.

pub use wirespeed_image::live::Applied;
use wirespeed_image::live::{Follower, Reader, Writer};
use wirespeed_image::{ImageError, Patch};

use crate::address::Address;
use crate::lpm::{BuildError, BuildOptions, Engine};
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::update::{Undo, Update};

/// A table that takes updates while any number of readers look up. One owner; readers are independent of it.
///
/// Memory: the Rib, what the engine holds, and two copies of the table (four while it is rebuilt).
#[derive(Debug)]
pub struct LiveTable<A: Address, E: Engine<A>> {
    rib: Rib<A>,
    /// `None` for a table that came compiled, and after a call that failed: the next change builds. The table
    /// is that of the Rib all the same.
    engine: Option<E>,
    writer: Writer<E::Table>,
    options: BuildOptions,
    /// The longest prefix that there has been: lookups depend on so many bits.
    longest: u8,
    /// What takes back the updates of the call that is under way.
    undo: Vec<Undo<A>>,
    /// The prefixes of these, each once, in order.
    changed: Vec<Prefix<A>>,
    rebuilds: u64,
}

/// What readers are to see next.
enum Next<A: Address, E: Engine<A>> {
    /// What they see now.
    Same,
    /// What they see now, patched.
    Patch(Patch),
    /// Another table, with its engine.
    Table(E, E::Table),
}

impl<A: Address, E: Engine<A>> LiveTable<A, E> {
    /// Builds the table of a Rib and puts it live.
    pub fn new(rib: Rib<A>, options: BuildOptions) -> Result<Self, BuildError> {
        let (engine, table) = E::build(&rib, &options.for_prefixes(rib.len()))?;
        Ok(Self::start(rib, Some(engine), table, options))
    }

    /// Puts a table live that was compiled before from the same Rib, such as one from a file, at once. The
    /// first update builds it anew: an engine does not go into an image.
    pub fn resume(rib: Rib<A>, table: E::Table, options: BuildOptions) -> Self {
        Self::start(rib, None, table, options)
    }

    fn start(rib: Rib<A>, engine: Option<E>, table: E::Table, options: BuildOptions) -> Self {
        let longest = rib.by_length().iter().rposition(|&count| count > 0).unwrap_or(0);
        let longest = u8::try_from(longest).expect("a length");
        let writer = Writer::new(table);
        let (undo, changed) = (Vec::new(), Vec::new());
        Self { rib, engine, writer, options, longest, undo, changed, rebuilds: 0 }
    }

    /// Applies updates in order; readers that enter from now on see all of them, and none saw a part. Waits
    /// for readers that entered before the call before this one. Many updates a call cost less than one each:
    /// what they share is written once.
    ///
    /// An error where the table has to be built anew and can't be: [the call then did not
    /// happen](wirespeed_image::live#when-an-update-fails).
    pub fn apply<'u>(
        &mut self,
        updates: impl IntoIterator<Item = &'u Update<A>>,
    ) -> Result<Applied, BuildError> {
        // Nobody objects, so there is what was done.
        self.apply_if(updates, || true).map(Option::unwrap_or_default)
    }

    /// [`apply`](Self::apply), with a question before readers see anything: when all is ready, and nothing
    /// can fail any more, `is_agreed` is asked. Where it says no, the call did not happen, and there is
    /// `None`. So two tables change both or neither, one within the question of the other.
    pub fn apply_if<'u>(
        &mut self,
        updates: impl IntoIterator<Item = &'u Update<A>>,
        is_agreed: impl FnOnce() -> bool,
    ) -> Result<Option<Applied>, BuildError> {
        self.undo.clear();
        for update in updates {
            self.undo.extend(self.rib.exchange(update));
        }
        let changes = self.undo.len();
        self.list_changed();
        match self.next() {
            Err(error) => {
                self.roll_back();
                Err(error)
            }
            Ok(next) if is_agreed() => Ok(Some(Applied { changes, ..self.publish(next) })),
            Ok(next) => {
                self.take_back(next);
                Ok(None)
            }
        }
    }

    /// A prefix that changed again and again is one change, and in order they find more of the caches warm.
    fn list_changed(&mut self) {
        self.changed.clear();
        self.changed.extend(self.undo.iter().map(|undo| undo.prefix));
        self.changed.sort_unstable();
        self.changed.dedup();
    }

    /// What readers are to see after the changes. After an error the engine is spent, if it was asked.
    fn next(&mut self) -> Result<Next<A, E>, BuildError> {
        if self.changed.is_empty() {
            return Ok(Next::Same);
        }
        // A table that was emptied is built anew, and gives back its memory.
        if let Some(engine) = self.engine.as_mut().filter(|_| !self.rib.is_empty()) {
            let table = self.writer.current();
            let patch = engine.update_beside(&table, &self.rib, &self.changed);
            drop(table);
            match patch {
                Ok(patch) => return Ok(Next::Patch(patch)),
                Err(_) => self.engine = None,
            }
        }
        self.built_anew().map(|(engine, table)| Next::Table(engine, table))
    }

    /// A table of the Rib, with head room unless it is that which doesn't fit.
    fn built_anew(&self) -> Result<(E, E::Table), BuildError> {
        let options = self.options.for_prefixes(self.rib.len());
        match E::build(&self.rib, &options) {
            Err(BuildError::Image(ImageError::OverCap { .. })) => {
                E::build(&self.rib, &BuildOptions { tight: true, ..options })
            }
            built => built,
        }
    }

    /// Has readers see it. Nothing here can fail.
    fn publish(&mut self, next: Next<A, E>) -> Applied {
        let mut applied = Applied::default();
        let longest = self.changed.iter().map(|prefix| prefix.len()).max().unwrap_or(0);
        if longest > self.longest {
            self.longest = longest;
            self.writer.reach(longest);
        }
        match next {
            Next::Same => {}
            Next::Patch(patch) => {
                applied.writes = patch.writes().len();
                self.writer.patch(patch).expect("an engine's patch fits its own table");
            }
            Next::Table(engine, table) => {
                self.engine = Some(engine);
                self.writer.replace(table);
                self.rebuilds += 1;
                applied.rebuilt = true;
            }
        }
        applied
    }

    /// Makes the Rib what it was before the call.
    fn roll_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            self.rib.undo(undo);
        }
    }

    /// Makes all what it was before the call, of which this was to come.
    fn take_back(&mut self, next: Next<A, E>) {
        self.roll_back();
        let (Next::Patch(there), Some(engine)) = (next, self.engine.as_mut()) else { return };
        // The engine has taken the changes in. It takes them back, and what it writes there and back is one
        // patch, after which every lookup is answered as before it. One that reads a copy of the table can't,
        // as the patch is in none: it is built anew with the next change.
        match engine.update(&self.rib, &self.changed) {
            Ok(back) => {
                self.writer.patch(there.then(back)).expect("an engine's patch fits its own table");
            }
            Err(_) => self.engine = None,
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

    /// How many first bits of an address lookups may depend on: the length of the longest prefix that there
    /// has been.
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
