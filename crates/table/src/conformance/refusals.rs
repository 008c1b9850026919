//! Calls that fail: [what is promised of them](wirespeed_image::live#when-an-update-fails), of any domain.
//!
//! Nothing here is generic over the engine, so it is compiled once for each domain.

use wirespeed_rng::Rng;

use super::failing::fail_at;
use crate::domain::Domain;

/// A live table, what it is to be, and who looks on.
pub trait Watched<D: Domain> {
    /// Makes a call, and sees that it happened or not, with all that can be seen.
    fn call(&mut self, updates: &[D::Update], what: &str) -> Result<(), D::Error>;

    /// Makes another kind of call now and then, if the domain has one.
    fn call_otherwise(&mut self, updates: &[D::Update], rng: &mut Rng, what: &str) {
        let _ = (updates, rng, what);
    }

    /// The updates that take out all there is, one by one.
    fn removals(&self) -> Vec<D::Update>;

    /// The number of times that the table was built anew.
    fn rebuilds(&self) -> u64;

    /// Bytes of the table as readers see it.
    fn bytes(&self) -> u64;

    /// Whether an error is that the table outgrows its cap.
    fn is_over_cap(&self, error: &D::Error) -> bool;

    /// Whether everything was taken out one by one with few builds. These are the builds of each call.
    fn is_enough(&self, builds: &[u64]) -> bool {
        builds.iter().sum::<u64>() <= 2
    }

    /// Whether a table at its cap lets go of a single entry.
    fn lets_one_go(&self) -> bool {
        true
    }
}

/// Some calls with updates that are drawn, `most` at most in each; after the seventh all goes.
pub fn calls<U>(
    rng: &mut Rng,
    most: usize,
    mut draw: impl FnMut(&mut Rng) -> U,
    all: impl IntoIterator<Item = U>,
) -> Vec<Vec<U>> {
    let mut calls: Vec<Vec<U>> = Vec::new();
    for _ in 0..10 {
        let count = 1 + rng.index(most);
        calls.push((0..count).map(|_| draw(rng)).collect());
    }
    calls.insert(7, all.into_iter().collect());
    calls
}

/// Makes the calls; those that fail once or twice more. Then takes everything out, and not with a build for
/// each entry.
pub fn play<D: Domain>(table: &mut dyn Watched<D>, calls: &[Vec<D::Update>], rng: &mut Rng, what: &str) {
    for (at, updates) in calls.iter().enumerate() {
        table.call_otherwise(updates, rng, &format!("{what}, call {at}, otherwise"));
        for again in 0..1 + rng.index(3) {
            let what = format!("{what}, call {at}, time {again}");
            table.call(&[], &what).expect("nothing to do");
            if table.call(updates, &what).is_ok() {
                break;
            }
        }
    }
    // No failure is left over.
    fail_at([]);
    let mut builds = Vec::new();
    for update in &table.removals() {
        let before = table.rebuilds();
        table.call(std::slice::from_ref(update), what).expect("an entry goes");
        builds.push(table.rebuilds() - before);
    }
    assert!(table.is_enough(&builds), "{what}: builds of each call: {builds:?}");
}

/// Lets a table grow until it is refused by its cap: what it has is there, and can be taken out one by one.
pub fn at_the_cap<D: Domain>(
    table: &mut dyn Watched<D>,
    cap: u64,
    growth: impl IntoIterator<Item = Vec<D::Update>>,
) {
    let refused = growth.into_iter().enumerate().find_map(|(call, updates)| {
        let refused = table.call(&updates, &format!("call {call}")).is_err();
        assert!(table.bytes() <= cap, "{} bytes, over the cap of {cap}", table.bytes());
        refused.then_some(updates)
    });
    let updates = refused.expect("not everything is held");
    for again in 0..2 {
        let what = format!("refused, time {again}");
        table.call(&[], &what).expect("nothing to do");
        let error = table.call(&updates, &what).expect_err("it is as large as before");
        assert!(table.is_over_cap(&error), "{what}: {error}");
    }
    // One entry goes though no other can come, and after that they go without a build each.
    let removals = table.removals();
    let mut counts = (0..32).map(|power| removals.len().min(1 << power));
    let gone = counts.find(|&count| table.call(&removals[..count], "the first go").is_ok());
    let gone = gone.expect("nothing takes no memory");
    assert!(gone == 1 || !table.lets_one_go(), "{gone} had to go at once");
    assert!(table.bytes() <= cap, "{} bytes, over the cap of {cap}", table.bytes());
    let before = table.rebuilds();
    for update in removals[gone..].iter().take(60) {
        table.call(std::slice::from_ref(update), "an entry goes").expect("it takes no memory");
    }
    assert!(table.rebuilds() - before <= 3, "{} builds", table.rebuilds() - before);
    table.call(&removals, "all go").expect("nothing takes no memory");
    table.call(&updates, "what was refused").expect("there is room now");
}
