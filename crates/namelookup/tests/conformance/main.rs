//! The suite that every engine of names passes, held against an engine too simple to be wrong, and against broken ones that each of
//! its tests must fail.

mod aggregated;
mod broken;
mod sorted;

wirespeed_namelookup::conformance!(sorted_names, crate::sorted::Sorted);
