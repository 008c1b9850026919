//! The engines by name. The list at the end of the first screen is the only one: an engine joins the command line
//! by its name there.

use anyhow::bail;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wirespeed_fib::{Address, Engine, InFib, V4, V6};
use wirespeed_image::Table;

engines! {
    // The first of a family is what `auto` means.
    V4: wirespeed_sail::SailL, wirespeed_rank::Rank;
    V6: wirespeed_sail::SailL;
}

/// What is done with an engine once it is known which: a function over engine types.
pub(crate) trait Visitor<A: Address> {
    /// What it yields.
    type Output;

    /// Does it.
    fn visit<E: Engine<A>>(self) -> Self::Output;
}

/// The engines of a family.
pub(crate) trait Engines: InFib {
    /// Their names, the one that `auto` means first.
    const NAMES: &'static [&'static str];

    /// Visits the engine of a name; `None` where there is none.
    fn visit_engine<V: Visitor<Self>>(name: &str, visitor: V) -> Option<V::Output>;

    /// The name of the engine that reads images of a kind.
    fn engine_of_kind(kind: &str) -> Option<&'static str>;
}

/// An engine as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The one that suits most.
    Auto,
    /// That one.
    Named(&'static str),
}

impl Choice {
    /// The engine's name in a family.
    pub(crate) fn name<A: Engines>(self) -> anyhow::Result<&'static str> {
        match self {
            Self::Auto => Ok(A::NAMES[0]),
            Self::Named(name) if A::NAMES.contains(&name) => Ok(name),
            Self::Named(name) => {
                bail!("engine {name} does not take {}; these do: {}", A::FAMILY, A::NAMES.join(", "))
            }
        }
    }

    /// Visits the engine in a family.
    pub(crate) fn visit<A: Engines, V: Visitor<A>>(self, visitor: V) -> anyhow::Result<V::Output> {
        let name = self.name::<A>()?;
        match A::visit_engine(name, visitor) {
            Some(output) => Ok(output),
            None => bail!("no engine {name}"),
        }
    }
}

impl From<&str> for Choice {
    /// A name that was among those to choose from.
    fn from(name: &str) -> Self {
        all().into_iter().find(|&known| known == name).map_or(Self::Auto, Self::Named)
    }
}

/// `--engine NAME`.
pub(crate) fn choice() -> impl TypedValueParser<Value = Choice> {
    parser("auto").map(|name| Choice::from(name.as_str()))
}

/// `--engine NAME` where `all` is one.
pub(crate) fn selection() -> impl TypedValueParser<Value = Selection> {
    parser("all")
        .map(|name| if name == "all" { Selection::All } else { Selection::One(name.as_str().into()) })
}

fn parser(also: &'static str) -> PossibleValuesParser {
    PossibleValuesParser::new(std::iter::once(also).chain(all()))
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
    /// Their names in a family.
    pub(crate) fn names<A: Engines>(self) -> anyhow::Result<Vec<&'static str>> {
        match self {
            Self::All => Ok(A::NAMES.to_vec()),
            Self::One(choice) => Ok(vec![choice.name::<A>()?]),
        }
    }
}

/// Every name of either family.
fn all() -> Vec<&'static str> {
    let more = V6::NAMES.iter().filter(|name| !V4::NAMES.contains(name));
    V4::NAMES.iter().chain(more).copied().collect()
}

macro_rules! engines {
    ($($address:ty: $($engine:ty),+;)+) => {$(
        impl Engines for $address {
            const NAMES: &'static [&'static str] = &[$(<$engine as Engine<$address>>::NAME),+];

            fn visit_engine<V: Visitor<Self>>(name: &str, visitor: V) -> Option<V::Output> {
                $(if name == <$engine as Engine<$address>>::NAME {
                    return Some(visitor.visit::<$engine>());
                })+
                None
            }

            fn engine_of_kind(kind: &str) -> Option<&'static str> {
                $(if kind == <<$engine as Engine<$address>>::Table as Table>::KIND {
                    return Some(<$engine as Engine<$address>>::NAME);
                })+
                None
            }
        }
    )+};
}
use engines;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_again() {
        for name in all() {
            assert_eq!(Choice::from(name), Choice::Named(name));
        }
        assert_eq!(Choice::from("auto").name::<V4>().unwrap(), V4::NAMES[0]);
        assert_eq!(Selection::All.names::<V6>().unwrap(), V6::NAMES);
    }

    #[test]
    fn kinds_of_images_lead_back_to_their_engines() {
        assert_eq!(V4::engine_of_kind("sail-l-v4"), Some("sail-l"));
        assert_eq!(V4::engine_of_kind("sail-l-v6"), None);
        assert_eq!(V6::engine_of_kind("sail-l-v6"), Some("sail-l"));
        assert_eq!(V4::engine_of_kind("rank-v4"), Some("rank"));
    }
}
