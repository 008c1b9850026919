//! FOLD against the suite that every IP engine passes.

mod limits;

wirespeed_fib::conformance!(fold_v4, wirespeed_fib::V4, wirespeed_fold::FoldV4);
wirespeed_fib::conformance!(fold_v6, wirespeed_fib::V6, wirespeed_fold::FoldV6);
wirespeed_fib::conformance!(fold_hot, wirespeed_fib::V4, wirespeed_fold::FoldHot);
