//! DIR-24-8 against the suite that every IP engine passes.

mod updates;

wirespeed_fib::conformance!(dir24, wirespeed_fib::V4, wirespeed_dir24::Dir24);
