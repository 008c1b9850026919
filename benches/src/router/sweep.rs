//! [`sweep`]: rate, latencies and device by offered load.

use anyhow::{Context, Result};

use super::programs::Programs;
use crate::report::Sheet;

/// Shares of the highest rate that are offered.
const SHARES: [f64; 8] = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.2];

const COLUMNS: &[&str] = &[
    "share",
    "offered_mpps",
    "mpps",
    "p50_us",
    "p99_us",
    "p999_us",
    "gpu_share_of_chunks",
    "gpu_chunks",
    "cpu_chunks",
];

/// Offers shares of the highest rate to `lookupctl route --device auto`: where a GPU helps, its share of the
/// chunks grows with the load. Without a GPU the CPU looks all up.
pub fn sweep(programs: &Programs, seconds: f64, words: &str) -> Result<Sheet> {
    let words = format!("{words} --seconds {seconds}");
    let highest = programs.route(&words)?["mpps"].as_f64().context("no rate in the report")?;
    let mut rows = Vec::new();
    for share in SHARES {
        let offered = highest * share;
        let report = programs.route(&format!("{words} --load {offered:.4}"))?;
        let float = |value: &serde_json::Value| value.as_f64().context("a figure is not in the report");
        let latency = |name: &str| float(&report["latency_us"][name]).map(|us| format!("{us:.1}"));
        let [cpu, gpu] = ["cpu", "gpu"].map(|device| report["chunks"][device].as_u64().unwrap_or(0));
        rows.push(vec![
            format!("{share}"),
            format!("{offered:.3}"),
            format!("{:.3}", float(&report["mpps"])?),
            latency("p50")?,
            latency("p99")?,
            latency("p999")?,
            format!("{:.3}", gpu as f64 / (cpu + gpu).max(1) as f64),
            gpu.to_string(),
            cpu.to_string(),
        ]);
    }
    Ok(Sheet { title: format!("by offered load: lookupctl route {words}"), columns: COLUMNS, rows })
}
