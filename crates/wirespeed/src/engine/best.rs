//! The engine that suits a table best: what `auto` means, and why.

#[cfg(feature = "rules")]
use wirespeed_classify::RuleSet;
use wirespeed_fib::{Address, Family, Rib, Strides, V4, V6};
#[cfg(feature = "names")]
use wirespeed_namelookup::NameTable;

use super::EngineName;

/// Reasons are rows in `benches/record`: on the real tables, with batches of 1,024 keys, nothing that is
/// measured beside the one named is ahead of it for random keys and for those drawn by prefix both. Some
/// engines are faster for one kind of traffic: `dir24` for IPv4 keys that are drawn by prefix, `gamt` and
/// `waldvogel` for IPv6 keys most of which have no route.
///
/// Tables of scattered routes, such as host routes all over the address space, get `waldvogel`. It takes a
/// slot a route; chunks that nobody shares would take up to 22 kB each. What a table would take at most is
/// counted on its routes, in passes that take a small part of the time to build it.
pub(super) fn addresses<A: Chunked>(rib: &Rib<A>) -> EngineName {
    by_strides(rib, &Strides::Fastest)
}

/// The engine of [`addresses`], but for IPv4 tables whose next hops fit a byte. For these it is FOLD with hot
/// blocks, which keeps most of what traffic needs in a multiprocessor's own memory.
pub(super) fn addresses_on_gpu<A: Chunked>(rib: &Rib<A>) -> EngineName {
    match (A::FAMILY, by_strides(rib, &Strides::FastestOnGpu)) {
        (Family::V4, EngineName::Fold) => EngineName::FoldHot,
        (_, other) => other,
    }
}

/// Bytes a prefix that chunks may take at most in a table over [`SMALL`], by family. The real tables are at 6
/// and 61 (128 by the strides for GPUs), random hosts at some 300 and 6,000.
const MOST_EACH: [u64; 2] = [96, 768];
/// Tables that take no more than this may take what they want.
const SMALL: u64 = 16 << 20;

fn by_strides<A: Chunked>(rib: &Rib<A>, strides: &Strides) -> EngineName {
    let most_each = MOST_EACH[usize::from(A::FAMILY == Family::V6)];
    let is_scattered = A::most_chunks(rib, strides) > (rib.len() as u64).saturating_mul(most_each).max(SMALL);
    // As long as a byte holds a next hop FOLD's chunks fit the caches; RANK's words don't grow with what they
    // lead to.
    match A::FAMILY {
        _ if is_scattered => EngineName::Waldvogel,
        Family::V4 if rib.max_next_hop().0 > 254 => EngineName::Rank,
        _ => EngineName::Fold,
    }
}

/// A family whose chunks can be counted before any is made.
pub(super) trait Chunked: Address {
    /// Bytes that chunks of a table take at most, if no two of them are equal.
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

/// ACTA for all: it reads a cache line a component where the paper's structures read one every few bytes, and
/// is the smallest.
#[cfg(feature = "names")]
pub(super) fn names(_: &NameTable) -> EngineName {
    EngineName::Acta
}

/// Quilt for all, whatever there is of rules when it is built: a live set grows. On one core of a Zen 4
/// (`classify_speed` of `wirespeed-classify`, batches of 8,192, M lookups/s of linear, tuple, Bloom search
/// and quilt; a shared machine, so take ratios):
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
/// Ask for linear search where there will never be more than a few dozen rules.
#[cfg(feature = "rules")]
pub(super) fn rules<T>(_: &RuleSet<T>) -> EngineName {
    EngineName::Quilt
}

/// Quilt for all: G lookups/s of kernels alone on an H200
/// (`benches/record/nvidia-h200/2026-11-23-classify-gpu.txt`), where the bus carries 4.2 of IPv4's tuples and
/// 1.5 of OpenFlow's:
///
/// | set | Bloom search | quilt |
/// |---|---|---|
/// | ClassBench acl1 of 10 K: 103 masks, its trace shuffled | 4.6 | 13.1 |
/// | ClassBench fw1 of 10 K: 237, shuffled | 2.0 | 10.0 |
/// | ClassBench ipc1 of 10 K: 348, shuffled | 1.5 | 7.2 |
/// | OpenFlow, 16,384 rules of 64 masks | 5.1 | 11.0 |
/// | OpenFlow, 131,072 of 512 | 0.69 | 7.1 |
///
/// Bloom search is as fast for up to a few thousand OpenFlow rules with up to 16 masks, and no trip is bound
/// by either. Quilt is the faster one on the CPU too, for the lookups that don't go to a GPU.
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
        addresses(rib)
    }

    fn best_on_gpu<A: Chunked>(rib: &Rib<A>) -> EngineName {
        addresses_on_gpu(rib)
    }

    #[test]
    fn next_hops_that_fit_a_byte_decide() {
        let of = |next_hop| -> Rib<V4> { [("10.0.0.0/8".parse().unwrap(), next_hop)].into_iter().collect() };
        let (few, many) = (of(NextHop(254)), of(NextHop(255)));
        assert_eq!((best(&few), best_on_gpu(&few)), (EngineName::Fold, EngineName::FoldHot));
        assert_eq!((best(&many), best_on_gpu(&many)), (EngineName::Rank, EngineName::Rank));
        assert_eq!(best_on_gpu(&Rib::<V6>::new()), EngineName::Fold);
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
                let (four, six) = (&fib.v4, &fib.v6);
                assert!(matches!(best(four), EngineName::Fold | EngineName::Rank), "{family} {prefixes}");
                assert_eq!(
                    (best(six), best_on_gpu(six)),
                    (EngineName::Fold, EngineName::Fold),
                    "{family} {prefixes}"
                );
            }
        }
    }
}
