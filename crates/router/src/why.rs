//! [`Why`]: the reason for the size of a chunk, and so for the device that it went to. [`Whys`] counts by
//! reason.

/// The reason why a worker's chunk had its size: small ones are for the CPU, large ones for a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u8)]
pub enum Why {
    /// There is no GPU, or it suits no size that the buffers hold.
    NoGpu,
    /// The ports ran dry: chunks are as small as they come.
    LowLoad,
    /// One of both sizes was being tried.
    Trial,
    /// The size forwarded more than the other when both were tried last.
    Faster,
    /// Large chunks were late, or those of other workers leave no room for more in time.
    Deadline,
}

impl Why {
    /// All reasons.
    pub const ALL: &[Self] = &[Self::NoGpu, Self::LowLoad, Self::Trial, Self::Faster, Self::Deadline];

    /// Its name in reports, such as `low_load`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoGpu => "no_gpu",
            Self::LowLoad => "low_load",
            Self::Trial => "trial",
            Self::Faster => "faster",
            Self::Deadline => "deadline",
        }
    }
}

/// Numbers of chunks by the reason for their size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whys([u64; Why::ALL.len()]);

impl Whys {
    /// The number of chunks of a reason.
    #[must_use]
    pub const fn of(&self, why: Why) -> u64 {
        self.0[why as usize]
    }

    /// The reasons that chunks had, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Why, u64)> + '_ {
        Why::ALL.iter().map(|&why| (why, self.of(why))).filter(|&(_, count)| count > 0)
    }

    pub(crate) fn count(&mut self, why: Why) {
        self.0[why as usize] += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at].saturating_sub(before.0[at])))
    }
}
