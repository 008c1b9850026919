//! A forest of one table against the suite that every IP engine passes.

wirespeed_fib::conformance!(forest_v4, wirespeed_fib::V4, wirespeed_forest::ForestOf<wirespeed_fib::V4>);
wirespeed_fib::conformance!(forest_v6, wirespeed_fib::V6, wirespeed_forest::ForestOf<wirespeed_fib::V6>);
