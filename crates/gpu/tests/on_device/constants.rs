//! The constants of the kernels' sources against those of the layouts: each of one has its like in the other.

use std::collections::BTreeMap;

use wirespeed_gpu::{GpuError, classify, names};
use wirespeed_image::device::Constants;
use wirespeed_kernels_host::{HostDriver, Sanitizers};

use crate::engines;

/// What engines and the forms of keys have in the place of the sources' constants.
fn constants() -> Vec<Constants> {
    let of_keys = [
        Constants::of("names").with("NAMES_GROUP", names::GROUP).with("NAMES_SLASH", b'/'),
        Constants::of("tuples").with("TUPLES_GROUP", classify::GROUP),
    ];
    engines::all().into_iter().flat_map(|said| said.constants).chain(of_keys).collect()
}

#[test]
fn the_kernels_have_the_constants_of_the_layouts() -> Result<(), GpuError> {
    let Some(mut kernels) = HostDriver::for_tests(Sanitizers::On) else { return Ok(()) };
    let name = |module: &str, name: &str| format!("{module}: {name}");
    let of_kernels: BTreeMap<_, _> = kernels
        .constants()?
        .into_iter()
        .map(|(module, constant, value)| (name(&module, &constant), value))
        .collect();
    let mut of_layouts = BTreeMap::new();
    for Constants { namespace, values } in constants() {
        for (constant, value) in values {
            let name = name(namespace, constant);
            let other = of_layouts.insert(name.clone(), value).filter(|&other| other != value);
            assert_eq!(other, None, "two engines differ in {name}");
        }
    }
    assert_eq!(of_kernels, of_layouts);
    Ok(())
}
