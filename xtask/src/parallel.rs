//! `parallel`: how much of the code says the same of addresses, names and rules.
//!
//! Files that do one job in each domain are a set. Words of the domain are replaced by one word, and
//! comments, imports and lines without a word are left out. Each file after the first is compared with the
//! file before it that it is most like: the lines are counted that are equal, in order.

use std::path::Path;

use anyhow::{Context, Result};

use crate::step;

/// Files of one job, the part of the path that they share first.
const SETS: &[(&str, &[&str])] = &[
    ("crates/wirespeed/src", &["builder.rs", "names/builder.rs", "classify/builder.rs"]),
    ("crates/wirespeed/src", &["image_file.rs", "names/image_file.rs", "classify/image_file.rs"]),
    ("crates/wirespeed/src", &["reader.rs", "names/reader.rs", "classify/reader.rs"]),
    ("crates/wirespeed/src", &["route_list.rs", "names/entry_list.rs"]),
    ("crates/wirespeed/src", &["table.rs", "names/table.rs", "classify/classifier.rs"]),
    ("crates/wirespeed/src", &["replace.rs", "names/replace.rs", "classify/replace.rs"]),
    ("crates/lookupctl/src/verbs", &["build.rs", "names/build.rs", "classify/build.rs"]),
    ("crates/lookupctl/src/verbs", &["info/mod.rs", "names/info.rs", "classify/info/mod.rs"]),
    ("crates/lookupctl/src/verbs", &["lookup/tables.rs", "names/lookup.rs", "classify/lookup/mod.rs"]),
    ("crates/lookupctl/src/verbs", &["replay/mod.rs", "names/replay.rs", "classify/replay.rs"]),
    ("crates/lookupctl/src/verbs", &["verify/mod.rs", "names/verify/mod.rs", "classify/verify/mod.rs"]),
    ("crates/lookupctl/src/verbs", &["verify/truth.rs", "names/verify/truth.rs", "classify/verify/truth.rs"]),
    ("crates/lookupctl/src/verbs", &["generate.rs", "names/generate.rs", "classify/generate.rs"]),
    ("crates/gpu/src", &["ip/remote.rs", "names/remote.rs", "classify/remote.rs"]),
    ("crates/gpu/src", &["ip/in_place.rs", "names/in_place.rs", "classify/in_place.rs"]),
    ("crates/gpu/src", &["ip/keys.rs", "names/form.rs", "classify/form.rs"]),
    ("crates/gpu/tests/on_device", &["ip.rs", "names/follow.rs", "classify/follow.rs"]),
    ("crates/gpu/tests/on_device", &["conformance.rs", "names/engines.rs", "classify/engines.rs"]),
    ("crates", &["fib/src/domain.rs", "namelookup/src/domain.rs", "classify/src/domain.rs"]),
    ("crates", &["fib/src/oracle.rs", "namelookup/src/oracle.rs", "classify/src/oracle.rs"]),
    ("crates", &["fib/src/read/table.rs", "namelookup/src/read/table.rs", "classify/src/read/mod.rs"]),
    (
        "crates",
        &["fib/src/read/updates.rs", "namelookup/src/read/updates.rs", "classify/src/read/updates.rs"],
    ),
    (
        "crates",
        &[
            "fib/src/conformance/mod.rs",
            "namelookup/src/conformance/mod.rs",
            "classify/src/conformance/mod.rs",
        ],
    ),
    (
        "crates",
        &[
            "fib/src/conformance/refusals.rs",
            "namelookup/src/conformance/refusals.rs",
            "classify/src/conformance/refusals.rs",
        ],
    ),
    ("crates", &["namelookup/src/conformance/history.rs", "classify/src/conformance/history.rs"]),
    ("crates", &["namelookup/src/conformance/live.rs", "classify/src/conformance/live.rs"]),
    ("crates", &["namelookup/src/conformance/hostile.rs", "classify/src/conformance/hostile.rs"]),
    (
        "crates",
        &["fib/src/synth/updates.rs", "namelookup/src/generate/churn.rs", "classify/src/generate/churn.rs"],
    ),
    ("crates", &["fib/src/read/format.rs", "namelookup/src/read/format.rs", "classify/src/read/format.rs"]),
    ("crates", &["namelookup/src/conformance/probes.rs", "classify/src/conformance/probes.rs"]),
    ("crates", &["namelookup/src/conformance/real.rs", "classify/src/conformance/real.rs"]),
    ("benches/src", &["engines.rs", "names/lineup.rs", "classify/lineup.rs"]),
    ("benches/src", &["beside.rs", "names/update.rs", "classify/update.rs"]),
    ("benches/src", &["contest.rs", "names/contest.rs", "classify/contest.rs"]),
    ("benches/src", &["data.rs", "names/data.rs", "classify/data.rs"]),
    ("crates/capi/src", &["table.rs", "names.rs", "rules.rs"]),
    ("integrations/python/src", &["table.rs", "names.rs", "rules.rs"]),
];

/// Words of one domain that another has its own for, in the form that lines are compared in.
const WORDS: &[(&str, &str)] = &[
    ("ruleset", "model"),
    ("nametable", "model"),
    ("namerib", "model"),
    ("rib", "model"),
    ("addresses", "keys"),
    ("address", "key"),
    ("names", "keys"),
    ("name", "key"),
    ("tuples", "keys"),
    ("tuple", "key"),
    ("next_hops", "results"),
    ("next_hop", "result"),
    ("numbers", "results"),
    ("number", "result"),
    ("routes", "entries"),
    ("rules", "entries"),
    ("rule", "entry"),
    ("prefixes", "entries"),
    ("prefix", "entry"),
];

/// Counts, and tells the sets with the most.
pub(crate) fn run() -> Result<()> {
    let mut counts = counts()?;
    counts.sort_unstable();
    for (equal, lines, file) in counts.iter().rev().filter(|(equal, ..)| *equal > 0) {
        println!("{equal:5} of {lines:5}  {file} and those like it");
    }
    let sum = |of: fn(&(usize, usize, String)) -> usize| counts.iter().map(of).sum::<usize>();
    println!(
        "{:5} of {:5}  lines of code in {} sets",
        sum(|count| count.0),
        sum(|count| count.1),
        SETS.len()
    );
    Ok(())
}

/// The equal lines of all sets.
pub(crate) fn equal() -> Result<usize> {
    Ok(counts()?.iter().map(|(equal, ..)| equal).sum())
}

/// Equal lines and all lines of each set, and its first file.
fn counts() -> Result<Vec<(usize, usize, String)>> {
    let root = step::root();
    let of = |(under, files): &(&str, &[&str])| {
        let (equal, lines) = of_set(&root.join(under), files)?;
        Ok((equal, lines, format!("{under}/{}", files[0])))
    };
    SETS.iter().map(of).collect()
}

/// Lines of a set that are equal to lines of a file before theirs, and all its lines.
fn of_set(under: &Path, files: &[&str]) -> Result<(usize, usize)> {
    let (mut before, mut equal, mut all): (Vec<Vec<String>>, _, _) = (Vec::new(), 0, 0);
    for file in files {
        let path = under.join(file);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let lines = lines_of(&text);
        all += lines.len();
        equal += before.iter().map(|other| in_common(other, &lines)).max().unwrap_or(0);
        before.push(lines);
    }
    Ok((equal, all))
}

/// The lines of code of a file, in the words that all domains share.
fn lines_of(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_import = false;
    for line in text.lines().map(str::trim) {
        is_import |= line.starts_with("use ") || line.starts_with("pub use ");
        let is_code = !is_import && !line.starts_with("//") && line.chars().any(char::is_alphabetic);
        if is_code {
            lines.push(in_shared_words(line));
        }
        is_import &= !line.ends_with(';');
    }
    lines
}

fn in_shared_words(line: &str) -> String {
    let line = line.to_lowercase();
    WORDS.iter().fold(line, |line, (word, shared)| line.replace(word, shared))
}

/// How many lines two files have in common, in order: the longest common subsequence.
fn in_common(one: &[String], other: &[String]) -> usize {
    let mut row = vec![0; other.len() + 1];
    for line in one {
        let mut above_left = 0;
        for (at, compared) in other.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if line == compared { above_left + 1 } else { above.max(row[at]) };
            above_left = above;
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The equal lines that there are: signatures of the bindings for Python and C, and options of the
    /// command line, are most of them. A merge lowers the number; new code that says the same once more does
    /// not raise it.
    const MOST: usize = 923;

    #[test]
    fn no_more_lines_say_the_same_than_are_known() {
        let equal = equal().unwrap();
        assert!(equal <= MOST, "{equal} lines are equal, {MOST} at most: cargo xtask parallel tells where");
        assert!(equal > MOST - 20, "{equal} lines are equal: lower MOST, so that it stays so");
    }

    #[test]
    fn lines_are_compared_without_the_words_of_a_domain() {
        let routes =
            "use a::{\n    b,\n};\n\n/// Adds.\nfn add(prefix: &Prefix) {\n    rib.insert(prefix);\n}\n";
        let rules = "fn add(rule: &Rule) {\n    other();\n    rules.insert(rule);\n}\n";
        assert_eq!(lines_of(routes), ["fn add(entry: &entry) {", "model.insert(entry);"]);
        assert_eq!(in_common(&lines_of(routes), &lines_of(rules)), 1);
        assert_eq!(in_common(&lines_of(rules), &lines_of(rules)), 3);
    }
}
