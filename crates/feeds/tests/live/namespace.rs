//! [`Namespace`]: a network namespace that ends with the test.

use std::io;
use std::process::Command;
use std::thread;

use wirespeed_feeds::kernel;
use wirespeed_netns::{Frr, Namespaces};

/// A network namespace with a loopback that is up.
pub(crate) struct Namespace {
    all: Namespaces,
    pub(crate) name: String,
}

/// The name of the one among its like.
const ONLY: &str = "feeds";

impl Namespace {
    /// Makes a namespace. Without the rights for it prints that the test is skipped.
    pub(crate) fn new() -> Option<Self> {
        let all = Namespaces::or_skip(&[ONLY], &[])?;
        if let Err(error) = all.try_ip(ONLY, "link add try0 type veth peer name try1") {
            println!("skipped: no veth: {error}");
            return None;
        }
        all.ip(ONLY, "link del try0");
        Some(Self { name: all.name(ONLY), all })
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

    /// `ip` with arguments in the namespace, which must succeed. Gives what it prints.
    pub(crate) fn ip(&self, arguments: &str) -> String {
        self.all.ip(ONLY, arguments)
    }

    pub(crate) fn try_ip(&self, arguments: &str) -> io::Result<String> {
        self.all.try_ip(ONLY, arguments)
    }

    /// FRR in the namespace. Without it prints that the test is skipped.
    pub(crate) fn frr(&self) -> Option<Frr<'_>> {
        Frr::or_skip(&self.all, ONLY)
    }

    /// Many commands of `ip` at once. Those that fail are left out.
    pub(crate) fn batch(&self, commands: &str) {
        self.all.batch(ONLY, commands, true).unwrap();
    }

    /// A command in the namespace.
    pub(crate) fn command(&self, program: &str) -> Command {
        self.all.command(ONLY, program)
    }

    /// Calls a function on a thread inside of the namespace.
    pub(crate) fn inside<R: Send>(&self, call: impl FnOnce() -> R + Send) -> R {
        let enter = self.all.entrance(ONLY).unwrap();
        thread::scope(|scope| {
            let call = || {
                enter().unwrap();
                call()
            };
            scope.spawn(call).join().unwrap()
        })
    }
}
