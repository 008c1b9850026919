//! [`Code`]: what a unit of a level says, and in how many bits.

/// Bits of a unit of the paper's below inf.
pub const JUMP_BITS: u32 = 8;
/// The bits that say that it leads on.
pub(crate) const JUMP: u64 = (1 << JUMP_BITS) - 1;

/// The code of a level's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The paper's units: inf above a jump of 8 bits.
    Paper {
        /// Bytes of a unit: 4 or 8.
        width: u32,
        /// The jump of a unit that leads on: the number of the next level, from 1.
        jump: u8,
    },
    /// A leaf, or from a base on the number of a child.
    Narrow {
        /// Bytes of a unit: 1 or 2.
        width: u32,
        /// The first value that leads on.
        base: u32,
        /// The stride of the next level, in which the child is.
        below: u8,
    },
}

/// The level below a level: the stride of its nodes, and the capacity in nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Below {
    pub(crate) stride: u8,
    pub(crate) nodes: u64,
}

impl Code {
    /// The paper's code of a level, counted from 0.
    pub(crate) fn paper(width: u32, level: usize) -> Self {
        // A level has at least one bit, so that there are 128 at most.
        Self::Paper { width, jump: u8::try_from(level + 2).unwrap_or(u8::MAX) }
    }

    /// The narrow code of a level, that leaves the most to leaves; `None` where there are too many nodes
    /// below.
    pub(crate) fn narrow(width: u32, below: Below) -> Option<Self> {
        let base = (1u64 << (8 * width)).checked_sub(below.nodes)?;
        Some(Self::Narrow { width, base: u32::try_from(base).ok()?, below: below.stride })
    }

    /// Bytes of a unit.
    #[inline]
    pub fn width(self) -> u32 {
        match self {
            Self::Paper { width, .. } | Self::Narrow { width, .. } => width,
        }
    }

    /// The number that the image keeps of it: the base, 0 in the paper's code.
    pub fn base(self) -> u32 {
        match self {
            Self::Paper { .. } => 0,
            Self::Narrow { base, .. } => base,
        }
    }

    /// Whether it has units for leaves up to `widest`, and for all that is below.
    pub(crate) fn holds(self, widest: u32, below: Below) -> bool {
        let last = below.nodes.saturating_sub(1) << below.stride;
        u64::from(widest) <= self.widest() && (last <= self.widest() || self.base() > 0)
    }

    /// The largest leaf.
    pub(crate) fn widest(self) -> u64 {
        match self {
            Self::Paper { width, .. } => u64::MAX >> (64 - 8 * width + JUMP_BITS),
            Self::Narrow { base, .. } => u64::from(base.saturating_sub(1)),
        }
    }

    /// A unit that is a leaf.
    #[inline]
    pub(crate) fn leaf(self, value: u32) -> u64 {
        match self {
            Self::Paper { .. } => u64::from(value) << JUMP_BITS,
            Self::Narrow { .. } => value.into(),
        }
    }

    /// A unit that leads to a child whose first unit is that.
    #[inline]
    pub(crate) fn link(self, child: u32) -> u64 {
        match self {
            Self::Paper { jump, .. } => u64::from(child) << JUMP_BITS | u64::from(jump),
            Self::Narrow { base, below, .. } => u64::from(base) + u64::from(child >> below),
        }
    }

    /// What a unit says: whether it leads on, and its leaf or its child's first unit.
    #[inline]
    pub(crate) fn read(self, unit: u64) -> (bool, u64) {
        match self {
            Self::Paper { .. } => (unit & JUMP != 0, unit >> JUMP_BITS),
            Self::Narrow { base, below, .. } => match unit.checked_sub(base.into()) {
                Some(child) => (true, child << below),
                None => (false, unit),
            },
        }
    }
}
