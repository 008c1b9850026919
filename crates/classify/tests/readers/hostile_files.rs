//! Hostile files at random, each held against what it means. `WIRESPEED_HOSTILE_FILES` is how many.

use std::time::{Duration, Instant};

use wirespeed_rng::Rng;

use crate::hostile;

#[test]
fn no_unknown_word_is_passed_over() {
    let files =
        std::env::var("WIRESPEED_HOSTILE_FILES").ok().and_then(|n| n.parse().ok()).unwrap_or(4_000u64);
    let mut sure = 0;
    for seed in 0..files {
        let mut rng = Rng::new(seed);
        let began = Instant::now();
        sure += u64::from(hostile::check(&mut |bound| rng.index(bound)));
        assert!(began.elapsed() < Duration::from_secs(20), "file {seed} took {:?}", began.elapsed());
    }
    // Half of the files have a word that nobody knows.
    assert!(sure > files / 5 && sure < files, "{sure} of {files} without doubt");
}
