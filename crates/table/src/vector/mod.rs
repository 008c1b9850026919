//! Vectors of 32-bit numbers: which of them the CPU has, and code that is written once for all of them.
//!
//! ```text
//! VectorLevel::run ──► a function compiled for AVX-512 ──► InVectors::run::<Avx512> ─┐ inlined, so that the
//!                 └──► a function compiled for AVX2    ──► InVectors::run::<Avx2>   ─┘ same instructions go in
//! ```
//!
//! An engine writes its batch as [`InVectors`], generic over [`Vector`]. What it calls with vectors has to be
//! `#[inline(always)]`: a function apart is compiled without the CPU's instructions, which is right but slow.
//! A closure that is handed on, as to `map`, may stay apart too.
//!
//! A [`Cpu`] shows that the instructions are there, and no vector is made without one. So arithmetic is safe,
//! and only gathers are not.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod batch;
mod level;
mod ops;
#[cfg(test)]
mod tests;

#[cfg(target_arch = "x86_64")]
pub use avx2::{Avx2, Avx2Long, Avx2Mask};
#[cfg(target_arch = "x86_64")]
pub use avx512::{Avx512, Avx512Long, Avx512Mask, CountingOnes, Extension, Foundation, LongProducts};
pub use batch::{Batch, MOST_VECTORS, Places};
pub use level::{Gains, InVectors, VectorLevel};
pub use ops::{Cpu, Long, MOST_LANES, Mask, Vector};
