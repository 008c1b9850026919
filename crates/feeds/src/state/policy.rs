//! [`Policy`]: how routes of one prefix relate.

/// How routes of one prefix relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The kernel's: the lowest metric wins, and the others wait behind it.
    Kernel,
    /// FRR's: it sends its best route only, so each replaces the one before.
    Single,
}
