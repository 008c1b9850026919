//! [`Costs`]: what one read of a level costs, by the level's size.
//!
//! In a batch many lookups are under way, so a read costs not its latency but its share of what the memory
//! system can have under way. The default is one AVX-512 gather of 4-byte units after another, at random
//! places of an array in huge pages. The core is one of an AMD EPYC of the Zen 4 kind with 32 KB of L1, 1 MB
//! of L2, and 32 MB of shared L3 of which about half is available:
//!
//! | 4 KB | 32 KB | 256 KB | 1 MB | 2 MB | 4 MB | 8 MB | 16 MB | 32 MB | 64 MB | 128 MB |
//! |---|---|---|---|---|---|---|---|---|---|---|
//! | 0.34 | 0.51 | 0.72 | 0.80 | 0.91 | 1.06 | 1.40 | 3.20 | 5.15 | 7.10 | 8.10 |
//!
//! (Nanoseconds; medians of 14 rounds over 4 million keys, whose own streaming is in them.)

/// Nanoseconds that a read of a level costs a lookup in a batch, by the level's bytes. Between the sizes that
/// were measured it is in proportion to the logarithm of the size, outside it is that of the nearest.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// Bytes and nanoseconds, both ascending; never empty.
    points: Vec<(u64, f64)>,
}

impl Costs {
    /// Costs by measurements: bytes of an array and nanoseconds of a read in it. They may come in any order
    /// and are made to rise with the size, as a smaller array can't be slower. `None` without any, or where
    /// one is negative or no number.
    pub fn new(measured: impl IntoIterator<Item = (u64, f64)>) -> Option<Self> {
        let mut points: Vec<(u64, f64)> = measured.into_iter().collect();
        if points.is_empty() || points.iter().any(|&(_, ns)| !(ns.is_finite() && ns >= 0.0)) {
            return None;
        }
        points.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut highest = 0.0f64;
        for (_, ns) in &mut points {
            highest = highest.max(*ns);
            *ns = highest;
        }
        Some(Self { points })
    }

    /// Nanoseconds of a read in so many bytes.
    pub fn of(&self, bytes: u64) -> f64 {
        let after = self.points.partition_point(|&(size, _)| size < bytes);
        match (after.checked_sub(1).map(|at| self.points[at]), self.points.get(after)) {
            (Some((low, from)), Some(&(high, to))) => {
                let log = |bytes: u64| (bytes as f64).ln_1p();
                from + (log(bytes) - log(low)) / (log(high) - log(low)) * (to - from)
            }
            (Some((_, ns)), None) | (None, Some(&(_, ns))) => ns,
            (None, None) => 0.0,
        }
    }
}

impl Default for Costs {
    fn default() -> Self {
        const KB: u64 = 1 << 10;
        const MB: u64 = 1 << 20;
        Self {
            points: vec![
                (4 * KB, 0.34),
                (32 * KB, 0.51),
                (128 * KB, 0.64),
                (256 * KB, 0.72),
                (512 * KB, 0.77),
                (MB, 0.80),
                (2 * MB, 0.91),
                (4 * MB, 1.06),
                (8 * MB, 1.40),
                (16 * MB, 3.20),
                (32 * MB, 5.15),
                (64 * MB, 7.10),
                (128 * MB, 8.10),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_sizes_by_the_logarithm() {
        let costs = Costs::new([(1 << 20, 1.0), (4 << 20, 3.0)]).unwrap();
        assert_eq!(costs.of(0), 1.0);
        assert_eq!(costs.of(1 << 20), 1.0);
        assert!((costs.of(2 << 20) - 2.0).abs() < 1e-6);
        assert!((costs.of(4 << 20) - 3.0).abs() < 1e-12);
        assert_eq!(costs.of(u64::MAX), 3.0);
    }

    #[test]
    fn measurements_are_made_to_rise_or_refused() {
        let costs = Costs::new([(4, 3.0), (1, 2.0), (2, 1.0), (2, 2.5)]).unwrap();
        assert_eq!(costs.points, [(1, 2.0), (2, 2.0), (2, 2.5), (4, 3.0)]);
        assert_eq!(costs.of(2), 2.0);
        assert!(Costs::new([]).is_none());
        assert!(Costs::new([(1, f64::NAN)]).is_none());
        assert!(Costs::new([(1, -1.0)]).is_none());
    }

    #[test]
    fn the_default_is_a_measurement_like_any() {
        assert_eq!(Costs::new(Costs::default().points), Some(Costs::default()));
    }
}
