//! MATA with interleaved names: the kernels of MATA.

use wirespeed_image::device::{Constants, OnDevice, Programs, Sections, Stem};

use super::{MataNwTable, MataTable};

/// The programs of MATA's table: names are sent to a GPU in packed form, which is faster on the bus than
/// interleaved names (the paper's MATA-NW). The kernels for interleaved names as rows are also MATA's.
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
