//! Lists of domains as people keep them: entries for a name alone, for the names beneath it, or for both, and
//! exceptions.
//!
//! ```text
//! entries ──► NameList ──resolve──► Resolved { NameTable, Answers }
//!                                       │           └──── which entry wins: at the name, one label beneath, deeper
//!                                       └──build──► any engine: the longest name of the list, as a Match
//!                                                       └──► Answers::answer ──► the winning entry, or none
//! ```
//!
//! A table of names has one kind of entry, "this name and all names beneath it", and the longest one wins. A
//! list has more: each entry has a [`Scope`], and its [`Verdict`] is a value or an exception. Engines need no
//! change for it: a list becomes a table with one entry for each of its names, whose result is the number of
//! three answers. Which of the three counts follows from the length of the match, which each engine gives.
//! [`NameList::resolve`] computes the answers once, with what a name inherits from the names above it. One
//! lookup of the engine, and at most one more of an array, then answer a name.
//!
//! # Which entry wins
//!
//! Of all entries that cover a name:
//!
//! 1. those with the highest [level](Precedence::level): Adblock's exceptions win over all blocks, wherever they
//!    are, and have a level of their own for it;
//! 2. then those with the longest name;
//! 3. then those with the highest [weight](Precedence::weight), for formats that rank their lines for one name;
//! 4. then the one with the narrowest scope: [`Exact`](Scope::Exact) before [`OneLabel`](Scope::OneLabel),
//!    [`Beneath`](Scope::Beneath) and [`Subtree`](Scope::Subtree).
//!
//! There is one entry for a name and a scope. Of several, one with the highest level and weight stays, and of
//! equal ones the last.
//!
//! ```
//! use wirespeed_namelookup::list::{NameList, Precedence, Scope, Verdict};
//! use wirespeed_namelookup::NameBuf;
//!
//! let domain = |domain: &str| NameBuf::from_domain(domain.as_bytes());
//! let mut list = NameList::new();
//! list.insert(&domain("ads.example")?, Scope::Subtree, Precedence::default(), Verdict::value(7).expect("not 0"));
//! list.insert(&domain("good.ads.example")?, Scope::Exact, Precedence::default(), Verdict::Exception);
//! let list = list.resolve();
//!
//! let answer = |domain: NameBuf| list.lookup(&domain).map(|answer| (answer.verdict, answer.scope));
//! assert_eq!(answer(domain("x.ads.example")?), Some((Verdict::value(7).expect("not 0"), Scope::Subtree)));
//! assert_eq!(answer(domain("good.ads.example")?), Some((Verdict::Exception, Scope::Exact)));
//! assert_eq!(answer(domain("x.good.ads.example")?).map(|(_, scope)| scope), Some(Scope::Subtree));
//! assert_eq!(answer(domain("example")?), None);
//! # Ok::<(), wirespeed_namelookup::NameError>(())
//! ```

mod answers;
mod entries;
pub mod oracle;
mod suffix;
#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZero;

pub use answers::{Answer, Answers, Resolved};
pub use entries::{Counts, NameList};
pub use suffix::Suffix;

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
