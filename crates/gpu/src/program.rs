//! [`Program`]: what looks up in a table that lies on a device; and [`OnDevice`], the tables that have one.
//!
//! An image goes to the device as it is. A program is the name of a kernel and its argument, a plain struct
//! of the kernel's source that holds where the sections lie. What keys are is the kernel's affair: here they
//! are bytes.

use bytemuck::{NoUninit, bytes_of};
use wirespeed_image::{SectionId, Table};

use crate::driver::{DevicePtr, Kernel};
use crate::error::GpuError;

/// Where the sections of an image lie on a device, in the image's order.
#[derive(Clone, Copy, Debug)]
pub struct Sections<'a>(pub &'a [DevicePtr]);

impl Sections<'_> {
    /// The address of a section's first element.
    pub fn at(&self, section: SectionId) -> DevicePtr {
        self.0[usize::from(section.0)]
    }
}

/// What kernels take for keys: the end of their name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Each of so many bytes (`_k4`).
    Bytes(usize),
    /// Keys of any length, which lie as the kernel of that name has it (`_packed`).
    Named(&'static str),
}

impl From<usize> for Kind {
    fn from(bytes: usize) -> Self {
        Self::Bytes(bytes)
    }
}

/// A kernel that looks up in one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The module.
    pub module: &'static str,
    /// The kernel's name without the kind of its keys ([`Kind`]).
    pub stem: String,
    /// Its second argument; the first is the batch.
    pub table: Vec<u8>,
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// Bytes of a result: 1, 2 or 4.
    pub result_bytes: usize,
}

impl Program {
    /// A program whose table is that plain struct.
    pub fn new(
        module: &'static str,
        stem: impl Into<String>,
        table: &impl NoUninit,
        result_bytes: usize,
    ) -> Self {
        Self { module, stem: stem.into(), table: bytes_of(table).to_vec(), shared: 0, result_bytes }
    }

    /// The program with so much shared memory a block.
    #[must_use]
    pub fn with_shared(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    /// The kernel for keys of so many bytes, or of that kind.
    pub fn kernel(&self, kind: impl Into<Kind>) -> Kernel {
        let name = match kind.into() {
            Kind::Bytes(bytes) => format!("{}_k{bytes}", self.stem),
            Kind::Named(kind) => format!("{}_{kind}", self.stem),
        };
        Kernel { module: self.module, name }
    }
}

/// A table that kernels look up in.
pub trait OnDevice: Table {
    /// The programs that look up in this table when its sections lie there: all give the same results. The
    /// first is for large batches; further ones may suit small ones better, as they stage nothing.
    ///
    /// [`GpuError::Unsupported`] where no kernel knows this shape of the table.
    fn programs(&self, sections: Sections<'_>) -> Result<Vec<Program>, GpuError>;
}
