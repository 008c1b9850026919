//! Names of kernels: all that can be asked for against all that the modules have, both ways.

use std::collections::BTreeSet;

use wirespeed_dir24::Dir24Table;
use wirespeed_gpu::driver::writers;
use wirespeed_image::device::{Kernel, Kind, OnDevice, Stem, Unsupported, Width};
use wirespeed_kernels::MODULES;

use crate::engines;

/// A module and a name.
type Named = (String, String);

/// What no engine asks for: the kernel that measures memory, for the benches and the runtime's tests; those
/// that write, for the runtime; and those of ESP, whose crate has tests of its own.
fn of_no_engine() -> Vec<Kernel> {
    let gather = Width::ALL.map(|elements| Stem::of("gather").width('w', elements));
    let esp = ["esp_open", "esp_seal", "esp_sha1_open", "esp_sha1_seal"];
    let esp = esp.map(|name| Kernel { module: "esp", name: name.into() });
    [engines::with(&gather, &[Kind::Bytes(4)]), vec![writers::patch(), writers::patch_one()], esp.to_vec()]
        .concat()
}

/// All that can be asked for.
fn asked() -> BTreeSet<Named> {
    let of_engines = engines::all().into_iter().flat_map(|said| said.kernels);
    let kernels = of_engines.chain(of_no_engine());
    kernels.map(|kernel| (kernel.module.to_owned(), kernel.name)).collect()
}

/// All that there are.
fn there() -> BTreeSet<Named> {
    let of = |ptx: &str| -> Vec<String> {
        let entries = ptx.split(".entry ").skip(1);
        entries.filter_map(|entry| Some(entry.split_once('(')?.0.trim().to_owned())).collect()
    };
    let kernels = MODULES
        .iter()
        .flat_map(|module| of(&module.ptx()).into_iter().map(|name| (module.name.to_owned(), name)));
    kernels.collect()
}

#[test]
fn kernels_that_are_asked_for_are_those_that_there_are() {
    let (asked, there) = (asked(), there());
    assert!(there.len() > 150, "{} kernels were read", there.len());
    let lacking: Vec<_> = asked.difference(&there).collect();
    assert!(lacking.is_empty(), "asked for and in no module: {lacking:?}");
    let idle: Vec<_> = there.difference(&asked).collect();
    assert!(idle.is_empty(), "in a module and asked for by nobody: {idle:?}");
}

#[test]
fn a_program_has_a_kernel_of_its_engine() {
    let program = |stem| Dir24Table::program(stem, &0u64, 1);
    let listed = Dir24Table::kernels()[0];
    assert_eq!(program(listed).map(|program| program.stem), Ok(listed));
    let other = Stem::of("dir24").word("other");
    assert_eq!(program(other), Err(Unsupported("this shape: there is no dir24_other".into())));
}
