//! The GAMT paper's figures, made anew: see [`wirespeed_benches::gamt_paper`].

use anyhow::{Result, ensure};
use clap::Parser;
use wirespeed_benches::data::{self, Source};
use wirespeed_benches::gamt_paper::update::OnLine;
use wirespeed_benches::gamt_paper::{levels, lookup, memory, update};
use wirespeed_benches::machine::Machine;
use wirespeed_benches::report::{self, Row, Sheet};
use wirespeed_benches::session;
use wirespeed_dir24::Dir24;
use wirespeed_fib::{BuildOptions, Engine, Family, InFib, Rib, Update, V4, V6};
use wirespeed_gamt::{GamtS, GamtT};

/// Makes the GAMT paper's figures anew and writes MACHINE/DATE-gamt-paper-….csv.
#[derive(Parser)]
struct Options {
    /// Figures to make
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["batches", "tables", "levels", "updates", "memory"])]
    figures: Vec<Figure>,
    /// Keys a call where the figure is not of batches
    #[arg(long, default_value_t = 1 << 18)]
    batch: usize,
    #[command(flatten)]
    session: session::Options,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Figure {
    /// Figure 9
    Batches,
    /// Figure 10
    Tables,
    /// Figures 11 and 15
    Levels,
    /// Figures 13 and 14
    Updates,
    /// Figure 19
    Memory,
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.batch > 0, "a batch has at least one key");
    // Before this thread goes to one core, and those that it starts with it.
    rayon::ThreadPoolBuilder::new().build_global()?;
    let machine = options.session.start()?;
    let record = Record { machine, options: &options.session };
    for figure in &options.figures {
        match figure {
            Figure::Batches => batches(&options, &record)?,
            Figure::Tables => tables(&options, &record)?,
            Figure::Levels => levels(&options, &record)?,
            Figure::Updates => updates(&options, &record)?,
            Figure::Memory => growth(&record)?,
        }
    }
    Ok(())
}

/// The tables of a family, today's full one first.
fn of(family: Family) -> impl Iterator<Item = Source> {
    data::sources().into_iter().filter(move |source| source.family == family)
}

/// Where figures go.
struct Record<'a> {
    machine: Machine,
    options: &'a session::Options,
}

impl Record<'_> {
    /// Prints a figure and writes it.
    fn show(&self, name: &str, sheet: &Sheet) -> Result<()> {
        println!("{sheet}");
        self.write(name, &sheet.csv(&self.machine))
    }

    /// Writes what a figure is made of.
    fn keep(&self, name: &str, rows: &[Row]) -> Result<()> {
        self.write(name, &report::csv(rows, &self.machine))
    }

    fn write(&self, name: &str, csv: &str) -> Result<()> {
        if self.options.dry {
            return Ok(());
        }
        let name = format!("{}-gamt-paper-{name}", report::date());
        let path = report::write(&self.options.out, &self.machine, &name, csv)?;
        eprintln!("written to {}", path.display());
        Ok(())
    }
}

fn batches(options: &Options, record: &Record<'_>) -> Result<()> {
    let sizes: Vec<usize> = lookup::EXPONENTS.map(|exponent| 1 << exponent).collect();
    let mut rows = Vec::new();
    for source in of(Family::V4).take(1) {
        rows.extend(lookup::measure::<V4>(&options.session, &source, &sizes)?);
    }
    for source in of(Family::V6).take(1) {
        rows.extend(lookup::measure::<V6>(&options.session, &source, &sizes)?);
    }
    record.keep("batches", &rows)?;
    record.show("figure-9", &lookup::by_batch(&rows))
}

fn tables(options: &Options, record: &Record<'_>) -> Result<()> {
    let mut rows = Vec::new();
    for source in of(Family::V4).chain(data::of_2010()) {
        rows.extend(lookup::measure::<V4>(&options.session, &source, &[options.batch])?);
    }
    for source in of(Family::V6) {
        rows.extend(lookup::measure::<V6>(&options.session, &source, &[options.batch])?);
    }
    record.keep("tables", &rows)?;
    record.show("figure-10", &lookup::by_table(&rows))
}

fn levels(options: &Options, record: &Record<'_>) -> Result<()> {
    for source in of(Family::V4).take(1) {
        let (rows, sheet) = levels::measure::<V4>(&options.session, options.batch, &source)?;
        record.keep("levels-v4", &rows)?;
        record.show("figure-11", &sheet)?;
    }
    for source in of(Family::V6).take(1) {
        let (rows, sheet) = levels::measure::<V6>(&options.session, options.batch, &source)?;
        record.keep("levels-v6", &rows)?;
        record.show("figure-15", &sheet)?;
    }
    Ok(())
}

fn updates(options: &Options, record: &Record<'_>) -> Result<()> {
    let (mut rates, mut accesses) = (update::rates(), update::accesses());
    let gamt_t = (<GamtT<V4> as Engine<V4>>::NAME, update::play::<V4, GamtT<V4>> as update::Play<V4>);
    let gamt_s = (<GamtS<V4> as Engine<V4>>::NAME, update::play::<V4, GamtS<V4>> as update::Play<V4>);
    let gale = (<Dir24 as Engine<V4>>::NAME, update::play::<V4, Dir24> as update::Play<V4>);
    for source in of(Family::V4).take(1) {
        let Some((rib, updates)) = day::<V4>(&source)? else { continue };
        let on_line = update::gale(&rib, &updates)?;
        accesses.rows.push(update::gale_row(&source.name, on_line));
        let (engines, sheets) = ([gamt_t, gamt_s, gale], (&mut rates, &mut accesses));
        played(options, &source.name, (&rib, &updates), &engines, Some(on_line), sheets)?;
    }
    let gamt_t = (<GamtT<V6> as Engine<V6>>::NAME, update::play::<V6, GamtT<V6>> as update::Play<V6>);
    let gamt_s = (<GamtS<V6> as Engine<V6>>::NAME, update::play::<V6, GamtS<V6>> as update::Play<V6>);
    for source in of(Family::V6).take(1) {
        let Some((rib, updates)) = day::<V6>(&source)? else { continue };
        let sheets = (&mut rates, &mut accesses);
        played(options, &source.name, (&rib, &updates), &[gamt_t, gamt_s], None, sheets)?;
    }
    record.show("figure-13", &rates)?;
    record.show("figure-14", &accesses)
}

/// A table and the updates of a day.
type Day<A> = (Rib<A>, Vec<Update<A>>);

/// A table and its updates, where it has any.
fn day<A: InFib>(source: &Source) -> Result<Option<Day<A>>> {
    let (rib, mut next_hops) = source.rib::<A>()?;
    let updates = source.updates(&rib, &mut next_hops)?;
    Ok((!updates.is_empty()).then_some((rib, updates)))
}

/// Plays a day's updates of a table to engines, GAMT_T first and GAMT_S second, for both figures.
fn played<A: InFib>(
    options: &Options,
    table: &str,
    (rib, updates): (&Rib<A>, &[Update<A>]),
    engines: &[(&'static str, update::Play<A>)],
    gale: Option<OnLine>,
    (rates, accesses): (&mut Sheet, &mut Sheet),
) -> Result<()> {
    let gamt = &engines[..2];
    for call in std::iter::once(1).chain(update::CALLS) {
        // One at a time is for the accesses alone.
        let (engines, rounds) = if call == 1 { (gamt, 1) } else { (engines, options.session.rounds) };
        let all = update::rounds(rounds, engines, rib, updates, call)?;
        if call > 1 {
            let named = engines.iter().zip(&all);
            rates.rows.extend(named.map(|(&(name, _), rounds)| update::rates_row(table, name, call, rounds)));
        }
        let gamt_t = all[0][0];
        for (&(name, _), rounds) in gamt.iter().zip(&all) {
            let other = (name != gamt[0].0).then_some(&gamt_t);
            accesses.rows.push(update::accesses_row(table, name, call, &rounds[0], gale, other));
        }
    }
    Ok(())
}

fn growth(record: &Record<'_>) -> Result<()> {
    let (mut sizes, mut growth) = (memory::sizes(), memory::growth());
    for source in of(Family::V4).take(1) {
        grown::<V4>(&source, &mut sizes, &mut growth)?;
    }
    for source in of(Family::V6).take(1) {
        grown::<V6>(&source, &mut sizes, &mut growth)?;
    }
    record.show("memory", &sizes)?;
    record.write("figure-19", &growth.csv(&record.machine))?;
    // Of each curve the end.
    growth.rows = growth.rows.chunk_by(|a, b| a[..3] == b[..3]).filter_map(<[_]>::last).cloned().collect();
    println!("{growth}");
    Ok(())
}

fn grown<A: InFib>(source: &Source, sizes: &mut Sheet, growth: &mut Sheet) -> Result<()> {
    let Some((rib, updates)) = day::<A>(source)? else { return Ok(()) };
    for strides in memory::asked(A::FAMILY) {
        let options = BuildOptions { strides, ..BuildOptions::default() };
        sizes.rows.push(memory::sizes_row::<A, GamtT<A>>(&source.name, &rib, &options)?);
        sizes.rows.push(memory::sizes_row::<A, GamtS<A>>(&source.name, &rib, &options)?);
        growth.rows.extend(memory::growth_rows::<A, GamtT<A>>(&source.name, &rib, &updates, &options)?);
        growth.rows.extend(memory::growth_rows::<A, GamtS<A>>(&source.name, &rib, &updates, &options)?);
    }
    Ok(())
}
