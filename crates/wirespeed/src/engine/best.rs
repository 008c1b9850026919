//! The engine that suits a table best: the meaning of `auto`, and the reasons.

#[cfg(feature = "rules")]
use wirespeed_classify::RuleSet;
use wirespeed_fib::{Address, Family, Rib, Strides, V4, V6};
#[cfg(feature = "names")]
use wirespeed_namelookup::NameTable;

use super::EngineName;

/// Picks by the rows in `benches/record`. On the real tables, in batches of 1,024 keys, no measured engine is
/// faster than the picked one for random keys and also for keys drawn by prefix. Some engines are faster for
/// one kind of traffic: `dir24` for IPv4 keys drawn by prefix, `gamt` and `waldvogel` for IPv6 keys most of
/// which have no route.
///
/// Tables of scattered routes, such as host routes all over the address space, get `waldvogel`. It takes one
/// slot for each route, whereas unshared chunks would take up to 22 kB each. The size that chunks can reach
/// is computed from the routes, in a small part of the time that building takes.
///
/// Small tables get `forest`. The first levels of the other engines take megabytes and milliseconds for any
/// table. `forest` makes half or less of the lookups of `fold` a second.
///
/// Next hops over [`WIDE`] get an engine that holds them: they decide before speed does. `results` is the
/// largest next hop that the table is to have room for, or 0.
pub(super) fn addresses<A: Chunked>(rib: &Rib<A>, results: u32) -> EngineName {
    if rib.len() <= SMALL_TABLE { EngineName::Forest } else { by_strides(rib, results, &Strides::Fastest) }
}

/// The most routes of a table that gets `forest`.
pub(super) const SMALL_TABLE: usize = 256;

/// The largest next hop that all engines here hold. `forest`, and `fold` for IPv4, hold every next hop but
/// the last number of 32 bits.
const WIDE: u32 = (1 << 30) - 1;

/// Picks like [`addresses`], except for IPv4 tables whose next hops fit a byte. These get FOLD with hot
/// blocks, which keeps most of the data that traffic needs in a multiprocessor's own memory.
pub(super) fn addresses_on_gpu<A: Chunked>(rib: &Rib<A>, results: u32) -> EngineName {
    match (A::FAMILY, by_strides(rib, results, &Strides::FastestOnGpu)) {
        (Family::V4, EngineName::Fold) if !is_wide(rib, results) => EngineName::FoldHot,
        (_, other) => other,
    }
}

/// The most bytes for each prefix that chunks of a table over [`SMALL`] may take, for IPv4 and IPv6. The real
/// tables take 6 and 61 (128 with the strides for GPUs), random hosts some 300 and 6,000.
const MOST_EACH: [u64; 2] = [96, 768];
/// The size in bytes below which chunks are accepted however many bytes they take for each prefix.
const SMALL: u64 = 16 << 20;

fn is_wide<A: Address>(rib: &Rib<A>, results: u32) -> bool {
    rib.max_next_hop().0.max(results) > WIDE
}

fn by_strides<A: Chunked>(rib: &Rib<A>, results: u32, strides: &Strides) -> EngineName {
    let most_each = MOST_EACH[usize::from(A::FAMILY == Family::V6)];
    let is_scattered = A::most_chunks(rib, strides) > (rib.len() as u64).saturating_mul(most_each).max(SMALL);
    // As long as a byte holds a next hop, FOLD's chunks fit the caches. RANK's words stay as small for any
    // number of next hops.
    match A::FAMILY {
        Family::V4 if !is_scattered && is_wide(rib, results) => EngineName::Fold,
        _ if is_wide(rib, results) => EngineName::Forest,
        _ if is_scattered => EngineName::Waldvogel,
        Family::V4 if rib.max_next_hop().0 > 254 => EngineName::Rank,
        _ => EngineName::Fold,
    }
}

/// A family whose chunks can be counted before they are made.
pub(super) trait Chunked: Address {
    /// The bytes that the chunks of a table take if no two of them are equal: the most that is possible.
    fn most_chunks(rib: &Rib<Self>, strides: &Strides) -> u64;
}

impl Chunked for V4 {
    fn most_chunks(rib: &Rib<Self>, _: &Strides) -> u64 {
        wirespeed_fold::v4::most_bytes(rib)
    }
}

impl Chunked for V6 {
    fn most_chunks(rib: &Rib<Self>, strides: &Strides) -> u64 {
        wirespeed_fold::v6::most_bytes(rib, strides)
    }
}

/// Picks ACTA for every table. It reads a cache line for each component, where the paper's structures read
/// one every few bytes, and it is the smallest.
#[cfg(feature = "names")]
pub(super) fn names(_: &NameTable) -> EngineName {
    EngineName::Acta
}

/// Picks quilt for every set of rules, however few rules there are when the table is built: a live set grows.
/// Rates in M lookups/s on one core of a Zen 4 (`classify_speed` of `wirespeed-classify`, batches of 8,192; a
/// shared machine, so compare ratios only):
///
/// | set | linear | tuple | Bloom | quilt |
/// |---|---|---|---|---|
/// | OpenFlow, 16 rules of 8 masks | 110 | 19 | 23 | 67 |
/// | OpenFlow, 64 of 16 | 22 | 9 | 12 | 71 |
/// | OpenFlow, 1,024 of 128 | 4.7 | 2.5 | 2.7 | 21 |
/// | OpenFlow, 16,384 of 64 | 0.2 | 3.0 | 6.1 | 36 |
/// | ClassBench fw1 of 1 K | 3.6 | 1.6 | 2.7 | 31 |
/// | ClassBench acl1 of 10 K | 1.5 | 8.0 | 12 | 37 |
///
/// Ask for linear search if a set will never have more than a few dozen rules.
#[cfg(feature = "rules")]
pub(super) fn rules<T>(_: &RuleSet<T>) -> EngineName {
    EngineName::Quilt
}

/// Picks quilt for every set of rules. Rates of kernels alone in G lookups/s on an H200
/// (`benches/record/nvidia-h200/2026-11-23-classify-gpu.txt`). Its bus carries 4.2 G IPv4 tuples and 1.5 G
/// OpenFlow tuples a second:
///
/// | set | Bloom search | quilt |
/// |---|---|---|
/// | ClassBench acl1 of 10 K: 103 masks, its trace shuffled | 4.6 | 13.1 |
/// | ClassBench fw1 of 10 K: 237, shuffled | 2.0 | 10.0 |
/// | ClassBench ipc1 of 10 K: 348, shuffled | 1.5 | 7.2 |
/// | OpenFlow, 16,384 rules of 64 masks | 5.1 | 11.0 |
/// | OpenFlow, 131,072 of 512 | 0.69 | 7.1 |
///
/// Bloom search is as fast for up to a few thousand OpenFlow rules with up to 16 masks, but there the bus is
/// the limit for both. Quilt is also faster on the CPU, for lookups that don't go to a GPU.
#[cfg(feature = "rules")]
pub(super) fn rules_on_gpu<T>(_: &RuleSet<T>) -> EngineName {
    EngineName::Quilt
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::synth::rng::Rng;
    use wirespeed_fib::synth::{self, TableSpec};
    use wirespeed_fib::{NextHop, Prefix};

    use super::*;

    fn best<A: Chunked>(rib: &Rib<A>) -> EngineName {
        addresses(rib, 0)
    }

    fn best_on_gpu<A: Chunked>(rib: &Rib<A>) -> EngineName {
        addresses_on_gpu(rib, 0)
    }

    #[test]
    fn next_hops_that_fit_a_byte_decide() {
        let of = |next_hop| -> Rib<V4> { [("10.0.0.0/8".parse().unwrap(), next_hop)].into_iter().collect() };
        let (few, many) = (of(NextHop(254)), of(NextHop(255)));
        let on_cpu = |rib| by_strides(rib, 0, &Strides::Fastest);
        assert_eq!((on_cpu(&few), best_on_gpu(&few)), (EngineName::Fold, EngineName::FoldHot));
        assert_eq!((on_cpu(&many), best_on_gpu(&many)), (EngineName::Rank, EngineName::Rank));
        assert_eq!(best_on_gpu(&Rib::<V6>::new()), EngineName::Fold);
    }

    #[test]
    fn small_tables_are_forests() {
        let of = |routes: u32| -> Rib<V4> {
            (0..routes).map(|n| (Prefix::around(V4(n << 16), 16), NextHop(1))).collect()
        };
        assert_eq!((best(&of(0)), best(&of(256))), (EngineName::Forest, EngineName::Forest));
        assert_eq!((best(&of(257)), best_on_gpu(&of(256))), (EngineName::Fold, EngineName::FoldHot));
        assert_eq!(best(&Rib::<V6>::new()), EngineName::Forest);
    }

    fn scattered<A: Address>(routes: u32, len: u8) -> Rib<A> {
        let mut rng = Rng::new(u64::from(len));
        // Within 2000::/3, as all that is routed.
        let mut address =
            || A::from_u128_low(rng.bits128()).with_octet(0, 0x20 | rng.bits().to_le_bytes()[0] >> 3);
        (0..routes).map(|_| (Prefix::around(address(), len), NextHop(1))).collect()
    }

    /// Chunks would take up to 22 kB for each of these routes.
    #[test]
    fn scattered_routes_are_hashed() {
        for len in [64, 128] {
            let rib = scattered::<V6>(20_000, len);
            assert_eq!(
                (best(&rib), best_on_gpu(&rib)),
                (EngineName::Waldvogel, EngineName::Waldvogel),
                "/{len}"
            );
        }
        let hosts = scattered::<V4>(200_000, 32);
        assert_eq!((best(&hosts), best_on_gpu(&hosts)), (EngineName::Waldvogel, EngineName::Waldvogel));
        // So few that it makes no difference.
        assert_eq!(best(&scattered::<V6>(500, 128)), EngineName::Fold);
        assert_eq!(best(&scattered::<V4>(10_000, 32)), EngineName::Fold);
    }

    #[test]
    fn tables_like_real_ones_are_folded() {
        for family in [Family::V4, Family::V6] {
            for prefixes in [20_000, 250_000] {
                let spec = TableSpec { prefixes, ..TableSpec::full(family) };
                let fib = match family {
                    Family::V4 => synth::fib(Some(&spec), None),
                    Family::V6 => synth::fib(None, Some(&spec)),
                }
                .expect("a table is made");
                match family {
                    Family::V4 => {
                        let best = best(&fib.v4);
                        assert!(matches!(best, EngineName::Fold | EngineName::Rank), "{prefixes}: {best}");
                    }
                    Family::V6 => {
                        let both = (best(&fib.v6), best_on_gpu(&fib.v6));
                        assert_eq!(both, (EngineName::Fold, EngineName::Fold), "{prefixes}");
                    }
                }
            }
        }
    }
}
