//! Tables of any domain as verbs have them: words on those that can't be made, and lookups on GPUs alone.

use std::time::Duration;

use anyhow::{Context, Result};
use wirespeed::Fleet;
use wirespeed::engine::{AnyTable, Compiled, EngineName, KeyHint, Served};
use wirespeed::gpu::dispatch::{Meter, Use};
use wirespeed::gpu::offload::Offload;
use wirespeed_table::BuildOptions;

/// Compiles a table for an engine.
pub(crate) fn compile<D: Served>(
    engine: EngineName,
    source: &D::Source,
    options: &BuildOptions,
) -> Result<Compiled<D>> {
    D::compile(engine, source, options)?.with_context(|| cannot_build(engine))
}

/// Brings a table to GPUs, which look everything up in it.
pub(crate) fn on_gpus<D: Served>(
    engine: EngineName,
    table: &dyn AnyTable<D>,
    fleet: &Fleet,
    hint: KeyHint<'_, D>,
) -> Result<Offload<D::Remote>> {
    let remote = table.upload(fleet, hint).with_context(|| cannot_upload(engine))?;
    Ok(Offload::new(remote, Use::Always, Meter::new(1, Duration::ZERO)))
}

/// Says that no GPU takes an engine's table.
pub(crate) fn cannot_upload(engine: EngineName) -> String {
    format!("{engine} can't be brought to the GPU")
}

/// Says that an engine refuses the table.
pub(crate) fn cannot_build(engine: EngineName) -> String {
    format!("{engine} can't be built")
}
