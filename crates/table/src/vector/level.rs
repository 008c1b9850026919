//! [`VectorLevel`]: the vector instructions that a batch is looked up with, and the way into code compiled
//! for them.

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512::{Avx512, CountingOnes, LongProducts};
use super::ops::{Cpu, Vector};

/// The vector instructions that an engine may use for a batch. Each engine has portable code, and code for
/// some of these levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorLevel {
    /// Sixteen keys of 32 bits a vector (AVX-512F, with BMI1 and POPCNT).
    Avx512,
    /// Eight keys of 32 bits a vector (AVX2, with BMI1 and POPCNT).
    Avx2,
    /// No vectors; on every CPU.
    Portable,
}

impl VectorLevel {
    /// All, the fastest first.
    pub const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Portable];

    /// The fastest level of this CPU.
    #[inline]
    pub fn best() -> Self {
        Self::ALL.into_iter().find(|level| level.is_here()).unwrap_or(Self::Portable)
    }

    /// Whether this CPU has the level.
    #[inline]
    pub fn is_here(self) -> bool {
        #[cfg(feature = "conformance")]
        if !self.is_allowed() {
            return false;
        }
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => is_x86_feature_detected!("avx512f") && has_bits(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && has_bits(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => false,
            Self::Portable => true,
        }
    }

    /// Runs code with the vectors of this level. `None` if the level has no vectors or the CPU lacks it.
    #[inline]
    pub fn run<C: InVectors>(self, code: C) -> Option<C::Output> {
        #[cfg(target_arch = "x86_64")]
        #[allow(unsafe_code)]
        if self.is_here() {
            // SAFETY: the CPU has the features.
            unsafe {
                match self {
                    Self::Avx512 => {
                        return Some(match C::GAINS {
                            Gains::Counting if is_x86_feature_detected!("avx512vpopcntdq") => {
                                with_counting(code)
                            }
                            Gains::Products if is_x86_feature_detected!("avx512dq") => with_products(code),
                            _ => with_avx512(code),
                        });
                    }
                    Self::Avx2 => return Some(with_avx2(code)),
                    Self::Portable => {}
                }
            }
        }
        let _ = code;
        None
    }
}

/// Levels that a thread does without, so that tests reach the code for CPUs that lack them.
#[cfg(feature = "conformance")]
mod allowed {
    use std::cell::Cell;

    use super::VectorLevel;

    thread_local! {
        static FASTEST: Cell<VectorLevel> = const { Cell::new(VectorLevel::Avx512) };
    }

    /// Sets back the level that was the fastest before, also after a panic.
    struct Before(VectorLevel);

    impl Drop for Before {
        fn drop(&mut self) {
            FASTEST.set(self.0);
        }
    }

    impl VectorLevel {
        /// Runs code on this thread as on a CPU that has no faster level than this one.
        pub fn as_fastest<R>(self, code: impl FnOnce() -> R) -> R {
            let _before = Before(FASTEST.replace(self));
            code()
        }

        pub(super) fn is_allowed(self) -> bool {
            self as u8 >= FASTEST.get() as u8
        }
    }
}

/// An extension of AVX-512 that makes code faster. The code runs with it where the CPU has it, and with the
/// foundation of AVX-512 elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gains {
    /// None.
    Nothing,
    /// AVX-512VPOPCNTDQ, for [`Vector::ones`].
    Counting,
    /// AVX-512DQ, for products of [`Vector::Long`].
    Products,
}

/// Code that is written once for the vectors of every level.
pub trait InVectors {
    /// The result of the code.
    type Output;

    /// The extension that makes it faster.
    const GAINS: Gains = Gains::Nothing;

    /// Runs with vectors of a type. Must be `#[inline(always)]`: the head of the module has the reason.
    fn run<V: Vector>(self, cpu: Cpu<V>) -> Self::Output;
}

/// Whether the CPU has the instructions for loops over the bits of a mask. Every CPU with AVX2 has them.
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_bits() -> bool {
    is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("popcnt")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,bmi1,popcnt")]
fn with_avx512<C: InVectors>(code: C) -> C::Output {
    #[allow(unsafe_code)]
    // SAFETY: the CPU has AVX-512F.
    code.run(unsafe { Cpu::<Avx512>::has_it() })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq,bmi1,popcnt")]
fn with_counting<C: InVectors>(code: C) -> C::Output {
    #[allow(unsafe_code)]
    // SAFETY: the CPU has AVX-512F and AVX-512VPOPCNTDQ.
    code.run(unsafe { Cpu::<Avx512<CountingOnes>>::has_it() })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,bmi1,popcnt")]
fn with_products<C: InVectors>(code: C) -> C::Output {
    #[allow(unsafe_code)]
    // SAFETY: the CPU has AVX-512F and AVX-512DQ.
    code.run(unsafe { Cpu::<Avx512<LongProducts>>::has_it() })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn with_avx2<C: InVectors>(code: C) -> C::Output {
    #[allow(unsafe_code)]
    // SAFETY: the CPU has AVX2.
    code.run(unsafe { Cpu::<Avx2>::has_it() })
}
