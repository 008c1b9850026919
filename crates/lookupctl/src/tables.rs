//! Tables of any domain for verbs: messages on tables that can't be built, and lookups on GPUs alone.

use std::time::Duration;

use anyhow::{Context, Result};
use wirespeed::Fleet;
use wirespeed::engine::{AnyTable, Compiled, EngineName, KeyHint, Served};
use wirespeed::gpu::dispatch::{Meter, Use};
use wirespeed::gpu::offload::Offload;
use wirespeed_table::BuildOptions;

/// Compiles a table with an engine.
pub(crate) fn compile<D: Served>(
    engine: EngineName,
    source: &D::Source,
    options: &BuildOptions,
) -> Result<Compiled<D>> {
    D::compile(engine, source, options)?.with_context(|| cannot_build(engine))
}

/// Copies a table to GPUs, which answer all lookups in it.
pub(crate) fn on_gpus<D: Served>(
    engine: EngineName,
    table: &dyn AnyTable<D>,
    fleet: &Fleet,
    hint: KeyHint<'_, D>,
) -> Result<Offload<D::Remote>> {
    let remote = table.upload(fleet, hint).with_context(|| cannot_upload(engine))?;
    Ok(Offload::new(remote, Use::Always, Meter::new(1, Duration::ZERO)))
}

/// The message that an engine's table can't be copied to a GPU.
pub(crate) fn cannot_upload(engine: EngineName) -> String {
    format!("{engine} can't be copied to the GPU")
}

/// The message that an engine can't hold the table.
pub(crate) fn cannot_build(engine: EngineName) -> String {
    format!("{engine} can't be built")
}
