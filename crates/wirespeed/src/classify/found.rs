//! [`RuleMatch`]: the result of classifying a packet.

use wirespeed_classify::RuleNumber;
use wirespeed_fib::NextHop;

/// The best rule that matches a packet: its number, and its action in the state that was looked up in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleMatch {
    /// The rule's number.
    pub number: RuleNumber,
    /// The rule's action: an index that [`Labels`](crate::Labels) may resolve, or [`NextHop::NONE`] if the
    /// rule has no action.
    pub action: NextHop,
}
