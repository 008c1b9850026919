//! What the crate `gpu` knows of the workspace: the forms of keys and results, and no engine.

use super::imports::{imports, start_of_use, without_tests};

/// The crates that it may name, and what of each; everything where nothing is named.
const KNOWN: &[(&str, &[&str])] = &[
    ("wirespeed_image", &[]),
    ("wirespeed_kernels", &[]),
    ("wirespeed_fib", &["Address", "Family", "NextHop"]),
    ("wirespeed_namelookup", &["Match", "Name", "NameBatch", "NameDomain", "Names"]),
    ("wirespeed_table", &["Domain", "Keys"]),
    ("wirespeed_classify", &["Tuple", "kernel::result_bytes"]),
];

/// The paths into crates of the workspace that a file names outside of its tests and comments.
fn paths(text: &str) -> Vec<String> {
    let mut paths: Vec<String> = imports(text).iter().map(|import| import.path.join("::")).collect();
    let code = without_tests(text)
        .filter(|line| !line.trim_start().starts_with("//") && start_of_use(line).is_none());
    for line in code {
        for (at, _) in line.match_indices("wirespeed_") {
            let is_part = |character: char| character.is_alphanumeric() || "_:".contains(character);
            paths.push(line[at..].chars().take_while(|&character| is_part(character)).collect());
        }
    }
    paths.retain(|path| path.starts_with("wirespeed_"));
    paths
}

fn is_known(path: &str) -> bool {
    let (of, item) = path.split_once("::").unwrap_or((path, ""));
    KNOWN.iter().any(|(known, items)| *known == of && (items.is_empty() || items.contains(&item)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sources::sources;
    use crate::step;

    #[test]
    fn the_gpu_knows_keys_and_no_engine() {
        let root = step::root();
        let mut seen = BTreeSet::new();
        for file in sources(&root).unwrap().iter().filter(|file| file.starts_with("crates/gpu/src/")) {
            for path in paths(&std::fs::read_to_string(root.join(file)).unwrap()) {
                assert!(is_known(&path), "{file} names {path}");
                seen.insert(path);
            }
        }
        for (of, items) in KNOWN {
            for item in *items {
                assert!(seen.contains(&format!("{of}::{item}")), "{item} of {of} is not in use any more");
            }
        }
    }

    #[test]
    fn paths_are_found_wherever_they_stand() {
        let text = "use wirespeed_fib::{Address, V4};\n/// wirespeed_sail::SailL\nfn f(x: &wirespeed_classify::linear::Linear) {}\n#[cfg(test)]\nmod tests {\n    use wirespeed_fib::V6;\n}\n";
        let wanted = ["wirespeed_fib::Address", "wirespeed_fib::V4", "wirespeed_classify::linear::Linear"];
        assert_eq!(paths(text), wanted);
        assert_eq!(wanted.map(is_known), [true, false, false]);
        assert!(!is_known("wirespeed_sail::SailL") && is_known("wirespeed_image::device::Program"));
    }
}
