//! A GPU to measure on: kernels with tuples on the device, whole trips from pinned memory and back, and the
//! bus alone.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result};
use wirespeed_classify::{OpenFlowTuple, Tuple};
use wirespeed_gpu::classify::bytes_of;
use wirespeed_gpu::driver::Shape;
use wirespeed_gpu::runtime::{Gpu, TableHandle, Way};
use wirespeed_image::device::{Kind, Program};

use super::cpu::Known;
use super::{Scale, float};
use crate::gpu::bench::{Bench, THREADS, Uploaded};
use crate::gpu::in_form::KernelRate;
use crate::gpu::trip::{Travelled, Trip, travels};
use crate::gpu::{Device, ceiling, tuples};

/// A device with its runtime, each with a driver of its own.
pub struct Rig {
    /// The device for kernels.
    pub bench: Bench,
    /// The runtime for trips.
    pub gpu: Gpu,
    /// Batches a second over the bus by bytes in, bytes out and batches under way, as each is measured once.
    ceilings: HashMap<(usize, usize, usize), f64>,
}

/// Whole trips of the best way.
#[derive(Clone, Copy, Debug)]
pub struct Trips {
    /// The results of the trips.
    pub travelled: Travelled,
    /// The way that data moved.
    pub way: Way,
    /// Tuples a second that the bus allows.
    pub bus: f64,
}

impl Rig {
    /// A device with slots for what a scale asks for.
    pub fn open(device: Device, scale: &Scale) -> Result<Self> {
        let bench = Bench::on(device)?;
        let mut sizes = [scale.batch, scale.trip, scale.batches().last().copied().unwrap_or(1)];
        sizes.sort_unstable();
        // The largest tuples, whose words go by groups of 32.
        let key_bytes = bytes_of::<OpenFlowTuple>(sizes[0]).div_ceil(sizes[0]).max(OpenFlowTuple::PACKED + 1);
        let mut slots = sizes.to_vec();
        slots.dedup();
        let gpu = tuples::start(device, scale.in_flight, &slots, key_bytes)?;
        Ok(Self { bench, gpu, ceilings: HashMap::new() })
    }

    /// The rate of the best launch of a table for tuples on the device; its numbers are held against the
    /// right ones before it is timed.
    pub fn kernel<T: Tuple>(
        &mut self,
        table: &Uploaded,
        known: Known<'_, T>,
        rounds: usize,
    ) -> Result<KernelRate> {
        let best = self.best(table, known, rounds, Bench::shapes)?;
        best.context("no launch fits")
    }

    /// The rate of the best launch with so many blocks of each multiprocessor; `None` where no program lets
    /// so many fit.
    pub fn kernel_of_blocks<T: Tuple>(
        &mut self,
        table: &Uploaded,
        known: Known<'_, T>,
        rounds: usize,
        blocks: u32,
    ) -> Result<Option<KernelRate>> {
        self.best(table, known, rounds, |bench: &mut Bench, program: &Program, kind: Kind| {
            let kernel = program.kernel(kind);
            let multiprocessors = bench.properties().multiprocessors;
            let mut shapes = Vec::new();
            for threads in THREADS {
                let fit = bench.driver.blocks_per_multiprocessor(&kernel, threads, program.shared)?;
                if fit >= blocks {
                    shapes.push(Shape::row(blocks * multiprocessors, threads, program.shared));
                }
            }
            Ok(shapes)
        })
    }

    /// The rate of the best of some launches of each program.
    fn best<T: Tuple>(
        &mut self,
        table: &Uploaded,
        (tuples, right): Known<'_, T>,
        rounds: usize,
        shapes: impl Fn(&mut Bench, &Program, Kind) -> Result<Vec<Shape>>,
    ) -> Result<Option<KernelRate>> {
        let result_bytes = table.programs.first().context("a program")?.result_bytes;
        let best = self.fastest(table, &tuples[..few(tuples.len())], result_bytes, shapes)?;
        let Some((at, shape)) = best else { return Ok(None) };
        let (bench, program) = (&mut self.bench, &table.programs[at]);
        let there = bench.tuples(tuples, result_bytes)?;
        bench.try_in_form(program, &there, shape, right)?;
        let launch = |bench: &mut Bench| bench.launch_in_form(program, &there, shape);
        let rate = bench.rate_of(tuples.len(), rounds, launch)?;
        bench.drop_in_form(&there)?;
        Ok(Some(KernelRate { program: at, shared: program.shared, shape, rate }))
    }

    /// The fastest launch by a quick look at each, with the place of its program.
    fn fastest<T: Tuple>(
        &mut self,
        table: &Uploaded,
        tuples: &[T],
        result_bytes: usize,
        shapes: impl Fn(&mut Bench, &Program, Kind) -> Result<Vec<Shape>>,
    ) -> Result<Option<(usize, Shape)>> {
        let bench = &mut self.bench;
        let there = bench.tuples(tuples, result_bytes)?;
        let (mut best, mut most) = (None, 0.0);
        for (at, program) in table.programs.iter().enumerate() {
            for shape in shapes(bench, program, there.form.kind())? {
                let launch = |bench: &mut Bench| bench.launch_in_form(program, &there, shape);
                let rate = bench.rate_of(tuples.len(), 1, launch)?;
                if rate > most {
                    (best, most) = (Some((at, shape)), rate);
                }
            }
        }
        bench.drop_in_form(&there)?;
        Ok(best)
    }

    /// Whole trips of batches of so many tuples, by the fastest way; the numbers of each batch are held
    /// against the right ones first.
    pub fn trips<T: Tuple>(
        &mut self,
        table: &TableHandle,
        (tuples, right): Known<'_, T>,
        batch: usize,
        in_flight: usize,
        seconds: f64,
    ) -> Result<Trips> {
        let batch = batch.min(tuples.len());
        let bus = self.bus(bytes_of::<T>(batch), batch * table.result_bytes(), in_flight, seconds)?;
        let mut best: Option<(Travelled, Way)> = None;
        for way in Way::ALL {
            let trip = Trip { batch, in_flight, way: Some(way), time: Duration::from_secs_f64(seconds) };
            let filled = tuples::fill(&self.gpu, table, tuples, right, &trip)?;
            let (travelled, _) = travels(table, filled, &trip, 1)?;
            if best.is_none_or(|(known, _)| travelled.rate > known.rate) {
                best = Some((travelled, way));
            }
        }
        let (travelled, way) = best.context("there are ways")?;
        Ok(Trips { travelled, way, bus: bus * float(batch) })
    }

    /// Batches a second of so many bytes each way with no kernel between.
    pub fn bus(&mut self, into: usize, out: usize, in_flight: usize, seconds: f64) -> Result<f64> {
        let key = (into, out, in_flight);
        if let Some(&known) = self.ceilings.get(&key) {
            return Ok(known);
        }
        let rate = ceiling::bus(&mut self.bench, into, out, 1, in_flight, seconds)?;
        self.ceilings.insert(key, rate);
        Ok(rate)
    }
}

/// How many of so many tuples launches are chosen with: enough that they fill a GPU.
fn few(tuples: usize) -> usize {
    (tuples / 4).max(1 << 16).min(tuples)
}
