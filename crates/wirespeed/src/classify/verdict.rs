//! [`RuleVerdict`]: an answer, and whether rules that were left out could change it.

use super::found::RuleMatch;

/// The answer of the rules for a packet, and whether it is certain.
///
/// Rules of a file that header fields can't decide are left out of the table
/// ([`ClassifierBuilder::leave_out`](super::ClassifierBuilder::leave_out)). An answer is uncertain if such a
/// rule could match the packet, would come before the answer's rule, and could give another action. An answer
/// is also uncertain if its rule is [wider](wirespeed_classify::read::Doubts::widened) than its file says, as
/// with ClassBench filters that test TCP flags. The service decides how to handle such a packet:
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
    /// The answer of the rules. No rule that was left out could change it.
    Certain(Option<RuleMatch>),
    /// The answer of the rules in the table. A rule that was left out could change it.
    Uncertain(Option<RuleMatch>),
}

impl RuleVerdict {
    /// The best rule in the table, certain or not.
    #[must_use]
    pub const fn found(self) -> Option<RuleMatch> {
        match self {
            Self::Certain(found) | Self::Uncertain(found) => found,
        }
    }

    /// Whether no rule that was left out could change the answer.
    #[must_use]
    pub const fn is_certain(self) -> bool {
        matches!(self, Self::Certain(_))
    }
}

impl Default for RuleVerdict {
    /// A certain verdict without a match: the initial value of an element for a verdict.
    fn default() -> Self {
        Self::Certain(None)
    }
}
