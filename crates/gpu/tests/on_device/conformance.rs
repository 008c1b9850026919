//! Every kernel against the suite that every IP engine passes, on the host build of the kernels or on a GPU.

on_device! {
    dir24, wirespeed_fib::V4, wirespeed_dir24::Dir24;
    sail_l_v4, wirespeed_fib::V4, wirespeed_sail::SailL;
    sail_l_v6, wirespeed_fib::V6, wirespeed_sail::SailL;
    sail_m_v4, wirespeed_fib::V4, wirespeed_sail::SailM;
    sail_m_v6, wirespeed_fib::V6, wirespeed_sail::SailM;
    gamt_v4, wirespeed_fib::V4, wirespeed_gamt::GamtT<wirespeed_fib::V4>;
    gamt_v6, wirespeed_fib::V6, wirespeed_gamt::GamtT<wirespeed_fib::V6>;
    gamt_s_v4, wirespeed_fib::V4, wirespeed_gamt::GamtS<wirespeed_fib::V4>;
    gamt_s_v6, wirespeed_fib::V6, wirespeed_gamt::GamtS<wirespeed_fib::V6>;
    fold_v4, wirespeed_fib::V4, wirespeed_fold::FoldV4;
    fold_v6, wirespeed_fib::V6, wirespeed_fold::FoldV6;
    fold_hot, wirespeed_fib::V4, wirespeed_fold::FoldHot;
    rank, wirespeed_fib::V4, wirespeed_rank::Rank;
    sail_b, wirespeed_fib::V4, wirespeed_sail::SailB;
    sail_u, wirespeed_fib::V4, wirespeed_sail::SailU;
    waldvogel_v4, wirespeed_fib::V4, wirespeed_waldvogel::Waldvogel<wirespeed_fib::V4>;
    waldvogel_v6, wirespeed_fib::V6, wirespeed_waldvogel::Waldvogel<wirespeed_fib::V6>;
}
