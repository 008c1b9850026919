//! Lists in the forms that they come in: domains in any script; and what only looks like a list.

use super::folder;

#[test]
fn lists_of_other_kinds_are_refused_by_what_they_look_like() {
    let folder = folder();
    for (text, line, says) in [
        ("example.org\n0.0.0.0 ads.example.com\n", 2, "hosts file"),
        ("ads.example.com,ads\n", 1, "CSV"),
        ("ads.example.com;ads\nmore.example.com;ads\n", 1, "CSV"),
        ("example.org\n@@||good.example.com^\n", 2, "filter list"),
        ("example.org/a\nexample.com##.banner\n", 2, "filter list"),
        ("example.org\nads*.example.com\n", 2, "only *.example.com is read"),
        ("example.org\n192.0.2.1\n", 2, "an IP address, not a domain"),
        ("192.0.2.1\n192.0.2.2\n", 1, "an IP address, not a domain"),
        ("example.org\nads|tracker.example.com\n", 2, "a character that no domain has"),
    ] {
        folder.write("list", text);
        for verb in [
            "info list",
            "lookup --table list example.org",
            "build --table list -o x.img",
            "verify --table list",
        ] {
            folder.run(&format!("names {verb}")).refused(&[&format!("list:{line}: "), says]);
        }
        folder.run("names replay --table domains --trace list").refused(&[&format!("list:{line}: "), says]);
    }
    assert!(!folder.path("x.img").exists());
    folder.write("list", "example.org\n0.0.0.0 a.com\n||b.com^\n||c.com^\n");
    let ran = folder.run("names lookup --table list --lenient www.example.org").ok();
    for line in [
        "passed over 1: looks like a line of a hosts file",
        "passed over 2: looks like a line of a filter list",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {ran:?}");
    }
}

#[test]
fn an_internationalised_domain_is_one_however_it_is_written() {
    let folder = folder();
    for entry in [
        "xn--mnchen-3ya.de",
        "m\u{fc}nchen.de",
        "M\u{dc}NCHEN.DE",
        "mu\u{308}nchen.de",
        "*.xn--mnchen-3ya.de",
    ] {
        folder.write("list", format!("{entry} 7\nexample.org 8\n"));
        folder.run("names build --table list -o list.img").ok();
        for asked in [
            "www.m\u{fc}nchen.de",
            "www.xn--mnchen-3ya.de",
            "WWW.M\u{dc}NCHEN.de",
            "https://m\u{fc}nchen.de/a",
        ] {
            for table in ["--table list", "--image list.img"] {
                let ran = folder.run(&format!("names lookup {table} --json {asked}")).ok();
                let line = &ran.json()[0];
                assert_eq!(
                    (&line["prefix"], &line["result"], &line["asked"]),
                    (&"/de/xn--mnchen-3ya".into(), &"7".into(), &asked.into())
                );
            }
        }
    }
    for verb in ["", "info", "lookup"] {
        let help = folder.run(&format!("names {verb} --help")).ok().stdout;
        assert!(help.contains("UTS") && help.contains("*.example.com"), "{verb}: {help}");
    }
}

#[test]
fn a_stream_goes_on_after_a_line_that_is_no_name() {
    let folder = folder();
    let asked = b"/com/parc\n/com//parc\nwww..com\n/com/ab\n10.0.0.1\n";
    let ran = folder.run_with("names lookup --table table", asked).status(2);
    assert_eq!(ran.stdout.lines().count(), 1);
    let ran = folder.run_with("names lookup --table table --lenient", asked).status(2);
    assert_eq!(ran.stdout, "/com/parc  /com/parc  core-2\n/com/ab  /com/ab  core-1\n10.0.0.1  no match\n");
    for line in [
        "standard input:2: passed over: not a name",
        "standard input:3: passed over: not a name",
        "lookupctl: standard input: 2 of 5 lines could not be answered\n",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {ran:?}");
    }
    folder.run_with("names lookup --table table --lenient", b"/com/parc\n/com/ab\n").ok();
}

#[test]
fn an_image_is_told_and_not_read_as_a_list() {
    let folder = folder();
    folder.run("names build --table table -o names.img").ok();
    for verb in ["names info", "info"] {
        let report = &folder.run(&format!("{verb} names.img --json")).ok().json()[0];
        assert_eq!(
            (&report["holds"], &report["engine"], &report["entries"], &report["results"]),
            (&"names".into(), &"acta".into(), &5.into(), &3.into())
        );
    }
    folder.run("names lookup --table names.img /com").refused(&["names.img", "an image", "--image"]);
}
