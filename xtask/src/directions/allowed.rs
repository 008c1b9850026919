//! The circles of imports that there are, each with its reason. A circle that is gone has to go from here,
//! too.

/// The files of each, in order, and why.
pub(super) const ALLOWED: &[(&[&str], &str)] = &[
    (
        &["benches/src/engines.rs", "benches/src/lineup.rs"],
        "the list of what is measured names the loops, and these the entry that they fill",
    ),
    (
        &["benches/src/classify/lineup.rs", "benches/src/dpdk/acl.rs"],
        "the list of what is measured names the loops, and these the entry that they fill",
    ),
    (
        &[
            "crates/classify/src/domain.rs",
            "crates/classify/src/pattern.rs",
            "crates/classify/src/patterns.rs",
            "crates/classify/src/rule.rs",
            "crates/classify/src/rules.rs",
            "crates/classify/src/spans.rs",
            "crates/classify/src/tuple/ipv4.rs",
            "crates/classify/src/tuple/ipv6.rs",
            "crates/classify/src/tuple/mod.rs",
            "crates/classify/src/tuple/openflow.rs",
            "crates/classify/src/tuple/openflow13.rs",
            "crates/classify/src/update.rs",
        ],
        "a type of tuple is a domain, whose model is a set of its rules: the bounds of Tuple say so",
    ),
    (
        &[
            "crates/fib/src/address.rs",
            "crates/fib/src/prefix.rs",
            "crates/fib/src/rib/leaf.rs",
            "crates/fib/src/rib/mod.rs",
            "crates/fib/src/rib/node.rs",
            "crates/fib/src/update.rs",
        ],
        "a family of addresses is a domain, whose model is a table of its prefixes: the bounds of Address say so",
    ),
    (
        &["crates/gpu/src/driver/cuda/mod.rs", "crates/gpu/src/driver/cuda/modules.rs"],
        "a driver and its modules, one type in two files",
    ),
    (
        &[
            "crates/gpu/src/runtime/owner/joined.rs",
            "crates/gpu/src/runtime/owner/launch.rs",
            "crates/gpu/src/runtime/owner/mod.rs",
            "crates/gpu/src/runtime/owner/patch.rs",
            "crates/gpu/src/runtime/owner/submit.rs",
            "crates/gpu/src/runtime/owner/tables.rs",
        ],
        "the owner of a GPU, one type in several files",
    ),
    (
        &["crates/gpu/src/runtime/reply.rs", "crates/gpu/src/runtime/slot.rs"],
        "a slot knows where its answer goes, and an answer is a slot",
    ),
    (
        &["crates/input/src/input.rs", "crates/input/src/source.rs"],
        "an input opens sources, and a source that can be looked into is an input",
    ),
    (
        &["crates/lookupctl/src/arguments.rs", "crates/lookupctl/src/verbs/completions.rs"],
        "completions are made of the whole command line, and are a verb of it",
    ),
    (
        &[
            "crates/namelookup/src/table/family.rs",
            "crates/namelookup/src/table/mod.rs",
            "crates/namelookup/src/table/node.rs",
            "crates/namelookup/src/table/way.rs",
        ],
        "a table and its nodes, one type in four files",
    ),
    (
        &[
            "crates/records/src/json/known.rs",
            "crates/records/src/json/mod.rs",
            "crates/records/src/records.rs",
        ],
        "a block keeps what is known of the lines before it, and lines are read into a block",
    ),
    (
        &[
            "crates/records/src/marks/avx2.rs",
            "crates/records/src/marks/avx512.rs",
            "crates/records/src/marks/ends.rs",
        ],
        "ends are added by the CPU's best instructions, and code for each adds to ends",
    ),
    (
        &["crates/wirespeed/src/builder.rs", "crates/wirespeed/src/table.rs"],
        "a type and what makes it: each names the other in its signature",
    ),
    (
        &["crates/wirespeed/src/classify/builder.rs", "crates/wirespeed/src/classify/classifier.rs"],
        "a type and what makes it: each names the other in its signature",
    ),
    (
        &["crates/wirespeed/src/names/builder.rs", "crates/wirespeed/src/names/table.rs"],
        "a type and what makes it: each names the other in its signature",
    ),
    (
        &["crates/wirespeed/src/engine/erased.rs", "crates/wirespeed/src/engine/served.rs"],
        "a domain makes tables, and these are tables of a domain: each names the other in its signature",
    ),
    (&["xtask/src/ptx/manifest.rs", "xtask/src/ptx/mod.rs"], "a manifest says what the verb is told by"),
    (
        &["crates/table/src/domain.rs", "crates/table/src/lookup.rs"],
        "a domain says what a table finds for each key where its engine has no faster way",
    ),
];
