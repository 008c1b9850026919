//! The tunnels of `--app esp`: read from a file, and told at the end.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use wirespeed_esp::Database;
use wirespeed_esp::read::Lines;

use super::options::Options;

/// Reads associations and policies. A line that is skipped is an error: a policy that is not there lets
/// packets out in the clear.
pub(super) fn load(options: &Options) -> Result<Database> {
    let path = options.sad.as_ref().context("--app esp needs associations and policies: --sad FILE")?;
    let lines = Lines::read_file(path)?;
    if let Some(first) = lines.skipped.first() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        lines.skipped.iter().for_each(|skipped| *counts.entry(skipped.skip.name()).or_default() += 1);
        let counts: Vec<String> = counts.iter().map(|(reason, count)| format!("{reason}: {count}")).collect();
        bail!("{}: {first} (lines that can't be used: {})", path.display(), counts.join(", "));
    }
    let mut database = Database::new()?;
    database.apply(lines.changes).with_context(|| format!("{}", path.display()))?;
    Ok(database)
}

/// Tells the numbers from which each association that was used goes on.
pub(super) fn tell(database: &Database) {
    for sa in database.state().sas() {
        let (packets, bytes) = sa.carried();
        if packets > 0 {
            let (sent, received) = (sa.sent(), sa.received());
            let halves = |name: &str, number: u64| match number >> 32 {
                0 => format!("{name} {number}"),
                high => format!("{name} {} {name}-hi {high}", number & 0xffff_ffff),
            };
            eprintln!(
                "association {:#x} to {}: {packets} packets, {bytes} bytes; it goes on with {} {}",
                sa.spi(),
                sa.tunnel().1,
                halves("replay-oseq", sent),
                halves("replay-seq", received),
            );
        }
    }
}
