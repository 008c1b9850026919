//! The CPU time of this program.

/// Seconds of CPU time that all threads of this program have taken, with those of the system on their behalf.
/// `None` if the system doesn't tell. The system counts hundredths of a second.
pub(super) fn cpu_seconds() -> Option<f64> {
    of_stat(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// Ticks a second in that file, on every system that Linux runs on.
const TICKS: f64 = 100.0;

/// The name of the program, in parentheses, may hold spaces and parentheses. The user's and the system's
/// ticks are the twelfth and thirteenth words after it.
fn of_stat(stat: &str) -> Option<f64> {
    let (_, words) = stat.rsplit_once(')')?;
    let mut ticks = words.split_whitespace().skip(11).map(str::parse::<f64>);
    Some((ticks.next()?.ok()? + ticks.next()?.ok()?) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_come_after_the_name() {
        let stat = "12 (a) b (c)) R 1 2 3 4 5 6 7 8 9 10 250 50 13 14";
        assert_eq!(of_stat(stat), Some(3.0));
        assert_eq!((of_stat("12 (a) R 1 2"), of_stat("")), (None, None));
        assert!(cpu_seconds().is_none_or(|seconds| seconds >= 0.0));
    }
}
