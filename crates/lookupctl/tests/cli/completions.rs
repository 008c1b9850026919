//! `completions`, and help.

use std::process::{Command, Stdio};

use crate::common::Folder;

#[test]
fn a_script_for_each_shell() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.run(&format!("completions {shell}")).ok().stdout;
        assert!(script.contains("exhaustive") && script.contains("replay"), "{shell}");
    }
    folder.run("completions tcsh").status(2);
}

#[test]
fn help_teaches_by_example() {
    let folder = Folder::new();
    assert!(folder.run("--help").ok().stdout.contains("lookupctl replay  "));
    for verb in
        ["info", "lookup", "replay", "verify", "build", "gen", "route", "enrich", "devices", "completions"]
    {
        let help = folder.run(&format!("{verb} --help")).ok().stdout;
        assert!(
            help.contains("Examples:\n") && help.contains(&format!("  lookupctl {verb}")),
            "{verb}: {help}"
        );
    }
    folder.run("").status(2);
    folder.run("forward").status(2);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = Folder::new();
    let addresses = "10.1.2.3\n".repeat(200_000);
    let path = folder.write("addresses", &addresses);
    folder.write("names", "/com 1\n/com/parc 2\n");
    for arguments in [
        &["lookup", "--fib", "v4"][..],
        &["lookup", "--fib", "v4", "--json"],
        &["names", "lookup", "--table", "names"],
        &["info", "both"],
        &["verify", "--fib", "v4", "--engine", "fold"],
        &["replay", "--fib", "v4", "--count", "100", "--seconds", "0.01"],
        &["build", "--fib", "v4", "-o", "x.img"],
        &["gen", "fib", "--count", "20000"],
        &["gen", "fib", "--count", "20000", "--to", "mrt"],
        &["gen", "trace", "--fib", "v4", "--count", "200000"],
        &["gen", "trace", "--fib", "v4", "--count", "200000", "--to", "bin"],
        &["gen", "updates", "--fib", "v4", "--count", "100000"],
        &["names", "info", "names", "--engine", "acta"],
        &["names", "verify", "--table", "names", "--engine", "acta"],
        &["names", "build", "--table", "names", "-o", "y.img"],
        &["names", "replay", "--table", "names", "--count", "100", "--seconds", "0.01"],
        &["names", "gen", "names", "--count", "20000"],
        &["names", "gen", "trace", "--table", "names", "--count", "100000"],
        &["names", "gen", "updates", "--table", "names", "--count", "100000"],
        &["enrich", "--table", "a=v4", "--address", "10.1.2.3", "addresses"],
        &["devices"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lookupctl"))
            .args(arguments)
            .current_dir(folder.path(""))
            .stdin(std::fs::File::open(&path).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("lookupctl: "), "{arguments:?}: {stderr}");
    }
}

#[test]
fn nobody_has_to_read_what_is_said_beside_the_results() {
    let folder = Folder::new();
    for arguments in [
        &["lookup", "--fib", "v4", "10.1.2.3"][..],
        &["replay", "--fib", "v4", "--count", "100", "--seconds", "0.01"],
        &["verify", "--fib", "v4", "--engine", "fold"],
        &["build", "--fib", "v4", "-o", "x.img"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lookupctl"))
            .args(arguments)
            .current_dir(folder.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stderr.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && !output.stdout.is_empty(), "{arguments:?}: {output:?}");
    }
}
