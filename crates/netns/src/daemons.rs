//! [`Daemon`]: a program that runs in a namespace. [`Frr`]: the daemons of FRR there.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use crate::Namespaces;

/// Where Debian has FRR's daemons.
const FRR: &str = "/usr/lib/frr";

/// A program that runs until this is dropped.
#[derive(Debug)]
pub struct Daemon(Child);

impl Daemon {
    /// Starts a program. What it prints is dropped.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // `ip netns exec` becomes the program, so the child is the program itself.
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// FRR in a namespace: its folder in the run directory goes with it.
#[derive(Debug)]
pub struct Frr<'n> {
    all: &'n Namespaces,
    side: &'n str,
    folder: PathBuf,
    daemons: Vec<Daemon>,
}

impl<'n> Frr<'n> {
    /// Makes the folder of FRR. `None`, and prints that the test is skipped, where FRR is not installed.
    #[must_use]
    pub fn or_skip(all: &'n Namespaces, side: &'n str) -> Option<Self> {
        if !Path::new(FRR).join("zebra").exists() {
            println!("skipped: FRR is not installed");
            return None;
        }
        let folder = Path::new("/var/run/frr").join(all.name(side));
        fs::create_dir_all(&folder).ok()?;
        let frr = Self { all, side, folder, daemons: Vec::new() };
        let owned = Command::new("chown").arg("frr:frr").arg(&frr.folder).status();
        if !owned.is_ok_and(|status| status.success()) {
            println!("skipped: there is no user frr");
            return None;
        }
        Some(frr)
    }

    /// The folder of its sockets and files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a daemon with this configuration, and waits for zebra, which the others connect to.
    pub fn start(&mut self, daemon: &str, arguments: &[&str], configuration: &str) -> io::Result<()> {
        let file = self.folder.join(format!("{daemon}.conf"));
        fs::write(&file, configuration)?;
        let mut command = self.all.command(self.side, Path::new(FRR).join(daemon));
        command.args(["-N", &self.all.name(self.side), "-f"]).arg(&file).args(arguments);
        self.daemons.push(Daemon::start(&mut command)?);
        let end = Instant::now() + Duration::from_secs(10);
        while !self.zebra().exists() && Instant::now() < end {
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Gives commands to its shell, `vtysh`. Returns what it prints.
    pub fn tell(&self, commands: &[&str]) -> io::Result<String> {
        let name = self.all.name(self.side);
        let commands = commands.iter().flat_map(|command| ["-c", command]);
        self.all.run(self.side, &["vtysh", "-N", &name].into_iter().chain(commands).collect::<Vec<_>>())
    }

    /// Kills all daemons.
    pub fn stop(&mut self) {
        self.daemons.clear();
        let _ = fs::remove_file(self.zebra());
    }

    /// The socket of zebra.
    fn zebra(&self) -> PathBuf {
        self.folder.join("zserv.api")
    }
}

impl Drop for Frr<'_> {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
