//! The kernels of `kernels/table.cu`, which write to any table: the runtime's own kernels.

use wirespeed_image::device::Kernel;

/// The module.
const MODULE: &str = "table";

/// Writes a patch.
pub fn patch() -> Kernel {
    Kernel { module: MODULE, name: "patch".into() }
}

/// Writes one element.
pub fn patch_one() -> Kernel {
    Kernel { module: MODULE, name: "patch_one".into() }
}
