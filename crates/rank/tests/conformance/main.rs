//! Ranked chunks against the suite that every IP engine passes.

wirespeed_fib::conformance!(rank_v4, wirespeed_fib::V4, wirespeed_rank::Rank);
