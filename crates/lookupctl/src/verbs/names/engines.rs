//! The engines that a verb goes through for a table of names.

use anyhow::Result;
use wirespeed::engine::EngineName;
use wirespeed::names::NameRib;
use wirespeed_namelookup::NameDomain;

use crate::engine::Selection;

/// Components from which on engines of one array that is to be full take too long to be built where nobody
/// asked for them: of 25,000, `ata` and `ata-2` took over a minute.
const LARGE: usize = 15_000;

/// The engines for a table. Says which of several are left out.
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
