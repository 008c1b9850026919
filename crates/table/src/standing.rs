//! [`Standing`]: whether an engine is one to pick.

use std::fmt;

/// Whether an engine is one to pick for a table of one's own, by the figures in `benches/record`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// One to pick first.
    Recommended,
    /// One to pick for this.
    Niche(&'static str),
    /// Here because this paper is: others do better in all respects.
    Paper(&'static str),
}

impl Standing {
    /// Whether nobody should pick it.
    pub const fn is_paper(self) -> bool {
        matches!(self, Self::Paper(_))
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recommended => f.write_str("recommended"),
            Self::Niche(when) => write!(f, "for {when}"),
            Self::Paper(paper) => write!(f, "of a paper: {paper}"),
        }
    }
}
