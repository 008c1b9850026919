//! Tunnels to another kernel: Linux in user mode, whose xfrm opens what we seal and seals what we open.
//!
//! That kernel runs as a process (package `user-mode-linux`), on the files of this machine, which it can't
//! change. A TAP device is its link to the router. Its only program is this test binary again, as [`serves`].
//! Without that package, without `modprobe` (package `kmod`) or without TAP devices the test says that it
//! skips.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use wirespeed_image::rounds;
use wirespeed_netns::Link;

use crate::world::{DRIVERS, World};

/// Ports in the other kernel: bytes and datagrams come back from there, and the kernel's counters are told.
const TCP: u16 = 7001;
const UDP: u16 = 7002;
const COUNTERS: u16 = 7003;

/// The suites, each with its key; with and without numbers of 64 bits.
const SUITES: [&str; 5] = [
    "replay-window 128 flag af-unspec aead 'rfc4106(gcm(aes))' 0x00112233445566778899aabbccddeeff01020304 128",
    "replay-window 128 flag esn af-unspec aead 'rfc4106(gcm(aes))' 0x0112233445566778899aabbccddeeff001020304 128",
    "replay-window 32 flag af-unspec aead 'rfc4106(gcm(aes))' \
     0x00112233445566778899aabbccddeeff102132435465768798a9bacbdcedfe0f01020304 128",
    "replay-window 128 flag esn af-unspec enc 'rfc3686(ctr(aes))' 0x00112233445566778899aabbccddeeff05060708 auth-trunc \
     'hmac(sha1)' 0x000102030405060708090a0b0c0d0e0f10111213 96",
    "replay-window 32 flag af-unspec enc 'ecb(cipher_null)' '' auth-trunc 'hmac(sha1)' \
     0x131211100f0e0d0c0b0a09080706050403020100 96",
];

/// A tunnel of a suite: its number is in the addresses behind it and in its SPIs.
struct Tunnel {
    number: usize,
    suite: &'static str,
    /// The router, and the other kernel.
    ends: [&'static str; 2],
}

/// All suites in IPv4 and in IPv6.
fn tunnels() -> impl Iterator<Item = Tunnel> {
    let ends = [["10.0.9.1", "10.0.9.2"], ["fd09::1", "fd09::2"]];
    let all = ends.into_iter().flat_map(|ends| SUITES.into_iter().map(move |suite| (suite, ends)));
    (1..).zip(all).map(|(number, (suite, ends))| Tunnel { number, suite, ends })
}

impl Tunnel {
    /// The addresses behind it in the other kernel.
    fn behind(&self) -> [String; 2] {
        [format!("10.0.2.{}", self.number), format!("fd02::{}", self.number)]
    }

    /// The lines of `ip xfrm` for the router or for the other kernel, whose policies look the other way.
    fn lines(&self, is_router: bool) -> String {
        let Self { number, suite, ends: [near, far] } = self;
        let mut lines = String::new();
        for (from, to, spi) in [(near, far, 0x1000 + number), (far, near, 0x2000 + number)] {
            let state = format!("src {from} dst {to} proto esp spi {spi} reqid {number} mode tunnel {suite}");
            writeln!(lines, "ip xfrm state add {state}").unwrap();
        }
        let (out, back) = if is_router { ("out", "in") } else { ("in", "out") };
        let [behind4, behind6] = self.behind();
        let pairs = [("10.0.1.0/24", format!("{behind4}/32")), ("fd01::/64", format!("{behind6}/128"))];
        for (mine, theirs) in &pairs {
            for (src, dst, dir, from, to) in
                [(*mine, &**theirs, out, near, far), (&**theirs, *mine, back, far, near)]
            {
                let template = format!("tmpl src {from} dst {to} proto esp reqid {number} mode tunnel");
                writeln!(lines, "ip xfrm policy add src {src} dst {dst} dir {dir} {template}").unwrap();
            }
        }
        lines
    }
}

/// What the other kernel runs first: its addresses, its keys, and then this program.
fn script() -> String {
    let modules = "esp4 esp6 xfrm_user gcm ctr ghash-generic authenc authencesn hmac seqiv echainiv sha512_generic \
                   jitterentropy_rng drbg";
    let mut script = format!(
        "#!/bin/sh\nexport PATH=/usr/sbin:/usr/bin:/sbin:/bin\nmount -t proc proc /proc\n\
         mount -t tmpfs tmpfs /mnt\nmkdir /mnt/lib\nln -s /usr/lib/uml/modules /mnt/lib/modules\n\
         modprobe -a -d /mnt {modules} 2>/dev/null\nset -e\nip link set lo up\n\
         ip addr add 10.0.9.2/24 dev vec0\nip addr add fd09::2/64 dev vec0 nodad\nip link set vec0 up\n\
         ip route add default via 10.0.9.1\nip route add default via fd09::1\n"
    );
    for tunnel in tunnels() {
        let [behind4, behind6] = tunnel.behind();
        writeln!(script, "ip addr add {behind4}/32 dev lo\nip addr add {behind6}/128 dev lo nodad").unwrap();
        script += &tunnel.lines(false);
    }
    let program = std::env::current_exe().unwrap();
    writeln!(script, "exec {} --ignored --exact peer::serves --nocapture", program.display()).unwrap();
    script
}

/// The other kernel. Killed when this is dropped.
struct Peer {
    child: Child,
    log: PathBuf,
}

impl Peer {
    /// Starts it in a namespace, on the far end of a TAP device.
    fn start(world: &World, side: &str, tap: &str, folder: &std::path::Path) -> Self {
        let (init, log) = (folder.join("init"), folder.join("log"));
        std::fs::write(&init, script()).unwrap();
        std::fs::set_permissions(&init, std::fs::Permissions::from_mode(0o700)).unwrap();
        let output = File::create(&log).unwrap();
        let child = world
            .command(side, "linux.uml")
            .args([
                "mem=128M",
                "rootfstype=hostfs",
                "rootflags=/",
                "ro",
                "con=null",
                "con0=null,fd:1",
                "quiet",
            ])
            .arg(format!("init={}", init.display()))
            .arg(format!("uml_dir={}/", folder.display()))
            .arg(format!("vec0:transport=tap,ifname={tap},depth=64"))
            .env("TMPDIR", "/dev/shm")
            .stdin(Stdio::null())
            .stderr(output.try_clone().unwrap())
            .stdout(output)
            .process_group(0)
            .spawn()
            .unwrap();
        Self { child, log }
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap()).into_owned()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It is several processes.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.child.wait();
    }
}

/// What the other kernel answers to a datagram: its length and a sum of it, and as much of it as no fragments
/// are needed for. Linux cuts what it sends itself after it was sealed, and we open no fragments of ESP.
fn answer(datagram: &[u8]) -> Vec<u8> {
    let sum = datagram.iter().fold(1u32, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let numbers = [u32::try_from(datagram.len()).unwrap(), sum];
    let kept = datagram.len().min(1_300);
    [numbers[0].to_be_bytes().as_slice(), &numbers[1].to_be_bytes(), &datagram[..kept]].concat()
}

/// Bytes that come back from an address behind a tunnel by TCP, and datagrams, the largest one in fragments.
fn come_back(world: &World, address: IpAddr, bytes: usize) {
    let work = move || {
        let wait = Duration::from_secs(30);
        let sent: Vec<u8> = (0..bytes).map(|at| (at ^ at >> 8).to_le_bytes()[0]).collect();
        let mut stream = TcpStream::connect_timeout(&SocketAddr::new(address, TCP), wait)
            .unwrap_or_else(|error| panic!("{address}: {error}"));
        stream.set_read_timeout(Some(wait)).unwrap();
        let mut reader = stream.try_clone().unwrap();
        let length = sent.len();
        let reading = thread::spawn(move || {
            let mut back = vec![0; length];
            reader.read_exact(&mut back).unwrap();
            back
        });
        stream.write_all(&sent).unwrap();
        assert!(reading.join().unwrap() == sent, "{address}: other bytes came back");
        let any: IpAddr = if address.is_ipv4() { "0.0.0.0" } else { "::" }.parse().unwrap();
        let socket = UdpSocket::bind((any, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        for size in [0, 1, 1_300, 4_000] {
            let mut found = vec![0; 5_000];
            // The first ones may be lost while the path's MTU is found out.
            let came = (0..20).find_map(|_| {
                socket.send_to(&sent[..size], (address, UDP)).unwrap();
                let length = socket.recv(&mut found).ok()?;
                // An answer to an earlier one may come late.
                (found[..4] == answer(&sent[..size])[..4]).then_some(length)
            });
            let found = came.map(|length| &found[..length]);
            assert_eq!(found, Some(&answer(&sent[..size])[..]), "{address}: a datagram of {size} bytes");
        }
    };
    world.inside("a", work).join().unwrap();
}

#[test]
fn linux_opens_what_we_seal_and_seals_what_we_open() {
    if rounds::leaves_to_ci() {
        return;
    }
    let Some(world) = World::bare_with(&["a", "r"], &["linux.uml", "modprobe"]) else { return };
    world.link(Link { router: ("r", "ra"), host: ("a", "ha"), net: 1, queues: 2 }).unwrap();
    world.without_offloads("a", "ha");
    if world.forward("r", true).is_err()
        || world.run("r", &["ip", "tuntap", "add", "tap0", "mode", "tap"]).is_err()
    {
        println!("skipped: no forwarding or no TAP devices");
        return;
    }
    for line in [
        "addr add 10.0.9.1/24 dev tap0",
        "addr add fd09::1/64 dev tap0 nodad",
        "link set tap0 up",
        "route add 10.0.2.0/24 via 10.0.9.2",
        "route add fd02::/64 via fd09::2",
    ] {
        world.ip("r", line);
    }
    let folder = tempfile::tempdir().unwrap();
    let sad = folder.path().join("sad");
    std::fs::write(&sad, tunnels().map(|tunnel| tunnel.lines(true)).collect::<String>()).unwrap();
    std::fs::set_permissions(&sad, std::fs::Permissions::from_mode(0o600)).unwrap();
    let peer = Peer::start(&world, "r", "tap0", folder.path());
    let options = format!("{} --app esp --sad {}", DRIVERS[1], sad.display());
    let Some(router) = world.router_at("r", &options, &["ra", "tap0"]) else { return };
    World::until(|| [READY, "Kernel panic"].iter().any(|end| peer.said().contains(end)));
    assert!(peer.said().contains(READY), "{}", peer.said());
    for tunnel in tunnels() {
        for address in tunnel.behind() {
            come_back(&world, address.parse().unwrap(), 100_000);
        }
    }
    // In the clear: no policy is for the kernel's own address.
    let counters = world
        .inside("r", || {
            let mut text = String::new();
            let address = ("10.0.9.2", COUNTERS);
            TcpStream::connect(address).unwrap().read_to_string(&mut text).unwrap();
            text
        })
        .join()
        .unwrap();
    let errors: Vec<&str> = counters
        .lines()
        .filter(|line| line.split_whitespace().nth(1).is_some_and(|count| count != "0"))
        .collect();
    assert!(counters.contains("XfrmInStateProtoError"), "{counters}");
    assert_eq!(errors, [""; 0], "the other kernel counts errors");
    let report = router.stop();
    let counter = |name: &str| report["counters"][name].as_u64().unwrap();
    // Ten tunnels of two families, 100 kB each way through each.
    assert!(counter("esp_sealed") > 1_400 && counter("esp_opened") > 1_400, "{report}");
    // Senders are told what fits, and nothing else is dropped.
    let dropped = report["dropped"].as_object().unwrap();
    let others: Vec<_> = dropped.iter().filter(|(reason, _)| *reason != "esp_too_big").collect();
    assert!(others.iter().all(|(_, count)| **count == 0), "{report}");
    assert_eq!(report["dropped"]["esp_too_big"].as_u64().unwrap(), counter("esp_errors_sent"), "{report}");
}

/// What the other kernel's program prints when it serves.
const READY: &str = "the other kernel serves";

#[test]
#[ignore = "is what the other kernel runs"]
fn serves() {
    assert_eq!(std::process::id(), 1, "this is for a kernel of its own");
    for address in tunnels().flat_map(|tunnel| tunnel.behind()) {
        let address: IpAddr = address.parse().unwrap();
        let listener = TcpListener::bind((address, TCP)).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = std::io::copy(&mut stream.try_clone().unwrap(), &mut stream);
            }
        });
        let socket = UdpSocket::bind((address, UDP)).unwrap();
        thread::spawn(move || {
            let mut bytes = vec![0; 65_536];
            loop {
                let (length, from) = socket.recv_from(&mut bytes).unwrap();
                let _ = socket.send_to(&answer(&bytes[..length]), from);
            }
        });
    }
    let listener = TcpListener::bind(("10.0.9.2", COUNTERS)).unwrap();
    println!("{READY}");
    for stream in listener.incoming() {
        stream.unwrap().write_all(&std::fs::read("/proc/net/xfrm_stat").unwrap()).unwrap();
    }
}
