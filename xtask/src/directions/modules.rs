//! The modules of a crate: which file each is, and what each imports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

use super::Graph;
use super::imports::{Import, imports};
use crate::sources::sources;

/// A module's path from the root of its crate.
type ModulePath = Vec<String>;

/// The modules of a crate by their paths.
struct Modules(BTreeMap<ModulePath, Module>);

struct Module {
    file: String,
    imports: Vec<Import>,
}

impl Modules {
    /// Reads the modules beneath a folder `src`, whose files are among those named from `root` on.
    fn read(root: &Path, files: &[String], src: &str) -> Result<Self> {
        let mut modules = BTreeMap::new();
        for file in files {
            let Ok(beneath) = Path::new(file).strip_prefix(src) else { continue };
            let module = path_of(beneath);
            // Programs of their own, and whole files behind `cfg(test)`.
            if module.first().is_some_and(|part| part == "bin") || module.iter().any(|part| part == "tests") {
                continue;
            }
            let text = std::fs::read_to_string(root.join(file)).with_context(|| file.clone())?;
            modules.insert(module, Module { file: file.clone(), imports: imports(&text) });
        }
        Ok(Self(modules))
    }

    /// Which file imports from which.
    fn graph(&self) -> Graph {
        let of = |(path, module): (&ModulePath, &Module)| {
            let shown = |import: &&Import| !import.is_public;
            let from = module.imports.iter().filter(shown).filter_map(|import| self.origin(path, import, 0));
            (module.file.clone(), from.filter(|file| *file != module.file).collect())
        };
        self.0.iter().map(of).collect()
    }

    /// The file that what is imported is defined in; `None` where that is another crate.
    fn origin(&self, from: &[String], import: &Import, depth: u32) -> Option<String> {
        /// Ways through `pub use`, past which there is a circle of them.
        const DEEPEST: u32 = 16;
        let mut module: ModulePath = match import.path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" => from.to_vec(),
            "super" => from.split_last()?.1.to_vec(),
            child => {
                let beneath: ModulePath = from.iter().cloned().chain([child.to_owned()]).collect();
                self.0.contains_key(&beneath).then_some(())?;
                beneath
            }
        };
        let mut rest = &import.path[1..];
        while let Some((part, others)) = rest.split_first() {
            let beneath: ModulePath = module.iter().cloned().chain([part.clone()]).collect();
            if part == "super" {
                module.pop()?;
            } else if part != "self" && self.0.contains_key(&beneath) {
                module = beneath;
            } else if part != "self" {
                break;
            }
            rest = others;
        }
        let found = self.0.get(&module)?;
        // A module that shows what another defines is only on the way.
        if let Some(item) = rest.first().filter(|_| depth < DEEPEST) {
            let shows = |other: &&Import| other.is_public && other.name() == Some(item);
            if let Some(shown) = found.imports.iter().find(shows) {
                return self.origin(&module, shown, depth + 1);
            }
        }
        Some(found.file.clone())
    }
}

/// The path of a module whose file is here beneath `src`.
fn path_of(file: &Path) -> ModulePath {
    let mut parts: ModulePath =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

/// What the files of a checkout import, crate by crate: a crate's files lie in a folder `src`.
pub(super) fn graph_of(root: &Path) -> Result<Graph> {
    let files = sources(root)?;
    let src = |file: &String| Some(format!("{}src", file.split_once("src/")?.0));
    let crates: BTreeSet<String> = files.iter().filter_map(src).collect();
    let mut graph = Graph::new();
    for src in crates {
        graph.extend(Modules::read(root, &files, &src)?.graph());
    }
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_leads_to_where_it_is_defined() {
        let folder = tempfile::tempdir().unwrap();
        let src = folder.path().join("src");
        std::fs::create_dir_all(src.join("rows")).unwrap();
        for (name, text) in [
            ("lib.rs", "mod rows;\nmod cells;\npub use rows::Row;\n"),
            ("rows/mod.rs", "mod row;\npub use row::Row;\npub use std::fmt::Write;\npub struct Count;\n"),
            ("rows/row.rs", "use super::Count;\nuse std::fmt;\npub struct Row;\n"),
            (
                "cells.rs",
                "use crate::Row;\nuse crate::rows::{Count, Row as Other, Write};\n#[cfg(test)]\nmod tests {\n    use crate::rows::*;\n}\n",
            ),
        ] {
            std::fs::write(src.join(name), text).unwrap();
        }
        let graph = graph_of(folder.path()).unwrap();
        let files =
            |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| format!("src/{name}")).collect() };
        assert_eq!(graph["src/lib.rs"], files(&[]));
        assert_eq!(graph["src/rows/mod.rs"], files(&[]));
        assert_eq!(graph["src/rows/row.rs"], files(&["rows/mod.rs"]));
        assert_eq!(graph["src/cells.rs"], files(&["rows/row.rs", "rows/mod.rs"]));
    }
}
