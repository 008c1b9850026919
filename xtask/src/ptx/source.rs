//! The sources of the kernels: which modules there are, and what each of them is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A module's own source and every header that it includes, however deep: name in `kernels`, text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sources {
    /// The `.cu`.
    pub(super) own: String,
    pub(super) texts: BTreeMap<String, String>,
}

impl Sources {
    /// Reads a module. The compiler gets these headers and no others, so that one that is missed here fails
    /// the build rather than going unwatched.
    pub(super) fn read(kernels: &Path, module: &str) -> Result<Self> {
        let own = format!("{module}.cu");
        let mut texts = BTreeMap::new();
        let mut to_read = vec![(own.clone(), "the list of modules".to_owned())];
        while let Some((name, includer)) = to_read.pop() {
            if texts.contains_key(&name) {
                continue;
            }
            let text = fs::read_to_string(kernels.join(&name))
                .with_context(|| format!("kernels/{name}, which {includer} asks for"))?;
            to_read.extend(includes(&text).map(|include| (include.to_owned(), name.clone())));
            texts.insert(name, text);
        }
        Ok(Self { own, texts })
    }

    /// The headers, sorted by name.
    pub(super) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts
            .iter()
            .filter(|(name, _)| **name != self.own)
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The text of the `.cu`.
    pub(super) fn own_text(&self) -> &str {
        self.texts.get(&self.own).map_or("", String::as_str)
    }
}

/// The folder of examples with kernels of their own, from `kernels/ptx` on: their PTX lies beside them.
const EXAMPLES: &str = "../../crates/wirespeed/examples";

/// A module's name, where its source is, and where its PTX belongs.
pub(super) struct Place {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    /// Where its PTX belongs, from `kernels/ptx` on.
    pub(super) ptx: String,
}

/// The modules of the kernels' crate, and those of examples.
pub(super) fn places(kernels: &Path) -> Result<Vec<Place>> {
    let examples = kernels.join("ptx").join(EXAMPLES);
    let of = |folder: &Path, name: String, before: &str| Place {
        ptx: format!("{before}{name}.ptx"),
        folder: folder.to_owned(),
        name,
    };
    let own = modules(kernels)?.into_iter().map(|name| of(kernels, name, ""));
    let beside = modules(&examples)?.into_iter();
    let beside = beside.map(|name| of(&examples, name, &format!("{EXAMPLES}/")));
    Ok(own.chain(beside).collect())
}

/// The modules that have a source.
pub(super) fn modules(kernels: &Path) -> Result<BTreeSet<String>> {
    names(kernels, "cu")
}

/// The files of a folder with this ending, without it.
pub(super) fn names(folder: &Path, ending: &str) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).with_context(|| format!("can't list {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == ending)
            && let Some(name) = path.file_stem().and_then(|name| name.to_str())
        {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

/// The modules that `kernels/src/lib.rs` embeds: the names in its `modules![…]`.
pub(super) fn embedded(kernels: &Path) -> Result<BTreeSet<String>> {
    let text = fs::read_to_string(kernels.join("src/lib.rs")).context("can't read kernels/src/lib.rs")?;
    listed(&text).context("kernels/src/lib.rs has no list `modules![…]`")
}

fn listed(text: &str) -> Option<BTreeSet<String>> {
    let list = text.split_once("\nmodules![")?.1.split_once(']')?.0;
    // Between quotes is every second part.
    // An item begins with its name. The feature that it needs is behind it.
    let names = list.split(',').filter_map(|line| line.split('"').nth(1));
    Some(names.map(str::to_owned).collect())
}

/// What a text includes by `#include "NAME"`. Conditions are not looked at: a header too many is watched for
/// nothing, which is harmless. Those in angle brackets are the compiler's own.
fn includes(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let directive = line.trim_start().strip_prefix('#')?.trim_start();
        let name = directive.strip_prefix("include")?.trim_start().strip_prefix('"')?;
        name.split_once('"').map(|(name, _)| name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn includes_are_those_of_directives() {
        let text = "#include \"a.cuh\"\n  # include  \"b.cuh\" // why\n#include <cstdint>\n// #include \"c.cuh\"\n\
                    #define X \"d.cuh\"\nf(\"#include\");\n#include \"unended\n";
        assert_eq!(includes(text).collect::<Vec<_>>(), ["a.cuh", "b.cuh"]);
    }

    #[test]
    fn a_module_has_all_headers_below_it_once_and_sorted() {
        let folder = folder(&[
            ("m.cu", "#include \"b.cuh\"\n#include \"a.cuh\"\n"),
            ("b.cuh", "#include \"c.cuh\"\n"),
            ("a.cuh", "#include \"c.cuh\"\n"),
            // In a circle: `#pragma once` makes that valid.
            ("c.cuh", "#pragma once\n#include \"b.cuh\"\n"),
            ("unused.cuh", ""),
        ]);
        let sources = Sources::read(folder.path(), "m").unwrap();
        assert_eq!(sources.headers().map(|(name, _)| name).collect::<Vec<_>>(), ["a.cuh", "b.cuh", "c.cuh"]);
        assert!(sources.own_text().starts_with("#include \"b.cuh\""));
        assert_eq!(modules(folder.path()).unwrap(), BTreeSet::from(["m".to_owned()]));
    }

    #[test]
    fn a_header_that_is_not_there_is_named_with_its_includer() {
        let folder = folder(&[("m.cu", "#include \"a.cuh\"\n"), ("a.cuh", "#include \"gone.cuh\"\n")]);
        let said = Sources::read(folder.path(), "m").unwrap_err().to_string();
        assert!(said.contains("gone.cuh") && said.contains("a.cuh"), "{said}");
    }

    #[test]
    fn the_list_of_modules_is_read_as_the_macro_takes_it() {
        let text = "macro_rules! modules {\n(x) => {};\n}\n\nmodules![\"a\",\n    \"b_c\" if \"papers\", // why\n];\n";
        assert_eq!(listed(text).unwrap(), BTreeSet::from(["a".to_owned(), "b_c".to_owned()]));
        assert_eq!(listed("nothing"), None);
    }
}
