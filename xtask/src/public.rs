//! The crates that are there for others: what cargo may publish.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::step;

/// A crate, as cargo knows it.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    version: String,
    /// The oldest Rust that it is for.
    pub(crate) rust_version: Option<String>,
    /// Where it may be published; `None` for everywhere.
    publish: Option<Vec<String>>,
    #[cfg(test)]
    pub(crate) description: Option<String>,
    #[cfg(test)]
    pub(crate) license: Option<String>,
    #[cfg(test)]
    pub(crate) readme: Option<String>,
    #[cfg(test)]
    pub(crate) manifest_path: PathBuf,
    #[cfg(test)]
    pub(crate) keywords: Vec<String>,
    #[cfg(test)]
    pub(crate) categories: Vec<String>,
    #[cfg(test)]
    pub(crate) metadata: serde_json::Value,
}

#[derive(Deserialize)]
struct Workspace {
    packages: Vec<Package>,
}

/// All of them.
pub(crate) fn packages() -> Result<Vec<Package>> {
    let said = step::cargo(&["metadata", "--no-deps", "--format-version", "1", "--offline"]).output()?;
    let workspace: Workspace =
        serde_json::from_slice(&said.stdout).context("what cargo says of the workspace")?;
    Ok(workspace.packages.into_iter().filter(|package| package.publish.is_none()).collect())
}

/// Packs them. A file that a manifest names and that is not there fails here.
pub(crate) fn pack() -> Result<()> {
    step::run("packages", command(&packages()?).arg("--no-verify"))
}

/// Packs them, and builds each from what is packed: minutes, as all that they depend on is built, too.
pub(crate) fn build() -> Result<()> {
    let packages = packages()?;
    forget_unpacked(&packages, &cargo_home()?)?;
    // One folder for all: each package would build the crates beneath it anew. Packages have no profile.
    let mut build = command(&packages);
    build.args(["--target-dir", "target/packages"]).env("CARGO_PROFILE_DEV_DEBUG", "false");
    step::run("packages, built", &mut build)
}

fn command(packages: &[Package]) -> std::process::Command {
    let mut pack = step::cargo(&["package", "--allow-dirty", "--offline", "--locked", "--quiet"]);
    for package in packages {
        pack.args(["--package", &package.name]);
    }
    pack
}

/// The folder where cargo keeps packages.
fn cargo_home() -> Result<PathBuf> {
    let given = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    given.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).context("no home folder, and no CARGO_HOME")
}

/// Removes what earlier runs unpacked. Cargo unpacks a version of a package once, and would build what the
/// crates were then: their version is mostly the one of that time.
fn forget_unpacked(packages: &[Package], home: &Path) -> Result<()> {
    let Ok(registries) = fs::read_dir(home.join("registry/src")) else { return Ok(()) };
    for registry in registries {
        let registry = registry?;
        // Registries on the network have their hosts before the hyphen.
        if !registry.file_name().to_string_lossy().starts_with('-') {
            continue;
        }
        for Package { name, version, .. } in packages {
            let unpacked = registry.path().join(format!("{name}-{version}"));
            if unpacked.exists() {
                fs::remove_dir_all(&unpacked).with_context(|| unpacked.display().to_string())?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_has_what_a_registry_shows() {
        let all = packages().unwrap();
        assert!(all.iter().any(|package| package.name == "wirespeed"));
        assert!(all.iter().all(|package| !["xtask", "wirespeed-benches"].contains(&&*package.name)));
        for package in all {
            let name = &package.name;
            assert!(package.description.is_some_and(|text| text.len() > 20), "{name}: description");
            assert!(package.license.is_some() && package.readme.is_some(), "{name}: licence and readme");
            assert!((3..=5).contains(&package.keywords.len()), "{name}: keywords");
            assert!(package.keywords.iter().all(|word| word.len() <= 20), "{name}: keywords");
            assert!((1..=5).contains(&package.categories.len()), "{name}: categories");
            assert!(package.metadata["docs"]["rs"].is_object(), "{name}: what docs.rs builds");
        }
    }

    #[test]
    fn what_was_unpacked_of_them_is_removed_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let all = packages().unwrap();
        let of = |registry: &str, version: &str| {
            let unpacked = home.path().join("registry/src").join(registry);
            let unpacked = unpacked.join(format!("{}-{version}", all[0].name));
            fs::create_dir_all(unpacked.join("src")).unwrap();
            unpacked
        };
        let version = &all[0].version;
        let (old, other, public) =
            (of("-1234", version), of("-1234", "9.9.9"), of("registry.example-1234", version));
        forget_unpacked(&all, home.path()).unwrap();
        assert_eq!([&old, &other, &public].map(|folder| folder.exists()), [false, true, true]);
        forget_unpacked(&all, &home.path().join("none")).unwrap();
    }

    /// The files of a crate's package.
    fn files(package: &str) -> BTreeSet<String> {
        let list = ["package", "--list", "--allow-dirty", "--offline", "--package", package];
        let said = step::cargo(&list).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap().lines().map(ToOwned::to_owned).collect()
    }

    /// The README of a registry's page, whose links have no folder that they begin at.
    #[test]
    fn each_has_the_licences_and_a_readme_without_links_to_files() {
        let all = packages().unwrap();
        let root = step::root();
        let licences = ["LICENSE-APACHE", "LICENSE-MIT"];
        let texts = licences.map(|name| fs::read_to_string(root.join(name)).unwrap());
        for package in &all {
            let (name, folder) = (&package.name, package.manifest_path.parent().unwrap());
            let packed = files(name);
            for (licence, text) in licences.iter().zip(&texts) {
                assert!(packed.contains(*licence), "{name}: {licence} is not packed");
                assert_eq!(&fs::read_to_string(folder.join(licence)).unwrap(), text, "{name}: {licence}");
            }
            assert!(packed.contains("README.md"), "{name}: no README is packed");
            let readme = fs::read_to_string(folder.join(package.readme.as_ref().unwrap())).unwrap();
            assert_eq!(links_to_files(&readme), [""; 0], "{name}");
        }
    }

    /// The links and pictures of a Markdown text that are neither on the network nor in the text.
    fn links_to_files(text: &str) -> Vec<&str> {
        let starts = ["](", "]: ", "src=\"", "href=\""];
        let targets = starts.iter().flat_map(|start| text.split(start).skip(1));
        let targets = targets.filter_map(|rest| rest.split([')', '"', '\n', ' ']).next());
        targets.filter(|target| !target.starts_with("https://") && !target.starts_with('#')).collect()
    }

    #[test]
    fn links_to_files_are_found() {
        let text = "[a](b.md) ![c](d/e.svg) <img src=\"f.png\"> [g](https://h.example) [i](#j)\n[k]: l.md\n";
        assert_eq!(links_to_files(text), ["b.md", "d/e.svg", "l.md", "f.png"]);
    }

    #[test]
    fn packages_hold_what_is_no_rust_too() {
        let of_kernels = files("wirespeed-kernels");
        for (folder, endings) in [("kernels", &["cu", "cuh"][..]), ("kernels/ptx", &["ptx"])] {
            for entry in fs::read_dir(step::root().join(folder)).unwrap() {
                let path = entry.unwrap().path();
                let path = path.strip_prefix(step::root().join("kernels")).unwrap();
                if path.extension().is_some_and(|ending| endings.iter().any(|wanted| ending == *wanted)) {
                    assert!(of_kernels.contains(path.to_str().unwrap()), "{}", path.display());
                }
            }
        }
        assert!(of_kernels.contains("build.rs"));
        assert!(files("wirespeed-fib").is_superset(
            &["v4", "v6"].map(|family| format!("src/synth/shapes/{family}.bin")).into_iter().collect()
        ));
    }
}
