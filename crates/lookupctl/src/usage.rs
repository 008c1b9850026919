//! The message for a wrong command line, in one line: the error, the possible values, and a hint to the help.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// The options by which verbs take tables.
const TABLES: [&str; 3] = ["fib", "table", "rules"];
/// The names of tables that verbs take without an option.
const ALONE: [&str; 4] = ["FIB", "TABLE", "RULES", "ROUTES"];

/// The message for a wrong command line. `None` if the error is help that was asked for, or help in place of
/// a missing verb.
pub(crate) fn line(error: &Error, command: &Command, words: &[String]) -> Option<String> {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => None,
        _ => {
            let said = joined(&error.render().to_string());
            let (verb, path) = verb(command, words);
            let said = match table_hint(error, verb) {
                // In the place of clap's tips, which know the word as a value or as another option.
                Some(hint) => {
                    let found = said.split_inclusive("' found").next().unwrap_or(&said);
                    format!("{found}; {}", joined(&hint))
                }
                None => said,
            };
            Some(format!("{said}; try '{path} --help'"))
        }
    }
}

/// Joins the lines of an error, without the usage and the hint at its end.
fn joined(said: &str) -> String {
    let mut line = String::new();
    let is_kept = |part: &&str| {
        !part.is_empty() && !part.starts_with("Usage: ") && !part.starts_with("For more information, try ")
    };
    let mut is_list = false;
    for part in said.lines().map(str::trim).filter(is_kept) {
        let (between, part) = match (part.strip_prefix("tip: "), part) {
            _ if line.is_empty() => ("", part.strip_prefix("error: ").unwrap_or(part)),
            (Some(tip), _) => ("; ", tip),
            (None, part) if is_list => (", ", part),
            (None, part) => (" ", part),
        };
        // After a colon each missing argument stands on its own line.
        is_list = is_list || line.ends_with(':');
        line.push_str(between);
        line.push_str(part);
    }
    line
}

/// How a verb takes a table, for who gave it in another verb's way.
fn table_hint(error: &Error, verb: &Command) -> Option<String> {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    // With some verbs --table is the number or the name of a table in a file.
    let files = verb.get_arguments().filter(|argument| {
        argument.get_value_names().and_then(|names| names.first()).is_some_and(|name| *name == "FILE")
    });
    let option = files.filter_map(|argument| argument.get_long()).find(|long| TABLES.contains(long));
    let is_option = word.strip_prefix("--").is_some_and(|name| TABLES.contains(&name));
    match (option, is_option) {
        (Some(option), true) => Some(format!("a table is given as --{option} FILE")),
        (Some(option), false) if !word.starts_with('-') => {
            Some(format!("a table is given as --{option} {word}"))
        }
        (None, true) => {
            let mut names = verb.get_positionals().filter_map(|argument| argument.get_value_names()?.first());
            let name = names.find(|name| ALONE.iter().any(|known| name.starts_with(known)))?;
            Some(format!("{name} is given without an option"))
        }
        _ => None,
    }
}

/// The verb that the words name, as far as they are valid, and its path.
fn verb<'c>(command: &'c Command, words: &[String]) -> (&'c Command, String) {
    let (mut at, mut path) = (command, command.get_name().to_owned());
    for word in words {
        let Some(next) = at.find_subcommand(word) else { break };
        path = format!("{path} {}", next.get_name());
        at = next;
    }
    (at, path)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::arguments::Arguments;

    fn said(words: &str) -> Option<String> {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let error =
            Arguments::try_parse_from(["lookupctl".to_owned()].iter().chain(&words)).expect_err("wrong");
        line(&error, &Arguments::command(), &words)
    }

    #[test]
    fn wrong_command_lines_are_one_line() {
        for (words, says) in [
            ("--x", "unexpected argument '--x' found; try 'lookupctl --help'"),
            (
                "inf",
                "unrecognized subcommand 'inf'; a similar subcommand exists: 'info'; try 'lookupctl --help'",
            ),
            (
                "classify lokup",
                "unrecognized subcommand 'lokup'; a similar subcommand exists: 'lookup'; try 'lookupctl classify --help'",
            ),
            (
                "build --fib a",
                "the following required arguments were not provided: --output <IMG>; try 'lookupctl build --help'",
            ),
            (
                "replay --image a --fib b",
                "the argument '--image <IMG>' cannot be used with '--fib <FILE>'; try 'lookupctl replay --help'",
            ),
            (
                "lookup --fib x --format zz",
                "invalid value 'zz' for '--format <FORMAT>' [possible values: plain, pfx2as, bgpdump, ip-route, \
                 ip-route-json, frr-json, csv, mmdb, aws, gcp, azure, oracle, cloudflare, delegated, ipset, nft-sets, mrt]; try 'lookupctl lookup --help'",
            ),
            (
                "replay --threads x",
                "invalid value 'x' for '--threads <N>': invalid digit found in string; try 'lookupctl replay --help'",
            ),
            (
                "names replay --bad\nUsage:",
                "unexpected argument '--bad Usage:' found; try 'lookupctl names replay --help'",
            ),
        ] {
            let line = said(words).expect(words);
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(line, says);
        }
        for words in ["--help", "--version", "names", "classify lookup --help"] {
            assert_eq!(said(words), None, "{words}");
        }
    }

    #[test]
    fn who_gives_a_table_in_another_verbs_way_is_told_this_ones() {
        for (words, hint) in [
            ("build a.csv", "a table is given as --fib a.csv"),
            ("replay a.csv", "a table is given as --fib a.csv"),
            ("replay --table a.csv", "a table is given as --fib FILE"),
            ("names verify a.txt", "a table is given as --table a.txt"),
            ("classify build a.txt", "a table is given as --rules a.txt"),
            ("info --fib a.csv", "FIB is given without an option"),
            ("names info --table a", "TABLE is given without an option"),
            ("classify info --rules a", "RULES|IMG is given without an option"),
            ("rov --vrps a --fib b", "ROUTES is given without an option"),
        ] {
            let line = said(words).expect(words);
            let (found, help) =
                line.split_once("; ").and_then(|(_, rest)| rest.split_once("; ")).expect(&line);
            assert_eq!(found, hint, "{line}");
            assert!(help.starts_with("try 'lookupctl "), "{line}");
        }
        assert_eq!(
            said("build a\nb").as_deref(),
            Some(
                "unexpected argument 'a b' found; a table is given as --fib a b; try 'lookupctl build --help'"
            )
        );
        for words in ["info --x a", "completions --fib", "completions bash zsh"] {
            let line = said(words).expect(words);
            assert!(!line.contains("is given"), "{line}");
        }
    }

    #[test]
    fn what_is_missing_is_a_list() {
        let said = "error: the following required arguments were not provided:\n  --a <A>\n  <B>\n\nUsage: x --a <A> <B>\n\nFor more information, try '--help'.\n";
        assert_eq!(joined(said), "the following required arguments were not provided: --a <A>, <B>");
    }
}
