//! [`race`]: lanes in turns, round after round.

use anyhow::{Context, Result};

use crate::report::{Sheet, median};

/// The outcome of a run.
pub enum Run {
    /// Frames that were forwarded a second.
    Rate(f64),
    /// The reason why there is none here.
    Absent(String),
}

/// A router in a setting.
pub struct Lane {
    /// The name in records.
    pub name: String,
    /// `memory` or `live`.
    pub setting: &'static str,
    /// The command, as a user would type it.
    pub command: String,
    /// Measures once.
    pub run: Box<dyn FnMut() -> Result<Run>>,
}

const COLUMNS: &[&str] = &["router", "setting", "rounds", "mpps", "least_mpps", "most_mpps", "command"];

/// Measures all lanes in turns, round after round. Lanes that are absent are named and left out.
pub fn race(mut lanes: Vec<Lane>, rounds: usize) -> Result<Sheet> {
    let mut rates = vec![Vec::new(); lanes.len()];
    let mut absent = vec![false; lanes.len()];
    for round in 0..rounds {
        for (at, lane) in lanes.iter_mut().enumerate() {
            if absent[at] {
                continue;
            }
            match (lane.run)().with_context(|| format!("{} ({})", lane.name, lane.setting))? {
                Run::Rate(rate) => {
                    eprintln!(
                        "round {}: {} ({}): {:.3} Mpps",
                        round + 1,
                        lane.name,
                        lane.setting,
                        rate / 1e6
                    );
                    rates[at].push(rate / 1e6);
                }
                Run::Absent(reason) => {
                    eprintln!("skipped: {} ({}): {reason}", lane.name, lane.setting);
                    absent[at] = true;
                }
            }
        }
    }
    let mut rows = Vec::new();
    for (lane, rates) in lanes.iter().zip(&rates).filter(|(_, rates)| !rates.is_empty()) {
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        let figure = |rate: f64| format!("{rate:.3}");
        rows.push(vec![
            lane.name.clone(),
            lane.setting.to_owned(),
            rates.len().to_string(),
            figure(median(rates)),
            figure(least),
            figure(most),
            // A cell has no comma.
            lane.command.replace(',', ";"),
        ]);
    }
    Ok(Sheet { title: "routers, in turns".to_owned(), columns: COLUMNS, rows })
}
