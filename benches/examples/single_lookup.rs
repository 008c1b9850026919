//! Single lookups as functions of their own, to read what they compile to:
//!
//! ```sh
//! cargo build --release -p wirespeed-benches --example single_lookup
//! objdump -d -C -M intel --disassemble=single_lookup::fold_v4 target/release/examples/single_lookup
//! ```

use anyhow::Result;
use wirespeed_fib::{BuildOptions, Engine, Lookup, NextHop, Rib, V4, V6};
use wirespeed_fold::{FoldTableV4, FoldTableV6, FoldV4, FoldV6};
use wirespeed_sail::{SailL, SailLTable};

#[inline(never)]
fn fold_v4(table: &FoldTableV4, address: V4) -> NextHop {
    table.lookup(address)
}

#[inline(never)]
fn fold_v6(table: &FoldTableV6, address: V6) -> NextHop {
    table.lookup(address)
}

#[inline(never)]
fn sail_l(table: &SailLTable<V4>, address: V4) -> NextHop {
    table.lookup(address)
}

fn main() -> Result<()> {
    let options = BuildOptions::default();
    let rib: Rib<V4> = [("10.0.0.0/8".parse()?, NextHop(1))].into_iter().collect();
    let (_, fold) = FoldV4::build(&rib, &options)?;
    let (_, sail) = <SailL as Engine<V4>>::build(&rib, &options)?;
    let rib: Rib<V6> = [("2001:db8::/32".parse()?, NextHop(1))].into_iter().collect();
    let (_, fold_6) = FoldV6::build(&rib, &options)?;
    let (v4, v6) = ("10.1.2.3".parse()?, "2001:db8::1".parse()?);
    println!("{} {} {}", fold_v4(&fold, v4), sail_l(&sail, v4), fold_v6(&fold_6, v6));
    Ok(())
}
