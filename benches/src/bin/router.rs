//! Routers side by side, ours by offered load, switches, and tunnels: see [`wirespeed_benches::router`].

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use wirespeed_benches::machine::Machine;
use wirespeed_benches::report::{Sheet, date, write};
use wirespeed_benches::router::{
    Programs, live_lanes, memory_lanes, race, sweep, switch_lanes, tunnel_lanes,
};

/// Measures routers in turns and writes record/MACHINE/DATE-router.csv and -router-load.csv, or the same of
/// switches or tunnels.
#[derive(Parser)]
struct Options {
    /// The routers that are measured; the name of the record
    #[arg(long, value_enum, default_value = "router")]
    what: What,
    /// The sources of frames for routers that forward IP
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["memory", "live"])]
    settings: Vec<Setting>,
    /// Runs that a rate is the median of
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each run, beside reading tables and starting
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// The devices of workers that seal and open: cpu, gpu, or what auto picks. The latter two need a GPU
    #[arg(long, value_delimiter = ',', default_values = ["cpu"], value_parser = ["cpu", "gpu", "auto"])]
    devices: Vec<String>,
    /// Measures by offered load, too: rate, latencies and the device that auto picks
    #[arg(long)]
    load_sweep: bool,
    /// Options of `lookupctl route` for the sweep
    #[arg(long, value_name = "OPTIONS", default_value = "--in gen:64", allow_hyphen_values = true)]
    sweep_options: String,
    /// The folder with lookupctl; by default this program's
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// The folder of records; nothing is written with --dry
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/record"))]
    out: PathBuf,
    /// Print, and write no record
    #[arg(long)]
    dry: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// IP, beside DPDK's testpmd and the kernel
    Router,
    /// OpenFlow by flows and masks, beside Open vSwitch in userspace
    Openflow,
    /// IPsec by suites and sizes, beside DPDK's ciphers
    Esp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Setting {
    /// Memory to memory, on a core
    Memory,
    /// Between virtual interfaces of namespaces: needs root
    Live,
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.rounds > 0, "nothing is measured in no rounds");
    ensure!(
        options.what == What::Esp || options.devices == ["cpu"],
        "--devices is for --what esp: others are measured on the CPU"
    );
    let own = std::env::current_exe()?;
    let folder = options.programs.as_deref().or(own.parent()).context("a program is in a folder")?;
    let programs = Programs::in_folder(folder)?;
    let tables = tempfile::tempdir()?;
    let mut lanes = match options.what {
        What::Router => Vec::new(),
        What::Openflow => switch_lanes(&programs, tables.path(), options.seconds)?,
        What::Esp => tunnel_lanes(&programs, tables.path(), options.seconds, &options.devices)?,
    };
    let is_router = options.what == What::Router;
    if is_router && options.settings.contains(&Setting::Memory) {
        lanes.extend(memory_lanes(&programs, tables.path(), options.seconds)?);
    }
    if is_router && options.settings.contains(&Setting::Live) {
        lanes.extend(live_lanes(&programs, options.seconds));
    }
    let name = match options.what {
        What::Router => "router",
        What::Openflow => "openflow",
        What::Esp => "esp",
    };
    show(&options, name, &race(lanes, options.rounds)?)?;
    if options.load_sweep {
        show(&options, "router-load", &sweep(&programs, options.seconds, &options.sweep_options)?)?;
    }
    Ok(())
}

/// Prints a sheet and writes its record.
fn show(options: &Options, name: &str, sheet: &Sheet) -> Result<()> {
    println!("{sheet}");
    if options.dry {
        return Ok(());
    }
    let machine = Machine::here();
    let path = write(&options.out, &machine, &format!("{}-{name}", date()), &sheet.csv(&machine))?;
    println!("{}", path.display());
    Ok(())
}
