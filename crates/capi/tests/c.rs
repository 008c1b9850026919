//! Programs in C: the example, the one of the README, and one that is refused things. They are built against
//! the static library of this very build, and run under sanitizers where the compiler has them.
#![allow(clippy::unwrap_used)] // a test's helpers may panic like the test

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

// Makes cargo build the library, of which the programs use the static form.
use wirespeed_capi as _;

fn of_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The static library, beside this test's program.
fn library() -> PathBuf {
    let program = env::current_exe().unwrap();
    program.with_file_name("libwirespeed_capi.a")
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// The C compiler, and its flags for sanitizers if it has them. `None` if there is no compiler.
fn compiler(folder: &Path) -> Option<(String, &'static [&'static str])> {
    const SANITIZERS: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let (source, program) = (folder.join("empty.c"), folder.join("empty"));
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    [SANITIZERS, &[]].into_iter().find_map(|flags| {
        let mut build = Command::new(&compiler);
        build.args(flags).arg(&source).arg("-o").arg(&program);
        let works = succeeds(&mut build).and_then(|()| succeeds(&mut Command::new(&program)));
        works.is_ok().then(|| (compiler.clone(), flags))
    })
}

/// Builds a program, and runs it with arguments.
fn run(source: &Path, arguments: &[&Path]) {
    let folder = tempfile::tempdir().unwrap();
    let Some((compiler, sanitizers)) = compiler(folder.path()) else {
        eprintln!("skipped: no C compiler");
        return;
    };
    if sanitizers.is_empty() {
        eprintln!("skipped: the C compiler has no sanitizers; the program runs without");
    }
    let program = folder.path().join("program");
    let mut build = Command::new(compiler);
    build.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"]);
    build.args(sanitizers).arg("-I").arg(of_crate("include")).arg(source).arg(library());
    build.args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&program);
    succeeds(&mut build).unwrap();
    succeeds(Command::new(&program).args(arguments)).unwrap();
}

#[test]
fn the_example_gets_right_answers() {
    let folder = tempfile::tempdir().unwrap();
    run(&of_crate("examples/lookup.c"), &[folder.path()]);
}

#[test]
fn wrong_calls_are_refused() {
    run(&of_crate("tests/refusals.c"), &[]);
}

#[test]
fn the_readme_works() {
    let readme = fs::read_to_string(of_crate("README.md")).unwrap();
    let (_, rest) = readme.split_once("```c\n").unwrap();
    let (program, _) = rest.split_once("```").unwrap();
    assert!(program.contains("/* 7 8 0 */"), "the answers beside the print");
    // The answers that the comment tells are checked, in place of being printed alone.
    let checked = program.replace(
        "    ws_reader_free(reader);",
        "    if (next_hops[0] != 7 || next_hops[1] != 8 || next_hops[2] != 0) return 3;\n    ws_reader_free(reader);",
    );
    assert_ne!(checked, program);
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("readme.c");
    fs::write(&source, checked).unwrap();
    run(&source, &[]);
}
