//! `--engine`: its values, and the choice of an engine for a table. [`wirespeed::engine`] lists the engines.

use anyhow::{Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use wirespeed::engine::{AUTO, Addresses, EngineName, Engines, choose, of_domain};
use wirespeed_fib::{Rib, Strides, V4, V6};

/// The value for all engines except those of papers.
const ALL: &str = "all";
/// The value for all engines.
const EVERY: &str = "every";

const ONE: &[(&str, &str)] = &[(AUTO, "the one that suits the table best")];
const SEVERAL: &[(&str, &str)] =
    &[(ALL, "those that are of use"), (EVERY, "all that there are, those of papers too")];

/// An engine as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The engine that suits the table best.
    Auto,
    /// The engine of this name.
    Named(EngineName),
}

impl Choice {
    /// The engine for a table.
    pub(crate) fn resolve<D: Engines>(self, source: &D::Source, has_gpu: bool) -> Result<EngineName> {
        let name = match self {
            Self::Auto => AUTO,
            Self::Named(engine) => engine.as_str(),
        };
        Ok(choose::<D>(name, source, has_gpu)?)
    }

    /// The engine for a table of addresses. Fails if strides are given and the engine has fixed levels.
    pub(crate) fn resolve_with<A: Addresses>(
        self,
        rib: &Rib<A>,
        has_gpu: bool,
        strides: &Strides,
    ) -> Result<EngineName> {
        let engine = self.resolve::<A>(rib, has_gpu)?;
        if *strides != Strides::Fastest && !matches!(engine, EngineName::Gamt | EngineName::GamtS) {
            let (t, s) = (EngineName::Gamt, EngineName::GamtS);
            bail!("--strides is for --engine {t} and {s}: {engine} has fixed levels");
        }
        Ok(engine)
    }
}

impl From<&str> for Choice {
    /// Converts a name that was checked against the list.
    fn from(name: &str) -> Self {
        EngineName::of(name).map_or(Self::Auto, Self::Named)
    }
}

/// The engines of a table that are verified or measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// All engines except those of papers.
    All,
    /// All engines.
    Every,
    /// One engine.
    One(Choice),
}

impl Selection {
    /// The engines for a table. Those of papers come last.
    pub(crate) fn engines<D: Engines>(self, source: &D::Source) -> Result<Vec<EngineName>> {
        match self {
            Self::All => Ok(of_domain::<D>().filter(|engine| !engine.standing().is_paper()).collect()),
            Self::Every => Ok(of_domain::<D>().collect()),
            Self::One(choice) => Ok(vec![choice.resolve::<D>(source, false)?]),
        }
    }

    /// Refuses strides for engines with fixed levels.
    pub(crate) fn check_strides<A: Addresses>(self, rib: &Rib<A>, strides: &Strides) -> Result<()> {
        match self {
            Self::All | Self::Every => Ok(()),
            Self::One(choice) => choice.resolve_with(rib, false, strides).map(drop),
        }
    }
}

impl From<&str> for Selection {
    /// Converts a name or a word that was checked against the list.
    fn from(name: &str) -> Self {
        match name {
            ALL => Self::All,
            EVERY => Self::Every,
            name => Self::One(name.into()),
        }
    }
}

/// A kind of tables whose engines the user can name.
pub(crate) trait Listed {
    /// The engines.
    fn engines() -> impl Iterator<Item = EngineName>;
}

impl<D: Engines> Listed for D {
    fn engines() -> impl Iterator<Item = EngineName> {
        of_domain::<D>()
    }
}

/// Addresses of both families.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BothFamilies {}

impl Listed for BothFamilies {
    fn engines() -> impl Iterator<Item = EngineName> {
        let is_of_either =
            |engine: &EngineName| of_domain::<V4>().chain(of_domain::<V6>()).any(|of| of == *engine);
        EngineName::ALL.iter().copied().filter(is_of_either)
    }
}

/// `--engine NAME`.
pub(crate) fn choice<L: Listed>() -> impl TypedValueParser<Value = Choice> {
    parser(ONE, L::engines()).map(|name| name.as_str().into())
}

/// `--engine NAME`, with `all` and `every`.
pub(crate) fn selection<L: Listed>() -> impl TypedValueParser<Value = Selection> {
    parser(SEVERAL, L::engines()).map(|name| name.as_str().into())
}

/// A parser of words, and of engines with their standing.
fn parser(
    words: &[(&'static str, &'static str)],
    engines: impl Iterator<Item = EngineName>,
) -> PossibleValuesParser {
    let word = |&(name, help): &(&'static str, &'static str)| PossibleValue::new(name).help(help);
    let engine = |engine: EngineName| PossibleValue::new(engine.as_str()).help(engine.standing().to_string());
    PossibleValuesParser::new(words.iter().map(word).chain(engines.map(engine)))
}

#[cfg(test)]
mod tests {
    use wirespeed_classify::{OpenFlowTuple, RuleSet};
    use wirespeed_namelookup::{NameDomain, NameTable};

    use super::*;

    #[test]
    fn every_name_is_found_again() {
        for &engine in EngineName::ALL {
            assert_eq!(Choice::from(engine.as_str()), Choice::Named(engine));
            assert_eq!(Selection::from(engine.as_str()), Selection::One(Choice::Named(engine)));
        }
        let (four, own) = (Rib::<V4>::new(), Strides::Fastest);
        assert_eq!(Choice::from(AUTO).resolve_with(&four, false, &own).unwrap(), V4::best(&four));
        assert_eq!(Choice::from(AUTO).resolve_with(&four, true, &own).unwrap(), V4::best_on_gpu(&four));
        let given = Strides::Given(vec![8]);
        assert!(Choice::from(AUTO).resolve_with(&four, false, &given).is_err());
        assert!(Selection::from("fold").check_strides(&four, &given).is_err());
        for name in [EngineName::Gamt, EngineName::GamtS] {
            assert_eq!(Choice::Named(name).resolve_with(&four, false, &given).unwrap(), name);
        }
        assert!(Choice::from("acta").resolve::<V4>(&four, false).is_err());
    }

    fn selects<D: Engines>(none: &D::Source) {
        let all = Selection::from(ALL).engines::<D>(none).unwrap();
        let every = Selection::from(EVERY).engines::<D>(none).unwrap();
        assert_eq!(every, of_domain::<D>().collect::<Vec<_>>());
        assert!(all.contains(&D::best(none)) && all.contains(&D::best_on_gpu(none)));
        assert!(every.starts_with(&all) && all.len() < every.len(), "papers are the rest: {every:?}");
    }

    #[test]
    fn all_are_of_use_and_papers_are_the_rest() {
        selects::<V4>(&Rib::new());
        selects::<V6>(&Rib::new());
        selects::<NameDomain>(&NameTable::new());
        selects::<OpenFlowTuple>(&RuleSet::new());
    }
}
