//! Programs that a device runs to look up in a table: plain data, which an engine gives and a driver takes.
//!
//! ```text
//! table ──kernels────►  Stem       every kernel that there may be for such tables
//!       ──constants──►  Constants  what their sources share with the tables' layout
//!       ──programs───►  Program    those for this one: a stem, the argument, shared memory, bytes of a result
//! ```
//!
//! An image is copied to the device without changes. A program is the name of a kernel and the kernel's
//! argument, a plain struct of the kernel's source with the addresses of the sections. Only the kernel knows
//! its keys: for this module keys are bytes.

mod constants;
mod error;
mod name;
mod sections;

use bytemuck::{NoUninit, bytes_of};

use crate::table::Table;

pub use constants::Constants;
pub use error::Unsupported;
pub use name::{Kernel, Kind, Stem, Width};
pub use sections::{DevicePtr, Sections};

/// A kernel that looks up in one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The kernel's module and its name there without the kind of its keys ([`Kind`]).
    pub stem: Stem,
    /// The kernel's second argument; the first is the batch.
    pub table: Vec<u8>,
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// Bytes of a result: 1, 2 or 4.
    pub result_bytes: usize,
}

impl Program {
    /// Makes a program with this plain struct as the argument.
    pub fn new(stem: Stem, table: &impl NoUninit, result_bytes: usize) -> Self {
        Self { stem, table: bytes_of(table).to_vec(), shared: 0, result_bytes }
    }

    /// Sets the bytes of shared memory of a block.
    #[must_use]
    pub fn with_shared(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    /// The kernel for keys of this kind, or of this number of bytes.
    pub fn kernel(&self, kind: impl Into<Kind>) -> Kernel {
        self.stem.kernel(kind)
    }
}

/// Programs that look up in a table, or the reason why there are none.
pub type Programs = Result<Vec<Program>, Unsupported>;

/// A table that kernels look up in.
pub trait OnDevice: Table {
    /// Every kernel that programs of such tables may use, for tables of any shape.
    fn kernels() -> Vec<Stem>;

    /// The constants that the kernels' sources share with the layout of such tables.
    fn constants() -> Vec<Constants>;

    /// The programs that look up in this table when its sections lie at these addresses. All give equal
    /// results. The first is for large batches. Later ones stage nothing, which may suit small batches
    /// better.
    ///
    /// [`Unsupported`] if no kernel knows this shape of the table.
    fn programs(&self, sections: Sections<'_>) -> Programs;

    /// Makes a program of one of [`kernels`](Self::kernels), with this plain struct as the argument.
    /// [`Unsupported`] for any other stem. Engines make all programs by this function, so that no engine asks
    /// for a kernel that it does not list.
    fn program(stem: Stem, table: &impl NoUninit, result_bytes: usize) -> Result<Program, Unsupported> {
        match Self::kernels().contains(&stem) {
            true => Ok(Program::new(stem, table, result_bytes)),
            false => Err(Unsupported(format!("this shape: there is no {stem}"))),
        }
    }
}
