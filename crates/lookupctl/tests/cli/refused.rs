//! Options that nothing would heed are refused, in one line.

use crate::common::Folder;
use crate::route::{frame, pcap};

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
        ("replay --image v4.img", "--memory-cap 1G"),
        ("names replay --image names.img", "--memory-cap 1G"),
        ("classify replay --image rules.img", "--memory-cap 1G,--tuple ipv6"),
    ] {
        for option in options.split(',') {
            folder.run(&format!("{verb} {option}")).refused(&["'--image <IMG>' cannot be used with '--"]);
        }
    }
    for verb in [
        "replay --image v4.img",
        "names replay --image names.img",
        "classify replay --image rules.img",
        "replay",
    ] {
        folder.run(&format!("{verb} --rate 100 --seconds 0.01")).refused(&["--rate is for --updates"]);
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

#[test]
fn what_a_router_would_not_heed() {
    let folder = Folder::new();
    folder.write("in.pcap", pcap(&[frame([10, 1, 2, 9], 64)]));
    folder.write("names", "/com 1\n");
    folder.write("flows", "priority=1,ip actions=output:2\n");
    let live = "is for forwarding between interfaces, and no IF is given";
    let (ip, switch, names) = (
        "route --in in.pcap --fib v4",
        "route --in in.pcap --app openflow --flows flows",
        "route --in in.pcap --app names --table names",
    );
    for (arguments, option, says) in [
        ("route --in in.pcap", "--feed fpm:127.0.0.1:1", live),
        ("route --in in.pcap", "--kernel-table 7", live),
        (ip, "--driver packet", live),
        (ip, "--busy-poll", live),
        (switch, "--local name", live),
        (ip, "--otherwise deny", "--otherwise is for --app acl"),
        (switch, "--otherwise deny", "--otherwise is for --app acl"),
        (ip, "--datapath 7", "--datapath is for --app openflow"),
        (ip, "--most-flows 7", "--most-flows is for --app openflow"),
        (ip, "--most-action-bytes 1M", "--most-action-bytes is for --app openflow"),
        (ip, "--most-bundle-bytes 1M", "--most-bundle-bytes is for --app openflow"),
        (switch, "--most-bundle-bytes 1M", "--most-bundle-bytes is for bundles of controllers"),
        (switch, "--most-action-bytes 1", "refuses it: the table is full"),
        (ip, "--seconds 1", "--seconds is for frames that are made"),
        (ip, "--device cpu --gpu-chunk 9", "--gpu-chunk is for a GPU"),
        (switch, "--wait 1", "--wait is for a switch that has to wait"),
        (switch, "--mtu 900", "--mtu is for --app ip, acl and esp"),
        (names, "--own6 2001:db8::1", "--own6 is for --app ip, acl and esp"),
        (switch, "--lenient", "--lenient is for a table that --fib names"),
        (names, "--format plain", "--format is for a table that --fib names"),
        (ip, "--own 127.0.0.1", "--own and --own6 are the addresses of a host"),
        ("route lo", "--mtu 900", "--mtu is for frames of --in"),
        ("route lo --app openflow --standalone", "--wait 1", "--wait is for frames of --in"),
        ("route --in in.pcap --app openflow --standalone", "--flows flows", "needs --controller or --listen"),
    ] {
        folder.run(&format!("{arguments} {option}")).refused(&[says]);
    }
    for heeded in [
        ip,
        switch,
        names,
        "route --in in.pcap --app openflow --standalone",
        "route --in in.pcap --fib v4 --mtu 900 --own 192.0.2.1 --own6 2001:db8::1 --gpu-chunk 9 --lenient",
        "route --in in.pcap --app openflow --listen 127.0.0.1:0 --wait 0.01 --datapath 7",
        "route --in in.pcap --app names --table names --mtu 900",
    ] {
        folder.run(heeded).ok();
    }
    // The first of both ends it: without the second, frames in such a number take hours.
    folder.run("route --fib v4 --in gen:64 --count 1000g --seconds 0.05 --threads 1").ok();
}
