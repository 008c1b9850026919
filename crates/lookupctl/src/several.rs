//! Several tables at once, as the FIBs of virtual routers, in the one engine that holds several FIBs.

use std::ffi::OsString;

use anyhow::{Result, bail};
use wirespeed::engine::EngineName;
use wirespeed_fib::{Fib, InFib};
use wirespeed_sail::Fibs;

use crate::engine::Choice;
use crate::source::{Loaded, ReadArguments};

/// The engine that holds several FIBs.
pub(crate) const ENGINE: &str = EngineName::SailM.as_str();

/// Reads tables as FIB 0, FIB 1 and so on. The caller checks the read options when all tables are read.
pub(crate) fn load(read: &ReadArguments, from: &[OsString]) -> Result<Vec<Loaded>> {
    from.iter().map(|from| read.load_one_of(from)).collect()
}

/// Refuses an engine that holds one FIB only.
pub(crate) fn check_engine(engine: Choice, fibs: usize) -> Result<()> {
    match engine {
        Choice::Named(EngineName::Forest) => bail!(
            "engine forest takes one FIB here, and {fibs} are given: {ENGINE} takes several, and in the \
             library Vrfs hold thousands in a forest"
        ),
        Choice::Named(name) if name != EngineName::SailM => {
            bail!("engine {name} takes one FIB, and {fibs} are given: {ENGINE} takes several")
        }
        _ => Ok(()),
    }
}

/// The routes of one family of every table.
pub(crate) fn routes<'a, A: InFib>(fibs: impl IntoIterator<Item = &'a Fib>) -> Result<Fibs<A>> {
    let mut routes = Fibs::new();
    for fib in fibs {
        routes.add(A::rib(fib).clone())?;
    }
    Ok(routes)
}
