//! The suite that every engine of names passes, held against an engine too simple to be wrong, and against
//! broken ones that each of its tests must fail. Beside it, tests of engines that need nothing private: here
//! they use the engines that the library has compiled, and unit tests would compile their own.

#![allow(clippy::unwrap_used)] // a test's helpers may panic like the test

mod aggregated;
mod broken;
mod engines;
mod expected;
mod sorted;

// The engine is in the wrapper of broken ones, without a fault.
wirespeed_namelookup::conformance!(sorted_names, crate::broken::Faulty);

wirespeed_namelookup::conformance!(acta, wirespeed_namelookup::Acta);
wirespeed_namelookup::conformance!(stt, wirespeed_namelookup::stt::Stt);
wirespeed_namelookup::conformance!(ata, wirespeed_namelookup::ata::Ata);
wirespeed_namelookup::conformance!(ata_2, wirespeed_namelookup::ata::Ata<2>);
wirespeed_namelookup::conformance!(mata, wirespeed_namelookup::mata::Mata);
wirespeed_namelookup::conformance!(mata_nw, wirespeed_namelookup::mata::MataNw);
