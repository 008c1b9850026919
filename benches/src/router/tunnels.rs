//! [`lanes`]: packets sealed into IPsec tunnels and opened by their size, on one core: by ours from memory to
//! memory, and by DPDK's `dpdk-test-crypto-perf`, which encrypts buffers and has no headers, policies or
//! associations.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result};

use super::memory;
use super::programs::Programs;
use super::race::{Lane, Run};

/// Bytes of frames, without the checksum at their ends, and the mix that ours makes.
const SIZES: [&str; 7] = ["64", "128", "256", "512", "1024", "1500", "imix"];
/// Frames that are sealed into a capture, to be opened again and again.
const SEALED: usize = 4096;

/// The longest packet of links and of the tunnel: sealed, the largest frame is longer than it was.
const MTU: u32 = 1600;

/// A suite: its name, its words in a line of `ip xfrm state`, and those for DPDK.
struct Suite {
    name: &'static str,
    words: &'static str,
    dpdk: &'static str,
}

const SUITES: [Suite; 2] = [
    Suite {
        name: "aes-gcm-128",
        words: "aead rfc4106(gcm(aes)) 0x00112233445566778899aabbccddeeff01020304 128",
        dpdk: "--optype aead --aead-algo aes-gcm --aead-op encrypt --aead-key-sz 16 --aead-iv-sz 12 \
               --aead-aad-sz 16 --digest-sz 16",
    },
    Suite {
        name: "aes-128-ctr-hmac-sha1",
        words: "enc rfc3686(ctr(aes)) 0x00112233445566778899aabbccddeeff01020304 \
                auth-trunc hmac(sha1) 0x000102030405060708090a0b0c0d0e0f10111213 96",
        dpdk: "--optype cipher-then-auth --cipher-algo aes-ctr --cipher-op encrypt --cipher-key-sz 16 \
               --cipher-iv-sz 16 --auth-algo sha1-hmac --auth-op generate --auth-key-sz 64 --digest-sz 12",
    },
];

/// The crypto devices of DPDK in software, fastest first, with the packages that have them.
const DEVICES: [(&str, &str); 3] = [
    ("crypto_aesni_gcm", "librte-crypto-ipsec-mb23"),
    ("crypto_aesni_mb", "librte-crypto-ipsec-mb23"),
    ("crypto_openssl", "librte-crypto-openssl23"),
];

/// Ours on each of these devices and DPDK's, for each suite and size. Files of keys go to the folder.
pub fn lanes(
    programs: &Programs,
    folder: &Path,
    seconds: f64,
    devices: &[impl AsRef<str>],
) -> Result<Vec<Lane>> {
    let mut lanes = Vec::new();
    for suite in &SUITES {
        let fib = folder.join("tunnel.fib");
        std::fs::write(&fib, "10.0.0.0/8 1\n192.0.2.2/32 1\n").with_context(|| fib.display().to_string())?;
        let [seal, open] = ["out", "in"].map(|dir| -> Result<String> {
            let path = folder.join(format!("{}-{dir}.sad", suite.name));
            std::fs::write(&path, lines(suite, dir)).with_context(|| path.display().to_string())?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            Ok(format!("--app esp --sad {} --fib {} --mtu {MTU}", path.display(), fib.display()))
        });
        let (seal, open) = (seal?, open?);
        for size in SIZES {
            let sealed = folder.join(format!("{}-{size}.pcap", suite.name));
            let sealed = sealed.display();
            programs.lookupctl(&format!("route --in gen:{size} {seal} --count {SEALED} --out {sealed}"))?;
            let sealing = (format!("wirespeed-{}-{size}", suite.name), format!("--in gen:{size} {seal}"));
            let opening =
                (format!("wirespeed-open-{}-{size}", suite.name), format!("--in loop:{sealed} {open}"));
            for (name, words) in [sealing, opening] {
                lanes.extend(devices.iter().map(|device| {
                    memory::ours_with(device.as_ref(), programs, name.clone(), &words, seconds)
                }));
            }
            // It has no mix of sizes.
            lanes.extend(size.parse().ok().map(|size| crypto_perf(suite, size)));
        }
    }
    Ok(lanes)
}

/// A tunnel that all frames which `lookupctl` makes go into, or come out of. What comes out has come before:
/// no window may refuse it, so the lines for that have none.
fn lines(suite: &Suite, dir: &str) -> String {
    let (ends, window) = ("src 192.0.2.1 dst 192.0.2.2", if dir == "in" { 0 } else { 1024 });
    format!(
        "ip xfrm state add {ends} proto esp spi 0x100 reqid 1 mode tunnel replay-window {window} path-mtu {MTU} {}\n\
         ip xfrm policy add src 0.0.0.0/0 dst 0.0.0.0/0 dir {dir} tmpl {ends} proto esp reqid 1 mode tunnel\n",
        suite.words
    )
}

fn crypto_perf(suite: &Suite, size: usize) -> Lane {
    let words = format!(
        "--ptest throughput --silent --total-ops 1000000 --burst-sz 32 --buffer-sz {size} {}",
        suite.dpdk
    );
    let name = format!("dpdk-crypto-{}-{size}", suite.name);
    let command = format!("dpdk-test-crypto-perf --vdev DEVICE -- --devtype DEVICE {words}");
    let run = Box::new(move || {
        let mut reasons = Vec::new();
        for (device, package) in DEVICES {
            let mut command = Command::new("dpdk-test-crypto-perf");
            command
                .args(["--no-huge", "--no-pci", "-m", "256", "-l", "0,1", "--vdev", device])
                .arg(format!("--file-prefix=esp-bench-{}", std::process::id()))
                .args(["--", "--devtype", device])
                .args(words.split_whitespace())
                .stdin(Stdio::null());
            let Ok(output) = command.output() else {
                return Ok(Run::Absent("it needs the package dpdk-dev".to_owned()));
            };
            match rate(&String::from_utf8_lossy(&output.stdout)) {
                Some(rate) => return Ok(Run::Rate(rate)),
                None => reasons.push(format!("{device}: {}; see the package {package}", reason(&output))),
            }
        }
        Ok(Run::Absent(reasons.join("; ")))
    });
    Lane { name, setting: "memory", command, run }
}

/// The last line in which the program says what is wrong.
fn reason(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let wrong = said
        .lines()
        .rfind(|line| ["rror", "annot", "ailed", "nsupported"].iter().any(|word| line.contains(word)));
    wrong.unwrap_or("no rate").trim().to_owned()
}

/// Buffers a second in the table that the program prints: the column of a million operations, `MOps`.
fn rate(said: &str) -> Option<f64> {
    let mut lines = said.lines().skip_while(|line| !line.contains("MOps"));
    // The heading has words of two parts, with more than one space between the columns.
    let columns = |line: &str| -> Vec<String> {
        line.split("  ").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let at = columns(lines.next()?).iter().position(|column| column == "MOps")?;
    let row =
        lines.find(|line| line.split_whitespace().next().is_some_and(|id| id.parse::<u32>().is_ok()))?;
    let rate: f64 = row.split_whitespace().nth(at)?.parse().ok()?;
    (rate > 0.0).then_some(rate * 1e6)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_rate_is_that_of_the_table() {
        let said = "# Crypto Performance Application Options:\n\n    lcore id    Buf Size  Burst Size    Enqueued    \
                    Dequeued  Failed Enq  Failed Deq        MOps        Gbps  Cycles/Buf\n\n           1          64   \
                    32     1000000     1000000           0           0      8.2500      4.2240      290.88\n";
        assert_eq!(super::rate(said), Some(8_250_000.0));
        assert_eq!(super::rate("USER1: No crypto devices available\n"), None);
    }
}
