//! Addresses as keys of a batch, and next hops as results.
//!
//! If no prefix of a table is longer than 24 bits, the last octet of an address does not matter. Then keys
//! can have 3 bytes, which saves a quarter of the bytes on the bus. Kernels are built for the kinds of keys
//! in [`KeyBytes`]; [`KeyBytes::for_bits`] chooses one.

use wirespeed_fib::{Address, Family, NextHop};

/// Bytes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyBytes(u8);

impl KeyBytes {
    /// The whole address.
    pub const fn whole(family: Family) -> Self {
        match family {
            Family::V4 => Self(4),
            Family::V6 => Self(16),
        }
    }

    /// The kinds of keys of a family, the widest first.
    pub const fn kinds(family: Family) -> &'static [Self] {
        match family {
            Family::V4 => &[Self(4), Self(3)],
            Family::V6 => &[Self(16), Self(8), Self(6)],
        }
    }

    /// The narrowest kind that holds this number of leading bits.
    pub fn for_bits(family: Family, bits: u8) -> Self {
        let holds = |kind: &&Self| 8 * kind.0 >= bits;
        *Self::kinds(family).iter().rev().find(holds).unwrap_or(&Self::whole(family))
    }

    /// The kind with this number of bytes, or the whole address if there is none.
    pub fn of(family: Family, bytes: usize) -> Self {
        let kinds = Self::kinds(family).iter();
        kinds.copied().find(|kind| kind.count() == bytes).unwrap_or(Self::whole(family))
    }

    /// The number of bytes.
    pub const fn count(self) -> usize {
        self.0 as usize
    }
}

/// Writes addresses as keys of a kind into the planes of a batch ([`Planes`](crate::runtime::Planes)). Panics
/// if the planes don't have the length of the keys.
pub fn pack<A: Address>(addresses: &[A], kind: KeyBytes, first: &mut [u8], second: &mut [u8]) {
    match kind.count() {
        3 => {
            fill(first, addresses, |address| address.first_16().to_le_bytes());
            fill(second, addresses, |address| [address.octet(2)]);
        }
        // The number has 16 bytes, least significant first, so its first 64 bits are the last eight bytes.
        6 => {
            fill(first, addresses, |address| {
                let [.., a, b, c, d] = address.to_u128().to_le_bytes();
                [a, b, c, d]
            });
            fill(second, addresses, |address| {
                let [.., a, b, _, _, _, _] = address.to_u128().to_le_bytes();
                [a, b]
            });
        }
        8 => fill(first, addresses, |address| {
            let [.., a, b, c, d, e, f, g, h] = address.to_u128().to_le_bytes();
            [a, b, c, d, e, f, g, h]
        }),
        _ => first.copy_from_slice(bytemuck::cast_slice(addresses)),
    }
}

fn fill<A: Address, const N: usize>(plane: &mut [u8], addresses: &[A], bytes: impl Fn(A) -> [u8; N]) {
    let (keys, rest) = plane.as_chunks_mut::<N>();
    assert!(rest.is_empty() && keys.len() == addresses.len(), "a plane is as long as the keys");
    for (key, &address) in keys.iter_mut().zip(addresses) {
        *key = bytes(address);
    }
}

/// Reads results of `bytes` bytes each. Panics if the number of results is not the number of next hops.
pub fn unpack(results: &[u8], bytes: usize, next_hops: &mut [NextHop]) {
    assert_eq!(results.len(), bytes * next_hops.len(), "a result for each key");
    match bytes {
        1 => widen::<1>(results, next_hops, |[low]| low.into()),
        2 => widen::<2>(results, next_hops, |bytes| u16::from_le_bytes(bytes).into()),
        _ => widen::<4>(results, next_hops, u32::from_le_bytes),
    }
}

fn widen<const N: usize>(results: &[u8], next_hops: &mut [NextHop], number: impl Fn([u8; N]) -> u32) {
    let (results, _) = results.as_chunks::<N>();
    for (next_hop, &result) in next_hops.iter_mut().zip(results) {
        *next_hop = NextHop(number(result));
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::{V4, V6};

    use super::*;
    use crate::runtime::Planes;

    fn check<A: Address>(addresses: &[A], kind: KeyBytes) {
        let (width, rest) = Planes::of(kind.count()).widths();
        let (mut first, mut second) = (vec![0; width * addresses.len()], vec![0; rest * addresses.len()]);
        pack(addresses, kind, &mut first, &mut second);
        for (at, address) in addresses.iter().enumerate() {
            // Each plane is a number, little-endian; together they are the address's first bytes.
            let mut bytes: Vec<u8> = first[at * width..][..width].iter().rev().copied().collect();
            bytes.extend(second[at * rest..][..rest].iter().rev());
            let octets: Vec<u8> = (0..kind.count()).map(|octet| address.octet(octet)).collect();
            assert_eq!(bytes, octets, "{address} in {kind:?}");
        }
    }

    #[test]
    fn keys_are_the_first_bytes_of_addresses() {
        let v4: Vec<V4> = [0, 1, 0x0102_0304, u32::MAX].map(V4).into();
        let v6: Vec<V6> = [0, 1, 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10, u128::MAX].map(V6).into();
        KeyBytes::kinds(Family::V4).iter().for_each(|&kind| check(&v4, kind));
        KeyBytes::kinds(Family::V6).iter().for_each(|&kind| check(&v6, kind));
    }

    #[test]
    fn the_narrowest_kind_that_holds_the_bits() {
        let v4 = [0, 8, 24, 25, 32].map(|bits| KeyBytes::for_bits(Family::V4, bits).count());
        assert_eq!(v4, [3, 3, 3, 4, 4]);
        let v6 = [0, 48, 49, 64, 65, 128].map(|bits| KeyBytes::for_bits(Family::V6, bits).count());
        assert_eq!(v6, [6, 6, 8, 8, 16, 16]);
    }

    #[test]
    fn results_of_all_widths() {
        let mut next_hops = [NextHop::NONE; 2];
        unpack(&[7, 255], 1, &mut next_hops);
        assert_eq!(next_hops, [NextHop(7), NextHop(255)]);
        unpack(&[1, 2, 255, 255], 2, &mut next_hops);
        assert_eq!(next_hops, [NextHop(0x0201), NextHop(0xffff)]);
        unpack(&[1, 0, 0, 1, 0, 0, 0, 255], 4, &mut next_hops);
        assert_eq!(next_hops, [NextHop(0x0100_0001), NextHop(0xff00_0000)]);
    }
}
