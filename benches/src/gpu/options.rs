//! What programs that measure kernels and whole trips of one engine after the other are asked alike.

use clap::Args;

/// The amount of measuring of a kernel and of its trips.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Launches of each measurement of a kernel
    #[arg(long, default_value_t = 7)]
    pub rounds: usize,
    /// Keys of a batch of the trips; 0 for no trips
    #[arg(long, value_delimiter = ',', default_values_t = [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20])]
    batches: Vec<usize>,
    /// Batches under way
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8])]
    pub in_flight: Vec<usize>,
    /// Seconds of each trip
    #[arg(long, default_value_t = 0.15)]
    pub seconds: f64,
    /// Every launch that was tried, not only the fastest
    #[arg(long)]
    all: bool,
}

impl Options {
    /// The batches of trips that a trace of so many keys fills.
    pub fn batches(&self, keys: usize) -> Vec<usize> {
        self.batches.iter().copied().filter(|&batch| batch > 0 && batch <= keys).collect()
    }

    /// The most batches under way.
    pub fn most_in_flight(&self) -> usize {
        self.in_flight.iter().copied().max().unwrap_or(1)
    }

    /// Says how many of the launches that were tried are told: a few, where not all are.
    pub fn told(&self, few: usize) -> usize {
        if self.all { usize::MAX } else { few }
    }
}
