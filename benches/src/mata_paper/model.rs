//! Section 3: the time of a batch and the latency of a part by the number of streams, fitted to what was
//! measured.
//!
//! ```text
//! T       = 2 t_start N + (M_batch + M_result) / S_PCIe + M_batch / (N S_kernel)              (1)
//! latency = 2 t_start + ((M_batch + M_result) / S_PCIe + M_batch / S_kernel) / N              (2)
//! ```
//!
//! T is least where N = sqrt(M_batch / (2 t_start S_kernel)). `S_PCIe` and `S_kernel` are measured apart from
//! each other, the one by copies alone and the other by names that lie on the device; `t_start` is what then
//! fits (1) best, by least squares.
//!
//! The formula counts both ways over the bus one after the other, as the paper's GPU has one copy engine.
//! With two of them results go back while names come in, and the second term is the longer way alone:
//! `S_PCIe` is measured with both at once, so that it holds for either.

/// The numbers of a machine that the formulas need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Seconds to start a copy.
    pub start: f64,
    /// Bytes a second over the bus, both ways together.
    pub bus: f64,
    /// Bytes of names a second that a kernel looks up.
    pub kernel: f64,
}

/// Bytes of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bytes {
    /// Bytes of its names.
    pub batch: f64,
    /// Bytes of its results.
    pub results: f64,
}

impl Model {
    /// The model by the speeds of bus and kernel, and the seconds of a batch by numbers of streams.
    pub fn fit(bytes: Bytes, bus: f64, kernel: f64, measured: &[(f64, f64)]) -> Self {
        let model = Self { start: 0.0, bus, kernel };
        // What formula 1 leaves for 2 t_start N; the best factor of a line through the origin.
        let (mut above, mut below) = (0.0, 0.0);
        for &(streams, seconds) in measured {
            above += (seconds - model.batch_seconds(bytes, streams)) * 2.0 * streams;
            below += 4.0 * streams * streams;
        }
        let start = if below > 0.0 { (above / below).max(0.0) } else { 0.0 };
        Self { start, ..model }
    }

    /// Formula 1: seconds of a batch.
    pub fn batch_seconds(&self, bytes: Bytes, streams: f64) -> f64 {
        2.0 * self.start * streams
            + (bytes.batch + bytes.results) / self.bus
            + bytes.batch / (streams * self.kernel)
    }

    /// Formula 2: seconds of a part.
    pub fn latency(&self, bytes: Bytes, streams: f64) -> f64 {
        let whole = (bytes.batch + bytes.results) / self.bus + bytes.batch / self.kernel;
        2.0 * self.start + whole / streams
    }

    /// The number of streams with which formula 1 is least; at least 1.
    pub fn best(&self, bytes: Bytes) -> f64 {
        (bytes.batch / (2.0 * self.start * self.kernel)).sqrt().max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's own numbers: 16 MB, 10 µs, 8 GB/s.
    const PAPER: (Model, Bytes) =
        (Model { start: 10e-6, bus: 5e9, kernel: 8e9 }, Bytes { batch: 16e6, results: 1.6e6 });

    #[test]
    fn the_papers_best_is_near_its_16() {
        let (model, bytes) = PAPER;
        assert!((model.best(bytes) - 10.0).abs() < 0.1, "{}", model.best(bytes));
        let best = model.batch_seconds(bytes, model.best(bytes));
        assert!([1.0, 4.0, 32.0, 128.0].iter().all(|&streams| model.batch_seconds(bytes, streams) > best));
        assert!(model.latency(bytes, 64.0) < model.latency(bytes, 8.0));
    }

    #[test]
    fn what_follows_the_formula_is_fitted() {
        let (model, bytes) = PAPER;
        let measured = [1.0, 4.0, 16.0, 64.0].map(|streams| (streams, model.batch_seconds(bytes, streams)));
        let fitted = Model::fit(bytes, model.bus, model.kernel, &measured);
        assert!((fitted.start - model.start).abs() < 1e-9, "{fitted:?}");
    }
}
