//! [`LiveFibs`]: the FIBs, their engine and the live copies of their table, kept in step.

use wirespeed_fib::{Address, Applied, BuildError, BuildOptions, Prefix, Rib, Undo, Update};
use wirespeed_image::ImageError;
use wirespeed_image::live::{Reader, Writer};

use super::build::SailM;
use super::fibs::{FibId, Fibs, FibsError};
use super::layout::SailMTable;

/// A table of many FIBs that takes updates, and FIBs, while any number of readers look up. One owner; readers
/// are independent of it.
///
/// Memory: the FIBs, what the engine holds, and two copies of the table (four while it is rebuilt).
///
/// ```
/// use wirespeed_fib::{BuildOptions, NextHop, Rib, Update, V4};
/// use wirespeed_sail::{Fibs, LiveFibs};
///
/// let mut live = LiveFibs::<V4>::new(Fibs::new(), BuildOptions::default())?;
/// let (red, blue) = (live.add(Rib::new())?, live.add(Rib::new())?);
/// let route = |next_hop| Update::Announce { prefix: "10.0.0.0/8".parse().unwrap(), next_hop: Some(NextHop(next_hop)) };
/// live.apply(&[(red, route(1)), (blue, route(2))])?;
///
/// let address = "10.1.2.3".parse().unwrap();
/// let mut next_hops = [NextHop::NONE; 2];
/// live.reader().enter().lookup_mixed(&[blue, red], &[address; 2], &mut next_hops);
/// assert_eq!(next_hops, [NextHop(2), NextHop(1)]);
/// # Ok::<(), wirespeed_sail::FibsError>(())
/// ```
#[derive(Debug)]
pub struct LiveFibs<A: Address> {
    fibs: Fibs<A>,
    /// `None` after a call that failed: the next change builds. The table is that of the FIBs all the same.
    engine: Option<SailM>,
    writer: Writer<SailMTable<A>>,
    options: BuildOptions,
    /// What takes back the updates of the call that is under way.
    undo: Vec<(FibId, Undo<A>)>,
    changed: Vec<(FibId, Prefix<A>)>,
    rebuilds: u64,
}

impl<A: Address> LiveFibs<A> {
    /// Builds the table of these FIBs and puts it live.
    pub fn new(fibs: Fibs<A>, options: BuildOptions) -> Result<Self, FibsError> {
        let (engine, table) = SailM::overlay(&fibs, &options)?;
        Ok(Self {
            fibs,
            engine: Some(engine),
            writer: Writer::new(table),
            options,
            undo: Vec::new(),
            changed: Vec::new(),
            rebuilds: 0,
        })
    }

    /// Applies updates in order, each to its FIB; readers that enter from now on see all of them, and none
    /// saw a part. Waits for readers that entered before the call before this one. Many updates a call cost
    /// less than one each.
    ///
    /// An error if the FIB of an update does not exist, or if the table must be rebuilt and can't
    /// be: [the call then did not happen](wirespeed_image::live#when-an-update-fails).
    pub fn apply(&mut self, updates: &[(FibId, Update<A>)]) -> Result<Applied, FibsError> {
        if let Some(&(id, _)) = updates.iter().find(|(id, _)| self.fibs.rib(*id).is_none()) {
            return Err(FibsError::NoFib(id));
        }
        self.undo.clear();
        for (id, update) in updates {
            let undo = self.fibs.exchange(*id, update)?;
            self.undo.extend(undo.map(|undo| (*id, undo)));
        }
        self.changed.clear();
        self.changed.extend(self.undo.iter().map(|(id, undo)| (*id, undo.prefix)));
        let applied = self.bring_up_to_date();
        if applied.is_err() {
            while let Some((id, undo)) = self.undo.pop() {
                self.fibs.undo(id, undo);
            }
        }
        Ok(applied?)
    }

    /// Adds a FIB with its routes; lookups that enter from now on find all of them. It rebuilds the table if
    /// the table has no slot for another FIB. After an error the FIB does not exist, as for
    /// [`apply`](Self::apply).
    pub fn add(&mut self, rib: Rib<A>) -> Result<FibId, FibsError> {
        self.changed.clear();
        let id = self.fibs.add(rib)?;
        let routes = self.fibs.rib(id).into_iter().flatten();
        self.changed.extend(routes.map(|(prefix, _)| (id, prefix)));
        if let Err(error) = self.bring_up_to_date() {
            self.fibs.remove(id);
            return Err(error.into());
        }
        Ok(id)
    }

    /// Removes a FIB; its routes. Lookups that enter from now on find none of them, and the id may be that of
    /// the next FIB that is added. After an error the FIB is there still, as for [`apply`](Self::apply).
    pub fn remove(&mut self, id: FibId) -> Result<Rib<A>, FibsError> {
        let removed = self.fibs.remove(id).ok_or(FibsError::NoFib(id))?;
        self.changed.clear();
        self.changed.extend(removed.iter().map(|(prefix, _)| (id, prefix)));
        if let Err(error) = self.bring_up_to_date() {
            self.fibs.put_back(id, removed);
            return Err(error.into());
        }
        Ok(removed)
    }

    /// A reader of the table.
    pub fn reader(&self) -> Reader<SailMTable<A>> {
        self.writer.reader()
    }

    /// The FIBs as they are now.
    pub fn fibs(&self) -> &Fibs<A> {
        &self.fibs
    }

    /// The number of rebuilds: changes for which the table had too little head room.
    pub fn rebuilds(&self) -> u64 {
        self.rebuilds
    }

    /// Bytes held: both copies of the table, the engine's and the FIBs' own.
    pub fn memory_usage(&self) -> u64 {
        let engine = self.engine.as_ref().map_or(0, SailM::bytes);
        self.writer.memory_usage() + engine + self.fibs.memory_usage()
    }

    /// Takes the table from before the changes to now: by a patch or, where it can't be, by another table.
    /// After an error readers have seen nothing, and the engine is spent.
    fn bring_up_to_date(&mut self) -> Result<Applied, BuildError> {
        let mut applied = Applied { changes: self.changed.len(), ..Applied::default() };
        if self.changed.is_empty() {
            return Ok(applied);
        }
        // As in `LiveTable`: each prefix once, and in order.
        self.changed.sort_unstable();
        self.changed.dedup();
        let patch = self.engine.as_mut().and_then(|engine| engine.patch(&self.fibs, &self.changed).ok());
        if let Some(patch) = patch {
            applied.writes = patch.writes().len();
            self.writer.patch(patch).expect("an engine's patch fits its own table");
        } else {
            self.engine = None;
            let (engine, table) = self.built_anew()?;
            self.engine = Some(engine);
            self.writer.replace(table);
            self.rebuilds += 1;
            applied.rebuilt = true;
        }
        Ok(applied)
    }

    /// A table of the FIBs, with head room unless it is that which doesn't fit.
    fn built_anew(&self) -> Result<(SailM, SailMTable<A>), BuildError> {
        match SailM::overlay(&self.fibs, &self.options) {
            Err(BuildError::Image(ImageError::OverCap { .. })) => {
                SailM::overlay(&self.fibs, &BuildOptions { tight: true, ..self.options.clone() })
            }
            built => built,
        }
    }
}
