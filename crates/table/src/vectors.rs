//! [`VectorLevel`]: the vector instructions that a batch is looked up with.

/// The vector instructions that an engine may look up a batch with. Each engine has code for some of them,
/// and for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorLevel {
    /// Sixteen keys of 32 bits a vector (AVX-512F).
    Avx512,
    /// Eight keys of 32 bits a vector.
    Avx2,
    /// No vectors; on every CPU.
    Portable,
}

impl VectorLevel {
    /// All, the fastest first.
    pub const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Portable];

    /// The fastest that this CPU has.
    #[inline]
    pub fn best() -> Self {
        Self::ALL.into_iter().find(|level| level.is_here()).unwrap_or(Self::Portable)
    }

    /// Whether this CPU has it.
    #[inline]
    pub fn is_here(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => is_x86_feature_detected!("avx512f"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => false,
            Self::Portable => true,
        }
    }
}
