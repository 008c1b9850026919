//! The command line of Wirespeed: `lookupctl VERB`.
//!
//! Results go to stdout, talk and progress bars to stderr. It ends with 0 when all is well, 1 on a mismatch
//! or where an address matches nothing, 2 on a wrong command line or bad input. One file per verb, in
//! `verbs`; what they share lies beside it.

/// Prints like std's macro. A stderr that nobody reads any more is no failure: std's panics there. Defined
/// before the modules, so that it is theirs.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod arguments;
mod busy;
mod check;
mod device;
mod engine;
mod family;
mod interrupt;
mod lines;
mod made;
mod memory;
mod number;
#[cfg(test)]
#[allow(clippy::unwrap_used)] // for tests alone
mod on_host;
mod output;
mod section;
mod several;
mod skipped;
mod source;
mod stdin;
mod strides;
mod tables;
mod threads;
mod trace;
mod verbs;
mod warnings;

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::Parser;

use arguments::Arguments;

/// How a verb ended that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All is well.
    Done,
    /// An engine is wrong, or an address matches nothing.
    Differs,
    /// Ctrl-C ended it before its time; what there was of it is told.
    Interrupted,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help is for `| head`, too: a pipe that closes early is no failure.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    warnings::print();
    match verbs::run(arguments) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Differs) => ExitCode::from(1),
        Ok(Outcome::Interrupted) => ExitCode::from(interrupt::STATUS),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lookupctl: {}", one_line(&error));
            ExitCode::from(if error.is::<interrupt::Interrupted>() { interrupt::STATUS } else { 2 })
        }
    }
}

/// Whether whoever read our output has had enough of it.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().filter_map(io_error).any(|io| io.kind() == ErrorKind::BrokenPipe)
}

/// What the operating system said, be it as it is or as the writers of tables pass it on.
fn io_error<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e std::io::Error> {
    use wirespeed::names::write::WriteError as NamesError;
    use wirespeed_classify::write::WriteError as RulesError;
    use wirespeed_fib::write::WriteError as RoutesError;
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

/// An error and its causes, without those that only repeat it.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    memory::as_asked(&line.replace('\n', " "))
}
