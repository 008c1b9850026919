//! Builds the kernels and their server with the host's C++ compiler, once for each state of the sources.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::{env, fs, io};

use xxhash_rust::xxh3::xxh3_64;

/// The sanitizers that watch the kernels while they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sanitizers {
    /// Addresses and undefined behaviour.
    On,
    /// Nothing, for tests that run many lookups.
    Off,
}

/// The reason why there is no host build.
#[derive(Debug)]
pub enum BuildError {
    /// No compiler was found: tests that need one are to be skipped.
    NoCompiler,
    /// The compiler refused the sources.
    Refused(String),
    /// A file couldn't be read or written.
    Io(io::Error),
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoCompiler => f.write_str("no C++ compiler: set CXX, or install g++ or clang++"),
            Self::Refused(said) => write!(f, "the C++ compiler refused the kernels:\n{said}"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BuildError {}

impl From<io::Error> for BuildError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The program's path, after building it where that hasn't been done for these sources.
pub fn build(sanitizers: Sanitizers) -> Result<PathBuf, BuildError> {
    /// One build at a time, and each once in a process.
    static DONE: Mutex<BTreeMap<Sanitizers, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = done.get(&sanitizers) {
        return Ok(program.clone());
    }
    let program = build_once(sanitizers)?;
    done.insert(sanitizers, program.clone());
    Ok(program)
}

fn build_once(sanitizers: Sanitizers) -> Result<PathBuf, BuildError> {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = vec![kernels.join("host/server.cpp")];
    let mut headers = Vec::new();
    for entry in fs::read_dir(&kernels)? {
        let path = entry?.path();
        match path.extension().and_then(|end| end.to_str()) {
            Some("cu") => sources.push(path),
            Some("cuh") => headers.push(path),
            _ => {}
        }
    }
    sources.sort();
    headers.sort();
    let compiler = compiler().ok_or(BuildError::NoCompiler)?;
    let flags: &[&str] = match sanitizers {
        Sanitizers::On => &["-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        Sanitizers::Off => &["-O2"],
    };
    let mut all = Vec::new();
    for header in &headers {
        all.extend(fs::read(header)?);
    }
    all.extend(flags.join(" ").bytes());
    all.extend(compiler.as_encoded_bytes());
    let folder = kernels.join("../target/kernels-host");
    fs::create_dir_all(&folder)?;
    let shared = xxh3_64(&all);

    // Each source on its own, so that one that changes is compiled alone and the cores share the work.
    let mut objects = Vec::new();
    let mut running = Vec::new();
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    for source in &sources {
        let mut key = fs::read(source)?;
        key.extend(shared.to_le_bytes());
        let name = source.file_stem().unwrap_or_default().to_string_lossy();
        let object = folder.join(format!("{name}-{:016x}.o", xxh3_64(&key)));
        if !object.exists() {
            if running.len() >= at_once {
                finish(running.remove(0))?;
            }
            let part = folder.join(format!("{name}-{:016x}-{}.part", xxh3_64(&key), std::process::id()));
            let child = Command::new(&compiler)
                .args(["-std=c++17", "-Wall", "-Wextra", "-Werror"])
                .args(flags)
                .args(["-x", "c++", "-c"])
                .arg(source)
                .arg("-o")
                .arg(&part)
                .stderr(Stdio::piped())
                .spawn()?;
            running.push((child, part, object.clone()));
        }
        objects.push(object);
    }
    running.into_iter().try_for_each(finish)?;

    let names: Vec<_> =
        objects.iter().flat_map(|object| object.as_os_str().as_encoded_bytes()).copied().collect();
    let program = folder.join(format!("server-{:016x}", xxh3_64(&names)));
    if !program.exists() {
        let part = folder.join(format!("server-{:016x}-{}.part", xxh3_64(&names), std::process::id()));
        let child = Command::new(&compiler)
            .args(flags)
            .args(&objects)
            .arg("-o")
            .arg(&part)
            .stderr(Stdio::piped())
            .spawn()?;
        finish((child, part, program.clone()))?;
    }
    Ok(program)
}

/// Waits for a compiler, and puts what it made in its place whole.
fn finish((child, part, whole): (std::process::Child, PathBuf, PathBuf)) -> Result<(), BuildError> {
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(BuildError::Refused(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(fs::rename(part, whole)?)
}

fn compiler() -> Option<OsString> {
    let named = env::var_os("CXX").into_iter();
    let usual = ["c++", "g++", "clang++"].into_iter().map(OsString::from);
    named.chain(usual).find(|name| {
        let asked = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    })
}
