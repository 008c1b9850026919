//! The words of comments, of Markdown and of errors, as far as a machine can hold them to a rule:
//! `cargo xtask words` lists faults, and fails if there are any; `--wrap` wraps lines that are too long.
//!
//! - A doc begins with a noun or a verb, and stands alone. The first line of a doc doesn't begin with "The
//!   same", nor with a word of [`OPENINGS`]. There is no exception for good sentences that begin so ("For
//!   each octet it gives ..."): a test can't tell them from fragments, and each of them can begin with its
//!   verb. The doc of a public item, of a part of a public enum or trait, or of an option of a command line,
//!   doesn't begin with a word of [`QUESTIONS`] either.
//! - A line of comment has [`WIDTH`] characters at most. Code, drawings, tables and link definitions may be
//!   wider, and so may what has no blank to break at. Comments behind code on a line are left to who writes
//!   them.
//!
//! - A sentence of a doc or of Markdown has 40 words at most. The changelog has the words that it was written
//!   with.
//! - The text of an error begins with a small letter, and ends without a full stop.
//!
//! Comments of Rust only: the manifest of the kernels' PTX has hashes of their sources, with the comments in
//! them.

mod lines;
mod sentences;
mod wrap;

use anyhow::{Context, Result, ensure};
use clap::Args;

use self::lines::Block;
use crate::sources::{files, sources};
use crate::step;

/// Options of `cargo xtask words`.
#[derive(Args)]
pub(crate) struct Options {
    /// Wrap lines of comments that are too long
    #[arg(long)]
    wrap: bool,
}

/// First words of docs that are fragments.
const OPENINGS: [&str; 18] = [
    "As", "Of", "In", "On", "By", "With", "From", "For", "To", "At", "Into", "Without", "Within", "Under",
    "It", "That", "Those", "These",
];

/// First words of docs that are questions without an answer.
const QUESTIONS: [&str; 8] = ["What", "How", "Where", "Who", "Why", "Which", "When", "Whose"];

/// The most characters of a line of comment: rustfmt's `max_width`.
const WIDTH: usize = 110;

pub(crate) fn run(options: &Options) -> Result<()> {
    let root = step::root();
    let mut findings = Vec::new();
    for name in sources(&root)? {
        let path = root.join(&name);
        let mut text = std::fs::read_to_string(&path).with_context(|| name.clone())?;
        if options.wrap {
            let wrapped = wrap::wrapped(&text);
            if wrapped != text {
                std::fs::write(&path, &wrapped)?;
                println!("{name} wrapped");
                text = wrapped;
            }
        }
        findings.extend(faults(&text).into_iter().map(|(line, what)| format!("{name}:{line}: {what}")));
    }
    for name in files(&root, ".md")?.into_iter().filter(|name| name != "CHANGELOG.md") {
        let text = std::fs::read_to_string(root.join(&name)).with_context(|| name.clone())?;
        let block = Block { first: 0, indent: "", mark: "", lines: text.lines().collect() };
        findings.extend(long(&block).into_iter().map(|(line, what)| format!("{name}:{line}: {what}")));
    }
    for finding in &findings {
        println!("{finding}");
    }
    ensure!(findings.is_empty(), "{} places are not as CONTRIBUTING.md wants them", findings.len());
    Ok(())
}

/// What is wrong with the comments of a file, by line from 1.
fn faults(text: &str) -> Vec<(usize, String)> {
    let (mut faults, lines) = (Vec::new(), text.lines().collect::<Vec<_>>());
    let within = lines::within_public(&lines);
    for block in lines::blocks(text) {
        let is_shown = || within[block.first] || is_public(&lines[block.first + block.lines.len()..]);
        let opening =
            || opening(block.content(0)).or_else(|| question(block.content(0)).filter(|_| is_shown()));
        if let Some(opening) = block.is_doc().then(opening).flatten() {
            faults.push((block.first + 1, format!("a doc that begins with {opening:?}")));
        }
        for at in wrap::too_long(&block) {
            let length = block.lines[at].chars().count();
            faults.push((block.first + at + 1, format!("a comment of {length} characters")));
        }
        if block.is_doc() {
            faults.extend(long(&block));
        }
    }
    faults.extend(sentences::of_errors(text));
    faults
}

/// The sentences of a block that are too long, by line from 1.
fn long(block: &Block<'_>) -> Vec<(usize, String)> {
    let found = sentences::long(block).into_iter();
    found.map(|(at, words)| (block.first + at + 1, format!("a sentence of {words} words"))).collect()
}

/// The opening that a doc should not have, if it has one.
fn opening(doc: &str) -> Option<&'static str> {
    let mut words = doc.split_whitespace();
    let (first, second) = (words.next()?, words.next());
    let is_the_same = first == "The"
        && second.is_some_and(|second| second.trim_end_matches(['.', ',', ';', ':']) == "same");
    is_the_same.then_some("The same").or_else(|| OPENINGS.into_iter().find(|&opening| opening == first))
}

/// The question that a doc of a public item should not begin with, if it does.
fn question(doc: &str) -> Option<&'static str> {
    let first = doc.split_whitespace().next()?;
    QUESTIONS.into_iter().find(|&question| question == first)
}

/// Whether lines of code begin with a public item, or with an option of a command line. Attributes may stand
/// before it.
fn is_public(lines: &[&str]) -> bool {
    let mut is_inside = false;
    for line in lines.iter().map(|line| line.trim()) {
        if !is_inside && !line.starts_with("#[") {
            return line.starts_with("pub ");
        }
        if line.starts_with("#[arg") || line.starts_with("#[command") {
            return true;
        }
        is_inside = !line.ends_with(']');
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_found_where_readers_see_them() {
        for seen in
            ["pub fn f() {}", "#[must_use]\n#[error(\n    \"a\"\n)]\npub fn f() {}", "#[arg(long)]\na: u8,"]
        {
            for (doc, count) in [("What it is.", 1), ("Whatever it is.", 0), ("The place.", 0)] {
                assert_eq!(faults(&format!("/// {doc}\n{seen}\n")).len(), count, "{doc} {seen}");
            }
        }
        for (of, count) in
            [("pub enum E {", 1), ("enum E {", 0), ("pub trait T\nwhere\n    A: B,\n{", 1), ("trait T {", 0)]
        {
            let text = format!("{of}\n    /// What it is.\n    A,\n}}\n\n/// What it is.\nfn f() {{}}\n");
            assert_eq!(faults(&text).len(), count, "{of}");
        }
        for hidden in ["fn f() {}", "pub(crate) fn f() {}", "#[must_use]\nfn f() {}"] {
            assert!(faults(&format!("/// What it is.\n{hidden}\n")).is_empty(), "{hidden}");
        }
    }

    #[test]
    fn openings_are_found_where_docs_begin() {
        assert_eq!(opening("The same for names."), Some("The same"));
        assert_eq!(opening("Of a table."), Some("Of"));
        assert_eq!(opening("As many as there are."), Some("As"));
        for good in ["The sameness of all", "Often", "A table", "Assumes", "`In` a span", ""] {
            assert_eq!(opening(good), None, "{good}");
        }
        let text = "//! Of a file.\n\n/// A table.\n/// Of names.\nstruct A;\n// Of no doc.\n";
        assert_eq!(faults(text).len(), 1);
        assert_eq!(
            faults("fn f() {\n    /// As it was.\n    a: u8,\n").first().map(|fault| fault.0),
            Some(2)
        );
    }

    #[test]
    fn lines_that_are_too_long_are_found() {
        let long = format!("// {}\n", "word ".repeat(30).trim_end());
        assert_eq!(faults(&format!("fn f() {{}}\n{long}")).first().map(|fault| fault.0), Some(2));
        assert!(faults(&format!("const TEXT: &str = \"\n{long}\";\n")).is_empty(), "a string");
        assert!(
            faults(&format!("//! ```text\n//! {}\n//! ```\n", "word ".repeat(30))).is_empty(),
            "a drawing"
        );
        assert!(faults(&format!("// https://example.com/{}\n", "x".repeat(WIDTH))).is_empty(), "an address");
    }
}
