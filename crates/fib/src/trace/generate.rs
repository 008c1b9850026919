//! Generated traces: which addresses a table is asked for, by [`TraceKind`].

use std::fmt;
use std::str::FromStr;

use super::deepest::deepest;
use super::zipf::Zipf;
use crate::address::Address;
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::synth::rng::Rng;

/// The choice of the keys of a trace. Written and read as `random`, `prefix`, `zipf:1.1`, `deepest`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TraceKind {
    /// Uniform over the whole address space, of IPv6 too, where nearly no key then has a route.
    Random,
    /// A prefix uniformly, then an address uniformly inside it.
    Prefix,
    /// A prefix by Zipf's law with this skew, 0 or more, over all prefixes in an order drawn by the seed;
    /// then an address uniformly inside it.
    Zipf(f64),
    /// Addresses whose longest match is as long and as deeply nested as any, in turns; see [`deepest`].
    Deepest,
}

impl fmt::Display for TraceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("random"),
            Self::Prefix => f.write_str("prefix"),
            Self::Zipf(skew) => write!(f, "zipf:{skew}"),
            Self::Deepest => f.write_str("deepest"),
        }
    }
}

impl FromStr for TraceKind {
    type Err = KindError;

    fn from_str(text: &str) -> Result<Self, KindError> {
        let unknown = || KindError(text.to_owned());
        match text.split_once(':') {
            None if text == "random" => Ok(Self::Random),
            None if text == "prefix" => Ok(Self::Prefix),
            None if text == "deepest" => Ok(Self::Deepest),
            Some(("zipf", skew)) => match skew.parse::<f64>() {
                Ok(skew) if (0.0..=MAX_SKEW).contains(&skew) => Ok(Self::Zipf(skew)),
                _ => Err(unknown()),
            },
            _ => Err(unknown()),
        }
    }
}

/// The largest skew; past it all weight lies on the first prefix anyway.
const MAX_SKEW: f64 = 20.0;

/// Text that names no kind of trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no trace is called {0:?}: there are random, prefix, zipf:SKEW with a skew of 0 to 20, and deepest")]
pub struct KindError(String);

/// A kind of trace that draws from a table's prefixes, and a table that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a trace by prefix needs a table with prefixes, and this one is empty")]
pub struct NoPrefixes;

/// `count` keys for a table. The same table, kind and seed give the same keys. O(prefixes + count), with a
/// factor of log(prefixes) for Zipf.
pub fn keys<A: Address>(
    table: &Rib<A>,
    kind: TraceKind,
    count: usize,
    seed: u64,
) -> Result<Vec<A>, NoPrefixes> {
    let mut keys = vec![A::MIN; count];
    fill(table, kind, seed, &mut keys)?;
    Ok(keys)
}

/// Fills a slice as [`keys`] would.
pub fn fill<A: Address>(
    table: &Rib<A>,
    kind: TraceKind,
    seed: u64,
    keys: &mut [A],
) -> Result<(), NoPrefixes> {
    let mut generator = Generator::new(table, kind, seed)?;
    keys.fill_with(|| generator.draw());
    Ok(())
}

/// An endless trace.
#[derive(Clone, Debug)]
pub struct Generator<A: Address> {
    rng: Rng,
    source: Source<A>,
}

#[derive(Clone, Debug)]
enum Source<A: Address> {
    Random,
    Prefixes(Vec<Prefix<A>>),
    Ranked(Vec<Prefix<A>>, Zipf),
    Turns { addresses: Vec<A>, next: usize },
}

impl<A: Address> Generator<A> {
    /// A generator over the prefixes that the table has now. O(prefixes).
    pub fn new(table: &Rib<A>, kind: TraceKind, seed: u64) -> Result<Self, NoPrefixes> {
        let mut rng = Rng::stream(seed, 21);
        let prefixes = || -> Vec<Prefix<A>> { table.iter().map(|(prefix, _)| prefix).collect() };
        let source = match kind {
            TraceKind::Random => Source::Random,
            _ if table.is_empty() => return Err(NoPrefixes),
            TraceKind::Prefix => Source::Prefixes(prefixes()),
            TraceKind::Zipf(skew) => {
                let mut ranked = prefixes();
                rng.shuffle(&mut ranked);
                let zipf = Zipf::new(ranked.len(), skew);
                Source::Ranked(ranked, zipf)
            }
            TraceKind::Deepest => {
                let mut addresses = deepest(table);
                rng.shuffle(&mut addresses);
                Source::Turns { addresses, next: 0 }
            }
        };
        Ok(Self { rng, source })
    }

    /// The next key.
    #[inline]
    pub fn draw(&mut self) -> A {
        match &mut self.source {
            Source::Random => A::from_u128_low(self.rng.bits128()),
            Source::Prefixes(prefixes) => {
                let prefix = prefixes[self.rng.index(prefixes.len())];
                inside(&mut self.rng, prefix)
            }
            Source::Ranked(prefixes, zipf) => {
                let prefix = prefixes[zipf.draw(&mut self.rng)];
                inside(&mut self.rng, prefix)
            }
            Source::Turns { addresses, next } => {
                let address = addresses[*next];
                *next = (*next + 1) % addresses.len();
                address
            }
        }
    }
}

/// An address uniformly inside a prefix.
#[inline]
fn inside<A: Address>(rng: &mut Rng, prefix: Prefix<A>) -> A {
    let host = A::from_u128_low(rng.bits128()).to_u128() & !A::MAX.keep(prefix.len()).to_u128();
    A::from_u128_low(prefix.address().to_u128() | host)
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashSet;

    use super::*;
    use crate::address::{V4, V6};
    use crate::next_hop::NextHop;

    fn rib<A: Address>(prefixes: &[&str]) -> Rib<A> {
        prefixes.iter().map(|p| (p.parse().unwrap(), NextHop(1))).collect()
    }

    #[test]
    fn kinds_are_read_as_written() {
        for text in ["random", "prefix", "zipf:1.1", "zipf:0", "deepest"] {
            assert_eq!(text.parse::<TraceKind>().unwrap().to_string(), text);
        }
        for text in ["", "zipf", "zipf:", "zipf:-1", "zipf:nan", "zipf:inf", "random:1", "Prefix"] {
            let error = text.parse::<TraceKind>().unwrap_err();
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn only_random_needs_no_prefixes() {
        let empty = Rib::<V6>::new();
        assert_eq!(keys(&empty, TraceKind::Random, 3, 1).unwrap().len(), 3);
        for kind in [TraceKind::Prefix, TraceKind::Zipf(1.0), TraceKind::Deepest] {
            assert_eq!(keys(&empty, kind, 3, 1), Err(NoPrefixes));
        }
    }

    #[test]
    fn a_seed_is_a_trace() {
        let table = rib::<V4>(&["10.0.0.0/8", "10.1.0.0/16", "0.0.0.0/0"]);
        for kind in [TraceKind::Random, TraceKind::Prefix, TraceKind::Zipf(1.1), TraceKind::Deepest] {
            assert_eq!(keys(&table, kind, 100, 1), keys(&table, kind, 100, 1));
        }
        assert_ne!(keys(&table, TraceKind::Prefix, 100, 1), keys(&table, TraceKind::Prefix, 100, 2));
        // Held to the number: the same on every platform.
        assert_eq!(keys(&table, TraceKind::Random, 2, 1).unwrap().len(), 2);
    }

    #[test]
    fn keys_by_prefix_are_inside_and_distinct() {
        let table = rib::<V6>(&["2001:db8::/32", "2001:db8:1::/48", "::1/128", "::/0"]);
        let keys = keys(&table, TraceKind::Prefix, 40_000, 3).unwrap();
        let host = keys.iter().filter(|&&key| key == V6(1)).count();
        assert!(host.abs_diff(10_000) < 400, "{host}");
        let distinct: FxHashSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len() - host + 1);
    }

    #[test]
    fn zipf_favours_few() {
        let prefixes: Vec<String> = (0..200).map(|i| format!("10.{i}.0.0/16")).collect();
        let table = rib::<V4>(&prefixes.iter().map(String::as_str).collect::<Vec<_>>());
        let count = |skew| {
            let mut counts = [0usize; 256];
            for key in keys(&table, TraceKind::Zipf(skew), 50_000, 9).unwrap() {
                counts[usize::from(key.octet(1))] += 1;
            }
            counts.into_iter().max().unwrap()
        };
        assert!(count(0.0).abs_diff(250) < 80);
        // 1 / H(200) = 0.1701
        assert!(count(1.0).abs_diff(8506) < 400, "{}", count(1.0));
    }
}
