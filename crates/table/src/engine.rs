//! [`Engine`]: the control plane of a table.

use wirespeed_image::{Outgrown, Patch, Table};

use crate::domain::Domain;
use crate::error::BuildError;
use crate::lookup::Lookup;
use crate::options::BuildOptions;
use crate::standing::Standing;

/// What compiles a table and keeps it up to date.
///
/// It holds only what it needs to turn changes into patches, such as where its chunks lie, never a second
/// table: it reads the values of a patch from the source as it is after all the changes, so that each
/// location is written once however many changes touch it.
pub trait Engine<D: Domain>: Sized + Send + 'static {
    /// The name that users choose it by.
    const NAME: &'static str;

    /// Whether it is one to pick.
    const STANDING: Standing;

    /// Its data plane.
    type Table: Table + Lookup<D>;

    /// Compiles a table, and makes the engine that keeps it up to date. Uses all threads of the `rayon` pool
    /// that the caller is in.
    fn build(source: &D::Source, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError>;

    /// Takes changes in. `changed` lists them since the last call, each once; `source` is what it is after
    /// them.
    ///
    /// An engine may leave all to [`patch`](Self::patch). After an error it is spent: build a new one from
    /// the same source.
    fn take(&mut self, source: &D::Source, changed: &[D::Change]) -> Result<(), Outgrown> {
        let _ = (source, changed);
        Ok(())
    }

    /// The patch that takes a table from before the changes to `source`. `changed` lists all that were
    /// [taken](Self::take) since the last patch. `table` is a copy as that patch left it: an engine that
    /// keeps no second copy of some section reads it there.
    ///
    /// After an error the engine is spent: build a new one from the same source.
    fn patch(
        &mut self,
        table: &Self::Table,
        source: &D::Source,
        changed: &[D::Change],
    ) -> Result<Patch, Outgrown>;

    /// [`take`](Self::take) and [`patch`](Self::patch) of the same changes.
    fn update(
        &mut self,
        table: &Self::Table,
        source: &D::Source,
        changed: &[D::Change],
    ) -> Result<Patch, Outgrown> {
        self.take(source, changed)?;
        self.patch(table, source, changed)
    }

    /// Bytes held beside the table and the source.
    fn memory_usage(&self) -> u64;
}
