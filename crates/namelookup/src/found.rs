//! [`Match`]: what a lookup found.

use wirespeed_fib::NextHop;

use crate::name::Name;

/// What a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Match {
    /// The result of the longest prefix that is in the table; 0 where none is.
    pub result: u32,
    /// How many bytes of the name that prefix has: its last component and the slash before it included, 0 for
    /// the root's.
    pub length: u32,
}

impl Match {
    /// No prefix of the name is in the table.
    pub const NONE: Self = Self { result: 0, length: 0 };

    /// A match of so many bytes of a name.
    pub fn new(result: u32, length: usize) -> Self {
        Self { result, length: u32::try_from(length).expect("a name's length") }
    }

    /// Whether there is one.
    pub const fn is_some(self) -> bool {
        self.result != 0
    }

    /// The result as the index that it is.
    pub const fn next_hop(self) -> NextHop {
        NextHop(self.result)
    }

    /// The prefix that matched, of the name that was looked up; `None` where there is none.
    pub fn prefix(self, name: &Name) -> Option<&Name> {
        self.is_some().then(|| Name::new_unchecked(&name.as_bytes()[..self.length as usize]))
    }
}
