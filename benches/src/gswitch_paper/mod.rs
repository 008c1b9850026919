//! The figures of the GSwitch paper (Varvello, Laufer, Zhang, Lakshman, "Multi-Layer Packet Classification
//! with Graphics Processing Units", CoNEXT 2014), made anew with this project's engines: its three on a GPU
//! and on CPUs, and on CPUs ours beside them.
//!
//! | here | in the paper |
//! |---|---|
//! | [`classes`] | Figure 3: rules of a class in real sets |
//! | [`micro`] | Figures 4 and 5: the bus by size of transfers; kernel, transfers and throughput by batch; Bloom search by blocks and by filter |
//! | [`versus`] | Figures 6(a) and 6(b): GPU against CPU by cores and by batch |
//! | [`sets`] | Figures 6(c), 7 and 8: rules, classes, full classes, classes that match, fields; and the sets of ClassBench |
//! | [`large`] | none: sets of 512 K rules |
//!
//! ```text
//! cargo xtask gswitch-paper                               all; writes benches/record/MACHINE/DATE-gswitch-paper-….csv and .svg
//! cargo xtask gswitch-paper -- --figures 6,7              some; without a GPU their CPU halves are made
//! cargo xtask gswitch-paper -- --figures large --large 131072,524288   sets of as many rules
//! cargo xtask gswitch-paper -- --quick --device host --dry   tiny sizes, on the host build of the kernels; prints, and writes nothing
//! ```
//!
//! Each figure is written as soon as it is measured, so that a run that is cut off keeps what it has.
//!
//! Answers are held against others before anything is timed: a set's right numbers are those of Bloom search
//! on the CPU, a part of which is held against the oracle; every engine on the CPU and every kernel and trip
//! that is timed is held against them. Large sets in the style of ClassBench have too many classes for both:
//! their right numbers are Quilt's, a part of which is held against a scan.
//!
//! What differs from the paper: rates are in tuples, and `gbps` is of frames of 84 bytes, as there. Kernels
//! are timed with its batches of 8 K tuples, and with as many as keep today's GPUs busy; the launch is the
//! best of those that fit. Whole trips take tuples from pinned memory and bring numbers back there, several
//! batches under way. Bloom filters follow from the classes; figure 5(c) asks for head room to have them
//! larger. A class of any size is one class. Linear search goes through fewer tuples where there are many
//! rules.

pub mod classes;
pub mod cpu;
pub mod device;
pub mod large;
pub mod micro;
pub mod sets;
pub mod subject;
pub mod versus;

use crate::gpu::plot::Plot;
use crate::report::Sheet;

/// A figure: the end of its file's name, what was measured, and how it is drawn.
pub struct Figure {
    /// `figure-6a` and the like.
    pub name: String,
    /// The rows.
    pub sheet: Sheet,
    /// The pictures; the first has the figure's name, the others end in what they show.
    pub plots: Vec<Plot>,
}

/// The amount of measuring.
#[derive(Clone, Debug)]
pub struct Scale {
    /// The most rules of a set; larger ones are left out.
    pub rules: usize,
    /// Rules of the sets of [`large`].
    pub large: Vec<usize>,
    /// Tuples on the device when a kernel is timed.
    pub tuples: usize,
    /// The paper's P, where it is no figure's subject.
    pub batch: usize,
    /// Tuples of a batch of whole trips.
    pub trip: usize,
    /// Batches under way.
    pub in_flight: usize,
    /// Seconds of each trip, and of each measurement on CPUs.
    pub seconds: f64,
    /// Launches that a rate is the median of.
    pub rounds: usize,
    /// Numbers of cores that the CPU is measured with, ascending.
    pub cores: Vec<usize>,
}

impl Scale {
    /// Batches of figures by batch: by fours, up to what a trip takes.
    pub fn batches(&self) -> Vec<usize> {
        (8..).step_by(2).map(|log| 1 << log).take_while(|&batch| batch <= self.tuples).collect()
    }
}

/// Millions a second, or microseconds; nothing where it wasn't measured. Small figures have more digits.
fn cell(figure: Option<f64>) -> String {
    figure.map_or_else(String::new, |figure| {
        if figure < 0.1 { format!("{figure:.5}") } else { format!("{figure:.2}") }
    })
}

/// Gb/s of frames of 84 bytes, as the paper has it, of so many tuples a second.
fn gbps(rate: f64) -> f64 {
    rate * 84.0 * 8.0 / 1e9
}

#[allow(clippy::cast_precision_loss)] // for rates
fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use wirespeed_classify::Ipv4Tuple;
    use wirespeed_classify::generate::Shape;

    use super::*;
    use crate::gpu::plot::svg;

    fn tiny() -> Scale {
        Scale {
            rules: 2_048,
            large: vec![1_024],
            tuples: 512,
            batch: 256,
            trip: 256,
            in_flight: 1,
            seconds: 0.0,
            rounds: 1,
            cores: vec![1, 2],
        }
    }

    #[test]
    fn without_a_gpu_the_cpus_half_is_made() {
        let figure = sets::by_fields(None, &tiny()).unwrap();
        let column = |name| figure.sheet.columns.iter().position(|&column| column == name).unwrap();
        let numbers = |name| -> Vec<f64> {
            figure.sheet.rows.iter().filter_map(|row| row[column(name)].parse().ok()).collect()
        };
        assert_eq!(figure.sheet.rows.len(), 8, "four engines with 5 and with 12 fields");
        assert!(numbers("core_mtuples_per_s").iter().all(|&rate| rate > 0.0));
        assert_eq!(numbers("cpu_mtuples_per_s").len(), 8);
        assert!(numbers("kernel_mtuples_per_s").is_empty() && numbers("trip_mtuples_per_s").is_empty());
        for plot in &figure.plots {
            assert!(svg(&figure.sheet, plot).unwrap().contains("quilt"));
        }
    }

    #[test]
    fn large_sets_are_of_both_sorts() {
        let figure = large::figure(None, &tiny()).unwrap();
        let kind = figure.sheet.columns.iter().position(|&column| column == "kind").unwrap();
        let mut kinds: Vec<&str> = figure.sheet.rows.iter().map(|row| row[kind].as_str()).collect();
        kinds.dedup();
        assert_eq!(kinds, ["synthetic", "made-acl", "made-fw", "made-ipc"]);
        assert!(large::figure(None, &Scale { large: vec![511], ..tiny() }).is_err());
    }

    #[test]
    fn wrong_numbers_are_not_timed() {
        let mut subject = subject::Subject::<Ipv4Tuple>::made(Shape::even(64, 4), 300).unwrap();
        let methods = subject::methods(&subject.rules);
        let time = |subject: &subject::Subject<_>| {
            versus::on_cpu(subject, methods[1].as_ref(), &tiny(), (64, 2)).is_ok_and(|rate| rate > 0.0)
        };
        assert!(time(&subject));
        subject.right[299] ^= 1;
        assert!(!time(&subject));
    }
}
