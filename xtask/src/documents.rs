//! The commands of cargo that the documents name: each verb, option, bench, binary and example of theirs is
//! one that there is.

use std::collections::HashSet;
use std::path::Path;

use clap::Parser;

use crate::{Arguments, step};

const DOCUMENTS: [&str; 4] = ["README.md", "BENCHMARKS.md", "ENGINES.md", "CONTRIBUTING.md"];

/// The commands of a text: lines of blocks, and what stands between backquotes.
fn commands(text: &str) -> Vec<String> {
    let quoted = text.split('`').map(str::trim);
    let mut found: Vec<String> = quoted
        .flat_map(str::lines)
        .filter_map(|line| {
            line.strip_prefix("WIRESPEED_").and_then(|rest| Some(rest.split_once(' ')?.1)).or(Some(line))
        })
        .filter(|line| line.starts_with("cargo "))
        .map(|line| line.split(" #").next().unwrap_or_default().trim().to_owned())
        .collect();
    found.sort();
    found.dedup();
    found
}

/// What is wrong with a command, if anything is.
fn fault(command: &str, root: &Path) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    if words.get(1) == Some(&"xtask") {
        let arguments = ["cargo xtask"].into_iter().chain(words[2..].iter().copied());
        return Arguments::try_parse_from(arguments).err().map(|error| error.to_string());
    }
    let known: HashSet<&str> =
        ["run", "test", "bench", "doc", "install", "build", "deny", "clippy", "fmt"].into_iter().collect();
    if !known.contains(words[1]) {
        return Some(format!("cargo {} is not known here", words[1]));
    }
    let package = value_of(&words, &["-p", "--package"]);
    let folder = match package {
        None => root.join("crates/lookupctl"),
        Some("wirespeed-benches") => root.join("benches"),
        Some("wirespeed-fuzz-replay") => root.join("fuzz/replay"),
        Some("lookupctl") => root.join("crates/lookupctl"),
        Some("wirespeed") => root.join("crates/wirespeed"),
        Some(name) => root.join("crates").join(name.trim_start_matches("wirespeed-")),
    };
    let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else {
        return Some(format!("no package {package:?}"));
    };
    for (option, place) in
        [("--bin", "bin"), ("--bench", "bench"), ("--example", "examples"), ("--test", "tests")]
    {
        if let Some(name) = value_of(&words, &[option]) {
            let is_declared = manifest.contains(&format!("[[{place}]]\nname = \"{name}\""));
            let at = folder.join(place);
            let is_there = [at.join(format!("{name}.rs")), at.join(name).join("main.rs")]
                .iter()
                .any(|path| path.exists());
            if !is_declared && !is_there {
                return Some(format!("{option} {name} is not there"));
            }
        }
    }
    value_of(&words, &["--path"])
        .filter(|path| !root.join(path).exists())
        .map(|path| format!("no folder {path}"))
}

fn value_of<'a>(words: &[&'a str], options: &[&str]) -> Option<&'a str> {
    let at = words.iter().position(|word| options.contains(word))?;
    words.get(at + 1).copied()
}

#[test]
fn the_documents_name_commands_that_there_are() {
    let root = step::root();
    let mut count = 0;
    for document in DOCUMENTS {
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        for command in commands(&text) {
            assert_eq!(fault(&command, &root), None, "{document}: {command}");
            count += 1;
        }
    }
    assert!(count >= 20, "{count} commands found");
    assert!(
        fault("cargo xtask recrod", &root).is_some()
            && fault("cargo bench -p wirespeed-benches --bench none", &root).is_some()
    );
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    let root = step::root();
    for document in DOCUMENTS.iter().chain(&["DESIGN.md", "UNSAFE.md"]) {
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if !link.starts_with("http") && !link.starts_with('#') {
                assert!(root.join(link.split('#').next().unwrap_or_default()).exists(), "{document}: {link}");
            }
        }
    }
}
