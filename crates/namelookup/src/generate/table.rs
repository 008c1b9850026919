//! Generated tables, and real tables with generated names added.

use wirespeed_fib::synth::next_hop_texts;
use wirespeed_fib::synth::rng::Rng;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::GenerateError;
use super::domains::Domains;
use crate::name::Name;
use crate::read::{Labels, NameFib};

/// The specification of a table. Equal specifications give equal tables on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableSpec {
    /// Number of names, exactly.
    pub names: usize,
    /// Number of results, named by documentation addresses and then by numbers. 0 gives each name a result of
    /// its own.
    pub results: u32,
    /// The seed.
    pub seed: u64,
}

/// A table of generated names in the shape of real domains. O(names): 10 million take about ten seconds.
///
/// Names of a domain mostly share a result, as hosts of a site share a route.
pub fn table(spec: &TableSpec) -> Result<NameFib, GenerateError> {
    let mut fib = NameFib::default();
    extend(&mut fib, spec)?;
    Ok(fib)
}

/// Adds generated names to a table until it has the number in the specification, or none if it has more. No
/// name occurs twice.
///
/// Results are those of the specification, in addition to the table's. With 0 results, generated names follow
/// the table: they get results of their own if the table is a list, otherwise any of the table's results.
///
/// ```
/// use wirespeed_namelookup::generate::{TableSpec, extend};
/// use wirespeed_namelookup::read::{ReadOptions, read_table_from};
///
/// let (mut fib, _) = read_table_from(&b"www.parc.com\n"[..], "list", &ReadOptions::default())?;
/// extend(&mut fib, &TableSpec { names: 100, results: 0, seed: 1 })?;
/// assert_eq!((fib.names.len(), fib.labels.len()), (100, 100));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn extend(fib: &mut NameFib, spec: &TableSpec) -> Result<(), GenerateError> {
    let results = results(&mut fib.labels, spec)?;
    let mut domains = Domains::new(spec.seed);
    let mut rng = Rng::stream(spec.seed, 32);
    fib.names.reserve(spec.names.saturating_sub(fib.names.len()));
    while fib.names.len() < spec.names {
        let name = domains.draw();
        if fib.names.result(name) != 0 {
            continue;
        }
        let result = match &results[..] {
            [] => fib.labels.next_line()?,
            results => results[pick(&mut rng, name, spec.seed, results.len())],
        };
        fib.names.insert(name, result);
    }
    Ok(())
}

/// The results of generated names. Empty if each gets its own.
fn results(labels: &mut Labels, spec: &TableSpec) -> Result<Vec<u32>, GenerateError> {
    if spec.results == 0 {
        let is_list = labels.len() == labels.lines() as usize;
        return Ok(if is_list { Vec::new() } else { labels.iter().map(|(result, _)| result).collect() });
    }
    let texts = next_hop_texts(spec.results)?;
    texts.iter().map(|(_, text)| Ok(labels.intern(text)?)).collect()
}

/// Share of names with the result of their domain.
const WITH_DOMAIN: f64 = 0.8;

fn pick(rng: &mut Rng, name: &Name, seed: u64, results: usize) -> usize {
    if !rng.chance(WITH_DOMAIN) {
        return rng.index(results);
    }
    Rng::new(domain_hash(name, seed)).index(results)
}

/// A number that all names of a domain share, by their first two components.
pub(super) fn domain_hash(name: &Name, seed: u64) -> u64 {
    let end: usize = name.components().take(2).map(|component| 1 + component.len()).sum();
    xxh3_64_with_seed(&name.as_bytes()[..end], seed)
}
