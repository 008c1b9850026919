//! `lookupctl enrich` of a Parquet file, with the real program beside this one.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};

use super::{Folder, read, texts, write};

/// A `lookupctl` that was built: `LOOKUPCTL`, or one in the root's own target directory.
fn lookupctl() -> Option<PathBuf> {
    if let Some(path) = env::var_os("LOOKUPCTL") {
        let path = PathBuf::from(path);
        assert!(path.is_file(), "LOOKUPCTL is no file: {}", path.display());
        return Some(path);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    ["release", "debug"]
        .into_iter()
        .map(|profile| root.join(profile).join("lookupctl"))
        .find(|path| path.is_file())
}

#[test]
fn lookupctl_hands_a_file_over() {
    let Some(lookupctl) = lookupctl() else {
        eprintln!("skipped: no lookupctl is built; LOOKUPCTL names one");
        return;
    };
    let folder = Folder::new();
    let src: ArrayRef = Arc::new(StringArray::from(vec![Some("10.1.2.3"), None, Some("192.0.2.1")]));
    write(&folder.path("in"), vec![("src", src)]);
    fs::create_dir(folder.path("bin")).unwrap();
    let beside = folder.path("bin/lookupctl");
    fs::copy(lookupctl, &beside).unwrap();
    let run = |arguments: &str| {
        let mut command = Command::new(&beside);
        command.current_dir(folder.0.path()).env("PATH", "").args(arguments.split_whitespace());
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, stderr) = run("enrich in -o out --table asn=routes --prefix");
    assert!(code == 2 && stderr.contains("Parquet is for another program"), "{stderr}");
    fs::copy(env!("CARGO_BIN_EXE_wirespeed-parquet"), folder.path("bin/wirespeed-parquet")).unwrap();
    let (code, stderr) = run("enrich in -o out --table asn=routes --prefix");
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("3 rows in") && stderr.contains("src: 2 looked up, 1 of them matched"),
        "{stderr}"
    );
    let out = read(&folder.path("out"));
    assert_eq!(texts(&out, "src_asn"), [Some("64498"), None, None]);
    assert_eq!(texts(&out, "src_asn_prefix"), [Some("10.1.2.0/24"), None, None]);
    let (code, stderr) = run("enrich in -o out --table asn=missing");
    assert!(code == 2 && stderr.contains("missing"), "{stderr}");
}
