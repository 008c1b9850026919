//! Rates of IP engines with each vector level, for their benches.

use std::error::Error;
use std::path::PathBuf;

use wirespeed_table::Engine;

use super::{Expected, build};
use crate::fib::InFib;
use crate::read::{ReadOptions, Source, read_fib};
use crate::trace::{Generator, TraceKind};

/// Keys of a trace.
const KEYS: usize = 1 << 20;

/// Compares an engine's vector levels on the tables of files, those that have prefixes of the family: random
/// keys, and keys by prefix.
pub fn compare_levels<A: InFib, E: Engine<A>>(
    files: impl IntoIterator<Item = String>,
) -> Result<(), Box<dyn Error>> {
    for file in files.into_iter().filter(|file| file != "--bench") {
        let options = ReadOptions { lenient: true, ..ReadOptions::default() };
        let (rib, _) = A::into_rib(read_fib(&Source::Path(PathBuf::from(&file)), &options)?.0);
        if rib.is_empty() {
            continue;
        }
        let (_, table) = build::<A, E>(&rib);
        println!("\n{}, {} prefixes, {file}", E::NAME, rib.len());
        wirespeed_table::conformance::levels_head();
        let expected = Expected::of(&rib);
        for (kind, name) in [(TraceKind::Random, "random"), (TraceKind::Prefix, "prefix")] {
            let mut generator = Generator::new(&rib, kind, 1)?;
            let keys: Vec<A> = (0..KEYS).map(|_| generator.draw()).collect();
            let right: Vec<_> = keys.iter().map(|&key| expected.lookup(key)).collect();
            wirespeed_table::conformance::compare_levels::<A>(name, &table, &keys, &right);
        }
    }
    Ok(())
}
