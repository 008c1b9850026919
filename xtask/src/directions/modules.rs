//! The modules of a crate: which file each is, and what each imports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

use super::Graph;
use super::imports::{Import, imports};

/// A module's path from the root of its crate.
type ModulePath = Vec<String>;

/// The modules of a crate by their paths.
pub(super) struct Modules(BTreeMap<ModulePath, Module>);

struct Module {
    file: String,
    imports: Vec<Import>,
}

impl Modules {
    /// Reads the modules beneath a folder `src`, whose files are named from `root` on.
    pub(super) fn read(root: &Path, src: &Path) -> Result<Self> {
        let (mut modules, mut folders) = (BTreeMap::new(), vec![src.to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
                let path = entry?.path();
                if path.is_dir() {
                    // Programs of their own.
                    if !path.ends_with("src/bin") {
                        folders.push(path);
                    }
                    continue;
                }
                if path.extension().is_none_or(|ending| ending != "rs") {
                    continue;
                }
                let text = std::fs::read_to_string(&path)?;
                let module = path_of(path.strip_prefix(src)?);
                // Whole files behind `cfg(test)`.
                if module.iter().any(|part| part == "tests") {
                    continue;
                }
                let file = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
                modules.insert(module, Module { file, imports: imports(&text) });
            }
        }
        Ok(Self(modules))
    }

    /// Which file imports from which.
    pub(super) fn graph(&self) -> Graph {
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
            if let Some(shown) = found.imports.iter().find(shows)
                && let Some(origin) = self.origin(&module, shown, depth + 1)
            {
                return Some(origin);
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

/// Files of more than one folder `src` together.
pub(super) fn graph_of(root: &Path, sources: impl IntoIterator<Item = std::path::PathBuf>) -> Result<Graph> {
    let mut graph = Graph::new();
    for src in sources {
        graph.extend(Modules::read(root, &src)?.graph());
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
            ("rows/mod.rs", "mod row;\npub use row::Row;\npub struct Count;\n"),
            ("rows/row.rs", "use super::Count;\nuse std::fmt;\npub struct Row;\n"),
            (
                "cells.rs",
                "use crate::Row;\nuse crate::rows::{Count, Row as Other};\n#[cfg(test)]\nmod tests {\n    use crate::rows::*;\n}\n",
            ),
        ] {
            std::fs::write(src.join(name), text).unwrap();
        }
        let graph = graph_of(folder.path(), [src]).unwrap();
        let files =
            |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| format!("src/{name}")).collect() };
        assert_eq!(graph["src/lib.rs"], files(&[]));
        assert_eq!(graph["src/rows/mod.rs"], files(&[]));
        assert_eq!(graph["src/rows/row.rs"], files(&["rows/mod.rs"]));
        assert_eq!(graph["src/cells.rs"], files(&["rows/row.rs", "rows/mod.rs"]));
    }
}
