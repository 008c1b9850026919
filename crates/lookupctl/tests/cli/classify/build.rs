//! `classify build`.

use super::{NEW, folder};

#[test]
fn an_image_holds_the_rules_and_what_their_actions_are_called() {
    let folder = folder();
    for (rules, engine, options) in [
        ("flows", "bloom", "--engine bloom"),
        (&*format!("saved {NEW}"), "linear", "--engine linear"),
        ("rules", "quilt", "--engine quilt"),
    ] {
        let ran =
            folder.run(&format!("classify build --rules {rules} -o it.img --json --seed 3 {options}")).ok();
        let report = ran.json().remove(0);
        assert_eq!((&report["engine"], &report["image"]), (&engine.into(), &"it.img".into()));
        assert!(report["file_bytes"].as_u64() > report["bytes"].as_u64(), "{report}");
        let (source, image) = (
            folder.run(&format!("classify lookup --rules {rules} --json udp,dport=1500 tcp,dport=80")),
            folder.run("classify lookup --image it.img --json udp,dport=1500 tcp,dport=80"),
        );
        for (source, image) in source.json().iter().zip(image.json()) {
            assert_eq!(*source, image, "{rules}");
        }
        let told = &folder.run("classify info it.img --json").ok().json()[0];
        assert_eq!((&told["format"], &told["rules"]), (&"image".into(), &report["rules"]));
        assert_eq!(told["engines"][0]["engine"], engine);
    }
    let first = std::fs::read(folder.path("it.img")).unwrap();
    folder.run("classify build --rules rules -o it.img --seed 3 --engine quilt").ok();
    assert_eq!(first, std::fs::read(folder.path("it.img")).unwrap(), "equal seeds make equal images");
}

#[test]
fn rules_of_openflow_1_3() {
    let folder = folder();
    folder.write(
        "wide",
        "in_port=1 eth_type=0x86dd dst=2001:db8::/32 proto=tcp dport=443 priority=30 action=7\n\
         eth_vlan=0x1007 priority=20 action=8\n",
    );
    let tuple = "--tuple openflow13";
    let right = folder.run(&format!("classify verify --rules wide {tuple}")).ok();
    assert!(right.stdout.contains("2 rules") && right.stdout.contains("all right"), "{right:?}");
    folder.run(&format!("classify build --rules wide {tuple} -o wide.img")).ok();
    folder.run(&format!("classify gen trace --rules wide {tuple} --count 9 -o trace")).ok();
    folder
        .run(&format!("classify replay --rules wide {tuple} --trace trace --seconds 0.01 --device cpu"))
        .ok();
    let packets = "in_port=1,eth_type=0x86dd,dst=2001:db8::7,proto=tcp,dport=443 in_port=2,eth_vlan=0x1007";
    for table in ["--rules wide --tuple openflow13", "--image wide.img"] {
        let found = folder.run(&format!("classify lookup {table} --json {packets}")).ok().json();
        let actions: Vec<_> = found.iter().map(|line| line["action"].as_str()).collect();
        assert_eq!(actions, [Some("7"), Some("8")], "{table}");
    }
    folder.run("classify info wide.img").ok();
    folder.run("classify info wide --tuple openflow14").refused(&["openflow14"]);
}
