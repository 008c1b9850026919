//! NVIDIA's compilers, as the wheels on PyPI hold them: pinned to the byte, and kept under `target/`, for
//! their licence forbids to commit them. The reader's own pip fetches them, from the index that it is set to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::step;

/// A package of which one file is wanted.
pub(super) struct Wheel {
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    /// The hash of the wheel for Linux on x86-64, the one system that there is an NVRTC 12.2 for on PyPI.
    sha256: &'static str,
    /// Its folder under `target/`, before the version.
    folder: &'static str,
    /// What is wanted, inside of it.
    file: &'static str,
}

/// The compiler from CUDA C++ to PTX. Its builtins lie beside it, where it looks for them.
pub(super) const NVRTC: Wheel = Wheel {
    package: "nvidia-cuda-nvrtc-cu12",
    version: "12.2.140",
    sha256: "b1cdcae6443cb7cdcfb5d1bf51896a148c9f82f9e65b27db9ab095eaed689aa7",
    folder: "nvrtc",
    file: "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
};

/// The assembler from PTX to a GPU's own code, of a release that knows every GPU of
/// [`super::registers::ARCHITECTURES`].
pub(super) const PTXAS: Wheel = Wheel {
    package: "nvidia-cuda-nvcc-cu12",
    version: "12.8.93",
    sha256: "2d6dc36fb7cb5ac9c0b8825bc13d193c35487a315664007287d0126531238011",
    folder: "ptxas",
    file: "nvidia/cuda_nvcc/bin/ptxas",
};

impl Wheel {
    /// Where its file is, after installing it if need be.
    pub(super) fn file(&self) -> Result<PathBuf> {
        let folder = step::root().join("target").join(format!("{}-{}", self.folder, self.version));
        let file = folder.join(self.file);
        if !file.exists() {
            eprintln!("xtask: ptx: installing {}=={} in {}", self.package, self.version, folder.display());
            self.install(&folder).with_context(|| self.advice(&folder))?;
        }
        ensure!(file.exists(), "{} holds no {}: remove it and try again", folder.display(), self.file);
        Ok(file)
    }

    /// Installs beside its place and moves it there when it is whole, so that nobody ever finds half of it.
    fn install(&self, folder: &Path) -> Result<()> {
        let mut partial = folder.as_os_str().to_owned();
        partial.push(format!(".{}.partial", std::process::id()));
        let partial = PathBuf::from(partial);
        fs::create_dir_all(&partial)?;
        let installed = self.pip(&partial);
        // Where another run was faster, its copy is as good.
        if installed.is_ok() && !folder.exists() {
            fs::rename(&partial, folder)?;
        } else {
            fs::remove_dir_all(&partial)?;
        }
        installed
    }

    fn pip(&self, target: &Path) -> Result<()> {
        let requirements = target.join("requirements.txt");
        fs::write(&requirements, self.requirement())?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--only-binary", ":all:"]);
        pip.args([
            "--disable-pip-version-check",
            "--root-user-action",
            "ignore",
            "--require-hashes",
            "--target",
        ]);
        let output = pip
            .arg(target)
            .arg("--requirement")
            .arg(&requirements)
            .output()
            .context("can't start python3")?;
        if !output.status.success() {
            bail!("pip: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }

    fn requirement(&self) -> String {
        format!("{}=={} --hash=sha256:{}\n", self.package, self.version, self.sha256)
    }

    fn advice(&self, folder: &Path) -> String {
        format!(
            "{package}=={version} can't be installed. It takes Linux on x86-64, python3 with pip (on Debian: \
             apt-get install python3-pip) and PyPI or a mirror that pip is set to. Without a network: on a machine that has one, \
             `python3 -m pip install --no-deps --target FOLDER {package}=={version}`, then copy FOLDER to {folder}. \
             `cargo xtask ptx --check --without-compiler` compares hashes only",
            package = self.package,
            version = self.version,
            folder = folder.display(),
        )
    }
}
