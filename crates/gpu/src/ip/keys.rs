//! Addresses as keys of a batch.
//!
//! If no prefix of a table is longer than 24 bits, the last octet of an address does not matter. Then keys
//! can have 3 bytes, which saves a quarter of the bytes on the bus. Kernels are built for the kinds of keys
//! in [`KeyBytes`]; [`KeyBytes::for_bits`] chooses one.

use bytemuck::cast_slice;
use wirespeed_fib::{Address, Family};

use crate::runtime::{Form, Planes};
use crate::simd;

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

/// Writes addresses as keys of a kind to the start of `to`, in [`Planes`]. `None` if they don't fit.
pub fn pack<A: Address>(addresses: &[A], kind: KeyBytes, to: &mut [u8]) -> Option<Form> {
    pack_to(addresses, kind, to, false)
}

/// Writes addresses like [`pack`], past the caches if it is said so or if there are many.
#[inline(never)] // one copy for all crates
pub(super) fn pack_to<A: Address>(
    addresses: &[A],
    kind: KeyBytes,
    to: &mut [u8],
    is_streamed: bool,
) -> Option<Form> {
    let form = Form::keys(kind.count(), addresses.len())?;
    let (first, second) = Planes::of(kind.count()).widths();
    let (head, tail) = to.get_mut(..form.bytes())?.split_at_mut(form.second().unwrap_or(form.bytes()));
    let count = addresses.len();
    write(addresses, kind, (&mut head[..first * count], &mut tail[..second * count]), is_streamed);
    Some(form)
}

/// Writes addresses as keys of a kind, a part of each to each plane, past the caches if it is said so or if
/// there are many.
pub(super) fn write<A: Address>(
    addresses: &[A],
    kind: KeyBytes,
    (first, second): (&mut [u8], &mut [u8]),
    is_streamed: bool,
) {
    match kind.count() {
        3 => {
            let done = simd::first_24_bits(cast_slice(addresses), first, second, is_streamed);
            let rest = &addresses[done..];
            fill(&mut first[2 * done..], rest, |address| address.first_16().to_le_bytes());
            fill(&mut second[done..], rest, |address| [address.octet(2)]);
        }
        6 => {
            let done = simd::first_6(cast_slice(addresses), first, second, is_streamed);
            let rest = &addresses[done..];
            fill(&mut first[4 * done..], rest, |address| first_48(address).0.to_le_bytes());
            fill(&mut second[2 * done..], rest, |address| first_48(address).1.to_le_bytes());
        }
        8 => {
            let done = simd::first_8(cast_slice(addresses), first, is_streamed);
            fill(&mut first[8 * done..], &addresses[done..], |address| first_64(address).to_le_bytes());
        }
        _ => simd::copy(cast_slice(addresses), first, is_streamed),
    }
}

/// The addresses of keys of a kind. Bits that the keys lack are 0.
#[inline(never)] // one copy for all crates
pub(super) fn expand<A: Address>(kind: KeyBytes, first: &[u8], second: &[u8]) -> Vec<A> {
    let of_64 = |bits: u64| A::from_u128_low(u128::from(bits) << 64);
    match kind.count() {
        3 => {
            let (first, _) = first.as_chunks();
            let parts = first.iter().copied().map(u16::from_le_bytes).zip(second);
            parts
                .map(|(upper, &lower)| A::from_u128_low(u128::from(upper) << 16 | u128::from(lower) << 8))
                .collect()
        }
        6 => {
            let ((first, _), (second, _)) = (first.as_chunks(), second.as_chunks());
            let parts = first.iter().copied().map(u32::from_le_bytes);
            let parts = parts.zip(second.iter().copied().map(u16::from_le_bytes));
            parts.map(|(upper, lower)| of_64(u64::from(upper) << 32 | u64::from(lower) << 16)).collect()
        }
        8 => first.as_chunks().0.iter().map(|&key| of_64(u64::from_le_bytes(key))).collect(),
        _ => first.chunks_exact(size_of::<A>()).map(bytemuck::pod_read_unaligned).collect(),
    }
}

/// The first 64 bits of an address of IPv6.
#[inline]
#[allow(clippy::cast_possible_truncation)] // the bits are taken out
pub(super) fn first_64<A: Address>(address: A) -> u64 {
    (address.to_u128() >> 64) as u64
}

/// The first 32 bits of an address of IPv6, and the next 16.
#[inline]
#[allow(clippy::cast_possible_truncation)] // the bits are taken out
pub(super) fn first_48<A: Address>(address: A) -> (u32, u16) {
    ((address.to_u128() >> 96) as u32, (address.to_u128() >> 80) as u16)
}

fn fill<A: Address, const N: usize>(plane: &mut [u8], addresses: &[A], bytes: impl Fn(A) -> [u8; N]) {
    let (keys, rest) = plane.as_chunks_mut::<N>();
    assert!(rest.is_empty() && keys.len() == addresses.len(), "a plane is as long as the keys");
    for (key, &address) in keys.iter_mut().zip(addresses) {
        *key = bytes(address);
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::{V4, V6};
    use wirespeed_image::rounds;

    use super::*;

    fn check<A: Address>(addresses: &[A], kind: KeyBytes) {
        let (width, rest) = Planes::of(kind.count()).widths();
        let mut to = vec![0xee; Form::keys(kind.count(), addresses.len()).unwrap().bytes()];
        let form = pack(addresses, kind, &mut to).unwrap();
        assert_eq!(form, Form::keys(kind.count(), addresses.len()).unwrap());
        assert!(addresses.is_empty() || pack(addresses, kind, &mut vec![0; form.bytes() - 1]).is_none());
        let second = form.second().unwrap_or(0);
        for (at, address) in addresses.iter().enumerate() {
            // Each plane is a number, little-endian; together they are the address's first bytes.
            let mut bytes: Vec<u8> = to[at * width..][..width].iter().rev().copied().collect();
            bytes.extend(to[second + at * rest..][..rest].iter().rev());
            let octets: Vec<u8> = (0..kind.count()).map(|octet| address.octet(octet)).collect();
            assert_eq!(bytes, octets, "{address} in {kind:?}, number {at} of {}", addresses.len());
        }
        let count = addresses.len();
        let kept = |&address: &A| address.keep(u8::try_from(8 * kind.count()).unwrap());
        let back: Vec<A> = expand(kind, &to[..width * count], &to[second..][..rest * count]);
        assert!(back.into_iter().eq(addresses.iter().map(kept)), "{kind:?}: other bits are 0");
    }

    /// All kinds of keys, of batches around whole vectors, of one that is written past the caches, and from
    /// an address on that is not aligned to a vector.
    #[test]
    fn keys_are_the_first_bytes_of_addresses() {
        let of = |n: u128| n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).rotate_left(31);
        let mut v6: Vec<V6> = (0..540_000).map(|n| V6(of(n))).collect();
        v6[..3].copy_from_slice(&[V6(0), V6(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10), V6(u128::MAX)]);
        let mut v4: Vec<V4> = v6.iter().map(|address| V4(u32::try_from(address.0 >> 96).unwrap())).collect();
        v4[..3].copy_from_slice(&[V4(0), V4(0x0102_0304), V4(u32::MAX)]);
        for len in [0, 1, 3, 31, 32, 63, 64, 65, 129, 1000, 539_990] {
            // The longest takes most of the time.
            let starts = if len > 1000 { rounds::plain_step(3) } else { 1 };
            for start in [9, 0, 1].into_iter().step_by(starts) {
                KeyBytes::kinds(Family::V4).iter().for_each(|&kind| check(&v4[start..start + len], kind));
                KeyBytes::kinds(Family::V6).iter().for_each(|&kind| check(&v6[start..start + len], kind));
            }
        }
    }

    fn check_streamed<A: Address>(addresses: &[A], kind: KeyBytes) {
        let (width, rest) = Planes::of(kind.count()).widths();
        let count = addresses.len();
        // One plane that starts a line, and one that does not.
        for beside in [0, 16] {
            let memory = || vec![[0xeeu8; 64]; (width * count + beside) / 64 + 2];
            let written = |is_streamed| {
                let (mut first, mut second) = (memory(), memory());
                let planes = [(&mut first, width), (&mut second, rest)].map(|(memory, width)| {
                    let bytes = memory.as_flattened_mut();
                    let line = bytes.as_ptr().align_offset(64);
                    &mut bytes[line % 64 + beside..][..width * count]
                });
                let [first, second] = planes;
                write(addresses, kind, (&mut *first, &mut *second), is_streamed);
                (first.to_vec(), second.to_vec())
            };
            assert_eq!(written(true), written(false), "{count} as {kind:?}, {beside} bytes beside a line");
        }
    }

    #[test]
    fn streamed_keys_are_as_others() {
        let v6: Vec<V6> =
            (1..600).map(|n: u128| V6(n.wrapping_mul(0x9e37_79b9_7f4a_7c15 << 64 | 77))).collect();
        let v4: Vec<V4> = (1..600u32).map(|n| V4(n.wrapping_mul(0x9e37_79b9))).collect();
        for len in [0, 1, 15, 16, 17, 31, 64, 65, 128, 599] {
            KeyBytes::kinds(Family::V4).iter().for_each(|&kind| check_streamed(&v4[..len], kind));
            KeyBytes::kinds(Family::V6).iter().for_each(|&kind| check_streamed(&v6[..len], kind));
        }
    }

    #[test]
    fn the_narrowest_kind_that_holds_the_bits() {
        let v4 = [0, 8, 24, 25, 32].map(|bits| KeyBytes::for_bits(Family::V4, bits).count());
        assert_eq!(v4, [3, 3, 3, 4, 4]);
        let v6 = [0, 48, 49, 64, 65, 128].map(|bits| KeyBytes::for_bits(Family::V6, bits).count());
        assert_eq!(v6, [6, 6, 8, 8, 16, 16]);
    }
}
