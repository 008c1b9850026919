//! What a file takes from other modules: its `use` items, and paths in its code.

/// One name that is imported, or written with its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// The parts of its path; the last one is `*` for all there is.
    pub(super) path: Vec<String>,
    /// The name that it has here, where that is another.
    renamed: Option<String>,
    /// Whether others see it through here.
    pub(super) is_public: bool,
}

impl Import {
    /// The name that it has here.
    pub(super) fn name(&self) -> Option<&String> {
        self.renamed.as_ref().or(self.path.last())
    }
}

/// Every import of a file outside of its tests, and every path in its code that begins at the crate or at a
/// module above.
pub(super) fn imports(text: &str) -> Vec<Import> {
    let mut imports = Vec::new();
    let mut lines = without_tests(text);
    while let Some(line) = lines.next() {
        let Some((is_public, start)) = start_of_use(line) else {
            imports.extend(paths(line).into_iter().map(|path| Import {
                path,
                renamed: None,
                is_public: false,
            }));
            continue;
        };
        let mut item = start.to_owned();
        while !item.contains(';') {
            let Some(more) = lines.next() else { break };
            item.push(' ');
            item.push_str(more.split("//").next().unwrap_or_default().trim());
        }
        let item = item.split(';').next().unwrap_or_default();
        expand(&mut Vec::new(), item, is_public, &mut imports);
    }
    imports
}

/// The paths in a line of code that begin at the crate or at a module above. A comment has none, nor has a
/// text or a visibility. Those with `$crate` are of the code that calls the macro.
fn paths(line: &str) -> Vec<Vec<String>> {
    let code = line.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let code = code.split("//").next().unwrap_or_default();
    if code.contains("pub(in ") {
        return Vec::new();
    }
    let is_of_path = |character: char| character.is_alphanumeric() || "_:$".contains(character);
    let words = code.split(|character| !is_of_path(character));
    let paths = words.filter(|word| ["crate::", "super::"].iter().any(|start| word.starts_with(start)));
    let parts = |path: &str| path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
    paths.map(parts).collect()
}

/// The lines of a file but for modules behind `#[cfg(test)]`, as rustfmt lays them out.
pub(super) fn without_tests(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_next, mut is_inside) = (false, false);
    text.lines().filter(move |line| {
        if is_inside {
            is_inside = *line != "}";
            return false;
        }
        if *line == "#[cfg(test)]" {
            is_next = true;
            return false;
        }
        let is_test = std::mem::take(&mut is_next);
        is_inside = is_test && line.ends_with('{');
        !is_test
    })
}

/// What follows `use`, where a line begins with it, and whether it is public.
pub(super) fn start_of_use(line: &str) -> Option<(bool, &str)> {
    let line = line.trim_start();
    if let Some(item) = line.strip_prefix("use ") {
        return Some((false, item));
    }
    let visible = line.strip_prefix("pub")?;
    let visible = match visible.strip_prefix('(') {
        Some(limited) => limited.split_once(')')?.1,
        None => visible,
    };
    Some((true, visible.trim_start().strip_prefix("use ")?))
}

/// Writes the names of a tree of imports out.
fn expand(before: &mut Vec<String>, tree: &str, is_public: bool, imports: &mut Vec<Import>) {
    let tree = tree.trim();
    let len = before.len();
    if let Some((path, inner)) = tree.split_once('{') {
        before.extend(path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned));
        let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
        for part in split_at_commas(inner) {
            expand(before, part, is_public, imports);
        }
    } else if !tree.is_empty() {
        let (path, renamed) = match tree.split_once(" as ") {
            Some((path, renamed)) => (path, Some(renamed.trim().to_owned())),
            None => (tree, None),
        };
        before.extend(path.split("::").map(|part| part.trim().to_owned()));
        imports.push(Import { path: before.clone(), renamed, is_public });
    }
    before.truncate(len);
}

/// The parts between commas that are in no inner braces.
fn split_at_commas(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_written_out() {
        let text = "use a::b;\npub(crate) use c::{\n    D, // why\n    e::{F, self},\n    G as H,\n};\nfn use_it() {}\n";
        let found = imports(text);
        let paths: Vec<_> = found.iter().map(|import| import.path.join("::")).collect();
        assert_eq!(paths, ["a::b", "c::D", "c::e::F", "c::e::self", "c::G"]);
        let public: Vec<_> = found.iter().map(|import| import.is_public).collect();
        assert_eq!(public, [false, true, true, true, true]);
        assert_eq!(found[4].name().unwrap(), "H");
    }

    #[test]
    fn paths_in_code_count() {
        let text = "/// See [`crate::no`].\nfn f(a: &crate::b::C) -> super::D<u8> {\n    g(\"crate::no\", crate::e::G, $crate::no); // crate::no\n    supercrate::h()\n}\npub(in crate::i) struct J;\n";
        let paths: Vec<_> = imports(text).iter().map(|import| import.path.join("::")).collect();
        assert_eq!(paths, ["crate::b::C", "super::D", "crate::e::G"]);
    }

    #[test]
    fn tests_do_not_count() {
        let text =
            "use a::b;\n#[cfg(test)]\nmod tests {\n    use c::d;\n}\n#[cfg(test)]\nuse e::f;\nuse g::h;\n";
        let paths: Vec<_> = imports(text).iter().map(|import| import.path.join("::")).collect();
        assert_eq!(paths, ["a::b", "g::h"]);
    }
}
