//! Binary search on lengths against the suite that every IP engine passes.

mod updates;

wirespeed_fib::conformance!(
    waldvogel_v4,
    wirespeed_fib::V4,
    wirespeed_waldvogel::Waldvogel<wirespeed_fib::V4>
);
wirespeed_fib::conformance!(
    waldvogel_v6,
    wirespeed_fib::V6,
    wirespeed_waldvogel::Waldvogel<wirespeed_fib::V6>
);
