//! `--engine` for rules: its values, and the engine that it comes to. The engines themselves are listed in
//! [`wirespeed::classify::engine`].

use clap::builder::TypedValueParser;
use wirespeed::classify::engine::{AUTO, EngineName, best, best_on_gpu};
use wirespeed_classify::{RuleSet, Tuple};

use crate::engine::{ALL, parser};

/// An engine as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The one that suits the set best.
    Auto,
    /// The engine of this name.
    Named(EngineName),
}

impl Choice {
    /// The engine for a set, where a GPU may look up in it or not.
    pub(super) fn resolve<T: Tuple>(self, rules: &RuleSet<T>, on_gpu: bool) -> EngineName {
        match self {
            Self::Auto if on_gpu => best_on_gpu(rules),
            Self::Auto => best(rules),
            Self::Named(engine) => engine,
        }
    }
}

/// `--engine NAME`.
pub(super) fn choice() -> impl TypedValueParser<Value = Choice> {
    parser(AUTO, names()).map(|name| EngineName::of(&name).map_or(Choice::Auto, Choice::Named))
}

/// `--engine NAME` where `all` is one: the engines.
pub(super) fn selection() -> impl TypedValueParser<Value = Selection> {
    parser(ALL, names()).map(|name| Selection(EngineName::of(&name)))
}

fn names() -> impl Iterator<Item = &'static str> {
    EngineName::ALL.iter().map(|engine| engine.as_str())
}

/// One engine, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Selection(Option<EngineName>);

impl Selection {
    /// The engines.
    pub(super) fn engines(self) -> Vec<EngineName> {
        self.0.map_or_else(|| EngineName::ALL.to_vec(), |engine| vec![engine])
    }
}
