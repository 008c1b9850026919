//! Lists of domains as people keep them: entries for a name alone, for the names beneath it, or for both, and
//! exceptions.
//!
//! ```text
//! entries ──► Entries ──resolve──► Resolved { NameTable, Answers }
//!                                       │           └──── which entry wins: at the name, one label beneath, deeper
//!                                       └──build──► any engine: the longest name of the list, as a Match
//!                                                       └──► Answers::answer ──► the winning entry, or none
//! ```
//!
//! A table of names has one kind of entry, "this name and all names beneath it", and the longest one wins. A
//! list has more: each entry has a [`Scope`], and its [`Verdict`] is a value or an exception. Engines need no
//! change for it: a list becomes a table with one entry for each of its names, whose result is the number of
//! three answers. Which of the three counts follows from the length of the match, which each engine gives.
//! [`Entries::resolve`] computes the answers once, with what a name inherits from the names above it. One
//! lookup of the engine, and at most one more of an array, then answer a name.
//!
//! # Which entry wins
//!
//! One entry wins among those that cover a name:
//!
//! 1. those with the highest [level](Precedence::level): Adblock's exceptions win over all blocks, wherever
//!    they are, and have a level of their own for it;
//! 2. then those with the longest name;
//! 3. then those with the highest [weight](Precedence::weight), for formats that rank their lines for one
//!    name;
//! 4. then the one with the narrowest scope: [`Exact`](Scope::Exact) before [`OneLabel`](Scope::OneLabel),
//!    [`Beneath`](Scope::Beneath) and [`Subtree`](Scope::Subtree).
//!
//! There is one entry for a name and a scope. Of several, one with the highest level and weight stays, and of
//! equal ones the last.
//!
//! ```
//! use wirespeed_namelookup::list::{Entries, Precedence, Scope, Verdict};
//! use wirespeed_namelookup::NameBuf;
//!
//! let domain = |domain: &str| NameBuf::from_domain(domain.as_bytes());
//! let mut list = Entries::new();
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
mod entry;
pub mod oracle;
mod suffix;
#[cfg(test)]
mod tests;

pub use answers::{Answers, Resolved};
#[cfg(feature = "text")]
pub(crate) use entries::Before;
pub use entries::{Counts, Entries};
pub use entry::{Answer, Precedence, Scope, Verdict};
pub use suffix::Suffix;
