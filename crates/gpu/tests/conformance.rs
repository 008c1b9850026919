//! Every kernel against the suite that every IP engine passes, on the host build of the kernels or on a GPU.

mod device;

on_device! {
    dir24, wirespeed_fib::V4, wirespeed_dir24::Dir24;
    fold_v4, wirespeed_fib::V4, wirespeed_fold::FoldV4;
    fold_v6, wirespeed_fib::V6, wirespeed_fold::FoldV6;
    rank, wirespeed_fib::V4, wirespeed_rank::Rank;
    sail_b, wirespeed_fib::V4, wirespeed_sail::SailB;
    sail_u, wirespeed_fib::V4, wirespeed_sail::SailU;
    waldvogel_v4, wirespeed_fib::V4, wirespeed_waldvogel::Waldvogel<wirespeed_fib::V4>;
    waldvogel_v6, wirespeed_fib::V6, wirespeed_waldvogel::Waldvogel<wirespeed_fib::V6>;
}
