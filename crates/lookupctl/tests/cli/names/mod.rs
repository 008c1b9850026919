//! `names`: the verbs for tables of names.

mod bad_input;
mod build;
mod generate;
mod info;
mod inputs;
mod lists;
mod lookup;
mod replay;
mod tables;
mod verify;

use crate::common::Folder;

/// A small table.
const TABLE: &str = "\
# name, result
/com core-1
/com/parc core-2
/com/parc/www core-3
/com/ab core-1
/org/example core-2
";

/// Updates of it.
const UPDATES: &str = "\
A /com/parc core-9
W /com/parc/www
A /net core-1
W /com
";

/// A list without results.
const DOMAINS: &str = "\
# blocked
*.tracker.example
News.Example
ads.news.example
";

/// A folder with these files: `table`, `updates`, `domains`.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("table", TABLE);
    folder.write("updates", UPDATES);
    folder.write("domains", DOMAINS);
    folder
}

#[test]
fn help_teaches_by_example() {
    let folder = folder();
    assert!(folder.run("--help").ok().stdout.contains("lookupctl names "));
    assert!(folder.run("names --help").ok().stdout.contains("  lookupctl names replay "));
    for verb in ["info", "lookup", "replay", "verify", "build", "gen"] {
        let help = folder.run(&format!("names {verb} --help")).ok().stdout;
        assert!(
            help.contains("Examples:\n") && help.contains(&format!("  lookupctl names {verb}")),
            "{verb}: {help}"
        );
    }
    folder.run("names").status(2);
    folder.run("names route").status(2);
}
