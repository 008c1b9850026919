#![doc = include_str!("../README.md")]

mod answer;
mod columns;
mod enrich;
mod file;
mod flows;
mod guarded;
mod in_order;
mod interrupt;
mod keys;
mod output;
mod pages;
mod shared_file;
mod summary;
mod values;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use wirespeed_commands::one_line::one_line;
use wirespeed_commands::tell;

/// Works on Parquet files with Wirespeed's tables.
#[derive(Parser)]
#[command(name = "wirespeed-parquet", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Enrich(enrich::Options),
}

fn main() -> ExitCode {
    let Command::Enrich(options) = Arguments::parse().command;
    match enrich::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell!("wirespeed-parquet: {}", one_line(&error));
            ExitCode::from(if error.is::<interrupt::Interrupted>() { interrupt::status() } else { 2 })
        }
    }
}
