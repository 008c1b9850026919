//! Compiles the DPDK shim and links DPDK, when the feature `dpdk` asks for it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "dpdk")]
    dpdk();
}

#[cfg(feature = "dpdk")]
fn dpdk() {
    println!("cargo::rerun-if-changed=dpdk/shim.c");
    let dpdk = match pkg_config::Config::new().atleast_version("22.11").cargo_metadata(false).probe("libdpdk")
    {
        Ok(dpdk) => dpdk,
        Err(error) => {
            panic!("the feature `dpdk` needs libdpdk 22.11 or later (Debian: libdpdk-dev): {error}")
        }
    };
    let mut shim = cc::Build::new();
    shim.file("dpdk/shim.c").includes(&dpdk.include_paths).opt_level(3);
    // DPDK's headers want what pkg-config gives beside the include paths: its configuration first of all
    // files, SSE4.2.
    shim.flag("-include").flag("rte_config.h").flag("-march=corei7");
    // Inline functions of DPDK that this shim doesn't call warn under stricter settings than DPDK's own.
    shim.warnings(true).flag_if_supported("-Wno-unused-parameter").compile("wirespeed_dpdk");
    for path in &dpdk.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    // Of DPDK's hundred libraries only those that the shim calls.
    for library in ["rte_acl", "rte_eal", "rte_fib", "rte_lpm"] {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
}
