//! The command line of Wirespeed: `lookupctl VERB`.
//!
//! Results go to stdout, messages and progress bars to stderr. The exit status is 0 for success, 1 for a
//! mismatch or an address without a match, 2 for a wrong command line or bad input. Each verb has one file in
//! `verbs`; shared code lies beside it.

/// Prints like std's macro, with control characters escaped. It is defined before the modules, so that they
/// use it.
macro_rules! eprintln {
    ($($text:tt)*) => { wirespeed_commands::tell!($($text)*) };
}

mod arguments;
mod check;
mod device;
mod engine;
mod family;
mod followed;
mod interrupt;
mod lines;
mod made;
mod memory;
mod merged;
mod mmdb;
mod number;
#[cfg(test)]
#[allow(clippy::unwrap_used)] // for tests alone
mod on_host;
mod output;
mod section;
mod several;
mod skipped;
mod source;
mod strides;
mod tables;
mod threads;
mod trace;
mod usage;
mod verbs;
mod warnings;

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use arguments::Arguments;
use wirespeed_commands::one_line::one_line;
use wirespeed_commands::{busy, escaped, refuse, stdin};

/// The result of a verb that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Success.
    Done,
    /// An engine is wrong, or an address matches nothing.
    Differs,
    /// A signal ended the verb early. The results so far are printed.
    Interrupted,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let words: Vec<String> =
                std::env::args_os().skip(1).map(|word| word.to_string_lossy().into()).collect();
            if let Some(line) = usage::line(&error, &Arguments::command(), &words) {
                eprintln!("lookupctl: {line}");
                return ExitCode::from(2);
            }
            // Help may go to `| head`: a pipe that closes early is no failure.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    warnings::print();
    match verbs::run(arguments) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Differs) => ExitCode::from(1),
        Ok(Outcome::Interrupted) => ExitCode::from(interrupt::status()),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lookupctl: {}", memory::as_asked(&one_line(&error)));
            ExitCode::from(if error.is::<interrupt::Interrupted>() { interrupt::status() } else { 2 })
        }
    }
}

/// Whether the reader of the output closed the pipe.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().filter_map(io_error).any(|io| io.kind() == ErrorKind::BrokenPipe)
}

/// The error of the operating system, directly or inside an error of a table's writer.
fn io_error<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e std::io::Error> {
    use wirespeed::names::write::WriteError as NamesError;
    use wirespeed_classify::write::WriteError as RulesError;
    use wirespeed_fib::write::WriteError as RoutesError;
    if let Some(wirespeed::Error::Image { cause: wirespeed::image::ImageError::Io(io), .. }) =
        cause.downcast_ref()
    {
        return Some(io);
    }
    if let Some(RoutesError::Io(io)) = cause.downcast_ref() {
        return Some(io);
    }
    if let Some(NamesError::Io(io)) = cause.downcast_ref() {
        return Some(io);
    }
    if let Some(RulesError::Io(io)) = cause.downcast_ref() {
        return Some(io);
    }
    cause.downcast_ref()
}
