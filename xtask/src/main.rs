//! What plain cargo can't do for this workspace: `cargo xtask VERB`. One file per verb.

mod ci;
#[cfg(test)]
mod directions;
#[cfg(test)]
mod documents;
mod features;
mod fuzz;
mod header;
mod oldest;
mod parallel;
mod programs;
mod ptx;
mod public;
mod record;
mod report;
mod router_bench;
mod ryu_tests;
mod sanitize;
mod sources;
mod step;
mod unsafe_list;
mod weight;
mod words;

use clap::{Parser, Subcommand};

/// The work on this workspace that plain cargo can't do.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Everything a change has to pass, step by step, the tests last
    Ci,
    /// Measures tunnels of IPsec by suites and sizes and writes benches/record/MACHINE/DATE-esp.csv
    EspBench(programs::Options),
    /// Builds and runs the fuzz targets
    Fuzz(fuzz::Options),
    /// Makes the header for C from the code, or compares it
    Header(header::Options),
    /// Measures OpenFlow switches by flows and masks and writes benches/record/MACHINE/DATE-openflow.csv
    OpenflowBench(programs::Options),
    /// Packs the crates that are for others, and builds each from what is packed
    Package,
    /// Counts lines that say the same of addresses, names and rules
    Parallel,
    /// Builds the kernels' PTX from their sources, or checks what is committed
    Ptx(ptx::Options),
    /// Measures this machine and writes benches/record/MACHINE/DATE.csv
    Record(record::Options),
    /// Makes the tables and the chart of the documents anew from benches/record
    Report(report::Options),
    /// Measures routers side by side and writes benches/record/MACHINE/DATE-router.csv
    RouterBench(router_bench::Options),
    /// Runs the switch tests of Ryu against our switch, and against Open vSwitch
    RyuTests(ryu_tests::Options),
    /// Runs tests of live tables and of the GPU's runtime under a sanitizer
    Sanitize(sanitize::Options),
    /// Writes UNSAFE.md from the code
    Unsafe(unsafe_list::Options),
    /// Tells how much the program and the code weigh
    Weight(weight::Options),
    /// Lists comments whose words or width are not as they should be, or wraps those that are too long
    Words(words::Options),
    /// Makes the GAMT paper's figures anew and writes benches/record/MACHINE/DATE-gamt-paper-….csv
    GamtPaper(programs::Options),
    /// Makes the GSwitch paper's figures anew and writes benches/record/MACHINE/DATE-gswitch-paper-….csv and
    /// .svg
    GswitchPaper(programs::Options),
    /// Makes the MATA paper's figures anew and writes benches/record/MACHINE/DATE-mata-paper-….csv and .svg
    MataPaper(programs::Options),
    /// Makes the SAIL paper's figures anew and writes benches/record/MACHINE/DATE-sail-paper-….csv
    SailPaper(programs::Options),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().verb {
        Verb::Ci => ci::run(),
        Verb::EspBench(options) => router_bench::run_of("esp", &options),
        Verb::Fuzz(options) => fuzz::run(&options),
        Verb::Header(options) => header::run(&options),
        Verb::OpenflowBench(options) => router_bench::run_of("openflow", &options),
        Verb::Package => public::build(),
        Verb::Parallel => parallel::run(),
        Verb::Ptx(options) => ptx::run(&options),
        Verb::Record(options) => record::run(&options),
        Verb::Report(options) => report::run(&options),
        Verb::RouterBench(options) => router_bench::run(&options),
        Verb::RyuTests(options) => ryu_tests::run(&options),
        Verb::Sanitize(options) => sanitize::run(&options),
        Verb::Unsafe(options) => unsafe_list::run(&options),
        Verb::Weight(options) => weight::run(&options),
        Verb::Words(options) => words::run(&options),
        Verb::GamtPaper(options) => programs::run("gamt-paper", &options),
        Verb::GswitchPaper(options) => programs::run("gswitch-paper", &options),
        Verb::MataPaper(options) => programs::run("mata-paper", &options),
        Verb::SailPaper(options) => programs::run("sail-paper", &options),
    }
}
