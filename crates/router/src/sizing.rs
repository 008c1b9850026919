//! [`Sizing`]: the number of frames of a chunk, and so the device that looks its keys up.
//!
//! PacketShader offloads when the load is high: the CPU looks up small chunks at low load, for the latency,
//! and the GPU large ones at high load, for the rate ("opportunistic offloading"). Here a worker that is
//! behind, whose ports always have more frames, tries both in turns, and keeps the one that forwards more.
//!
//! ```text
//!            ports run dry                     ports run dry
//!          ┌──────────────────────────────┬───────────────────────────────┐
//!          ▼                              │                               │
//!        small ── always behind ──► trial of small, trial of large ──► the faster ── after a while ─┐
//!                                         ▲                                                         │
//!                                         └─────────────────────────────────────────────────────────┘
//! ```
//!
//! The deadline comes before the rate. A GPU gets one large chunk at first, and more at once as they come
//! back in good time. One that is late is followed by fewer and smaller ones. How many workers may have large
//! chunks, and whether any may, is in [`Lateness`](crate::lateness::Lateness).

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Why;
use crate::lateness::{Lateness, Share};

/// How long each size is tried.
const TRIAL: Duration = Duration::from_millis(20);
/// How long the faster size is kept before both are tried again. Trials of the slower take 2 % of the time.
const KEPT: Duration = Duration::from_secs(1);
/// The other size has to forward this much more, as a share, before it is taken.
const MARGIN: f64 = 1.05;

/// Chunks that a GPU has at once, at most.
pub(crate) const UNDER_WAY: usize = 8;

/// What a worker is doing about the size.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// The ports run dry now and then, so that chunks are as small as they come.
    Calm,
    /// The ports always have more, and large chunks would be late, or other workers have them.
    Barred,
    /// A trial, with the rate of the size that was tried before it, if there was one.
    Trial { is_large: bool, before: Option<f64>, since: Option<(Instant, u64)> },
    /// The faster size.
    Kept { is_large: bool, since: Instant },
}

/// The choice of the number of frames of a chunk.
#[derive(Debug)]
pub(crate) struct Sizing {
    small: usize,
    /// What was asked for, for a GPU.
    suited: Option<usize>,
    /// What a GPU needs, as far as the deadline allows.
    large: Option<usize>,
    most: usize,
    /// Large chunks that may be under way at once.
    under_way: usize,
    state: State,
    is_large: bool,
    /// Frames of large chunks since the last trial began, by the device that had them: the CPU, a GPU.
    went: [usize; 2],
    /// What all workers know about late frames. `None` where the size is the user's choice.
    lateness: Option<Share>,
}

impl Sizing {
    /// Chunks of `small` frames, or of `large` ones if there is a GPU.
    pub(crate) fn new(small: usize, large: Option<usize>) -> Self {
        let suited = large;
        let large = large.map(|large| large.max(small));
        Self {
            small,
            suited,
            large,
            most: large.unwrap_or(small),
            under_way: 1,
            state: State::Calm,
            is_large: false,
            went: [0; 2],
            lateness: Some(Share::default()),
        }
    }

    /// Shares what is known about late frames with other workers. Before the first chunk.
    pub(crate) fn share(&mut self, lateness: &Arc<Lateness>) {
        if let Some(share) = &mut self.lateness {
            *share = Share::of(Arc::clone(lateness));
        }
    }

    /// Takes the size of large chunks for the user's choice: they are taken also where many are late.
    pub(crate) fn always(self) -> Self {
        Self { lateness: None, ..self }
    }

    /// Chunks for a GPU have `large` frames from now on; without it there are none.
    pub(crate) fn suit(&mut self, large: Option<usize>) {
        if large.is_none() {
            self.be(State::Calm);
        }
        // A size that the deadline has made smaller stays until a GPU suits another one.
        if self.suited != large {
            let Self { small, .. } = *self;
            self.suited = large;
            self.large = large.map(|large| large.max(small));
            self.most = self.large.unwrap_or(small);
        }
    }

    /// The number of frames of the next chunk.
    pub(crate) fn frames(&self) -> usize {
        match self.large {
            Some(large) if self.is_large => large,
            _ => self.small,
        }
    }

    /// The reason for the size of chunks now.
    pub(crate) fn why(&self) -> Why {
        match self.state {
            _ if self.large.is_none() => Why::NoGpu,
            State::Barred => Why::Deadline,
            State::Calm => Why::LowLoad,
            State::Trial { .. } => Why::Trial,
            State::Kept { .. } => Why::Faster,
        }
    }

    /// The number of chunks that may be under way at once.
    pub(crate) fn under_way(&self) -> usize {
        match self.lateness {
            Some(_) if self.is_large => self.under_way,
            _ => UNDER_WAY,
        }
    }

    /// Whether chunks are of the size for a GPU.
    pub(crate) const fn is_large(&self) -> bool {
        self.is_large && self.large.is_some()
    }

    /// Counts the frames of a chunk of the size for a GPU by the device that had them.
    pub(crate) fn went(&mut self, is_by_gpu: bool, frames: usize) {
        self.went[usize::from(is_by_gpu)] += frames;
    }

    /// Whether large chunks are of use: an application may leave most of them to the CPU, and that is faster
    /// with small ones, which stay in its caches.
    fn is_of_use(&self) -> bool {
        self.lateness.is_none() || self.went[1] >= self.went[0]
    }

    /// A chunk was done at `now`, after `frames` frames in all. `is_behind` says that it was full, so that
    /// more frames wait: without that a trial says nothing, and ends.
    pub(crate) fn done(&mut self, now: Instant, frames: u64, is_behind: bool) {
        if self.large.is_none() {
            return;
        }
        if let Some(lateness) = &mut self.lateness {
            lateness.saw(frames);
        }
        let before = self.state;
        let state = match before {
            State::Calm | State::Barred | State::Trial { .. } if !is_behind => State::Calm,
            State::Calm | State::Barred if !self.takes_place() => State::Barred,
            State::Calm | State::Barred => State::Trial { is_large: false, before: None, since: None },
            // The first chunk of a trial is still of the size before it.
            State::Trial { is_large, before, since: None } => {
                State::Trial { is_large, before, since: Some((now, frames)) }
            }
            State::Trial { is_large, before, since: Some((began, first)) } => {
                let passed = now.saturating_duration_since(began);
                if passed < TRIAL {
                    return;
                }
                let rate = (frames - first) as f64 / passed.as_secs_f64();
                match before {
                    None => State::Trial { is_large: !is_large, before: Some(rate), since: None },
                    Some(before) => {
                        // The size that was kept has the margin.
                        let other_is_faster = rate > before * MARGIN;
                        let is_large = is_large == other_is_faster && self.is_of_use();
                        State::Kept { is_large, since: now }
                    }
                }
            }
            State::Kept { is_large, since } if now.saturating_duration_since(since) >= KEPT => {
                if self.takes_place() {
                    State::Trial { is_large, before: None, since: Some((now, frames)) }
                } else {
                    State::Barred
                }
            }
            kept @ State::Kept { .. } => kept,
        };
        if matches!(state, State::Trial { before: None, .. }) && !matches!(before, State::Trial { .. }) {
            self.went = [0; 2];
        }
        self.be(state);
    }

    /// Whether the worker may have large chunks.
    fn takes_place(&mut self) -> bool {
        self.lateness.as_mut().is_none_or(Share::take_place)
    }

    /// Enters a state. One with small chunks alone needs no place among the workers that have large ones.
    fn be(&mut self, state: State) {
        (self.state, self.is_large) = match state {
            State::Calm | State::Barred => (state, false),
            State::Trial { is_large, .. } | State::Kept { is_large, .. } => (state, is_large),
        };
        let needs_place = matches!(state, State::Trial { .. } | State::Kept { is_large: true, .. });
        if let Some(lateness) = self.lateness.as_mut().filter(|_| !needs_place) {
            lateness.give_place();
        }
    }

    /// A small chunk of `len` frames took `took` where `deadline` is allowed.
    pub(crate) fn took_small(&self, took: Duration, deadline: Duration, len: usize) {
        if took > deadline {
            self.lateness.iter().for_each(|lateness| lateness.late_small(len));
        }
    }

    /// A large chunk of `len` frames took `took` where `deadline` is allowed: large chunks become smaller,
    /// slowly larger again, or none for a while.
    pub(crate) fn took(&mut self, took: Duration, deadline: Duration, len: usize) {
        let Some(large) = &mut self.large else { return };
        if took > deadline {
            *large = (*large / 2).max(self.small);
            self.under_way = (self.under_way / 2).max(1);
            if self.lateness.as_ref().is_some_and(|lateness| lateness.late(len)) {
                self.be(State::Barred);
            }
        } else if took < deadline / 2 {
            *large = (*large + *large / 64 + 1).min(self.most);
            self.under_way = (self.under_way + 1).min(UNDER_WAY);
            self.lateness.iter().for_each(Share::in_time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a worker that forwards at these rates, in frames a second, for some seconds. Returns the share of
    /// large chunks in the last second.
    fn run(small: f64, large: f64, seconds: u64) -> f64 {
        let mut sizing = Sizing::new(256, Some(16_384));
        let (mut now, mut frames, start) = (Instant::now(), 0, Instant::now());
        let (mut in_large, mut all) = (0, 0);
        while now < start + Duration::from_secs(seconds) {
            let rate = if sizing.is_large() { large } else { small };
            now += Duration::from_secs_f64(sizing.frames() as f64 / rate);
            frames += sizing.frames() as u64;
            if now > start + Duration::from_secs(seconds - 1) {
                all += sizing.frames();
                in_large += if sizing.is_large() { sizing.frames() } else { 0 };
            }
            sizing.done(now, frames, true);
        }
        in_large as f64 / all as f64
    }

    #[test]
    fn the_faster_size_is_kept() {
        assert!(run(10e6, 30e6, 4) > 0.95);
        assert!(run(30e6, 10e6, 4) < 0.05);
        // The margin: sizes that are alike stay as they are.
        assert!(run(30e6, 31e6, 4) < 0.05);
    }

    /// Large chunks may seem faster for a moment, on a machine with other work.
    #[test]
    fn large_chunks_that_no_gpu_takes_are_not_kept() {
        for by_gpu in [0, 2, 4] {
            let mut sizing = Sizing::new(256, Some(2048));
            let (mut now, mut large, mut all) = (Instant::now(), 0, 0);
            for n in 1..10_000 {
                let is_large = sizing.is_large();
                let frames = if is_large { 200 } else { 100 };
                (all, large) = (all + 1, large + u64::from(is_large));
                if is_large {
                    sizing.went(n % 5 < by_gpu, frames);
                }
                now += Duration::from_millis(1);
                sizing.done(now, n * 150 + large * 100, true);
            }
            assert_eq!(large * 10 > all, by_gpu > 2, "{large} of {all}, {by_gpu} of 5 by the GPU");
        }
    }

    #[test]
    fn the_reason_for_a_size_is_told() {
        let start = Instant::now();
        assert_eq!(Sizing::new(256, None).why(), Why::NoGpu);
        let mut sizing = Sizing::new(256, Some(16_384));
        assert_eq!(sizing.why(), Why::LowLoad);
        let mut seen = std::collections::BTreeSet::new();
        for n in 1..200 {
            sizing.done(start + Duration::from_millis(n), n * 1000, true);
            seen.insert(sizing.why());
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [Why::Trial, Why::Faster]);
        // Most frames are late.
        sizing.took(Duration::from_millis(9), Duration::from_millis(1), 100_000);
        assert_eq!(sizing.why(), Why::Deadline);
        sizing.suit(None);
        assert_eq!(sizing.why(), Why::NoGpu);
    }

    #[test]
    fn a_gpu_gets_more_chunks_at_once_as_they_come_back_in_time() {
        let (start, deadline) = (Instant::now(), Duration::from_micros(500));
        let mut sizing = Sizing::new(256, Some(16_384));
        assert_eq!(sizing.under_way(), UNDER_WAY, "the CPU's chunks are no risk");
        let mut n = 0;
        while !sizing.is_large() {
            n += 1;
            sizing.done(start + Duration::from_millis(n), n * 1000, true);
        }
        assert_eq!(sizing.under_way(), 1);
        for at_once in 2..=UNDER_WAY + 2 {
            sizing.took(deadline / 4, deadline, 100);
            assert_eq!(sizing.under_way(), at_once.min(UNDER_WAY));
        }
        // Between half of the deadline and all of it nothing changes.
        sizing.took(deadline * 3 / 4, deadline, 100);
        assert_eq!(sizing.under_way(), UNDER_WAY);
        sizing.took(deadline * 2, deadline, 100);
        assert_eq!((sizing.under_way(), sizing.frames()), (UNDER_WAY / 2, 8192));
        // The user's choice is taken as it is.
        let mut chosen = Sizing::new(256, Some(16_384)).always();
        while !chosen.is_large() {
            n += 1;
            chosen.done(start + Duration::from_millis(n), n * 1000, true);
        }
        assert_eq!(chosen.under_way(), UNDER_WAY);
    }

    #[test]
    fn chunks_stay_small_without_load_or_gpu() {
        let now = Instant::now();
        let mut sizing = Sizing::new(256, Some(16_384));
        (0..1000).for_each(|n| sizing.done(now + Duration::from_millis(n), n, false));
        assert_eq!(sizing.frames(), 256);
        let mut alone = Sizing::new(256, None);
        (0..1000).for_each(|n| alone.done(now + Duration::from_millis(n), n, true));
        assert_eq!(alone.frames(), 256);
    }

    #[test]
    fn a_gpu_may_come_and_go() {
        let mut sizing = Sizing::new(256, None);
        let start = Instant::now();
        for n in 0..100 {
            sizing.suit(Some(16_384 + usize::from(n % 2 == 1)));
            let frames = n * if sizing.is_large() { 300 } else { 100 };
            sizing.done(start + Duration::from_millis(n), frames, true);
        }
        assert!(sizing.is_large() && sizing.frames() == 16_385, "another size does not begin anew");
        let deadline = Duration::from_micros(200);
        sizing.took(deadline * 2, deadline, 9000);
        sizing.suit(Some(16_385));
        assert_eq!(sizing.frames(), 8192);
        sizing.suit(None);
        assert!(!sizing.is_large() && sizing.frames() == 256);
        sizing.suit(Some(8192));
        assert!(!sizing.is_large());
    }

    #[test]
    fn a_deadline_makes_large_chunks_smaller() {
        let mut sizing = Sizing::new(256, Some(16_384));
        sizing.is_large = true;
        let deadline = Duration::from_micros(200);
        sizing.took(deadline * 2, deadline, 9000);
        assert_eq!(sizing.frames(), 8192);
        sizing.took(deadline / 3, deadline, 8192);
        assert!((8193..9000).contains(&sizing.frames()));
        (0..200).for_each(|_| sizing.took(deadline / 3, deadline, 8192));
        assert_eq!(sizing.frames(), 16_384);
    }

    /// Large chunks forward three times as much, and of `each` of them one is late. Returns the shares of
    /// late frames, and of frames in large chunks.
    fn shares(mut sizing: Sizing, each: u64) -> (f64, f64) {
        let (start, deadline) = (Instant::now(), Duration::from_micros(500));
        let (mut now, mut frames, mut late, mut large, mut chunks) = (start, 0, 0, 0, 0);
        while now < start + Duration::from_secs(60) {
            let (is_large, len) = (sizing.is_large(), sizing.frames());
            now += Duration::from_secs_f64(len as f64 / if is_large { 30e6 } else { 10e6 });
            frames += len as u64;
            if is_large {
                (large, chunks) = (large + len, chunks + 1);
                let is_late = chunks % each == 0;
                late += if is_late { len } else { 0 };
                sizing.took(if is_late { deadline * 2 } else { deadline / 3 }, deadline, len);
            }
            sizing.done(now, frames, true);
        }
        (late as f64 / frames as f64, large as f64 / frames as f64)
    }

    #[test]
    fn the_deadline_holds_for_all_but_one_frame_of_a_thousand() {
        let new = || Sizing::new(256, Some(4096));
        for each in [1, 20] {
            let (late, large) = shares(new(), each);
            assert!((0.0001..0.0011).contains(&late) && large < 0.05, "{late} of {large}");
        }
        // One of 4,000 is no reason to go back to small ones.
        let (late, large) = shares(new(), 4000);
        assert!((0.0001..0.0004).contains(&late) && large > 0.9, "{late} of {large}");
        // The user's choice holds.
        assert!(shares(new().always(), 20).1 > 0.9);
    }

    /// Workers with a GPU that serves `most` of them in time. Returns the shares of late frames, and of
    /// frames in large chunks, of two seconds.
    fn shares_of_many(workers: usize, most: usize) -> (f64, f64) {
        let lateness = Arc::default();
        let deadline = Duration::from_micros(500);
        let mut all: Vec<(Sizing, u64)> = (0..workers)
            .map(|_| {
                let mut sizing = Sizing::new(256, Some(4096));
                sizing.share(&lateness);
                (sizing, 0)
            })
            .collect();
        let (start, mut late, mut large) = (Instant::now(), 0, 0);
        // A step is a tenth of a millisecond of each worker: 3 million frames a second small, and 9 large.
        for step in 1..20_000 {
            let now = start + Duration::from_micros(100 * step);
            let at_gpu = all.iter().filter(|(sizing, _)| sizing.is_large()).count();
            for (sizing, frames) in &mut all {
                let len = if sizing.is_large() { 900 } else { 300 };
                *frames += len;
                if sizing.is_large() {
                    large += len;
                    let is_late = at_gpu > most;
                    late += if is_late { len } else { 0 };
                    sizing.took(if is_late { deadline * 2 } else { deadline / 3 }, deadline, 900);
                }
                sizing.done(now, *frames, true);
            }
        }
        let frames: u64 = all.iter().map(|(_, frames)| frames).sum();
        (late as f64 / frames as f64, large as f64 / frames as f64)
    }

    #[test]
    fn workers_share_what_they_know_about_a_gpu() {
        let (late, large) = shares_of_many(16, 16);
        assert!(late == 0.0 && large > 0.8, "{late} of {large}");
        // None is served in time, or some are.
        let (late, large) = shares_of_many(16, 0);
        assert!(late < 0.001 && large < 0.01, "{late} of {large}");
        let (late, large) = shares_of_many(16, 4);
        assert!(late < 0.001 && large > 0.1, "{late} of {large}");
    }
}
