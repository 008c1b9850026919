//! MATA-NW (section 4): MATA's table, whose batches are interleaved before lookups.
//!
//! On a CPU interleaving gains nothing; this code serves as the reference for its kernel.

use wirespeed_image::{Checked, Image, ImageError, Patch, PatchError, SectionId, Table};
use wirespeed_table::{BuildError, BuildOptions, Engine, Load, Lookup, Outgrown, Standing, Step};

use super::{Mata, MataTable};
use crate::aligned::interleave::{Interleaved, interleave};
use crate::domain::NameDomain;
use crate::found::Match;
use crate::name::Name;
use crate::names::Names;
use crate::table::{NameTable, NodeId};

/// Builds a MATA for interleaved names and keeps it up to date.
#[derive(Clone, Debug)]
pub struct MataNw(Mata);

/// A MATA, ready for lookups of interleaved names. Its image is the same as that of [`MataTable`].
#[derive(Clone, Debug)]
pub struct MataNwTable(MataTable);

impl MataNwTable {
    /// The table without interleaving.
    pub const fn mata(&self) -> &MataTable {
        &self.0
    }

    /// Looks up names that are interleaved already.
    ///
    /// Panics when the lengths differ.
    pub fn match_interleaved(&self, names: &Interleaved, matches: &mut [Match]) {
        self.0.match_interleaved(names, matches);
    }
}

impl Engine<NameDomain> for MataNw {
    const NAME: &'static str = "mata-nw";
    const STANDING: Standing = Standing::Paper("MATA, NSDI 2013");
    type Table = MataNwTable;

    fn build(names: &NameTable, options: &BuildOptions) -> Result<(Self, MataNwTable), BuildError> {
        let (engine, table) = Mata::build(names, options)?;
        Ok((Self(engine), MataNwTable(table)))
    }

    fn patch(
        &mut self,
        table: &Self::Table,
        names: &NameTable,
        changed: &[NodeId],
    ) -> Result<Patch, Outgrown> {
        self.0.patch(&table.0, names, changed)
    }

    fn memory_usage(&self) -> u64 {
        self.0.memory_usage()
    }
}

impl Lookup<NameDomain> for MataNwTable {
    fn lookup(&self, name: &Name) -> Match {
        self.0.lookup(name)
    }

    fn lookup_batch(&self, names: Names<'_>, results: &mut [u32]) {
        let mut matches = vec![Match::NONE; results.len()];
        self.match_batch(names, &mut matches);
        results.iter_mut().zip(matches).for_each(|(result, found)| *result = found.result);
    }

    fn match_batch(&self, names: Names<'_>, matches: &mut [Match]) {
        assert_eq!(names.len(), matches.len(), "a match for each name");
        self.match_interleaved(&interleave(names), matches);
    }

    fn shape(&self) -> Option<String> {
        self.0.shape()
    }

    fn loads(&self) -> Vec<Load> {
        self.0.loads()
    }

    fn explain(&self, name: &Name) -> Vec<Step> {
        self.0.explain(name)
    }
}

impl Table for MataNwTable {
    const KIND: &'static str = MataTable::KIND;
    const LAYOUT: u32 = MataTable::LAYOUT;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        MataTable::from_image(image).map(Self)
    }

    fn image(&self) -> &Image {
        self.0.image()
    }

    fn image_mut(&mut self, checked: Checked) -> &mut Image {
        self.0.image_mut(checked)
    }

    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        self.0.admits(section, value, results)
    }

    fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
        self.0.admits_at(section, index, value, results)
    }

    fn check(&self, patch: &Patch) -> Result<(), PatchError> {
        self.0.check(patch)
    }
}
