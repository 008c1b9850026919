//! Real tables, names and rules for tests, which are no part of the repository.

use std::path::PathBuf;

/// The environment variable that names the folder of real data.
const FOLDER: &str = "WIRESPEED_DATA";

/// A file or a folder of the real data; `None`, with a line that says so, where there is none. The data are
/// in the folder that `WIRESPEED_DATA` names or, where it names none, in `../shared/data` beside the
/// workspace.
pub fn real_data(what: &str) -> Option<PathBuf> {
    let beside = || {
        // A test runs in the folder of its crate.
        let here = std::env::current_dir().ok()?;
        here.ancestors().map(|dir| dir.join("../shared/data")).find(|dir| dir.is_dir())
    };
    let folder = std::env::var_os(FOLDER).map(PathBuf::from).or_else(beside);
    let found = folder.map(|folder| folder.join(what)).filter(|path| path.exists());
    if found.is_none() {
        println!("skipped: there is no {what} in {FOLDER} or ../shared/data");
    }
    found
}
