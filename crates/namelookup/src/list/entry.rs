//! The parts of an entry: [`Scope`], [`Verdict`] and [`Precedence`]; and [`Answer`], the entry that wins.

use std::fmt;
use std::num::NonZero;

use crate::name::Name;

/// The names that an entry covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The name alone.
    Exact,
    /// The names of exactly one label more, without the name itself.
    OneLabel,
    /// All names beneath the name, without the name itself.
    Beneath,
    /// The name and all names beneath it.
    Subtree,
}

impl Scope {
    /// All scopes, the narrowest first.
    pub const ALL: [Self; 4] = [Self::Exact, Self::OneLabel, Self::Beneath, Self::Subtree];

    /// The scope in words of one piece, as the command line prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::OneLabel => "one-label",
            Self::Beneath => "beneath",
            Self::Subtree => "subtree",
        }
    }

    /// Whether an entry of this scope covers a name so many labels beneath its own.
    pub const fn covers(self, labels: usize) -> bool {
        match self {
            Self::Exact => labels == 0,
            Self::OneLabel => labels == 1,
            Self::Beneath => labels > 0,
            Self::Subtree => true,
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The content of an entry: a value, or that the name is excepted from what other entries say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// An index of the user's own table of values. Never 0.
    Value(NonZero<u32>),
    /// An exception. A name whose winning entry is one has no value.
    Exception,
}

impl Verdict {
    /// A value. `None` for 0, which stands for no result in every table.
    pub const fn value(result: u32) -> Option<Self> {
        match NonZero::new(result) {
            Some(result) => Some(Self::Value(result)),
            None => None,
        }
    }

    /// The value, or 0 for an exception.
    pub const fn result(self) -> u32 {
        match self {
            Self::Value(result) => result.get(),
            Self::Exception => 0,
        }
    }
}

/// The rank of an entry. The default is the lowest, where only names and scopes decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Precedence {
    /// A higher level wins over all entries of lower ones, also over those with longer names.
    pub level: u8,
    /// A higher weight wins over entries with the same level and name.
    pub weight: u8,
}

/// The entry of a list that wins for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its value, or that it is an exception.
    pub verdict: Verdict,
    /// Its scope.
    pub scope: Scope,
    /// The number of bytes of its name, which is a prefix of the name that was looked up. 0 for the root.
    pub length: u32,
}

impl Answer {
    /// The name of the entry, of the name that was looked up.
    pub fn entry(self, name: &Name) -> &Name {
        Name::new_unchecked(&name.as_bytes()[..self.length as usize])
    }
}
