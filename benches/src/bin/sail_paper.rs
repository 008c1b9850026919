//! The SAIL paper's figures, made anew: see [`wirespeed_benches::sail_paper`].

use anyhow::{Result, ensure};
use clap::Parser;
use wirespeed_benches::data::{self, Source};
use wirespeed_benches::machine::Machine;
use wirespeed_benches::report::{self, Sheet};
use wirespeed_benches::sail_paper::{lookup, memory, update};
use wirespeed_benches::session::{self, Session};
use wirespeed_fib::{Engine, Family, V4, V6};
use wirespeed_sail::{SailB, SailL, SailU};

/// Makes the SAIL paper's figures anew and writes MACHINE/DATE-sail-paper-….csv.
#[derive(Parser)]
struct Options {
    /// Figures to make
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["lookups", "updates", "memory", "ipv6"])]
    figures: Vec<Figure>,
    /// Keys a call where lookups are batched
    #[arg(long, default_value_t = 1024)]
    batch: usize,
    #[command(flatten)]
    session: session::Options,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Figure {
    /// Figures 9 and 10
    Lookups,
    /// Figure 11
    Updates,
    /// Figures 6 and 7
    Memory,
    /// Section 7
    Ipv6,
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.batch > 0, "a batch has at least one key");
    let machine = options.session.start()?;
    let record = Record { machine, options: &options.session };
    let of = |family| data::sources().into_iter().filter(move |source| source.family == family);
    // Of IPv4 tables today's and the one that is nearest to the paper's own.
    let v4: Vec<Source> = of(Family::V4).take(1).chain(data::of_2010()).collect();
    for figure in &options.figures {
        match figure {
            Figure::Lookups => lookups(&options, &v4, &record)?,
            Figure::Updates => updates(&v4, &of(Family::V6).collect::<Vec<_>>(), &record)?,
            Figure::Memory => growth(&options, &v4, &record)?,
            Figure::Ipv6 => ipv6(&of(Family::V6).collect::<Vec<_>>(), &record)?,
        }
    }
    Ok(())
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

    fn write(&self, name: &str, csv: &str) -> Result<()> {
        if self.options.dry {
            return Ok(());
        }
        let name = format!("{}-sail-paper-{name}", report::date());
        let path = report::write(&self.options.out, &self.machine, &name, csv)?;
        eprintln!("written to {}", path.display());
        Ok(())
    }
}

fn lookups(options: &Options, tables: &[Source], record: &Record<'_>) -> Result<()> {
    let mut session = Session::new(&options.session, lookup::is_sail_l);
    let mut reads = lookup::reads();
    for source in tables {
        lookup::measure(&mut session, &options.session, options.batch, source, &mut reads)?;
    }
    record.write("lookups", &report::csv(session.rows(), &record.machine))?;
    record.show("figures-9-10", &lookup::ratios(session.rows()))?;
    record.show("pbf", &reads)
}

fn updates(v4: &[Source], v6: &[Source], record: &Record<'_>) -> Result<()> {
    let (mut summary, mut windows) = (update::summary(), update::windows());
    for source in v4 {
        let (rib, mut next_hops) = source.rib::<V4>()?;
        let updates = source.updates(&rib, &mut next_hops)?;
        if updates.is_empty() {
            continue;
        }
        let costs = [
            (<SailB as Engine<V4>>::NAME, update::play::<V4, SailB>(&rib, &updates)?),
            (<SailU as Engine<V4>>::NAME, update::play::<V4, SailU>(&rib, &updates)?),
            (<SailL as Engine<V4>>::NAME, update::play::<V4, SailL>(&rib, &updates)?),
        ];
        summary.rows.extend(costs.iter().map(|(name, cost)| update::summary_row(&source.name, name, cost)));
        windows.rows.extend(update::window_rows(&source.name, &costs[2].1));
    }
    for source in v6 {
        let (rib, mut next_hops) = source.rib::<V6>()?;
        let updates = source.updates(&rib, &mut next_hops)?;
        if updates.is_empty() {
            continue;
        }
        let cost = update::play::<V6, SailL>(&rib, &updates)?;
        summary.rows.push(update::summary_row(&source.name, <SailL as Engine<V6>>::NAME, &cost));
        windows.rows.extend(update::window_rows(&source.name, &cost));
    }
    record.show("figure-11", &summary)?;
    record.write("figure-11-windows", &windows.csv(&record.machine))
}

fn growth(options: &Options, tables: &[Source], record: &Record<'_>) -> Result<()> {
    let mut sheet = memory::growth();
    for (at, source) in tables.iter().enumerate() {
        let (rib, _) = source.rib::<V4>()?;
        // Today's, the first, also as it grows.
        if at == 0 {
            sheet.rows.extend(memory::growth_rows(&source.name, &rib, options.session.seed));
        }
        sheet.rows.push(memory::growth_row(&source.name, &rib));
    }
    record.show("figures-6-7", &sheet)
}

fn ipv6(tables: &[Source], record: &Record<'_>) -> Result<()> {
    let mut sheet = memory::ipv6();
    for source in tables {
        let (rib, _) = source.rib::<V6>()?;
        sheet.rows.push(memory::ipv6_row(&source.name, &rib));
    }
    record.show("section-7", &sheet)
}
