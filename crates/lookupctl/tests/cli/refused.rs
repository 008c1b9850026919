//! Options that nothing would heed are refused, in one line.

use crate::common::Folder;

#[test]
fn options_for_what_is_made_where_nothing_is() {
    let folder = Folder::new();
    folder.write("keys", "10.1.2.3\n192.0.2.1\n");
    folder.write("names", "/com/parc 1\n/com 2\n");
    folder.write("rules", "src=10.0.0.0/8 tcp\n");
    folder.write("tuples", "src=10.0.0.1 tcp\n");
    folder.run("build --fib v4 -o v4.img").ok();
    folder.run("names build --table names -o names.img").ok();
    folder.run("classify build --rules rules -o rules.img").ok();
    let (count, seed) = ("--count is for a trace that is made", "--seed is for what is made");
    for (arguments, option, says) in [
        ("replay --fib v4 --trace keys", "--count 5", count),
        ("replay --fib v4 --trace keys", "--keys 5", count),
        ("replay --fib v4 --trace keys", "--seed 5", seed),
        ("replay --image v4.img --trace keys", "--seed 5", seed),
        ("replay --image v4.img", "--format plain", "--format is for a table that is read"),
        ("replay --image v4.img", "--vrf red", "--vrf red: no input"),
        ("names replay --table names --trace names", "--count 5", count),
        ("names replay --table names --trace names", "--paths none", "--paths is for a trace that is made"),
        ("names replay --table names --trace names", "--misses 0.5", "--misses is for a trace that is made"),
        ("names replay --image names.img --trace names", "--seed 5", seed),
        ("names replay --image names.img", "--format names", "--format is for a table that is read"),
        ("classify replay --rules rules --trace tuples", "--count 5", count),
        ("classify replay --image rules.img --trace tuples", "--seed 5", seed),
    ] {
        folder.run(&format!("{arguments} --seconds 0.01 --device cpu")).ok();
        folder.run(&format!("{arguments} {option} --seconds 0.01")).refused(&[says]);
    }
    for heeded in [
        "replay --fib v4 --trace keys --updates synth:10 --seed 5",
        "replay --fib v4 --count 5 --seed 5",
        "names replay --table names --trace names --seed 5",
        "names replay --image names.img --misses 0.5 --count 10 --seed 5",
        "classify replay --image rules.img --trace tuples --shuffle --seed 5",
    ] {
        folder.run(&format!("{heeded} --seconds 0.01 --device cpu")).ok();
    }
}

#[test]
fn options_for_a_table_beside_an_image() {
    let folder = Folder::new();
    folder.write("names", "/com/parc 1\n/com 2\n");
    folder.write("rules", "src=10.0.0.0/8 tcp\n");
    folder.run("build --fib v4 -o v4.img").ok();
    folder.run("names build --table names -o names.img").ok();
    folder.run("classify build --rules rules -o rules.img").ok();
    for (image, options) in [
        ("v4.img", "--family 4,--strides,--memory-cap 1G,--format csv,--lenient,--verbose,--value-columns a"),
        ("names.img", "--aggregate,--memory-cap 1G,--format names,--lenient"),
        ("rules.img", "--memory-cap 1G,--lenient"),
    ] {
        let verb = match image {
            "names.img" => "names info",
            "rules.img" => "classify info",
            _ => "info",
        };
        folder.run(&format!("{verb} {image}")).ok();
        for option in options.split(',') {
            let name = option.split(' ').next().unwrap_or_default();
            let says = format!("{name} is for a table, and an image is compiled already");
            folder.run(&format!("{verb} {image} {option}")).refused(&[&says]);
        }
    }
    for (verb, options) in [
        ("lookup --image v4.img 10.0.0.1", "--memory-cap 1G,--verbose"),
        ("names lookup --image names.img /com", "--memory-cap 1G"),
        ("classify lookup --image rules.img tcp", "--memory-cap 1G,--tuple ipv6"),
    ] {
        for option in options.split(',') {
            folder.run(&format!("{verb} {option}")).refused(&["'--image <IMG>' cannot be used with '--"]);
        }
    }
    // A table beside the image heeds it.
    folder.run("info v4.img v4 --family 4 --engine sail-l").ok();
}

#[test]
fn what_a_gpu_tells_on_the_cpu() {
    let folder = Folder::new();
    folder.write("names", "/com/parc 1\n");
    for verb in ["replay --fib v4", "names replay --table names", "classify replay --set-count 10"] {
        folder
            .run(&format!("{verb} --device cpu --explain --seconds 0.01"))
            .refused(&["--explain is for a GPU: it means nothing with --device cpu"]);
    }
    folder.run("replay --fib v4 --fib v6 --explain --seconds 0.01").refused(&["--explain is for a GPU"]);
}
