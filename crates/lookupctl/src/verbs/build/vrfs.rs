//! Several tables as the VRFs of one image: the first is VRF 0, the next VRF 1, and so on.

use std::ffi::OsString;

use anyhow::{Context, Result, bail};
use wirespeed::prelude::IpNet;
use wirespeed::{Labels, NextHop, VrfId, Vrfs};
use wirespeed_fib::{Family, Fib, Strides};

use super::{Options, Written};
use crate::busy::Busy;
use crate::engine::Choice;
use crate::number::counted_u64;
use crate::{several, stdin};

/// Reads the tables and writes the image.
pub(super) fn build(options: &Options, from: &[OsString]) -> Result<Written> {
    let output = &options.image.output;
    match options.image.engine {
        Choice::Auto => {}
        Choice::Named(name) => {
            bail!("--engine {name}: an image of several FIBs has an engine of its own: leave it out")
        }
    }
    let settings = options.table.build_options(1);
    if !matches!(settings.strides, Strides::Fastest) {
        bail!("--strides is for one FIB, and {} are given", from.len());
    }
    stdin::at_most_one(from.iter().map(|file| ("a table", Some(&**file))))?;
    let loaded = several::load(&options.read, from)?;
    options.read.check(&loaded.iter().map(|loaded| &loaded.report).collect::<Vec<_>>(), None)?;
    let left_out = loaded.iter().map(|loaded| loaded.report.faults()).sum();
    if left_out > 0 {
        bail!(
            "{} left out: an image of several FIBs can't tell that, so it takes whole files only",
            counted_u64(left_out, "line")
        );
    }
    let _busy = Busy::with("building");
    let (labels, mut builder) = (Labels::new(), Vrfs::builder());
    if let Some(cap) = settings.memory_cap {
        builder = builder.memory_cap(cap);
    }
    if options.prefix_lookups {
        builder = builder.prefix_lookups();
    }
    let (mut v4, mut v6) = (0, 0);
    for (vrf, loaded) in (0..).map(VrfId).zip(loaded) {
        let routes = routes(&loaded.fib, options.family.wanted(), &labels)?;
        let of_v4 = routes.iter().filter(|(prefix, _)| matches!(prefix, IpNet::V4(_))).count();
        (v4, v6) = (v4 + of_v4, v6 + routes.len() - of_v4);
        builder = builder.vrf(vrf, routes);
    }
    let vrfs = builder.build()?;
    vrfs.save_labelled(output, &labels)?;
    Ok(Written {
        file: output.display().to_string(),
        format: super::IMAGE,
        vrfs: Some(vrfs.len()),
        ipv4_prefixes: v4,
        ipv6_prefixes: v6,
        file_bytes: Some(output.metadata().with_context(|| output.display().to_string())?.len()),
    })
}

/// The routes of the families that are wanted. Next hops of equal text have one number in all tables.
fn routes(fib: &Fib, wanted: Option<Family>, labels: &Labels<String>) -> Result<Vec<(IpNet, NextHop)>> {
    let numbers = fib.next_hops.iter().map(|(_, text)| labels.intern(text.to_owned()));
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let number = |next_hop: NextHop| numbers[next_hop.0 as usize - 1];
    let of = |family| wanted.is_none_or(|wanted| wanted == family);
    let mut routes = Vec::new();
    if of(Family::V4) {
        routes.extend(fib.v4.iter().map(|(prefix, next_hop)| (IpNet::from(prefix), number(next_hop))));
    }
    if of(Family::V6) {
        routes.extend(fib.v6.iter().map(|(prefix, next_hop)| (IpNet::from(prefix), number(next_hop))));
    }
    Ok(routes)
}
