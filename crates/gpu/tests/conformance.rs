//! Every kernel against the suite that every IP engine passes, on the host build of the kernels or on a GPU.

mod device;

on_device! {
    dir24, wirespeed_fib::V4, wirespeed_dir24::Dir24;
    fold_hot, wirespeed_fib::V4, wirespeed_fold::FoldHot;
}
