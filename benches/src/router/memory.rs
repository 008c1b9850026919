//! [`lanes`]: routers from memory to memory, on one core each.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use wirespeed_fib::Family;

use super::programs::Programs;
use super::race::{Lane, Run};
use crate::data;

/// Seconds that testpmd takes to start, at most.
const START: f64 = 4.0;

/// The routers: ours on tables of both families and behind an access list, and testpmd. Tables that are made
/// go to the folder.
pub fn lanes(programs: &Programs, folder: &Path, seconds: f64) -> Result<Vec<Lane>> {
    let table = |family: Family, number: &str| -> Result<String> {
        let real = data::sources().into_iter().find(|source| source.family == family);
        if let Some(path) = real.as_ref().and_then(data::Source::path) {
            return Ok(format!("{} --lenient", path.display()));
        }
        let path = folder.join(format!("synthetic-v{number}.txt"));
        programs.lookupctl(&format!("gen fib --family {number} -o {}", path.display()))?;
        Ok(path.display().to_string())
    };
    let (v4, v6) = (table(Family::V4, "4")?, table(Family::V6, "6")?);
    let rules = folder.join("acl-10k.rules");
    programs.lookupctl(&format!("classify gen rules --set acl --count 10k -o {}", rules.display()))?;
    let rules = rules.display();
    let ours = |name: &str, words: String| ours(programs, name.to_owned(), &words, seconds);
    Ok(vec![
        ours("wirespeed-ipv4", format!("--in gen:64 --fib {v4}")),
        testpmd(seconds),
        ours("wirespeed-ipv6", format!("--in gen:64 --fib {v6}")),
        ours("wirespeed-imix", format!("--in gen:imix --fib {v4}")),
        ours("wirespeed-acl-10k", format!("--in gen:64 --fib {v4} --app acl --rules {rules}")),
    ])
}

/// Ours, on one core with these options.
pub(super) fn ours(programs: &Programs, name: String, words: &str, seconds: f64) -> Lane {
    ours_with("cpu", programs, name, words, seconds)
}

/// Ours, with one worker that uses a device (`cpu`, `gpu` or `auto`), which is a part of the name of all but
/// the CPU.
pub(super) fn ours_with(device: &str, programs: &Programs, name: String, words: &str, seconds: f64) -> Lane {
    let name = if device == "cpu" { name } else { format!("{name}-{device}") };
    let words = format!("{words} --threads 1 --device {device} --seconds {seconds}");
    // Records tell which files there were, and not where.
    let word = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let shown: Vec<String> = words.split_whitespace().map(word).collect();
    let command = format!("lookupctl route {}", shown.join(" "));
    let programs = programs.clone();
    let run = Box::new(move || {
        let report = programs.route(&words)?;
        let mpps = report["mpps"].as_f64().context("no rate in the report")?;
        Ok(Run::Rate(mpps * 1e6))
    });
    Lane { name, setting: "memory", command, run }
}

/// testpmd with ports that make frames and throw them away, and its forwarding that rewrites addresses.
fn testpmd(seconds: f64) -> Lane {
    let words = "--no-huge --no-pci -m 256 -l 0,1 --vdev=net_null0 --vdev=net_null1 -- --forward-mode=mac \
                 --nb-cores=1 --total-num-mbufs=16384 --stats-period=1";
    let run = Box::new(move || {
        let mut command = Command::new("timeout");
        command
            .args(["--signal=INT", &(START + seconds).to_string(), "dpdk-testpmd"])
            .arg(format!("--file-prefix=router-bench-{}", std::process::id()))
            .args(words.split_whitespace())
            .stdin(Stdio::null());
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(match rate(&said) {
            Some(rate) => Run::Rate(rate),
            None => Run::Absent(reason(&output)),
        })
    });
    Lane { name: "testpmd-mac".to_owned(), setting: "memory", command: format!("dpdk-testpmd {words}"), run }
}

/// The reason why testpmd measured nothing.
fn reason(output: &std::process::Output) -> String {
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let error = said.lines().rfind(|line| line.contains("rror") || line.contains("annot"));
    let needs = "it needs the packages dpdk-dev, librte-net-null23 and librte-mempool-ring23";
    error.map_or_else(|| needs.to_owned(), |error| format!("{error}; {needs}"))
}

/// The rate of the last second that testpmd told whole: what both ports sent.
fn rate(said: &str) -> Option<f64> {
    let sent = said.lines().filter_map(|line| line.trim().strip_prefix("Tx-pps:"));
    let sent: Vec<f64> =
        sent.filter_map(|rest| rest.split_whitespace().next()?.parse::<f64>().ok()).collect();
    // Two ports a second. The first seconds are those of the start.
    let mut seconds: Vec<f64> = sent.chunks_exact(2).map(|ports| ports.iter().sum()).collect();
    seconds.retain(|&rate| rate > 0.0);
    (!seconds.is_empty()).then(|| crate::report::median(&seconds))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_rate_is_what_both_ports_sent() {
        let said = "  Rx-pps: 0  Rx-bps: 0\n  Tx-pps:   0   Tx-bps: 0\n  Tx-pps: 0 Tx-bps: 0\n\
                    \x20 Tx-pps: 100 Tx-bps: 0\n  Tx-pps: 150 Tx-bps: 0\n  Tx-pps: 9";
        assert_eq!(super::rate(said), Some(250.0));
        assert_eq!(super::rate("EAL: Error"), None);
    }
}
