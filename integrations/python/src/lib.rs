//! Wirespeed for Python: the module `wirespeed._wirespeed`, whose classes the package `wirespeed` exports.
//!
//! A batch comes in by numpy, by Arrow's C data interface or as a list, and goes out the same way. What lies
//! in memory as the engines want it is not copied. Lookups run without the interpreter's lock.

mod addresses;
mod answers;
mod arrow;
mod column;
mod failure;
mod given;
mod live;
mod lookup;
mod methods;
mod names;
mod numbers;
mod rules;
mod table;
mod text_column;
mod texts;
mod vrps;

/// Lookup of IP addresses, names and packets, in batches.
#[pyo3::pymodule]
mod _wirespeed {
    #[pymodule_export]
    use super::arrow::Array;
    #[pymodule_export]
    use super::names::NameTable;
    #[pymodule_export]
    use super::rules::Classifier;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::vrps::Vrps;

    #[pymodule_export]
    #[allow(non_upper_case_globals)] // as Python writes it
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
