//! `--engine`: its values, and the engine that it comes to for a table. The engines themselves are listed in
//! [`wirespeed::engine`].

use anyhow::{Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wirespeed::engine::{self, AUTO, EngineName, Engines, Visitor, of_family};
use wirespeed_fib::{Rib, Strides};

/// Every engine, where one is wanted by name.
pub(crate) const ALL: &str = "all";

/// An engine as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The one that suits the table best.
    Auto,
    /// The engine of this name.
    Named(EngineName),
}

impl Choice {
    /// The engine for a table. An error where strides are asked for and it has its own.
    pub(crate) fn resolve<A: Engines>(self, rib: &Rib<A>, strides: &Strides) -> Result<EngineName> {
        self.resolve_by::<A>(|| engine::best(rib), strides)
    }

    /// The engine for a table, where another is the one that suits best.
    pub(crate) fn resolve_by<A: Engines>(
        self,
        best: impl FnOnce() -> EngineName,
        strides: &Strides,
    ) -> Result<EngineName> {
        let name = match self {
            Self::Auto => AUTO,
            Self::Named(engine) => engine.as_str(),
        };
        let engine = engine::choose_by::<A>(name, best)?;
        if *strides != Strides::Fastest && !matches!(engine, EngineName::Gamt | EngineName::GamtS) {
            let (t, s) = (EngineName::Gamt, EngineName::GamtS);
            bail!("--strides is for --engine {t} and {s}: the levels of {engine} are its own");
        }
        Ok(engine)
    }

    /// Visits the engine for a table.
    pub(crate) fn visit<A: Engines, V: Visitor<A>>(
        self,
        rib: &Rib<A>,
        strides: &Strides,
        visitor: V,
    ) -> Result<V::Output> {
        Ok(engine::visit(self.resolve(rib, strides)?, visitor)?)
    }
}

impl From<&str> for Choice {
    /// A name that was among those to choose from.
    fn from(name: &str) -> Self {
        EngineName::of(name).map_or(Self::Auto, Self::Named)
    }
}

/// `--engine NAME`.
pub(crate) fn choice() -> impl TypedValueParser<Value = Choice> {
    parser(AUTO, names()).map(|name| Choice::from(name.as_str()))
}

/// `--engine NAME` where `all` is one.
pub(crate) fn selection() -> impl TypedValueParser<Value = Selection> {
    parser(ALL, names())
        .map(|name| if name == ALL { Selection::All } else { Selection::One(name.as_str().into()) })
}

/// One of some engines, of addresses or names, or what stands for one or for all of them.
pub(crate) fn parser(also: &'static str, names: impl Iterator<Item = &'static str>) -> PossibleValuesParser {
    PossibleValuesParser::new(std::iter::once(also).chain(names))
}

fn names() -> impl Iterator<Item = &'static str> {
    EngineName::ALL.iter().map(|engine| engine.as_str())
}

/// The engines to hold against the oracle: one, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// Every engine of the family.
    All,
    /// One.
    One(Choice),
}

impl Selection {
    /// The engines for a table.
    pub(crate) fn engines<A: Engines>(self, rib: &Rib<A>, strides: &Strides) -> Result<Vec<EngineName>> {
        match self {
            Self::All => Ok(of_family::<A>().collect()),
            Self::One(choice) => Ok(vec![choice.resolve(rib, strides)?]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirespeed_fib::{V4, V6};

    #[test]
    fn every_name_is_found_again() {
        for &engine in EngineName::ALL {
            assert_eq!(Choice::from(engine.as_str()), Choice::Named(engine));
        }
        let (four, six, own) = (Rib::<V4>::new(), Rib::<V6>::new(), Strides::Fastest);
        assert_eq!(Choice::from(AUTO).resolve(&four, &own).unwrap(), engine::best(&four));
        let given = Strides::Given(vec![8]);
        assert!(Choice::from(AUTO).resolve(&four, &given).is_err());
        for name in [EngineName::Gamt, EngineName::GamtS] {
            assert_eq!(Choice::Named(name).resolve(&four, &given).unwrap(), name);
        }
        assert_eq!(Selection::All.engines(&six, &own).unwrap(), of_family::<V6>().collect::<Vec<_>>());
    }
}
