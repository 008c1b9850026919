//! One file per verb: its options, and `run`.

pub(crate) mod build;
pub(crate) mod classify;
pub(crate) mod completions;
pub(crate) mod devices;
pub(crate) mod enrich;
pub(crate) mod generate;
pub(crate) mod info;
pub(crate) mod lookup;
pub(crate) mod names;
pub(crate) mod replay;
pub(crate) mod route;
pub(crate) mod rov;
pub(crate) mod verify;

use anyhow::Result;

use crate::Outcome;
use crate::arguments::{Arguments, Verb};

/// Does what the command line says.
pub(crate) fn run(arguments: Arguments) -> Result<Outcome> {
    match arguments.verb {
        Verb::Info(options) => info::run(&options),
        Verb::Lookup(options) => lookup::run(options),
        Verb::Replay(options) => replay::run(options),
        Verb::Verify(options) => verify::run(options),
        Verb::Build(options) => build::run(&options),
        Verb::Gen(what) => generate::run(&what),
        Verb::Names(options) => names::run(options),
        Verb::Classify(options) => classify::run(options),
        Verb::Route(options) => route::run(&options),
        Verb::Rov(options) => rov::run(&options),
        Verb::Enrich(options) => enrich::run(&options),
        Verb::Devices(options) => devices::run(&options),
        Verb::Completions(options) => completions::run(&options),
    }
}
