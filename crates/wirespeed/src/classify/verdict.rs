//! [`RuleVerdict`]: an answer, and whether it could be another one by what was left out of the rules.

use super::found::RuleMatch;

/// What the rules say of a packet, and whether they are sure of it.
///
/// Rules of a file that a packet's header fields can't decide are left out of the table
/// ([`ClassifierBuilder::leave_out`](super::ClassifierBuilder::leave_out)). An answer is uncertain where such
/// a rule could match the packet, would come before the answer's rule, and could give another action. It is
/// also uncertain where the answer's rule is [wider](wirespeed_classify::read::Doubts::widened) than its file
/// says, as filters of ClassBench are that look at TCP flags. A service decides here what becomes of such a
/// packet:
///
/// ```
/// use wirespeed::classify::RuleVerdict;
/// # use wirespeed::prelude::*;
///
/// # fn allows(found: RuleMatch) -> bool { found.action == NextHop(1) }
/// fn admits(verdict: RuleVerdict) -> bool {
///     match verdict {
///         RuleVerdict::Certain(found) => found.is_some_and(allows),
///         RuleVerdict::Uncertain(_) => false, // nobody can say: on the safe side
///     }
/// }
/// # assert!(!admits(RuleVerdict::default()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleVerdict {
    /// What the rules say. Nothing that was left out could change it.
    Certain(Option<RuleMatch>),
    /// What the rules say as far as they could be expressed. What was left out could give another answer.
    Uncertain(Option<RuleMatch>),
}

impl RuleVerdict {
    /// The best rule among those that could be expressed, certain or not.
    pub const fn found(self) -> Option<RuleMatch> {
        match self {
            Self::Certain(found) | Self::Uncertain(found) => found,
        }
    }

    /// Whether no rule that was left out could change it.
    pub const fn is_certain(self) -> bool {
        matches!(self, Self::Certain(_))
    }
}

impl Default for RuleVerdict {
    /// No match, for sure: what a new place for a verdict holds.
    fn default() -> Self {
        Self::Certain(None)
    }
}
