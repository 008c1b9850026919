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
