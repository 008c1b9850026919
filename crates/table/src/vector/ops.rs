//! [`Vector`]: the operations of vector code. [`Cpu`]: the evidence that the CPU has their instructions.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Not, Shl, Shr, Sub};

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

/// Numbers of 32 bits, one a lane. Sums, differences and products wrap. A shift by 32 or more gives 0.
pub trait Vector:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + sealed::Sealed
{
    /// A set of lanes.
    type Mask: Mask;

    /// Half as many numbers of 64 bits. Two of them have a number for each lane, in order.
    type Long: Long;

    /// The number of lanes, at most [`MOST_LANES`].
    const LANES: usize;

    /// The number in every lane.
    fn splat(cpu: Cpu<Self>, number: u32) -> Self;

    /// The number of each lane, from 0 on.
    fn lanes(cpu: Cpu<Self>) -> Self;

    /// Loads the first bytes of a slice, a number for each lane. Panics if the slice is shorter.
    fn load<T: Pod>(cpu: Cpu<Self>, from: &[T]) -> Self;

    /// Loads the first 32 bits of a key of 128 bits for each lane, and the next 32 bits. Keys are in host
    /// order. Panics if there are fewer keys.
    fn load_first_words<T: Pod>(cpu: Cpu<Self>, keys: &[T]) -> [Self; 2];

    /// Loads the first 64 bits of a key of 128 bits for each lane. Keys are in host order. Panics if there
    /// are fewer keys.
    fn load_first_longs<T: Pod>(cpu: Cpu<Self>, keys: &[T]) -> [Self::Long; 2];

    /// Loads a number of 64 bits for each lane. Panics if the slice is shorter.
    #[inline(always)]
    fn load_longs(cpu: Cpu<Self>, from: &[u64]) -> [Self::Long; 2] {
        #[allow(unsafe_code)]
        // SAFETY: the numbers are the same, and initialised.
        unsafe {
            Self::load_some_longs(cpu, std::slice::from_raw_parts(from.as_ptr().cast(), from.len()))
        }
    }

    /// Loads a number of 32 bits for each lane from memory of which a part may not be initialised. Panics if
    /// the slice is shorter.
    ///
    /// # Safety
    /// Lanes whose numbers are not initialised must not decide anything.
    #[allow(unsafe_code)]
    unsafe fn load_some(cpu: Cpu<Self>, from: &[MaybeUninit<u32>]) -> Self;

    /// [`load_some`](Self::load_some) for numbers of 64 bits.
    ///
    /// # Safety
    /// Lanes whose numbers are not initialised must not decide anything.
    #[allow(unsafe_code)]
    unsafe fn load_some_longs(cpu: Cpu<Self>, from: &[MaybeUninit<u64>]) -> [Self::Long; 2];

    /// Overwrites the first bytes of a slice. Panics if the slice is shorter.
    fn store<T: Pod>(self, to: &mut [T]);

    /// Overwrites the numbers of the lanes in the mask at the front of a slice. Panics if the slice is
    /// shorter than all lanes.
    fn store_where<T: Pod>(self, cpu: Cpu<Self>, mask: Self::Mask, to: &mut [T]);

    /// The number of 64 bits in every lane.
    fn splat_long(cpu: Cpu<Self>, number: u64) -> Self::Long;

    /// The numbers with 64 bits.
    fn widened(self) -> [Self::Long; 2];

    /// The lower 32 bits of numbers of 64.
    fn lower(cpu: Cpu<Self>, longs: [Self::Long; 2]) -> Self;

    /// The upper 32 bits of numbers of 64.
    fn upper(cpu: Cpu<Self>, longs: [Self::Long; 2]) -> Self;

    /// Each number shifted right by the number of the other's lane; 0 from 32 on.
    #[must_use]
    fn shifted_right(self, by: Self) -> Self;

    /// Each number shifted left by the number of the other's lane; 0 from 32 on.
    #[must_use]
    fn shifted_left(self, by: Self) -> Self;

    /// The number of ones in each number.
    #[must_use]
    fn ones(self, cpu: Cpu<Self>) -> Self;

    /// The lanes whose numbers are equal.
    fn equals(self, other: Self) -> Self::Mask;

    /// The lanes whose number is not below the other's, both unsigned.
    fn at_least(self, other: Self) -> Self::Mask;

    /// The lanes whose number has any of the bits.
    fn has_any(self, bits: Self) -> Self::Mask;

    /// The numbers of `yes` in the lanes of the mask, of `no` in the others.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// The numbers, those in the mask xor-ed with the other's.
    #[must_use]
    fn xor_where(self, mask: Self::Mask, other: Self) -> Self;

    /// All lanes.
    fn all(cpu: Cpu<Self>) -> Self::Mask;

    /// The first lanes, so many. All if there are fewer.
    fn first(cpu: Cpu<Self>, count: usize) -> Self::Mask;

    /// Writes the numbers of the lanes in the mask to the front of a slice, in order. A whole vector of the
    /// slice is overwritten. Panics if the slice is shorter.
    fn put(self, mask: Self::Mask, to: &mut [MaybeUninit<u32>]);

    /// [`put`](Self::put) for numbers of 64 bits.
    fn put_longs(longs: [Self::Long; 2], mask: Self::Mask, to: &mut [MaybeUninit<u64>]);

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

    /// Loads a number of 64 bits for each lane of the mask: the element at the lane's index. The others
    /// get 0.
    ///
    /// # Safety
    /// Each index in the mask must be below 2^31 and that of an element.
    #[allow(unsafe_code)]
    unsafe fn gather_longs_where(
        cpu: Cpu<Self>,
        mask: Self::Mask,
        index: Self,
        from: &[u64],
    ) -> [Self::Long; 2];

    /// Writes the number of each lane in the mask to the element at the lane's index; if two lanes have an
    /// index, that of the later one.
    ///
    /// # Safety
    /// Each index in the mask must be below 2^31 and that of an element.
    #[allow(unsafe_code)]
    unsafe fn scatter_where<T: Pod>(self, mask: Self::Mask, index: Self, to: &mut [T]);

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

/// Numbers of 64 bits, one for every two lanes of 32. Sums, differences and products wrap. A shift by 64 or
/// more gives 0.
pub trait Long:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// The bits that the other has not.
    #[must_use]
    fn without(self, other: Self) -> Self;

    /// Each number shifted right by the number of the other's lane; 0 from 64 on.
    #[must_use]
    fn shifted_right(self, by: Self) -> Self;

    /// The product of the lower 32 bits of each two numbers.
    #[must_use]
    fn times_low(self, other: Self) -> Self;
}

/// The product without an instruction for it, by those of the halves.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn product<L: Long>(one: L, other: L) -> L {
    one.times_low(other) + ((one.times_low(other >> 32) + (one >> 32).times_low(other)) << 32)
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

/// The number of ones in each number, without an instruction for it: sums of neighbours twice as long in each
/// step (Warren, "Hacker's Delight", section 5-1).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn count_ones<V: Vector>(cpu: Cpu<V>, numbers: V) -> V {
    let (pairs, fours) = (V::splat(cpu, 0x5555_5555), V::splat(cpu, 0x3333_3333));
    let sums = numbers - (numbers >> 1 & pairs);
    let sums = (sums & fours) + (sums >> 2 & fours);
    let sums = (sums + (sums >> 4)) & V::splat(cpu, 0x0f0f_0f0f);
    let sums = sums + (sums >> 8);
    (sums + (sums >> 16)) & V::splat(cpu, 0x3f)
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
/// CPU has the instructions of a vector that exists. The type has a function `new` from its register.
#[cfg(target_arch = "x86_64")]
macro_rules! operators {
    ($of:tt; $($operator:ident $function:ident $instruction:ident)*; $($shift:ident $shifted:ident $by:ident)*) => {
        $(operators! { @operator $of $operator $function $instruction })*
        $(operators! { @shift $of $shift $shifted $by })*
    };
    (@operator ($vector:ident $($parameters:tt)*) $operator:ident $function:ident $instruction:ident) => {
        impl $($parameters)* $operator for $vector $($parameters)* {
            type Output = Self;

            #[inline(always)]
            fn $function(self, other: Self) -> Self {
                // SAFETY: the CPU has the instructions, as there is a vector.
                Self::new(unsafe { $instruction(self.0, other.0) })
            }
        }
    };
    (@shift ($vector:ident $($parameters:tt)*) $shift:ident $shifted:ident $by:ident) => {
        impl $($parameters)* $shift<u32> for $vector $($parameters)* {
            type Output = Self;

            #[inline(always)]
            fn $shifted(self, by: u32) -> Self {
                // SAFETY: the CPU has the instructions, as there is a vector.
                Self::new(unsafe { $by(self.0, _mm_cvtsi32_si128(by.cast_signed())) })
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use operators;
