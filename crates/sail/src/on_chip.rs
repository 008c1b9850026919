//! The on-chip memory of a table by the paper's measure (sections 3.2, 4.1, 4.2, 6.2 and 7).
//!
//! The paper's machine finds the prefix length in fast memory on the chip, of which there are a few
//! megabytes, and keeps next hops in slow memory off it. These are the sizes of what it has on the chip, in
//! bytes, from the number of chunks; [`chunks`] counts those of a Rib. What our images take in the memory of
//! a CPU is another matter: see [`Image::memory_usage`](wirespeed_image::Image::memory_usage).

use std::f64::consts::LN_2;

use wirespeed_fib::{Address, Rib};

use crate::sail_l;

/// SAIL_B: the bit maps of levels 0 to 24, 4 MB for any table.
pub const fn sail_b() -> u64 {
    ((1u64 << 25) - 1).div_ceil(8)
}

/// SAIL_U: the bit maps of levels 6, 12, 18 and 24, 2.03 MB for any table.
pub const fn sail_u() -> u64 {
    ((1 << 6) + (1 << 12) + (1 << 18) + (1 << 24)) / 8
}

/// SAIL_L for IPv4: B16 and C16, of 1 and 16 bits for each of 2^16 elements, and B24, of 256 bits for each
/// chunk of level 24. There are at most 2^16 of these, which takes 2.13 MB.
pub const fn sail_l(chunks_24: u64) -> u64 {
    ((1 << 16) * 17 + chunks_24 * 256) / 8
}

/// SAIL_M: what SAIL_L takes for the chunks of the overlaid tries, however many tables there are. Next hops,
/// of which there is one for each table, are off the chip.
pub const fn sail_m(chunks_24: u64) -> u64 {
    sail_l(chunks_24)
}

/// SAIL_L for IPv6, split at level 48: bit maps and chunk ids of levels 16, 24, 32 and 40, and the bit map of
/// level
/// 48. `chunks` are those of levels 24, 32, 40 and 48. Ids are of 16 bits as for IPv4, of 32 where there are
///     more
/// than 2^16 chunks to tell apart, which the paper doesn't come to.
pub const fn sail_l_v6(chunks: [u64; 4]) -> u64 {
    let mut elements = 1 << 16;
    let mut bits = 0;
    let mut at = 0;
    while at < chunks.len() {
        let id = if chunks[at] > 1 << 16 { 32 } else { 16 };
        bits += elements * (1 + id);
        elements = chunks[at] * 256;
        at += 1;
    }
    (bits + elements) / 8
}

/// Hash functions of each filter of [`pbf`]: the fewest k with 0.5^k ≤ 0.003 / 24.
pub const PBF_HASHES: u32 = 13;

/// PBF, parallel Bloom filters (Dharmapurikar et al.), for so many prefixes: k / ln 2 = 18.755 bits each.
///
/// PBF has a filter for each length from 9 to 32. It is published with 1.003 reads off the chip a lookup: of
/// all 24 filters together 0.003 are wrong, of each 0.003 / 24. An optimal filter of m bits for n prefixes is
/// wrong with probability 0.5^k for k = m / n × ln 2 hash functions.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an estimate
pub fn pbf(prefixes: u64) -> u64 {
    (prefixes as f64 * f64::from(PBF_HASHES) / LN_2 / 8.0).ceil() as u64
}

/// The chunks that SAIL_L needs for a Rib in each of the levels 24, 32 and so on to the width of the address.
pub fn chunks<A: Address>(rib: &Rib<A>) -> Vec<u64> {
    sail_l::chunks(rib)
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::{NextHop, V4, V6};

    use super::*;

    #[test]
    fn the_sizes_that_the_paper_states() {
        assert_eq!(sail_b(), 4 << 20);
        // "Reduces the on-chip memory usage by 49.2%."
        let saved = 1.0 - f64::from(u32::try_from(sail_u()).unwrap()) / f64::from(4 << 20);
        assert!((saved - 0.492).abs() < 0.000_5, "{saved}");
        // "2^16 × 17 + 2^24 = 2.13 MB".
        assert_eq!(sail_l(1 << 16), 2_236_416);
        assert_eq!(sail_l(0), 139_264);
        assert_eq!(sail_m(3), 139_264 + 3 * 32);
        assert_eq!(sail_l(20_000), 139_264 + 640_000);
        // 18.755 × 476,311 bits, for the table that the paper has as an example.
        assert_eq!(pbf(476_311), 1_116_654);
    }

    #[test]
    fn the_filters_of_pbf() {
        let wrong = |k: u32| 0.5f64.powi(k.cast_signed());
        assert!(wrong(PBF_HASHES) <= 0.003 / 24.0 && wrong(PBF_HASHES - 1) > 0.003 / 24.0);
        // 18.755 bits each.
        assert_eq!(pbf(8_000_000), 18_755_036);
        assert_eq!(pbf(0), 0);
    }

    #[test]
    fn ipv6_by_hand() {
        // 17 bits for each of 2^16 elements; 2, 3 and 4 chunks of 256 elements of 17 bits; 5 of 256 bits.
        assert_eq!(sail_l_v6([2, 3, 4, 5]), 139_264 + (2 + 3 + 4) * 256 * 17 / 8 + 5 * 32);
        // Ids of level 40 take 32 bits.
        let wide = sail_l_v6([1, 1, 1 << 9, (1 << 16) + 1]);
        assert_eq!(wide, 139_264 + 2 * 256 * 17 / 8 + 512 * 256 * 33 / 8 + 65_537 * 32);
    }

    #[test]
    fn chunks_of_a_rib() {
        let v4: Rib<V4> = ["10.0.0.0/8", "10.1.2.0/24", "10.1.3.0/24", "10.2.0.0/17", "10.1.2.128/25"]
            .map(|text| (text.parse().unwrap(), NextHop(1)))
            .into_iter()
            .collect();
        assert_eq!(chunks(&v4), [2, 1]);
        let v6: Rib<V6> = [("2001:db8::/48".parse().unwrap(), NextHop(1))].into_iter().collect();
        assert_eq!(chunks(&v6)[..5], [1, 1, 1, 1, 0]);
    }
}
