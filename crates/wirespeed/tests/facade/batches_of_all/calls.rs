//! Random calls of several threads beside updates: each batch has the answers of a state that was there.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wirespeed::engine::Keys;
use wirespeed::fib::synth::rng::Rng;
use wirespeed::prelude::*;
use wirespeed::{Answers, Batch, Batches, Submitted};
use wirespeed_image::rounds::{is_long, leaves_to_ci};

use super::domains::{CHANGED, Tried};
use crate::common::on_host;

/// A batch on its way, with the indices of its keys.
enum Step<D: Tried> {
    Filling(Batch<D>, Vec<usize>),
    UnderWay(Submitted<D>, Vec<usize>),
    Held(Answers<D>, Vec<D::Answer>),
}

pub(super) fn any_order_of_calls_gives_right_answers<D: Tried>() {
    if leaves_to_ci() {
        return;
    }
    let Some((fleet, _)) = on_host(D::gpu_options()) else { return };
    // With a GPU the CPU answers, too, where no slot is free.
    for device in [Device::Gpu, Device::Auto, Device::Cpu].into_iter().take(if is_long() { 3 } else { 1 }) {
        let mut all = D::start(device, &fleet, 0);
        let (changes, is_over) = (60, AtomicBool::new(false));
        let (kept, right, changing) = (&all.kept, &all.right, &all.changing);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (batches, is_over) = (all.batches.clone().at_once(5), &is_over);
                let calls = Calls { kept, right, changing, changes };
                scope.spawn(move || {
                    let (mut rng, mut steps, mut rounds) = (Rng::new(thread), VecDeque::new(), 0);
                    while !is_over.load(Ordering::Relaxed) || rounds < 300 {
                        rounds += 1;
                        let step = steps.pop_front();
                        calls.next(&batches, &mut rng, step, &mut steps);
                    }
                    drop(steps);
                    assert_eq!(batches.out(), 0);
                });
            }
            for number in 0..=changes {
                all.table.change(number);
                std::thread::sleep(Duration::from_millis(2));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let answers = all.filled(0, 700).submit().wait();
        for (at, found) in answers.iter().enumerate() {
            match all.changing[at] {
                true => assert_eq!(bytemuck::cast::<_, u32>(found), CHANGED + changes, "{device:?}"),
                false => assert_eq!(found, all.right[at], "{device:?}"),
            }
        }
    }
}

/// The keys that threads draw from, and the answers that are right.
struct Calls<'a, D: Tried> {
    kept: &'a D::Kept,
    right: &'a [D::Answer],
    changing: &'a [bool],
    changes: u32,
}

impl<D: Tried> Calls<'_, D> {
    /// A random call: of a batch that is there, or of a new one.
    fn next(
        &self,
        batches: &Batches<D>,
        rng: &mut Rng,
        step: Option<Step<D>>,
        steps: &mut VecDeque<Step<D>>,
    ) {
        match (rng.index(8), step) {
            (0 | 1, step) => {
                steps.extend(step);
                // The largest slot has 8,192 keys.
                let most = if rng.index(10) == 0 { 20_000 } else { 3_000 };
                match batches.batch(1 + rng.index(most)) {
                    Some(batch) => steps.push_back(Step::Filling(batch, Vec::new())),
                    None => assert_eq!(batches.out(), 5),
                }
            }
            (2, step) => drop(step),
            (_, Some(Step::Filling(mut batch, mut at))) => {
                let from = rng.index(self.right.len());
                let to = match rng.index(2) {
                    0 => (from..self.right.len().min(from + 40))
                        .find(|&at| !D::push(&mut batch, self.kept, at))
                        .unwrap_or(self.right.len().min(from + 40)),
                    _ => from + batch.extend_from(D::keys(self.kept).part(from..self.right.len())),
                };
                at.extend(from..to);
                assert_eq!(batch.len(), at.len());
                steps.push_back(match from == to || rng.index(2) == 0 {
                    true => Step::UnderWay(batch.submit(), at),
                    false => Step::Filling(batch, at),
                });
            }
            (_, Some(Step::UnderWay(batch, at))) => {
                let answers = batch.wait();
                assert_eq!(answers.len(), at.len());
                for (found, at) in answers.iter().zip(at) {
                    let number: u32 = bytemuck::cast(found);
                    let is_changed =
                        self.changing[at] && (CHANGED..=CHANGED + self.changes).contains(&number);
                    assert!(found == self.right[at] || is_changed, "{number} for key {at}");
                }
                let found = answers.iter().collect();
                steps.push_back(Step::Held(answers, found));
            }
            (_, Some(Step::Held(answers, found))) => {
                assert!(answers.iter().eq(found.iter().copied()), "it does not change");
                steps.push_back(match rng.index(2) {
                    0 => Step::Filling(answers.into_batch(700), Vec::new()),
                    _ => Step::Held(answers, found),
                });
            }
            (_, None) => {}
        }
    }
}
