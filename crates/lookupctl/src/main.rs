//! `lookupctl`: everything is in the library of the same name, where tests reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    lookupctl::main()
}
