//! [`Standing`]: whether an engine is one to pick.

use std::fmt;

/// Whether a user should pick an engine, by the figures in `benches/record`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The first choice.
    Recommended,
    /// The choice for this case.
    Niche(&'static str),
    /// Here because a paper describes it: other engines are better in all respects.
    Paper(&'static str),
}

impl Standing {
    /// Whether the engine is for everybody.
    pub const fn is_recommended(self) -> bool {
        matches!(self, Self::Recommended)
    }

    /// Whether nobody should pick the engine.
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
