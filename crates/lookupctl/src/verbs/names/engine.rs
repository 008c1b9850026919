//! `--engine` for names: what may be given, and what it comes to. The engines themselves are listed in
//! [`wirespeed::names::engine`].

use clap::builder::TypedValueParser;
use wirespeed::names::NameRib;
use wirespeed::names::engine::{AUTO, EngineName, best};

use crate::engine::{ALL, parser};

/// An engine as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The one that suits the table best.
    Auto,
    /// The engine of this name.
    Named(EngineName),
}

impl Choice {
    /// The engine for a table.
    pub(super) fn resolve(self, names: &NameRib) -> EngineName {
        match self {
            Self::Auto => best(names),
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

/// Components from which on engines of one array that is to be full take too long to be built where nobody
/// asked for them: of 25,000, `ata` and `ata-2` took over a minute.
const LARGE: usize = 15_000;

impl Selection {
    /// The engines for a table. Says which of all are left out.
    pub(super) fn engines(self, names: &NameRib) -> Vec<EngineName> {
        if let Some(engine) = self.0 {
            return vec![engine];
        }
        let takes_long = |engine| matches!(engine, EngineName::Ata | EngineName::Ata2);
        let (left, taken): (Vec<_>, Vec<_>) =
            EngineName::ALL.iter().partition(|&&engine| names.node_count() > LARGE && takes_long(engine));
        for engine in left {
            eprintln!(
                "{engine}: left out, as it takes minutes to build for a table like this; --engine {engine} does it"
            );
        }
        taken
    }
}
