//! Every SAIL, SAIL_M with one FIB, against the suite that every IP engine passes.

mod several_fibs;

wirespeed_fib::conformance!(sail_l_v4, wirespeed_fib::V4, wirespeed_sail::SailL);
wirespeed_fib::conformance!(sail_l_v6, wirespeed_fib::V6, wirespeed_sail::SailL);
wirespeed_fib::conformance!(sail_b_v4, wirespeed_fib::V4, wirespeed_sail::SailB);
wirespeed_fib::conformance!(sail_u_v4, wirespeed_fib::V4, wirespeed_sail::SailU);
wirespeed_fib::conformance!(sail_m_v4, wirespeed_fib::V4, wirespeed_sail::SailM);
wirespeed_fib::conformance!(sail_m_v6, wirespeed_fib::V6, wirespeed_sail::SailM);
