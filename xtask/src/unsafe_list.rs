//! `UNSAFE.md`: every file that allows `unsafe`, with what it holds, written from the code:
//! `cargo xtask unsafe` writes it, and a test fails where the page and the code disagree.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::sources::sources;
use crate::step;

/// Options of `cargo xtask unsafe`.
#[derive(Args)]
pub(crate) struct Options {
    /// Compare only
    #[arg(long)]
    check: bool,
}

const HEAD: &str = "# Unsafe code

Unsafe code is denied in the whole workspace (`unsafe_code = \"deny\"` in `Cargo.toml`) and allowed in the files below only. Each block
says beside it why it is sound. `cargo xtask unsafe` writes this page from the code, and a test compares them.
";

pub(crate) fn run(options: &Options) -> Result<()> {
    let root = step::root();
    let (path, page) = (root.join("UNSAFE.md"), page(&root)?);
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    if options.check && old != page {
        bail!("UNSAFE.md is not what the code says: run `cargo xtask unsafe`");
    }
    if old != page {
        std::fs::write(&path, page)?;
        println!("UNSAFE.md written");
    }
    Ok(())
}

/// A file that allows unsafe code.
struct Allowed {
    path: String,
    uses: usize,
    holds: String,
}

/// The page as the code has it.
fn page(root: &Path) -> Result<String> {
    let (mut shipped, mut tests) = (Vec::new(), Vec::new());
    for path in sources(root)? {
        let text = std::fs::read_to_string(root.join(&path)).with_context(|| path.clone())?;
        let uses = text.lines().filter(|line| is_use(line)).count();
        if uses == 0 {
            continue;
        }
        ensure!(text.starts_with("//!"), "{path} has unsafe code, and does not begin with what it holds");
        let is_test =
            ["/tests/", "/tests.rs", "/conformance/", "/examples/"].iter().any(|part| path.contains(part));
        let is_apart =
            path.starts_with("benches/") || path.starts_with("xtask/") || path.starts_with("kernels/host/");
        let of = if is_test || is_apart { &mut tests } else { &mut shipped };
        of.push(Allowed { holds: first_sentence(&text), path, uses });
    }
    let mut page = HEAD.to_owned();
    for (title, files) in
        [("In what users depend on", shipped), ("In tests, examples, benches and tools", tests)]
    {
        write!(page, "\n## {title}\n\n| file | uses | what it holds |\n|---|---|---|\n")?;
        for Allowed { path, uses, holds } in files {
            writeln!(page, "| `{path}` | {uses} | {holds} |")?;
        }
    }
    Ok(page)
}

/// Whether a line has a block, a function or an implementation that is unsafe.
fn is_use(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let code_has = |what: &str| code.contains(&format!("unsafe {what}"));
    ["{", "fn ", "impl", "extern"].into_iter().any(code_has)
}

/// What the head of a file says first, in one line.
fn first_sentence(text: &str) -> String {
    let head: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let head = head.split(|line| line.is_empty()).next().unwrap_or_default().join(" ");
    let end = head.find(". ").map_or(head.len(), |at| at + 1);
    head[..end].replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_what_the_code_has() {
        run(&Options { check: true }).unwrap();
    }

    #[test]
    fn uses_and_sentences() {
        let block = concat!("    let x = unsafe", " { y };");
        assert!(is_use(block) && !is_use(&format!("// {block}")) && !is_use("#![allow(unsafe_code)]"));
        assert_eq!(first_sentence("//! Gathers. More of it.\n//!\n//! Else."), "Gathers.");
        assert_eq!(first_sentence("//! Reads\n//! two lines"), "Reads two lines");
    }
}
