//! The suite that every IP engine passes, held against an engine too simple to be wrong, and against broken
//! ones that each of its tests must fail.

#![allow(clippy::unwrap_used)] // a test's helpers may panic like the test

mod broken;
mod sorted;

// The engine is in the wrapper of broken ones, without a fault.
wirespeed_fib::conformance!(sorted_v4, wirespeed_fib::V4, crate::broken::Faulty<wirespeed_fib::V4>);
wirespeed_fib::conformance!(sorted_v6, wirespeed_fib::V6, crate::broken::Faulty<wirespeed_fib::V6>);
