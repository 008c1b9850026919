//! [`Namespace`]: a network namespace that ends with the test.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use wirespeed_feeds::kernel;

/// A network namespace with a loopback that is up.
pub(crate) struct Namespace {
    pub(crate) name: String,
}

impl Namespace {
    /// Makes a namespace. Without the rights for it prints that the test is skipped.
    pub(crate) fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("feeds-{}-{count}", std::process::id());
        let added = Command::new("ip").args(["netns", "add", &name]).output();
        match added {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                println!("skipped: no network namespace: {}", String::from_utf8_lossy(&output.stderr).trim());
                return None;
            }
            Err(error) => {
                println!("skipped: no `ip`: {error}");
                return None;
            }
        }
        let namespace = Self { name };
        namespace.ip("link set lo up");
        let veth = namespace.try_ip("link add try0 type veth peer name try1");
        if !veth.status.success() {
            println!("skipped: no veth: {}", String::from_utf8_lossy(&veth.stderr).trim());
            return None;
        }
        namespace.ip("link del try0");
        Some(namespace)
    }

    /// Adds two ends of a link, `a0` with 10.9.0.1/24 and 2001:db8:9::1/64, and `a1`.
    pub(crate) fn add_link(&self) {
        self.ip("link add a0 address 02:00:00:00:00:a0 type veth peer name a1");
        self.ip("addr add 10.9.0.1/24 dev a0");
        self.ip("-6 addr add 2001:db8:9::1/64 dev a0 nodad");
        self.ip("link set a0 up");
        self.ip("link set a1 up");
    }

    pub(crate) fn options(&self) -> kernel::Options {
        kernel::Options::in_namespace(&self.name)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.options().namespace.unwrap()
    }

    /// `ip` with arguments in the namespace, which must succeed. Gives what it prints.
    pub(crate) fn ip(&self, arguments: &str) -> String {
        let output = self.try_ip(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ip {arguments}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn try_ip(&self, arguments: &str) -> Output {
        Command::new("ip").args(["-n", &self.name]).args(arguments.split(' ')).output().unwrap()
    }

    /// Many commands of `ip` at once. Those that fail are left out.
    pub(crate) fn batch(&self, commands: &str) {
        let mut ip = Command::new("ip");
        ip.args(["-n", &self.name, "-force", "-batch", "-"]);
        let mut child = ip.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
        child.wait().unwrap();
    }

    /// A command in the namespace.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Calls a function on a thread inside of the namespace.
    pub(crate) fn inside<R: Send>(&self, call: impl FnOnce() -> R + Send) -> R {
        let file = File::open(self.path()).unwrap();
        thread::scope(|scope| {
            let call = || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                call()
            };
            scope.spawn(call).join().unwrap()
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}
