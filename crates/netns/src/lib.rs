//! [`Namespaces`]: network namespaces of Linux for tests and benches, by the program `ip`, and daemons in
//! them.

mod daemons;
#[cfg(target_os = "linux")]
mod ping;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub use daemons::{Daemon, Frr};

/// Network namespaces, each with a name that tests call it by. They are gone when this is dropped.
#[derive(Debug)]
pub struct Namespaces {
    prefix: String,
    sides: Vec<String>,
}

/// A host's link to a router: both ends have addresses, and the host's default routes lead to the router.
#[derive(Clone, Copy, Debug)]
pub struct Link<'s> {
    /// The namespace of the router, and its interface.
    pub router: (&'s str, &'s str),
    /// The namespace of the host, and its interface.
    pub host: (&'s str, &'s str),
    /// The number n of the networks 10.0.n.0/24 and fd0n::/64. The router is 1 there and the host 2.
    pub net: u8,
    /// The number of queues of each interface.
    pub queues: u8,
}

impl Namespaces {
    /// Makes namespaces with a loopback that is up.
    pub fn new(sides: &[&str]) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut all = Self { prefix: format!("ws{}x{number}", std::process::id()), sides: Vec::new() };
        for side in sides {
            run(Command::new("ip").args(["netns", "add", &all.name(side)]))?;
            all.sides.push((*side).to_owned());
            all.try_ip(side, "link set lo up")?;
        }
        Ok(all)
    }

    /// Makes namespaces for a test that runs programs in them. `None`, and prints that the test is skipped,
    /// where one of the programs is not installed or namespaces can't be made.
    #[must_use]
    pub fn or_skip(sides: &[&str], programs: &[&str]) -> Option<Self> {
        if let Some(program) = programs.iter().find(|program| !is_installed(program)) {
            println!("skipped: {program} is not installed");
            return None;
        }
        Self::new(sides).map_err(|error| println!("skipped: no network namespaces: {error}")).ok()
    }

    /// The beginning of the namespaces' names on this machine.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The name of a namespace on this machine.
    #[must_use]
    pub fn name(&self, side: &str) -> String {
        format!("{}{side}", self.prefix)
    }

    /// A command that runs a program in a namespace.
    #[must_use]
    pub fn command(&self, side: &str, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(side)]).arg(program);
        command
    }

    /// Runs a program in a namespace that has to succeed. Returns its output.
    pub fn run(&self, side: &str, words: &[&str]) -> io::Result<String> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        run(self.command(side, program).args(arguments))
    }

    /// Runs `ip` with arguments in a namespace. Returns its output.
    ///
    /// # Panics
    /// If it fails.
    pub fn ip(&self, side: &str, words: &str) -> String {
        self.try_ip(side, words).unwrap_or_else(|error| panic!("{side}: {error}"))
    }

    /// Runs `ip` with arguments in a namespace. Returns its output.
    pub fn try_ip(&self, side: &str, words: &str) -> io::Result<String> {
        run(Command::new("ip").args(["-n", &self.name(side)]).args(words.split(' ')))
    }

    /// Runs many commands of `ip` in a namespace, one a line. Commands that fail are left out if
    /// `goes_on`.
    pub fn batch(&self, side: &str, lines: &str, goes_on: bool) -> io::Result<()> {
        let mut command = Command::new("ip");
        command.args(["-n", &self.name(side)]).args(goes_on.then_some("-force")).args(["-batch", "-"]);
        let silent = || if goes_on { Stdio::null() } else { Stdio::inherit() };
        let mut ip = command.stdin(Stdio::piped()).stdout(silent()).stderr(silent()).spawn()?;
        if let Some(mut input) = ip.stdin.take() {
            input.write_all(lines.as_bytes())?;
        }
        let status = ip.wait()?;
        if status.success() || goes_on {
            Ok(())
        } else {
            Err(io::Error::other(format!("ip -batch: {status}")))
        }
    }

    /// Makes a link between a router and a host.
    pub fn link(&self, link: Link<'_>) -> io::Result<()> {
        let Link { router: (router, near), host: (host, far), net, queues } = link;
        let queues = format!("numrxqueues {queues} numtxqueues {queues}");
        let peer = format!("{far} netns {} {queues}", self.name(host));
        self.try_ip(router, &format!("link add {near} {queues} type veth peer name {peer}"))?;
        for (side, interface, last) in [(router, near, 1), (host, far, 2)] {
            self.try_ip(side, &format!("addr add 10.0.{net}.{last}/24 dev {interface}"))?;
            self.try_ip(side, &format!("addr add fd0{net}::{last}/64 dev {interface} nodad"))?;
            self.try_ip(side, &format!("link set {interface} up"))?;
        }
        self.try_ip(host, &format!("route add default via 10.0.{net}.1"))?;
        self.try_ip(host, &format!("route add default via fd0{net}::1"))?;
        Ok(())
    }

    /// Switches the kernel's forwarding of both families in a namespace.
    pub fn forward(&self, side: &str, on: bool) -> io::Result<()> {
        for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            self.run(side, &["sh", "-c", &format!("echo {} > /proc/sys/net/{key}", u8::from(on))])?;
        }
        Ok(())
    }

    /// The text of a file as a namespace sees it, without the line's end.
    pub fn read(&self, side: &str, path: &str) -> io::Result<String> {
        Ok(self.run(side, &["cat", path])?.trim().to_owned())
    }

    /// The hardware address of an interface.
    pub fn mac(&self, side: &str, interface: &str) -> io::Result<String> {
        self.read(side, &format!("/sys/class/net/{interface}/address"))
    }

    /// A counter of an interface, such as `rx_packets`.
    pub fn counter(&self, side: &str, interface: &str, counter: &str) -> io::Result<u64> {
        let text = self.read(side, &format!("/sys/class/net/{interface}/statistics/{counter}"))?;
        text.parse().map_err(io::Error::other)
    }

    /// Whether an address answers an echo that a namespace sends. False where no route leads there.
    #[cfg(target_os = "linux")]
    pub fn pings(&self, side: &str, address: &str) -> io::Result<bool> {
        let (enter, address) = (self.entrance(side)?, address.parse().map_err(io::Error::other)?);
        let thread = std::thread::spawn(move || {
            enter()?;
            ping::ping(address)
        });
        thread.join().map_err(|_| io::Error::other("the thread that pings panicked"))?
    }

    /// A function that moves the thread that calls it into a namespace: sockets that it opens from then on
    /// belong there. Threads for that are made for it and end.
    #[cfg(target_os = "linux")]
    pub fn entrance(&self, side: &str) -> io::Result<impl FnOnce() -> io::Result<()> + Send + use<>> {
        use std::os::fd::AsFd;

        use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

        let file = std::fs::File::open(format!("/run/netns/{}", self.name(side)))?;
        Ok(move || Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for side in &self.sides {
            let _ = Command::new("ip").args(["netns", "del", &self.name(side)]).output();
        }
    }
}

/// Whether a program lies in a folder of `PATH`.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Runs a command that has to succeed. Returns its output.
fn run(command: &mut Command) -> io::Result<String> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?}: {}: {}", output.status, said.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn an_address_answers_or_not() {
        let Some(all) = Namespaces::or_skip(&["r", "h"], &[]) else { return };
        all.link(Link { router: ("r", "rh"), host: ("h", "hr"), net: 1, queues: 1 }).unwrap();
        let pings = |address| all.pings("r", address).unwrap();
        for address in ["10.0.1.2", "fd01::2", "10.0.1.1", "fd01::1"] {
            // The link may not be up yet.
            assert!((0..20).any(|_| pings(address)), "{address}");
        }
        for address in ["10.0.1.3", "10.9.0.1", "fd09::1"] {
            assert!(!pings(address), "{address}");
        }
        assert!(all.pings("r", "nowhere").is_err() && all.pings("no such side", "10.0.1.2").is_err());
    }

    #[test]
    fn a_program_that_is_not_installed_skips_a_test() {
        assert!(is_installed("sh"));
        assert!(!is_installed("no-such-program-0"));
        assert!(Namespaces::or_skip(&[], &["sh", "no-such-program-0"]).is_none());
        assert!(Namespaces::or_skip(&[], &["sh"]).is_some());
    }
}
