//! The Rust files of a checkout.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

/// The Rust files beneath a folder that git does not ignore, named from there on, in order.
pub(crate) fn sources(root: &Path) -> Result<Vec<String>> {
    files(root, ".rs")
}

/// The files with an ending.
pub(crate) fn files(root: &Path, ending: &str) -> Result<Vec<String>> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", &format!("*{ending}")])
        .current_dir(root)
        .output();
    if let Ok(listed) = listed
        && listed.status.success()
        && !listed.stdout.is_empty()
    {
        let mut names: Vec<String> = String::from_utf8(listed.stdout)?.lines().map(str::to_owned).collect();
        names.retain(|name| root.join(name).exists());
        names.sort();
        return Ok(names);
    }
    // An archive without git.
    let (mut names, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let (path, name) = (folder.join(entry.file_name()), entry.file_name());
            let name = name.to_string_lossy();
            if entry.file_type()?.is_dir() {
                if !name.starts_with('.') && name != "target" {
                    folders.push(path);
                }
            } else if name.ends_with(ending) {
                names.push(path.to_string_lossy().into_owned());
            }
        }
    }
    names.sort();
    Ok(names)
}
