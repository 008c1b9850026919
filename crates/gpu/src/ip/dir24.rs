//! DIR-24-8: `kernels/dir24.cuh`.

use bytemuck::{Pod, Zeroable};
use wirespeed_dir24::{Dir24Table, layout};

use crate::driver::DevicePtr;
use crate::error::GpuError;
use crate::program::{OnDevice, Program, Sections};

/// `Dir24` of the kernel's source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Argument {
    tbl24: DevicePtr,
    tbl8: DevicePtr,
}

impl OnDevice for Dir24Table {
    fn programs(&self, sections: Sections<'_>) -> Result<Vec<Program>, GpuError> {
        let width = self.entry_width();
        let argument = Argument { tbl24: sections.at(layout::TBL24), tbl8: sections.at(layout::TBL8) };
        Ok(vec![Program::new("dir24", format!("dir24_w{width}"), &argument, width)])
    }
}
