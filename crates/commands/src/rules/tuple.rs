//! `--tuple`: the header fields that rules test.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use wirespeed::classify::TupleName;

/// `--tuple NAME`.
pub fn parser() -> impl TypedValueParser<Value = TupleName> {
    PossibleValuesParser::new(TupleName::ALL.iter().map(|tuple| tuple.as_str()))
        .map(|name| TupleName::of(&name).expect("one of those to choose from"))
}
