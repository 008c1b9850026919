//! Both GAMTs against the suite that every IP engine passes.

mod updates;

wirespeed_fib::conformance!(gamt_v4, wirespeed_fib::V4, wirespeed_gamt::GamtT<wirespeed_fib::V4>);
wirespeed_fib::conformance!(gamt_v6, wirespeed_fib::V6, wirespeed_gamt::GamtT<wirespeed_fib::V6>);
wirespeed_fib::conformance!(gamt_s_v4, wirespeed_fib::V4, wirespeed_gamt::GamtS<wirespeed_fib::V4>);
wirespeed_fib::conformance!(gamt_s_v6, wirespeed_fib::V6, wirespeed_gamt::GamtS<wirespeed_fib::V6>);
