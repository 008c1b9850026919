//! [`Engine`]: the control plane of a table.

use wirespeed_image::{Outgrown, Patch, Table};

use crate::domain::Domain;
use crate::error::BuildError;
use crate::lookup::Lookup;
use crate::options::BuildOptions;
use crate::standing::Standing;

/// Compiles a table and keeps it up to date.
///
/// An engine holds only the data that it needs to turn changes into patches, such as the locations of its
/// chunks, never a second table. It reads the values of a patch from the source after all changes, so that
/// each location is written once even if many changes touch it.
pub trait Engine<D: Domain>: Sized + Send + Sync + 'static {
    /// The name that users choose it by.
    const NAME: &'static str;

    /// Whether the engine is one to pick.
    const STANDING: Standing;

    /// The least head room of a live table with this engine, in hundredths. By default that of the domain.
    const HEAD_ROOM: u32 = D::HEAD_ROOM;

    /// The head room of a live table with this engine that was rebuilt, in hundredths. By default that of the
    /// domain.
    const LATER_HEAD_ROOM: u32 = D::LATER_HEAD_ROOM;

    /// The engine's data plane.
    type Table: Table + Lookup<D>;

    /// Compiles a table, and makes the engine that keeps it up to date. Uses all threads of the caller's
    /// `rayon` pool.
    fn build(source: &D::Source, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError>;

    /// Takes changes. `changed` lists the changes since the last call, each once. `source` is the source
    /// after them. `table` is a copy in the state after the last patch, as for [`patch`](Self::patch).
    ///
    /// An engine may leave all work to [`patch`](Self::patch). After an error it must be dropped: build a new
    /// engine from the same source.
    fn take(
        &mut self,
        table: &Self::Table,
        source: &D::Source,
        changed: &[D::Change],
    ) -> Result<(), Outgrown> {
        let _ = (table, source, changed);
        Ok(())
    }

    /// Makes the patch that brings a table from the state before the changes to `source`. `changed` lists all
    /// changes [taken](Self::take) since the last patch. `table` is a copy in the state after that patch: an
    /// engine that keeps no second copy of a section reads it there.
    ///
    /// After an error the engine must be dropped, unless it can [grow](Self::grow) the table: build a new one
    /// from the same source.
    fn patch(
        &mut self,
        table: &Self::Table,
        source: &D::Source,
        changed: &[D::Change],
    ) -> Result<Patch, Outgrown>;

    /// Makes another table in the state after the changes that were taken, from one that has no room for
    /// them: called after [`patch`](Self::patch) has failed, with the same table and source. The engine goes
    /// on with the new table. `None` if the table is to be built anew.
    fn grow(
        &mut self,
        table: &Self::Table,
        source: &D::Source,
        options: &BuildOptions,
    ) -> Option<Self::Table> {
        let _ = (table, source, options);
        None
    }

    /// Calls [`take`](Self::take) and [`patch`](Self::patch) with the same changes.
    fn update(
        &mut self,
        table: &Self::Table,
        source: &D::Source,
        changed: &[D::Change],
    ) -> Result<Patch, Outgrown> {
        self.take(table, source, changed)?;
        self.patch(table, source, changed)
    }

    /// Says that the last patch was not published. It will be, as a part of the next one: readers go from the
    /// state before both to the state after both.
    fn unpublished(&mut self) {}

    /// Bytes held beside the table and the source.
    fn memory_usage(&self) -> u64;
}
