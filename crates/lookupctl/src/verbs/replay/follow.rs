//! [`Following`]: a replay on the routes of a source that is followed live while lookups run.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wirespeed_feeds::{Change, Path, Route, TableId};
use wirespeed_fib::{AnyUpdate, Fib, NextHop};

use super::drive::Feeder;
use super::feed::{Fed, Live};
use crate::followed::{Followed, Open, State};
use crate::number::counted;

/// How long the feeder waits for changes before it looks whether it is told to stop.
const NAP: Duration = Duration::from_millis(20);

/// A source that is followed, and the numbers of its paths.
pub(super) struct Following {
    open: Open,
    /// The next hops of paths, numbered from 1 on.
    next_hops: HashMap<Arc<Path>, NextHop>,
}

impl Following {
    /// Takes the first state of a source, when it is whole: the routes of its main table.
    pub(super) fn open(source: Followed) -> Result<(Self, Fib)> {
        let began = Instant::now();
        let open = source.open()?;
        let source = open.source;
        if source != Followed::Kernel {
            eprintln!("waiting for all routes of {source}");
        }
        let mut following = Self { open, next_hops: HashMap::new() };
        let mut fib = Fib::default();
        let mut is_whole = false;
        while !is_whole {
            let batch = following.open.feed.recv()?;
            is_whole = batch.iter().any(|change| matches!(change, Change::Synced | Change::Resynced(_)));
            for update in following.updates(&batch)? {
                match update {
                    AnyUpdate::V4(update) => drop(fib.v4.apply(&update)),
                    AnyUpdate::V6(update) => drop(fib.v6.apply(&update)),
                }
            }
        }
        // The source tells its routes in any order.
        let fib = numbered_in_order(&fib, &mut following.next_hops);
        let prefixes = fib.v4.len() + fib.v6.len();
        if prefixes == 0 {
            bail!("{source} tells no route of the main table, so there is nothing to look up");
        }
        let seconds = began.elapsed().as_secs_f64();
        let paths = counted(following.next_hops.len(), "path");
        eprintln!("{source}: {}, {paths}, whole after {seconds:.2} s", counted(prefixes, "prefix"));
        Ok((following, fib))
    }

    /// The number of paths so far.
    pub(super) fn paths(&self) -> usize {
        self.next_hops.len()
    }

    /// The state of the source.
    pub(super) fn state(&self) -> State {
        self.open.state()
    }

    /// The updates that changes mean for the main table.
    fn updates(&mut self, changes: &[Change]) -> Result<Vec<AnyUpdate>> {
        let mut updates = Vec::new();
        for change in changes {
            let update = match change {
                Change::Route(Route { table: TableId::MAIN, prefix, path }) => {
                    let next_hop = self.number(path)?;
                    AnyUpdate::announce(*prefix, next_hop)
                }
                Change::RouteGone { table: TableId::MAIN, prefix } => AnyUpdate::withdraw(*prefix),
                _ => continue,
            };
            updates.push(update.context("the source told a prefix with host bits")?);
        }
        Ok(updates)
    }

    fn number(&mut self, path: &Arc<Path>) -> Result<NextHop> {
        let next = self.next_hops.len() + 1;
        match self.next_hops.entry(Arc::clone(path)) {
            Entry::Occupied(entry) => Ok(*entry.get()),
            Entry::Vacant(entry) => {
                let next = u32::try_from(next).context("there are more paths than next hops")?;
                Ok(*entry.insert(NextHop(next)))
            }
        }
    }

    /// Makes the feeder of a live table: it applies what the source tells until lookups end. `pick` takes the
    /// updates that are for the table.
    pub(super) fn feeder<'f, L>(
        &'f mut self,
        mut live: L,
        pick: impl Fn(&AnyUpdate) -> Option<L::Update> + Send + 'f,
    ) -> Feeder<'f>
    where
        L: Live + Send + 'f,
    {
        let feed = move |start: Instant, stop: &AtomicBool| {
            let mut applied = 0;
            while !stop.load(Ordering::Relaxed) {
                let Some(batch) = self.open.feed.recv_timeout(NAP)? else { continue };
                let updates: Vec<_> = self.updates(&batch)?.iter().filter_map(&pick).collect();
                if !updates.is_empty() {
                    live.take(&updates)?;
                    applied += updates.len() as u64;
                }
            }
            Ok(Fed { applied, seconds: start.elapsed().as_secs_f64(), rebuilds: live.rebuilds() })
        };
        Feeder { feed: Box::new(feed), to_its_end: false }
    }
}

/// Numbers paths anew, in the order in which the table has them, so that the same routes give the same
/// checksum. Paths that no route has follow, as they were.
fn numbered_in_order<P>(fib: &Fib, next_hops: &mut HashMap<P, NextHop>) -> Fib {
    let mut numbers = vec![NextHop::NONE; next_hops.len() + 1];
    let mut last = NextHop::NONE;
    let v6 = fib.v6.iter().map(|(_, next_hop)| next_hop);
    let used = fib.v4.iter().map(|(_, next_hop)| next_hop).chain(v6);
    let unused = (1..).map(NextHop).take(next_hops.len());
    // A u32 fits in usize on all targets.
    for NextHop(old) in used.chain(unused) {
        let number = &mut numbers[old as usize];
        if old != 0 && !number.is_some() {
            last = NextHop(last.0 + 1);
            *number = last;
        }
    }
    let new = |old: NextHop| numbers[old.0 as usize];
    next_hops.values_mut().for_each(|next_hop| *next_hop = new(*next_hop));
    Fib {
        v4: fib.v4.iter().map(|(prefix, next_hop)| (prefix, new(next_hop))).collect(),
        v6: fib.v6.iter().map(|(prefix, next_hop)| (prefix, new(next_hop))).collect(),
        ..Fib::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_the_same_numbers_in_whatever_order_they_are_told() {
        let routes = [("10.0.0.0/8", "a"), ("10.1.0.0/16", "b"), ("11.0.0.0/8", "a")];
        let made = |told: [&'static str; 4]| {
            let mut paths: HashMap<_, _> = told.into_iter().zip((1..).map(NextHop)).collect();
            let mut fib = Fib::default();
            for (prefix, path) in routes {
                fib.v4.insert(prefix.parse().unwrap(), paths[path]);
            }
            fib.v6.insert("::/0".parse().unwrap(), paths["c"]);
            let fib = numbered_in_order(&fib, &mut paths);
            (fib.v4.iter().collect::<Vec<_>>(), fib.v6.iter().collect::<Vec<_>>(), paths)
        };
        let first = made(["a", "b", "c", "gone"]);
        assert_eq!(first.0.iter().map(|(_, next_hop)| next_hop.0).collect::<Vec<_>>(), [1, 2, 1]);
        assert_eq!((first.1[0].1, first.2["gone"]), (NextHop(3), NextHop(4)));
        for told in [["b", "gone", "c", "a"], ["gone", "c", "b", "a"]] {
            assert_eq!(made(told), first);
        }
    }
}
