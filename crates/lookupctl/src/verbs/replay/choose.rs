//! The choice of what the user left open: devices, batch size, threads, and batches under way. Plans are
//! tried for moments, and the best for a little longer.
//!
//! What is best depends on machine, table and trace: the larger a batch, the less a GPU's driver costs, until
//! the batches under way outgrow the caches of the cores that fill them. And where a GPU has as much as it
//! can do, cores that look up themselves add to it, as long as the host's memory is fast enough for both:
//! every thread where its batch is answered sooner, or some threads all the time.

use std::time::Duration;

use anyhow::Result;

use super::place::Place;
use super::plan::{self, Plan};
use crate::interrupt::is_interrupted;

/// Batch sizes to try where a GPU looks up.
pub(super) const SIZES: [usize; 4] = [1 << 16, 1 << 17, 1 << 18, 1 << 19];
/// Numbers of batches under way to try.
pub(super) const IN_FLIGHT: [usize; 2] = [2, 4];
/// The time of a first trial.
const GLIMPSE: Duration = Duration::from_millis(40);
/// The time of each of the longer trials.
const LOOK: Duration = Duration::from_millis(120);
/// The longer trials of a plan, in turns with those of the others: the rate of a plan changes by a tenth from
/// one moment to the next.
const TURNS: usize = 3;
/// The plans that are tried for longer.
const FINALISTS: usize = 4;

/// The plan with the highest rate. The only plan is not tried.
pub(super) fn best(plans: &[Plan], place: &dyn Place, explains: bool) -> Result<Plan> {
    if let &[only] = plans {
        return Ok(only);
    }
    let mut tried = rates(plans, place, GLIMPSE, 1)?;
    tried.extend(rates(&plan::mixed(&tried), place, GLIMPSE, 1)?);
    tried.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let count = tried.len();
    if explains {
        explain("tried", &tried);
    }
    let finalists: Vec<_> = tried.iter().take(FINALISTS).map(|&(plan, _)| plan).collect();
    let longer = rates(&finalists, place, LOOK, TURNS)?;
    if !longer.is_empty() {
        tried = longer;
        if explains {
            explain("tried for longer", &tried);
        }
    }
    let (best, rate) = tried.first().copied().unwrap_or((plans[0], 0.0));
    eprintln!("{}: chosen of {} plans that were tried, at {:.0} M lookups/s", best, count, rate / 1e6);
    Ok(best)
}

fn explain(how: &str, rates: &[(Plan, f64)]) {
    for (plan, rate) in rates {
        eprintln!("{how}: {}: {:.0} M lookups/s", plan, rate / 1e6);
    }
}

/// The plans with their rates, the best first. Each is tried so many times, in turns. Ends early at a signal.
fn rates(plans: &[Plan], place: &dyn Place, time: Duration, turns: usize) -> Result<Vec<(Plan, f64)>> {
    let mut done = vec![(0, 0.0); plans.len()];
    for at in (0..turns).flat_map(|_| 0..plans.len()) {
        if is_interrupted() {
            break;
        }
        let driven = Plan { time, ..plans[at] }.drive(place, None)?;
        let (keys, seconds) = &mut done[at];
        *keys += plans[at].lookups(&driven.batches);
        *seconds += driven.seconds;
    }
    #[allow(clippy::cast_precision_loss)] // a rate
    let rate = |(keys, seconds): (u64, f64)| if seconds > 0.0 { keys as f64 / seconds } else { 0.0 };
    let tried = plans.iter().zip(done).filter(|(_, (keys, _))| *keys > 0);
    let mut rates: Vec<_> = tried.map(|(&plan, done)| (plan, rate(done))).collect();
    rates.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    Ok(rates)
}
