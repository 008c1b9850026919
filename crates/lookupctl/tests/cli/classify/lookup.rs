//! `classify lookup`.

use serde_json::{Value, json};

use super::{NEW, TRACE, folder};

const TO_443: &str = "src=10.66.0.1 dst=192.0.2.7 sport=4000 dport=443 proto=tcp";

#[test]
fn the_rule_that_matches_and_those_that_nearly_do() {
    let folder = folder();
    let ran = folder.run(&format!("classify lookup --rules rules {TO_443}")).ok();
    for part in [
        "proto=tcp  rule 2  action 2",
        "matches rule 2: src=10.66.0.0/16 priority=30 action=2",
        "1 more rule matches, and comes after it",
        "nearly rule 4, which comes after it: dport is 443, wanted 80: dst=192.0.2.0/24",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {ran:?}");
    }
    let ran = folder.run("classify lookup --rules rules src=10.1.0.1 dport=80 tcp --json").status(1);
    let line = &ran.json()[0];
    assert_eq!(
        (&line["rule"], &line["action"], &line["nearly_count"]),
        (&Value::Null, &Value::Null, &3.into())
    );
    let near = |at: usize| {
        let near = &line["nearly"][at];
        (near["rule"].clone(), near["field"].clone(), near["is"].clone(), near["wanted"].clone())
    };
    let found = [near(0), near(1), near(2)];
    assert!(found.contains(&(1.into(), "dport".into(), "80".into(), "443".into())), "{ran:?}");
    assert!(found.contains(&(4.into(), "dst".into(), "0.0.0.0".into(), "192.0.2.0/24".into())), "{ran:?}");
    let none = folder.run("classify lookup --rules rules dport=80 tcp --nearly 0").status(1);
    assert!(none.stdout.trim_end().ends_with("no rule"), "{none:?}");
}

#[test]
fn tuples_on_standard_input_by_every_engine() {
    let folder = folder();
    for engine in ["auto", "linear", "tuple", "bloom", "quilt"] {
        let ran = folder.run_with(
            &format!("classify lookup --rules rules --engine {engine} --json --nearly 0 --explain"),
            format!("# trace\n\n{TRACE}").as_bytes(),
        );
        let found: Vec<_> =
            ran.status(1).json().iter().map(|line| line["rule"].as_u64().unwrap_or(0)).collect();
        assert_eq!(found, [1, 2, 3, 4, 0], "{engine}");
    }
    let explained = folder.run(&format!("classify lookup --rules rules {TO_443} --explain")).ok();
    assert!(explained.stdout.contains("result 2, of priority 30"), "{explained:?}");
}

#[test]
fn columns_quoted_tuples_and_names_of_actions() {
    let folder = folder();
    let ran = folder.run(&format!("classify lookup --rules saved {NEW} 10.0.0.1 192.0.2.7 4000 22 tcp")).ok();
    assert!(ran.stdout.contains("rule 1  ACCEPT\n") && ran.stdout.contains("action=ACCEPT"), "{ran:?}");
    // Commas, too, make an argument a tuple of its own.
    let run = "classify lookup --rules saved --lenient --json src=10.0.0.1,tcp,dport=22 udp,dport=1500";
    let ran = folder.run(run).ok();
    let actions: Vec<_> = ran.json().iter().map(|line| line["action"].clone()).collect();
    assert_eq!(actions, [json!("ACCEPT"), json!("REJECT")]);
    assert!(ran.stderr.contains("left out line 4"), "{ran:?}");
}

#[test]
fn frames_in_hex() {
    let folder = folder();
    let tcp = "00005e00530100005e005302080045000028000100004006b7c40a000001c00002070fa0001600000000000000005002200000000000";
    let ran = folder.run(&format!("classify lookup --rules saved {NEW} --frame {tcp} --json")).ok();
    let line = &ran.json()[0];
    assert_eq!(line["tuple"], "src=10.0.0.1 dst=192.0.2.7 sport=4000 dport=22 proto=tcp");
    assert_eq!(line["rule"], 1);
    let frame = tcp.replace("c0000207", "0a000207");
    for (port, rule, action) in [(1, 1, "output:2"), (2, 3, "drop")] {
        let ran =
            folder.run(&format!("classify lookup --rules flows --frame --in-port {port} {frame} --json"));
        assert_eq!((&ran.json()[0]["rule"], &ran.json()[0]["action"]), (&rule.into(), &action.into()));
    }
    let from_stdin = folder
        .run_with(&format!("classify lookup --rules saved {NEW} --frame"), format!("{tcp}\n").as_bytes())
        .ok();
    assert!(from_stdin.stdout.contains("rule 1  ACCEPT"), "{from_stdin:?}");
    folder
        .run(&format!("classify lookup --rules saved {NEW} --frame {}", &tcp[..60]))
        .refused(&["no ipv4 tuple"]);
    folder.run(&format!("classify lookup --rules saved {NEW} --frame 00xx")).refused(&["not a frame in hex"]);
    folder.run(&format!("classify lookup --rules saved --in-port 3 {TO_443}")).status(2);
}
