//! [`Match`]: the result of a lookup.

use wirespeed_fib::NextHop;

use crate::name::Name;

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Match {
    /// The result of the longest prefix in the table; 0 if there is none.
    pub result: u32,
    /// The number of bytes of that prefix, its last component and the slash before it included. 0 for the
    /// root.
    pub length: u32,
}

impl Match {
    /// No prefix of the name is in the table.
    pub const NONE: Self = Self { result: 0, length: 0 };

    /// A match of the first `length` bytes of a name.
    pub fn new(result: u32, length: usize) -> Self {
        Self { result, length: u32::try_from(length).expect("a name's length") }
    }

    /// Whether a prefix matched.
    pub const fn is_some(self) -> bool {
        self.result != 0
    }

    /// The result as an index.
    pub const fn next_hop(self) -> NextHop {
        NextHop(self.result)
    }

    /// The prefix of the name that matched. `None` if there is none.
    pub fn prefix(self, name: &Name) -> Option<&Name> {
        self.is_some().then(|| Name::new_unchecked(&name.as_bytes()[..self.length as usize]))
    }
}
