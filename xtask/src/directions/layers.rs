//! Layers inside a crate: models beneath live tables, live tables beneath lookups and what tests them; a
//! pipeline beneath what drives it.

use super::Graph;

/// Modules of a crate's root, as files or folders.
type Layer<'a> = &'a [&'a str];

/// The layers of the crates from images to the switch, the lowest first. A file may import from its own layer
/// and from those beneath.
const LAYERS: &[(&str, &[Layer<'_>])] = &[
    (
        "crates/image/src",
        &[
            &[
                "allocations",
                "fetch",
                "huge",
                "left_right",
                "pool",
                "real_data",
                "replace_file",
                "rounds",
                "section",
                "stop",
                "storage",
            ],
            &["error", "index", "patch"],
            &["format"],
            &["front", "image"],
            &["changes", "elements", "table"],
            &["device", "live", "shared"],
        ],
    ),
    (
        "crates/table/src",
        &[
            &["error", "options", "order", "standing", "vector"],
            &["domain", "lookup"],
            &["engine"],
            &["companion"],
            &["control"],
            &["live"],
            &["whole"],
            &["conformance"],
        ],
    ),
    (
        "crates/fib/src",
        &[
            &["address", "next_hop", "prefix", "rib", "update"],
            &["domain", "fib", "oracle", "range", "rpki", "stats"],
            &["bogons", "synth"],
            &["read"],
            &["merge", "trace", "write"],
            &["conformance"],
        ],
    ),
    (
        "crates/namelookup/src",
        &[
            &["fetch", "found", "kernel", "name", "names", "tlv", "update"],
            &["oracle", "table"],
            &["aggregate", "list"],
            &["domain"],
            &["fsm", "read"],
            &["generate", "merge", "write"],
            &["acta", "aligned", "stt"],
            &["ata", "mata"],
            &["conformance"],
        ],
    ),
    (
        "crates/classify/src",
        &[
            &["error", "free", "kernel", "numbers", "rank", "seeded"],
            &["domain", "expand", "pattern", "patterns", "rule", "rules", "spans", "tuple", "update"],
            &["actions", "classes", "drawn", "limits", "oracle", "regions", "text", "write"],
            &["generate", "linear", "quilt", "read", "tss"],
            &["bloom", "tuple_search"],
            &["conformance"],
        ],
    ),
    (
        "crates/gpu/src",
        &[
            &["error", "per_key", "simd", "tally"],
            &["dispatch", "driver", "numbers"],
            &["check", "runtime"],
            &["costs", "follow", "in_place"],
            &["source"],
            &["copies"],
            &["remote"],
            &["trip"],
            &["classify", "ip", "names", "offload"],
        ],
    ),
    ("crates/dir24/src", &[&["layout"], &["build", "kernel", "lookup"], &["update"], &["accesses"]]),
    ("crates/fold/src", &[&["v4", "v6"], &["hot"]]),
    (
        "crates/forest/src",
        &[
            &["content", "layout", "links"],
            &["contents", "kernel", "rest"],
            &["nodes", "simd"],
            &["fibs"],
            &["chunks", "lookup", "saved"],
            &["update"],
            &["build"],
        ],
    ),
    (
        "crates/gamt/src",
        &[
            &["bubbles", "code", "strides"],
            &["plan", "slots"],
            &["layout"],
            &["kernel", "simd", "trie"],
            &["build", "lookup"],
            &["update"],
        ],
    ),
    (
        "crates/rank/src",
        &[
            &["layout"],
            &["kernel", "portable", "sink", "space"],
            &["chunks", "runs", "simd"],
            &["form", "lookup"],
            &["refresh"],
            &["build", "update"],
        ],
    ),
    ("crates/sail/src", &[&["kernel", "sail_l"], &["on_chip", "sail_b", "sail_m"], &["accesses"]]),
    (
        "crates/waldvogel/src",
        &[
            &["rope", "sections", "value"],
            &["hash"],
            &["buckets", "slots"],
            &["layout"],
            &["kernel", "keys", "tree"],
            &["form"],
            &["build", "probe"],
            &["simd", "update"],
            &["lookup"],
        ],
    ),
    (
        "crates/wirespeed/src",
        &[
            &["gpu", "key", "match_ids", "memory", "route_list", "sync", "update_buffer"],
            &["owned_keys", "routes", "turnover", "uses"],
            &[
                "builder",
                "classify",
                "common",
                "device",
                "engine",
                "error",
                "image_file",
                "labels",
                "load",
                "names",
                "pipeline",
                "reader",
                "settings",
                "table",
                "taken_apart",
            ],
            &["batches", "ip", "on_device", "reloader"],
            &["content", "methods", "replace", "vrfs"],
        ],
    ),
    (
        "crates/router/src",
        &[
            &["error", "lateness", "narrow", "reason", "used", "why"],
            &["cores", "frame", "header", "sizing", "stats"],
            &["chunk", "frames"],
            &["app", "route", "tables", "tracer"],
            &["any_app"],
            &["apps", "io", "report", "worker"],
            &["control", "metrics", "router"],
        ],
    ),
    (
        "crates/openflow/src",
        &[
            &["inject", "wire"],
            &["error", "pipeline"],
            &["search", "switch"],
            &["ahead", "channel", "flows", "interpret"],
            &["app"],
        ],
    ),
];

/// The number of the layer that a file of the crate is in. `None` for the crate's root, and for a file that
/// no layer has.
fn layer_of(src: &str, layers: &[Layer<'_>], file: &str) -> Option<usize> {
    let beneath = file.strip_prefix(src)?.strip_prefix('/')?;
    let module = beneath.split('/').next()?;
    let module = module.strip_suffix(".rs").unwrap_or(module);
    layers.iter().position(|layer| layer.contains(&module))
}

/// The imports of a crate that go up, and the files that are in no layer.
fn amiss(graph: &Graph, src: &str, layers: &[Layer<'_>]) -> Vec<String> {
    let mut amiss = Vec::new();
    let of_crate = |file: &&String| file.starts_with(src) && !file.ends_with("/src/lib.rs");
    for file in graph.keys().filter(of_crate) {
        let Some(layer) = layer_of(src, layers, file) else {
            amiss.push(format!("{file} is in no layer"));
            continue;
        };
        let up = |import: &&String| layer_of(src, layers, import).is_some_and(|of| of > layer);
        amiss.extend(
            graph[file].iter().filter(up).map(|import| format!("{file} imports {import}, which is above")),
        );
    }
    amiss
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directions::modules::graph_of;
    use crate::step;

    #[test]
    fn files_import_from_layers_beneath() {
        let graph = graph_of(&step::root()).unwrap();
        let amiss: Vec<_> = LAYERS.iter().flat_map(|(src, layers)| amiss(&graph, src, layers)).collect();
        assert!(amiss.is_empty(), "{}", amiss.join("\n"));
        for (src, layers) in LAYERS {
            for module in layers.iter().copied().flatten() {
                let is_there = |file: &String| layer_of(src, &[&[module]], file).is_some();
                assert!(graph.keys().any(is_there), "{src} has no {module}");
            }
        }
    }

    #[test]
    fn what_goes_up_is_found() {
        let layers: &[Layer<'_>] = &[&["model"], &["live", "other"]];
        let files = |names: &[&str]| names.iter().map(|name| format!("a/src/{name}")).collect();
        let graph: Graph = [
            ("a/src/lib.rs".to_owned(), files(&["live.rs"])),
            ("a/src/model/one.rs".to_owned(), files(&["live.rs", "model/mod.rs"])),
            ("a/src/live.rs".to_owned(), files(&["model/one.rs", "other/mod.rs"])),
            ("a/src/new.rs".to_owned(), files(&[])),
        ]
        .into();
        let found = amiss(&graph, "a/src", layers);
        assert_eq!(
            found,
            ["a/src/model/one.rs imports a/src/live.rs, which is above", "a/src/new.rs is in no layer"]
        );
    }
}
