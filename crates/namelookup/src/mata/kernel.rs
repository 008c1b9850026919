//! MATA with interleaved names: the kernels of MATA.

use wirespeed_image::device::{Constants, OnDevice, Programs, Sections, Stem};

use super::{MataNwTable, MataTable};

/// Has the programs of MATA's table: names go to a GPU in the packed form, which crosses the bus faster than
/// interleaved ones (the paper's MATA-NW). The kernels that take interleaved names as rows are MATA's, too.
impl OnDevice for MataNwTable {
    fn kernels() -> Vec<Stem> {
        MataTable::kernels()
    }

    fn constants() -> Vec<Constants> {
        MataTable::constants()
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        self.mata().programs(sections)
    }
}
