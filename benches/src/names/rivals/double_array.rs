//! `yada`: a double array.

use anyhow::{Context, Result, ensure};
use wirespeed_namelookup::{Name, NameTable};
use yada::DoubleArray as Yada;
use yada::builder::DoubleArrayBuilder;

use super::ends_a_component;
use crate::names::OfNames;
use crate::table::{Contestant, one_by_one};

/// `DoubleArray`, which holds no empty key: the root's result beside it.
pub struct DoubleArray {
    array: Yada<Vec<u8>>,
    root: u32,
}

impl DoubleArray {
    /// Builds of all names. Bytes of 0 end yada's keys, so that names may have none.
    pub fn build(names: &NameTable) -> Result<Self> {
        let mut entries: Vec<_> = names.iter().filter(|(name, _)| !name.is_empty()).collect();
        entries.sort_unstable();
        ensure!(entries.iter().all(|(name, _)| !name.as_bytes().contains(&0)), "a name has a byte of 0");
        let keys: Vec<(&[u8], u32)> =
            entries.iter().map(|(name, result)| (name.as_bytes(), *result)).collect();
        let bytes = DoubleArrayBuilder::build(&keys).ok().context("yada builds no array of these names")?;
        let array = Yada::new(bytes).ok().context("yada takes its own array")?;
        Ok(Self { array, root: names.result(Name::ROOT) })
    }
}

impl Contestant<OfNames> for DoubleArray {
    one_by_one!(OfNames);

    #[inline]
    fn one(&self, name: &Name) -> u32 {
        let bytes = name.as_bytes();
        let prefixes = self.array.common_prefix_search(&bytes);
        let whole = prefixes.filter(|&(_, length)| ends_a_component(name, length));
        whole.last().map_or(self.root, |(result, _)| result)
    }
}
