//! [`NameUpdate`]: a change of one entry.

use wirespeed_fib::NextHop;

use crate::name::{Name, NameBuf};

/// A change of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameUpdate {
    /// Gives the name this result, 1 or more.
    Insert(NameBuf, u32),
    /// Removes the name. A name that is not in the table is no error.
    Remove(NameBuf),
}

impl NameUpdate {
    /// Gives a name a result.
    pub fn insert(name: impl AsRef<Name>, next_hop: NextHop) -> Self {
        Self::Insert(name.as_ref().to_owned(), next_hop.0)
    }

    /// Removes a name.
    pub fn remove(name: impl AsRef<Name>) -> Self {
        Self::Remove(name.as_ref().to_owned())
    }

    /// The name.
    pub fn name(&self) -> &Name {
        match self {
            Self::Insert(name, _) | Self::Remove(name) => name,
        }
    }
}
