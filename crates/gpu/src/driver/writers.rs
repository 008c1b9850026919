//! The kernels of `kernels/table.cu`, which write to any table: what the runtime runs of its own.

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
