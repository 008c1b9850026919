//! Names: tables, traces, engines beside rivals, and updates.
//!
//! ```text
//! real domains, made ones ──► NameTable ──► Lane (one per engine and rival)          lineup
//!       (data)                   └─► trace ──► expected results ──check──► rounds    contest ──► crate::report
//!                                └─► churn ──► engine alone, LiveNames, beside lookups   update
//! ```
//!
//! ```text
//! cargo xtask record names      all of it on a core       ──► record/MACHINE/DATE-names.csv
//! cargo xtask mata-paper        the MATA paper's figures  ──► record/MACHINE/DATE-mata-paper-….csv and .svg
//! ```

pub mod contest;
pub mod data;
pub mod lineup;
pub mod rivals;
pub mod update;

use wirespeed_namelookup::{Match, Name, NameDomain, NameTable, NameUpdate, Names};
use wirespeed_table::Domain;

use crate::batch::Batch;
use crate::engines::Ours;
use crate::table::Contested;

/// Contests of names. Results are numbers, 0 where nothing matches.
#[derive(Clone, Copy, Debug)]
pub enum OfNames {}

impl Contested for OfNames {
    type Source = NameTable;
    type Update = NameUpdate;
    type Key<'k> = &'k Name;
    type Keys<'k> = Names<'k>;
    type Result = u32;

    fn number(result: u32) -> u32 {
        result
    }
}

impl<'k> Batch for Names<'k> {
    type Key = &'k Name;

    fn len(self) -> usize {
        Names::len(&self)
    }

    fn part(self, range: std::ops::Range<usize>) -> Self {
        Names::part(&self, range)
    }

    fn each(self) -> impl Iterator<Item = &'k Name> {
        self.iter()
    }
}

impl Ours for OfNames {
    type Domain = NameDomain;

    fn key<'k>(name: <Self as Contested>::Key<'k>) -> <NameDomain as Domain>::Key<'k> {
        name
    }

    fn keys<'k>(names: <Self as Contested>::Keys<'k>) -> <NameDomain as Domain>::Keys<'k> {
        names
    }

    fn found(found: Match) -> u32 {
        found.result
    }
}
