//! MATA with interleaved names: the kernels of MATA.

use wirespeed_namelookup::mata::{MataNwTable, MataTable};

use crate::program::{OnDevice, Programs, Sections, Stem};

/// Has the programs of MATA's table: [`Remote`](super::Remote) sends names in the packed form, which crosses
/// the bus faster than interleaved ones (the paper's MATA-NW); these rows are for who packs them with
/// [`pack_rows`](super::pack_rows).
impl OnDevice for MataNwTable {
    fn kernels() -> Vec<Stem> {
        MataTable::kernels()
    }

    fn programs(&self, sections: Sections<'_>) -> Programs {
        self.mata().programs(sections)
    }
}
