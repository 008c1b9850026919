//! [`Vector`]: the operations of vector code. [`Cpu`]: the evidence that the CPU has their instructions.

use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, Not, Shl, Shr, Sub};

use bytemuck::Pod;
use wirespeed_image::{Element, Padded};

/// The lanes of the widest vector.
pub const MOST_LANES: usize = 16;

/// Evidence that this CPU has the instructions of vectors of type `V`. Vectors can only be made with it.
#[derive(Debug)]
pub struct Cpu<V>(PhantomData<V>);

impl<V> Clone for Cpu<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Cpu<V> {}

impl<V: Vector> Cpu<V> {
    /// States that the CPU has the instructions.
    ///
    /// # Safety
    /// The CPU must have them.
    #[allow(unsafe_code)]
    #[inline(always)]
    pub unsafe fn has_it() -> Self {
        Self(PhantomData)
    }
}

/// Numbers of 32 bits, one a lane. Sums and differences wrap. A shift by 32 or more gives 0.
pub trait Vector:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + sealed::Sealed
{
    /// A set of lanes.
    type Mask: Mask;

    /// The number of lanes, at most [`MOST_LANES`].
    const LANES: usize;

    /// The number in every lane.
    fn splat(cpu: Cpu<Self>, number: u32) -> Self;

    /// Loads the first bytes of a slice, a number for each lane. Panics if the slice is shorter.
    fn load<T: Pod>(cpu: Cpu<Self>, from: &[T]) -> Self;

    /// Loads the first 32 bits of a key of 128 bits for each lane, and the next 32 bits. Keys are in host
    /// order. Panics if there are fewer keys.
    fn load_first_words<T: Pod>(cpu: Cpu<Self>, keys: &[T]) -> [Self; 2];

    /// Overwrites the first bytes of a slice. Panics if the slice is shorter.
    fn store<T: Pod>(self, to: &mut [T]);

    /// Each number shifted right by the number of the other's lane; 0 from 32 on.
    #[must_use]
    fn shifted_right(self, by: Self) -> Self;

    /// The lanes whose numbers are equal.
    fn equals(self, other: Self) -> Self::Mask;

    /// The lanes whose number is not below the other's, both unsigned.
    fn at_least(self, other: Self) -> Self::Mask;

    /// The lanes whose number has any of the bits.
    fn has_any(self, bits: Self) -> Self::Mask;

    /// The numbers of `yes` in the lanes of the mask, of `no` in the others.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// All lanes.
    fn all(cpu: Cpu<Self>) -> Self::Mask;

    /// Writes the positions of the lanes in the mask to the front of a slice, in order, and returns their
    /// number. Lane 0 has position `first`. A whole vector of the slice is overwritten. Panics if the slice
    /// is shorter.
    fn put_places(cpu: Cpu<Self>, mask: Self::Mask, first: u32, to: &mut [u32]) -> usize;

    /// Loads an element of type `T`, of at most 4 bytes, for each lane: the element at the lane's index,
    /// widened.
    ///
    /// # Safety
    /// Each index must be below 2^31 and that of an element of `bytes`, at least 4 bytes before its end.
    #[allow(unsafe_code)]
    #[inline(always)]
    unsafe fn gather<T: Element>(cpu: Cpu<Self>, index: Self, bytes: &[u8]) -> Self {
        // SAFETY: as our caller promises.
        unsafe { Self::gather_where::<T>(cpu, Self::all(cpu), index, bytes, Self::splat(cpu, 0)) }
    }

    /// [`gather`](Self::gather) for the lanes in the mask. The other lanes get `elsewhere`, cut to the bits
    /// of `T`.
    ///
    /// # Safety
    /// Each index in the mask must be below 2^31 and that of an element of `bytes`, at least 4 bytes before
    /// its end.
    #[allow(unsafe_code)]
    #[inline(always)]
    unsafe fn gather_where<T: Element>(
        cpu: Cpu<Self>,
        mask: Self::Mask,
        index: Self,
        bytes: &[u8],
        elsewhere: Self,
    ) -> Self {
        // SAFETY: as our caller promises.
        unsafe { Self::gather_shared::<T>(cpu, mask, index, bytes.into(), elsewhere) }
    }

    /// [`gather_where`](Self::gather_where) from a section that two copies of a table may share.
    ///
    /// # Safety
    /// Each index in the mask must be below 2^31 and that of an element of `bytes`, at least 4 bytes before
    /// its end.
    #[allow(unsafe_code)]
    #[inline(always)]
    unsafe fn gather_shared<T: Element>(
        cpu: Cpu<Self>,
        mask: Self::Mask,
        index: Self,
        bytes: Padded<'_>,
        elsewhere: Self,
    ) -> Self {
        const { assert!(size_of::<T>() <= 4, "an element fits a lane") };
        debug_assert!(all_inside::<Self, T>(mask, index, bytes.len()));
        let from = bytes.start();
        // SAFETY: as our caller promises; the scale is the size of an element.
        unsafe {
            match size_of::<T>() {
                1 => Self::gather_scaled::<1>(mask, index, from, elsewhere) & Self::splat(cpu, 0xff),
                2 => Self::gather_scaled::<2>(mask, index, from, elsewhere) & Self::splat(cpu, 0xffff),
                _ => Self::gather_scaled::<4>(mask, index, from, elsewhere),
            }
        }
    }

    /// Four bytes for each lane of the mask, so many times `SCALE` bytes after `from`; `elsewhere` in the
    /// others.
    ///
    /// # Safety
    /// These bytes must be readable, and each index in the mask below 2^31.
    #[doc(hidden)]
    #[allow(unsafe_code)]
    unsafe fn gather_scaled<const SCALE: i32>(
        mask: Self::Mask,
        index: Self,
        from: *const u8,
        elsewhere: Self,
    ) -> Self;
}

/// Some of the lanes of a vector.
pub trait Mask: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    /// A bit for each lane, the lowest for the first.
    fn bits(self) -> u32;

    /// Whether there is any lane.
    #[inline(always)]
    fn any(self) -> bool {
        self.bits() != 0
    }
}

/// Whether a gather keeps to what its caller promised.
fn all_inside<V: Vector, T: Element>(mask: V::Mask, index: V, len: usize) -> bool {
    let mut indexes = [0u32; MOST_LANES];
    index.store(&mut indexes);
    (0..V::LANES).filter(|lane| mask.bits() >> lane & 1 == 1).all(|lane| {
        let index = indexes[lane] as usize;
        index < 1 << 31 && index * size_of::<T>() + 4 <= len
    })
}

pub(super) mod sealed {
    pub trait Sealed {}
}

/// Implements operators of two vectors of a type by an instruction each, and shifts of all lanes alike. The
/// CPU has the instructions of a vector that exists.
#[cfg(target_arch = "x86_64")]
macro_rules! operators {
    ($vector:ty; $($operator:ident $function:ident $instruction:ident)*; $($shift:ident $shifted:ident $by:ident)*) => {
        $(impl $operator for $vector {
            type Output = Self;

            #[inline(always)]
            fn $function(self, other: Self) -> Self {
                // SAFETY: the CPU has the instructions, as there is a vector.
                Self(unsafe { $instruction(self.0, other.0) })
            }
        })*
        $(impl $shift<u32> for $vector {
            type Output = Self;

            #[inline(always)]
            fn $shifted(self, by: u32) -> Self {
                // SAFETY: the CPU has the instructions, as there is a vector.
                Self(unsafe { $by(self.0, _mm_cvtsi32_si128(by.cast_signed())) })
            }
        })*
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use operators;
