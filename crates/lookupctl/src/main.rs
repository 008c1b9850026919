//! `lookupctl`: all code is in the library of this name, so that tests can reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    lookupctl::main()
}
