//! The circles of imports that there are, each with its reason. A list to be shortened: a circle that is gone
//! has to go from here, too.

/// The files of each, in order, and why.
pub(super) const ALLOWED: &[(&[&str], &str)] = &[
    (
        &["benches/src/engines.rs", "benches/src/lineup.rs"],
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
            "crates/classify/src/update.rs",
        ],
        "a type of tuple is a domain, whose model is a set of its rules: the bounds of Tuple say so",
    ),
    (
        &["crates/classify/src/read/chains/region.rs", "crates/classify/src/read/chains/set.rs"],
        "not taken apart yet: the error of both belongs beneath them",
    ),
    (
        &["crates/classify/src/read/format.rs", "crates/classify/src/read/report.rs"],
        "not taken apart yet: the error of reading names formats",
    ),
    (
        &["crates/classify/src/read/ovs/conjunction.rs", "crates/classify/src/read/ovs/mod.rs"],
        "not taken apart yet: the flow belongs beneath both",
    ),
    (
        &["crates/classify/src/tss/build.rs", "crates/classify/src/tss/class.rs"],
        "not taken apart yet: the engine and its classes share their state",
    ),
    (
        &["crates/classify/src/tss/lookup.rs", "crates/classify/src/tss/simd.rs"],
        "not taken apart yet: the portable part of a batch belongs beneath its vectors",
    ),
    (
        &[
            "crates/fib/src/read/error.rs",
            "crates/fib/src/read/format.rs",
            "crates/fib/src/read/report.rs",
            "crates/fib/src/read/table.rs",
            "crates/fib/src/read/text.rs",
        ],
        "not taken apart yet: formats are recognised by their text, and errors name formats",
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
        &[
            "crates/fib/src/synth/cascade.rs",
            "crates/fib/src/synth/hops.rs",
            "crates/fib/src/synth/mod.rs",
            "crates/fib/src/synth/shape.rs",
        ],
        "not taken apart yet: the spec of a table belongs beneath what makes one",
    ),
    (
        &[
            "crates/fib/src/trace/capture.rs",
            "crates/fib/src/trace/packed.rs",
            "crates/fib/src/trace/read.rs",
            "crates/fib/src/trace/text.rs",
        ],
        "not taken apart yet: the trace belongs beneath its readers",
    ),
    (
        &["crates/gamt/src/layout.rs", "crates/gamt/src/plan.rs"],
        "not taken apart yet: the plan of levels belongs beneath the layout",
    ),
    (
        &["crates/gpu/src/driver/cuda/mod.rs", "crates/gpu/src/driver/cuda/modules.rs"],
        "a driver and its modules, one type in two files",
    ),
    (
        &[
            "crates/gpu/src/runtime/batch.rs",
            "crates/gpu/src/runtime/calibrate.rs",
            "crates/gpu/src/runtime/command.rs",
            "crates/gpu/src/runtime/gpu.rs",
            "crates/gpu/src/runtime/owner/joined.rs",
            "crates/gpu/src/runtime/owner/launch.rs",
            "crates/gpu/src/runtime/owner/mod.rs",
            "crates/gpu/src/runtime/owner/patch.rs",
            "crates/gpu/src/runtime/owner/submit.rs",
            "crates/gpu/src/runtime/owner/tables.rs",
            "crates/gpu/src/runtime/table.rs",
        ],
        "not taken apart yet: the messages to the owner of a GPU belong beneath it",
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
            "crates/lookupctl/src/verbs/replay/bound.rs",
            "crates/lookupctl/src/verbs/replay/drive.rs",
            "crates/lookupctl/src/verbs/replay/place.rs",
            "crates/lookupctl/src/verbs/replay/worker.rs",
        ],
        "what a thread does is compiled for each lane, and called without its type: each names the other",
    ),
    (
        &["crates/namelookup/src/acta/lookup.rs", "crates/namelookup/src/acta/simd.rs"],
        "not taken apart yet: the portable part of a batch belongs beneath its vectors",
    ),
    (
        &["crates/namelookup/src/fsm/mod.rs", "crates/namelookup/src/fsm/part.rs"],
        "not taken apart yet: the links of states belong beneath both",
    ),
    (
        &[
            "crates/namelookup/src/read/foreign.rs",
            "crates/namelookup/src/read/form.rs",
            "crates/namelookup/src/read/format.rs",
            "crates/namelookup/src/read/url.rs",
        ],
        "not taken apart yet: formats are recognised by their readers",
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
        &["crates/rank/src/build.rs", "crates/rank/src/chunks.rs", "crates/rank/src/runs.rs"],
        "not taken apart yet: the engine is beneath its own parts",
    ),
    (
        &["crates/rank/src/lookup.rs", "crates/rank/src/simd.rs"],
        "not taken apart yet: the portable part of a batch belongs beneath its vectors",
    ),
    (
        &["crates/sail/src/sail_l/lookup.rs", "crates/sail/src/sail_l/simd.rs"],
        "not taken apart yet: the portable part of a batch belongs beneath its vectors",
    ),
    (
        &["crates/sail/src/sail_m/build.rs", "crates/sail/src/sail_m/update.rs"],
        "not taken apart yet: the log of changes belongs beneath both",
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
