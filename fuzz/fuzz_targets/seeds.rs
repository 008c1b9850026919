//! Every target on its seeds and on no bytes, without a fuzzer: a change of the code that a target uses can't
//! break it unseen. The package `fuzz/replay` compiles this file.

#![allow(unused_attributes, reason = "each target is a program of its own for the fuzzer")]

extern crate self as libfuzzer_sys;

use std::path::Path;

mod auto;
mod bgpdump;
mod classify_classbench;
mod classify_frame;
mod classify_hostile;
mod classify_image;
mod classify_ipset;
mod classify_iptables;
mod classify_model;
mod classify_network_policy;
mod classify_nft;
mod classify_ovs;
mod classify_plain;
mod classify_security_groups;
mod classify_trace;
mod classify_updates;
mod cloud;
mod content;
mod csv;
mod csv_written;
mod delegated;
mod esp_lines;
mod esp_packet;
mod feeds_bmp;
mod feeds_fpm;
mod feeds_netlink;
mod fold_hot_image;
mod forest_fibs;
mod forest_image;
mod frr_json;
mod image;
mod ip_route;
mod ip_route_json;
mod ipset;
mod merge;
mod mmdb;
mod mmdb_written;
mod mrt;
mod names_adblock;
mod names_csv;
mod names_dnsmasq;
mod names_hosts;
mod names_image;
mod names_model;
mod names_psl;
mod names_rpz;
mod names_table;
mod names_tlv;
mod names_trace;
mod names_written;
mod nft_sets;
mod openflow_flows;
mod openflow_messages;
mod pfx2as;
mod plain;
mod rank_image;
mod records;
mod router_frames;
mod sail_image;
mod trace;
mod updates;
mod vrp_csv;
mod vrp_json;

/// Stands for the macro of the fuzzer. It is defined after the targets, so that they find it by its path, as
/// they find the other one.
#[macro_export]
macro_rules! fuzz_target {
    (|$bytes:ident: &[u8]| $run:expr) => {
        #[test]
        fn seeds() {
            $crate::each_seed(module_path!(), |$bytes: &[u8]| $run);
        }
    };
}

fn each_seed(module: &str, run: impl Fn(&[u8])) {
    run(b"");
    let target = module.rsplit("::").next().unwrap_or(module);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../seeds").join(target);
    // Some targets make their own images, and have no seeds.
    for seed in folder.read_dir().into_iter().flatten() {
        run(&std::fs::read(seed.expect("a seed").path()).expect("a seed that can be read"));
    }
}

#[test]
fn all_targets_are_here_and_in_the_manifest() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (own, manifest) = (include_str!("seeds.rs"), include_str!("../Cargo.toml"));
    for file in fuzz.join("fuzz_targets").read_dir().expect("the targets") {
        let file = file.expect("a file").path();
        let name = file.file_stem().and_then(|name| name.to_str()).expect("a name");
        let path = format!("path = \"fuzz_targets/{name}.rs\"");
        let is_there = own.contains(&format!("\nmod {name};\n")) && manifest.contains(&path);
        assert!(is_there || name == "seeds", "{name}");
    }
}
