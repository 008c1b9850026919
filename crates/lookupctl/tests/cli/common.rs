//! A temporary folder with small tables in it, and the binary run there.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use wirespeed::prelude::{IpNet, Labels, VrfId, Vrfs};

/// A small table of IPv4 routes.
pub(crate) const V4: &str = "\
# prefix, next hop
10.0.0.0/8 192.0.2.1
10.1.0.0/16 192.0.2.2
10.1.2.0/24 192.0.2.3
10.1.2.128/25 192.0.2.1
10.1.2.3/32 core-7
203.0.113.0/24 192.0.2.2
";

/// A small table of IPv6 routes.
pub(crate) const V6: &str = "\
2001:db8::/32 fe80::1
2001:db8:1::/48 fe80::2
2001:db8:1:2:3::/80 fe80::3
2001:db8::1/128 fe80::2
";

/// Updates of the first table.
pub(crate) const UPDATES: &str = "\
A 10.1.2.0/24 192.0.2.9
W 10.1.2.3/32
A 198.51.100.0/24 192.0.2.1
W 10.1.0.0/16
A 10.1.128.0/17
";

/// Bytes that are nothing.
pub(crate) fn noise(len: u32) -> Vec<u8> {
    (0..len).map(|at| (at | 1).wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect()
}

/// A folder with these files: `v4`, `v6`, `both`, `updates`.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("v4", V4);
        folder.write("v6", V6);
        folder.write("both", [V4, V6].concat());
        folder.write("updates", UPDATES);
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Writes an image of VRFs 7 and 4000.
    pub(crate) fn vrfs(&self, name: &str) {
        let labels = Labels::new();
        let label = |text: &str| labels.intern(text.to_owned()).unwrap();
        let (red, blue) = (label("red-gate"), label("blue-gate"));
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        let vrfs = Vrfs::builder()
            .vrf(
                VrfId(7),
                [(net("10.0.0.0/8"), red), (net("10.1.0.0/16"), blue), (net("2001:db8::/32"), red)],
            )
            .vrf(VrfId(4_000), [(net("10.0.0.0/8"), blue)]);
        vrfs.build().unwrap().save_labelled(self.path(name), &labels).unwrap();
    }

    /// Runs `lookupctl` here with arguments split at blanks.
    pub(crate) fn run(&self, arguments: &str) -> Ran {
        self.run_with(arguments, b"")
    }

    /// Runs `lookupctl` here with something on standard input.
    pub(crate) fn run_with(&self, arguments: &str, input: &[u8]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lookupctl"));
        command.args(arguments.split_whitespace());
        self.run_command(command, input)
    }

    /// Runs `lookupctl` here with so many MiB of memory.
    pub(crate) fn run_within(&self, mib: usize, arguments: &str) -> Ran {
        let mut command = Command::new("sh");
        let limited = format!("ulimit -v {} && exec \"$0\" {arguments}", mib << 10);
        // Threads of the pool have memory of their own.
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_lookupctl")]).env("RAYON_NUM_THREADS", "1");
        self.run_command(command, b"")
    }

    /// Runs a command here.
    pub(crate) fn run_command(&self, mut command: Command, input: &[u8]) -> Ran {
        let mut child = command
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        // It need not read what it is given.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let ran = Ran {
            arguments: command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "),
            status: status.code(),
            stdout: String::from_utf8_lossy(&stdout).into_owned(),
            stderr: String::from_utf8(stderr).unwrap(),
        };
        assert!(!ran.stderr.contains("panicked"), "{ran:?}");
        ran
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    #[expect(dead_code, reason = "shown where an assertion fails")]
    arguments: String,
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// All is well.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.status(0)
    }

    #[track_caller]
    pub(crate) fn status(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{self:#?}");
        self
    }

    /// Refused as bad input: status 2, nothing on stdout, and one line that has all of this in it.
    #[track_caller]
    pub(crate) fn refused(&self, with: &[&str]) {
        assert_eq!(self.status, Some(2), "{self:#?}");
        assert_eq!(self.stdout, "", "{self:#?}");
        let errors: Vec<_> = self.stderr.lines().filter(|line| line.starts_with("lookupctl: ")).collect();
        assert_eq!(errors.len(), 1, "{self:#?}");
        for part in with {
            assert!(errors[0].contains(part), "{part:?} is not in: {self:#?}");
        }
    }

    /// One JSON object a line.
    #[track_caller]
    pub(crate) fn json(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
