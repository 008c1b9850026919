//! Our own engines, as [`wirespeed::engine`] lists them: what is in that list is in every bench and record.

use anyhow::Result;
use wirespeed::engine::{Addresses, OnDevice, Visitor, of_domain};
use wirespeed_fib::{Address, BuildOptions, Engine, LiveTable, Lookup, NextHop, Rib, Update};
use wirespeed_image::Table;
use wirespeed_image::live::Reader;

use crate::lineup::Entry;
use crate::table::{Contestant, lane};
use crate::trace::Keys;

/// The engines as they look up when nothing else happens.
pub fn lookups<A: Addresses>() -> Vec<Entry<A>> {
    of_domain::<A>().filter_map(|engine| A::visit(engine, Lookups)).collect()
}

/// The engines as live tables that take updates.
pub fn updates<A: Addresses>() -> Vec<Entry<A>> {
    of_domain::<A>().filter_map(|engine| A::visit(engine, Updates)).collect()
}

struct Lookups;

impl<A: Address> Visitor<A> for Lookups {
    type Output = Entry<A>;

    fn visit<E: Engine<A, Table: OnDevice>>(self) -> Entry<A> {
        Entry::new(E::NAME, |rib| lane(E::NAME, rib, Compiled::<A, E>::build))
    }
}

struct Updates;

impl<A: Address> Visitor<A> for Updates {
    type Output = Entry<A>;

    fn visit<E: Engine<A, Table: OnDevice>>(self) -> Entry<A> {
        Entry::new(E::NAME, |rib| lane(E::NAME, rib, Live::<A, E>::build))
    }
}

/// A compiled table by itself.
pub struct Compiled<A: Address, E: Engine<A>> {
    table: E::Table,
}

impl<A: Address, E: Engine<A>> Compiled<A, E> {
    /// Compiles.
    pub fn build(rib: &Rib<A>) -> Result<Self> {
        let (_, table) = E::build(rib, &BuildOptions::default())?;
        Ok(Self { table })
    }
}

impl<A: Address, E: Engine<A>> Contestant<A> for Compiled<A, E> {
    type Answer = NextHop;

    fn next_hop(answer: NextHop) -> NextHop {
        answer
    }

    fn many(&self, keys: Keys<'_, A>, answers: &mut [NextHop]) {
        self.table.lookup_batch(keys.host, answers);
    }

    #[inline]
    fn one(&self, key: A) -> NextHop {
        self.table.lookup(key)
    }

    fn memory(&self) -> Option<u64> {
        Some(self.table.image().bytes())
    }
}

/// A live table: its Rib, its engine, two copies of what it compiles to, looked up through a reader.
pub struct Live<A: Address, E: Engine<A>> {
    live: LiveTable<A, E>,
    reader: Reader<E::Table>,
}

impl<A: Address, E: Engine<A>> Live<A, E> {
    /// Copies the Rib and compiles.
    pub fn build(rib: &Rib<A>) -> Result<Self> {
        let live = LiveTable::new(rib.clone(), BuildOptions::default())?;
        let reader = live.reader();
        Ok(Self { live, reader })
    }
}

impl<A: Address, E: Engine<A>> Contestant<A> for Live<A, E> {
    type Answer = NextHop;

    fn next_hop(answer: NextHop) -> NextHop {
        answer
    }

    fn many(&self, keys: Keys<'_, A>, answers: &mut [NextHop]) {
        self.reader.enter().lookup_batch(keys.host, answers);
    }

    fn one(&self, key: A) -> NextHop {
        self.reader.enter().lookup(key)
    }

    fn update(&mut self, updates: &[Update<A>]) -> bool {
        self.live.apply(updates).is_ok()
    }

    fn memory(&self) -> Option<u64> {
        Some(self.live.memory_usage())
    }
}
