//! The engines of a verb for a table of names.

use anyhow::Result;
use wirespeed::engine::EngineName;
use wirespeed::names::NameRib;
use wirespeed_namelookup::NameDomain;

use crate::engine::Selection;

/// The number of components above which engines of one full array take too long to build, unless the user
/// names them: with 25,000 components `ata` and `ata-2` took over a minute.
const LARGE: usize = 15_000;

/// The engines for a table. Prints the engines that are left out of a selection.
pub(super) fn engines(selection: Selection, names: &NameRib) -> Result<Vec<EngineName>> {
    let mut engines = selection.engines::<NameDomain>(names)?;
    if engines.len() > 1 && names.node_count() > LARGE {
        engines.retain(|engine| {
            let takes_long = matches!(engine, EngineName::Ata | EngineName::Ata2);
            if takes_long {
                eprintln!(
                    "{engine}: left out, as it takes minutes to build for a table like this; --engine {engine} does it"
                );
            }
            !takes_long
        });
    }
    Ok(engines)
}
