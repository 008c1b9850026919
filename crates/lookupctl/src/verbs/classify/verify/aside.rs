//! [`Aside`]: remarks on the verdict about rules.

use std::fmt;

use serde::Serialize;
use wirespeed_classify::read::Doubts;
use wirespeed_commands::rules::doubt;

use crate::number::{Grouped, counted_u64, grouped};

/// The rules that were left out, the assumptions, and their effect on answers.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Aside {
    /// The number of uncertain answers: a rule that was left out could change them, or their rule is wider
    /// than its file says.
    uncertain: u64,
    #[serde(skip)]
    answers: u64,
    /// The number of rules left out.
    left_out: usize,
    /// The number of rules that are wider than their file says.
    widened: usize,
    #[serde(skip)]
    because: String,
    /// Assumptions that decided a rule.
    assuming: Vec<String>,
}

impl Aside {
    pub(super) fn of<T>(doubts: &Doubts<T>, uncertain: u64, answers: u64) -> Self {
        Self {
            uncertain,
            answers,
            left_out: doubt::lines(doubts).len(),
            widened: doubts.widened().len(),
            because: doubt::left_out(doubts),
            assuming: doubt::assuming(doubts),
        }
    }
}

impl fmt::Display for Aside {
    /// Writes text after "all right": assumptions, and doubts from rules that were left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(assumed) = doubt::assumed(&self.assuming) {
            write!(f, ", {assumed}")?;
        }
        let wide = |and| match self.widened {
            0 => String::new(),
            1 => format!("{and}1 rule that is wider than said"),
            count => format!("{and}{} rules that are wider than said", grouped(count)),
        };
        let (start, why) = match (self.left_out, self.widened) {
            (0, 0) => return Ok(()),
            (0, _) => ("", wide("")),
            (_, _) => ("the set is not whole: ", format!("{}{}", self.because, wide(", and of "))),
        };
        let (uncertain, answers) = (Grouped(self.uncertain), counted_u64(self.answers, "answer"));
        let are = if self.uncertain == 1 { "is" } else { "are" };
        write!(f, ", but {start}{uncertain} of {answers} {are} uncertain because of {why}")
    }
}
