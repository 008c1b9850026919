use std::fmt::Write;

use proptest::prelude::*;
use wirespeed_fib::conformance::rounds;

use super::*;
use crate::list::oracle::Oracle;
use crate::name::NameBuf;
use crate::read::NameReason as Why;

fn options(format: Option<ListFormat>, lenient: bool) -> ListOptions {
    ListOptions { format, lenient, icann_only: false }
}

/// All entries as text, sorted: name, scope, level if it isn't 0, value.
fn entries(list: &DomainList) -> String {
    let mut lines: Vec<_> = list
        .list
        .iter()
        .map(|(name, scope, precedence, verdict)| {
            let level = if precedence.level == 0 { String::new() } else { format!(" {}", precedence.level) };
            let label = list.labels.label(verdict.result());
            let value = label.map_or_else(|| "exception".to_owned(), |label| label.to_string());
            format!("{name} {scope}{level} {value}")
        })
        .collect();
    lines.sort_unstable();
    lines.iter().fold(String::new(), |mut text, line| {
        writeln!(text, "{line}").unwrap();
        text
    })
}

/// Reads a file that is recognised and has no fault.
fn strict(text: &str) -> (String, ListReport) {
    let (list, report) = read_list_from(text.as_bytes(), "test", &options(None, false)).unwrap();
    (entries(&list), report)
}

/// Checks a line of a format alone: its entries, or why it is left out.
fn check_lines(format: ListFormat, lines: &[(&str, Result<&str, Why>)]) {
    for (line, right) in lines {
        let (list, report) = read_list_from(line.as_bytes(), "test", &options(Some(format), true)).unwrap();
        let found = match report.skipped.iter().find(|skipped| skipped.reason.is_fault_of_test()) {
            Some(skipped) => Err(skipped.reason),
            None => Ok(entries(&list)),
        };
        assert_eq!(found, right.map(ToOwned::to_owned), "{line:?}");
        let strictly = read_list_from(line.as_bytes(), "test", &options(Some(format), false));
        assert_eq!(strictly.is_ok(), right.is_ok_and(|text| !text.is_empty()), "{line:?}");
    }
}

impl Why {
    fn is_fault_of_test(self) -> bool {
        wirespeed_fib::read::parts::Reason::is_fault(self)
    }
}

#[test]
fn hosts_files() {
    let text = "\u{feff}# a block list\n127.0.0.1 localhost\n::1 localhost ip6-localhost\nfe80::1%lo0 localhost\n\
                0.0.0.0 0.0.0.0\n\n0.0.0.0\tADS.example. pixel.example # why\n127.0.0.1 bücher.example#c\n";
    let error = read_list_from(text.as_bytes(), "test", &options(None, false)).unwrap_err();
    assert_eq!(error.to_string(), "test:8: not a domain alone: \"127.0.0.1 bücher.example#c\"");
    let text = text.replace("#c", "\r").replace("# why", "# why\n192.0.2.7 www.example www");
    let (entries, report) = strict(&text);
    assert_eq!(
        entries,
        "/example/ads exact blocked\n/example/pixel exact blocked\n/example/www exact 192.0.2.7\n\
         /example/xn--bcher-kva exact blocked\n/ip6-localhost exact ::1\n/localhost exact 127.0.0.1,::1,fe80::1%lo0\n/www exact 192.0.2.7\n"
    );
    assert_eq!((report.format, report.routes, report.repeated), (ListFormat::Hosts, 9, 2));
    assert_eq!((report.skipped_for(Why::OwnAddress), report.faults()), (1, 0));
    check_lines(
        ListFormat::Hosts,
        &[
            (":: a.example", Ok("/example/a exact blocked\n")),
            ("127.1.2.3 a.example", Ok("/example/a exact blocked\n")),
            ("0.0.0.0 a.example a..b", Err(Why::EmptyLabel)),
            ("0.0.0.0", Err(Why::NoName)),
            ("0.0.0.0 # x", Err(Why::NoName)),
            ("0.0.0.0 1.2.3.4", Err(Why::Address)),
            ("a.example", Err(Why::NotAnAddress)),
            ("0.0.0.256 a.example", Err(Why::NotAnAddress)),
            ("0.0.0.0 *.a.example", Err(Why::Wildcard)),
            ("0.0.0.0 .a.example", Err(Why::EmptyLabel)),
            ("0.0.0.0 a.example/x", Err(Why::NotADomain)),
        ],
    );
}

#[test]
fn lenient_reading_counts_what_strict_reading_refuses() {
    let text = "0.0.0.0 a.example\nwhat\n0.0.0.0 b..example\n0.0.0.0 c..example\n";
    let (list, report) =
        read_list_from(text.as_bytes(), "test", &options(Some(ListFormat::Hosts), true)).unwrap();
    assert_eq!(list.list.len(), 1);
    assert_eq!((report.records, report.routes, report.faults()), (4, 1, 3));
    assert_eq!((report.skipped_for(Why::NotAnAddress), report.skipped_for(Why::EmptyLabel)), (1, 2));
    let error = read_list_from(text.as_bytes(), "test", &options(Some(ListFormat::Hosts), false));
    assert_eq!(error.unwrap_err().to_string(), "test:2: not an address: \"what\"");
    let nothing = read_list_from(&b"# nothing\n"[..], "test", &options(Some(ListFormat::Hosts), false));
    assert!(matches!(nothing, Err(ListError::Nothing { wanted: "entries", .. })));
}

#[test]
fn adblock_lists() {
    let text = "[Adblock Plus 2.0]\n! Title: mine\n# a comment\n||ads.example^\n||*.cdn.example^|\n|one.example^\n\
                plain.example # c\n@@||good.ads.example^\n||bad.good.ads.example^$important\n\
                @@||best.example^$important\n0.0.0.0 hosts.example\n";
    let (entries, report) = strict(text);
    assert_eq!(
        entries,
        "/example/ads subtree blocked\n/example/ads/good subtree 1 exception\n\
         /example/ads/good/bad subtree 2 blocked\n/example/best subtree 3 exception\n\
         /example/cdn beneath blocked\n/example/hosts exact blocked\n/example/one exact blocked\n\
         /example/plain exact blocked\n"
    );
    assert_eq!((report.format, report.routes), (ListFormat::Adblock, 8));
    check_lines(
        ListFormat::Adblock,
        &[
            ("||ads.example|", Ok("/example/ads subtree blocked\n")),
            ("@@|ads.example^|", Ok("/example/ads exact 1 exception\n")),
            ("||BÜCHER.example^", Ok("/example/xn--bcher-kva subtree blocked\n")),
            ("! ||ads.example^", Ok("")),
            ("########", Ok("")),
            ("## Title ##", Ok("")),
            ("example.com##.banner", Err(Why::Cosmetic)),
            ("##.banner", Err(Why::Cosmetic)),
            ("#@#.banner", Err(Why::Cosmetic)),
            ("example.com#%#//scriptlet('x')", Err(Why::Cosmetic)),
            ("example.com$$script[x]", Err(Why::Cosmetic)),
            ("[$path=/x]##.banner", Err(Why::Cosmetic)),
            ("||ads.example^$third-party", Err(Why::Modifier)),
            ("||ads.example^$important,script", Err(Why::Modifier)),
            ("||ads.example^$badfilter", Err(Why::Modifier)),
            ("||ads.example^$", Err(Why::Modifier)),
            ("/ads[0-9]+/", Err(Why::Regex)),
            ("@@/ads$/$important", Err(Why::Regex)),
            ("/banner", Err(Why::Path)),
            ("||ads.example/banner^", Err(Why::Path)),
            ("||ads.example:8080^", Err(Why::Path)),
            ("|https://ads.example^", Err(Why::Path)),
            ("||ads.example", Err(Why::Unanchored)),
            ("|ads.example", Err(Why::Unanchored)),
            ("ads.example^", Err(Why::Unanchored)),
            ("|||ads.example^", Err(Why::Unanchored)),
            ("||ads*.example^", Err(Why::Wildcard)),
            ("*.ads.example", Err(Why::Wildcard)),
            ("||192.0.2.1^", Err(Why::Address)),
            ("||^", Err(Why::EmptyLabel)),
            ("ads.example and more", Err(Why::TooManyColumns)),
            ("!#include other.txt", Err(Why::Instruction)),
        ],
    );
}

#[test]
fn dnsmasq_configurations() {
    let text = "# blocked\naddress=/ads.example/0.0.0.0\naddress = /a.example/b.example/192.0.2.9 # both\n\
                server=/good.ads.example/#\nlocal=/lan/\nserver=/corp.example/192.0.2.1#5353@eth0\n\
                address=/*.wild.example/::\naddress=//192.0.2.3\naddress=/#/192.0.2.4\naddress=/.dot.example/#\n";
    let (entries, report) = strict(text);
    assert_eq!(
        entries,
        "/ one-label 192.0.2.3\n/ subtree 192.0.2.4\n/example/a subtree 192.0.2.9\n/example/ads subtree blocked\n\
         /example/ads/good subtree exception\n/example/b subtree 192.0.2.9\n\
         /example/corp subtree server=192.0.2.1#5353@eth0\n/example/dot subtree blocked\n\
         /example/wild beneath blocked\n/lan subtree nxdomain\n"
    );
    assert_eq!((report.format, report.routes), (ListFormat::Dnsmasq, 10));
    check_lines(
        ListFormat::Dnsmasq,
        &[
            ("no-resolv", Err(Why::OtherOption)),
            ("server=192.0.2.1", Err(Why::OtherOption)),
            ("ipset=/a.example/set", Err(Why::OtherOption)),
            ("cname=a.example,b.example", Err(Why::OtherOption)),
            ("address=/a.example", Err(Why::OtherOption)),
            ("address=/a.example/why", Err(Why::NotAnAddress)),
            ("address=/a.example/fe80::1%eth0", Err(Why::NotAnAddress)),
            ("server=/a.example/dns.example", Err(Why::NotAnAddress)),
            ("server=/a.example/192.0.2.1 5353", Err(Why::NotAnAddress)),
            ("address=/*a.example/0.0.0.0", Err(Why::Wildcard)),
            ("address=/a.example/b..c/0.0.0.0", Err(Why::EmptyLabel)),
            ("address=/192.0.2.1/0.0.0.0", Err(Why::Address)),
        ],
    );
}

#[test]
fn dnsmasq_ranks_the_lines_of_a_domain() {
    for (first, second, right) in [
        ("address=/d.example/192.0.2.1", "server=/d.example/#", "192.0.2.1"),
        ("local=/d.example/", "server=/d.example/192.0.2.2", "nxdomain"),
        ("address=/d.example/192.0.2.1", "local=/d.example/", "192.0.2.1"),
        ("server=/d.example/#", "server=/d.example/192.0.2.2", "exception"),
        ("local=/d.example/", "server=/d.example/#", "nxdomain"),
        ("server=/d.example/192.0.2.2", "address=/*.d.example/192.0.2.1", "server=192.0.2.2"),
        ("address=/d.example/192.0.2.1", "address=/d.example/", "192.0.2.1"),
    ] {
        for text in [format!("{first}\n{second}\n"), format!("{second}\n{first}\n")] {
            assert_eq!(verdict(&text, "x.d.example"), right, "{text}");
        }
    }
}

/// What a list that is recognised says of a domain: a value, an exception or nothing.
fn verdict(text: &str, domain: &str) -> String {
    let (read, _) = read_list_from(text.as_bytes(), "test", &options(None, false)).unwrap();
    let answer = read.list.resolve().lookup(&NameBuf::from_domain(domain.as_bytes()).unwrap());
    let Some(answer) = answer else { return "nothing".to_owned() };
    read.labels.label(answer.verdict.result()).map_or("exception".to_owned(), |label| label.to_string())
}

#[test]
fn several_addresses_of_a_name_are_all_its_value() {
    for (text, right) in [
        (
            "192.0.2.1 d.example\n2001:db8::1 e.example d.example\n192.0.2.1 d.example\n",
            "192.0.2.1,2001:db8::1",
        ),
        ("0.0.0.0 d.example\n:: d.example\n127.0.0.1 d.example\n", "blocked"),
        ("192.0.2.2 d.example\n0.0.0.0 d.example\n", "192.0.2.2,blocked"),
        ("address=/d.example/192.0.2.2\naddress=/d.example/192.0.2.1\n", "192.0.2.2,192.0.2.1"),
        (
            "server=/d.example/192.0.2.2\nserver=/d.example/192.0.2.1#5353\n",
            "server=192.0.2.2,server=192.0.2.1#5353",
        ),
        // The usual servers go before one of the domain's own, wherever their line is.
        ("server=/d.example/192.0.2.2\nserver=/d.example/192.0.2.1\nserver=/d.example/#\n", "exception"),
        ("server=/d.example/192.0.2.2\nserver=/d.example/#\nserver=/d.example/192.0.2.1\n", "exception"),
        ("$ORIGIN z.\nd.example A 192.0.2.2\n A 192.0.2.1\n TXT x\n", "192.0.2.2,192.0.2.1"),
        ("$ORIGIN z.\nd.example A 192.0.2.2\n A 192.0.2.1\n CNAME .\n AAAA ::2\n", "nxdomain"),
        ("||x.example^\n|d.example^\n192.0.2.1 d.example\n", "blocked,192.0.2.1"),
    ] {
        assert_eq!(verdict(text, "d.example"), right, "{text}");
    }
}

#[test]
fn a_name_with_very_many_addresses_takes_little_more_than_they_do() {
    let count = 20_000_u32;
    let text: String =
        (1..=count).map(|n| format!("{} a.example\n", std::net::Ipv4Addr::from(n << 8))).collect();
    let (read, report) = read_list_from(text.as_bytes(), "test", &options(None, false)).unwrap();
    assert_eq!((report.routes, report.repeated, read.list.len()), (count.into(), u64::from(count) - 1, 1));
    let texts: usize = read.labels.iter().map(|(_, label)| label.to_string().len()).sum();
    assert!(texts < 3 * text.len(), "{texts}");
    assert!(verdict(&text, "a.example").ends_with(",0.78.31.0,0.78.32.0"));
}

#[test]
fn lists_that_disagree() {
    let adblock = "||example^\n@@||good.example^\n||ads.good.example^\n@@|one.example^\n||top.example^$important\n\
                   @@||x.top.example^\n";
    for (domain, right) in [
        ("a.example", "blocked"),
        ("good.example", "exception"),
        ("x.ads.good.example", "exception"),
        ("one.example", "exception"),
        ("x.one.example", "blocked"),
        ("x.top.example", "blocked"),
        ("test", "nothing"),
    ] {
        assert_eq!(verdict(adblock, domain), right, "{domain}");
    }
    // Lists read one after the other: the last line for a name stays, and an exception of any list wins.
    let mut both = DomainList::default();
    let list = options(None, false);
    both.add_from(&b"192.0.2.1 a.example\n0.0.0.0 b.example\n"[..], "hosts", &list).unwrap();
    let report = both.add_from(&b"@@||b.example^\n192.0.2.2 a.example\n"[..], "filter", &list).unwrap();
    assert_eq!((report.routes, report.repeated), (2, 1));
    assert_eq!(
        entries(&both),
        "/example/a exact 192.0.2.2\n/example/b exact blocked\n/example/b subtree 1 exception\n"
    );
    let b = both.list.resolve().lookup(&NameBuf::from_domain(b"b.example").unwrap()).unwrap();
    assert_eq!(b.verdict, Verdict::Exception);
}

const ZONE: &str = "$TTL 1h\n$ORIGIN rpz.example.\n@ IN SOA ns.example. host.example. ( ; the zone\n\
    \t2026010101 ; serial\n  1h 15m 30d 2h )\n  NS ns.example.\n\
    ads.test CNAME .\n*.ads.test 300 IN CNAME .\nwww.ads.test IN 300 CNAME rpz-passthru.\n\
    nodata.test CNAME *.\ndrop.test CNAME RPZ-DROP.\ntcp.test CNAME rpz-tcp-only.\n\
    old.test CNAME old.test.\nwalled.test CNAME garden.example.\n*.walled.test CNAME *.garden.example.\n\
    self.test A 192.0.2.1\n  AAAA 2001:db8::1\n  TXT \"a; b\" ; why\nlocal.test A 127.0.0.1\n\
    abs.test.rpz.example. CNAME .\n* TXT \"all\"\n";

#[test]
fn response_policy_zones() {
    let (found, report) = strict(ZONE);
    let right = "/ beneath local-data\n/test/abs exact nxdomain\n/test/ads beneath nxdomain\n/test/ads exact nxdomain\n\
         /test/ads/www exact exception\n/test/drop exact drop\n/test/local exact blocked\n/test/nodata exact nodata\n\
         /test/old exact exception\n/test/self exact 192.0.2.1,2001:db8::1\n/test/tcp exact tcp-only\n\
         /test/walled beneath cname=*.garden.example\n/test/walled exact cname=garden.example\n";
    assert_eq!(found, right);
    assert_eq!((report.format, report.routes, report.repeated), (ListFormat::Rpz, 15, 2));
    // As a transfer shows it: every name is absolute, and the SOA record comes last, too.
    let transfer = "; <<>> a transfer\nrpz.example. 60 IN SOA ns. host. 1 2 3 4 5\n\
        ads.test.rpz.example. 60 IN CNAME .\n*.ads.test.RPZ.example. 60 IN CNAME rpz-passthru.\n\
        rpz.example. 60 IN SOA ns. host. 1 2 3 4 5\n";
    assert_eq!(strict(transfer).0, "/test/ads beneath exception\n/test/ads exact nxdomain\n");
    // A zone whose name only the server's configuration has.
    let nameless = "@ SOA ns. host. (1 2 3 4 5)\nads.test CNAME .\n";
    assert_eq!(strict(nameless).0, "/test/ads exact nxdomain\n");
    assert_eq!(verdict(ZONE, "a.www.ads.test"), "nxdomain", "no name hides a wildcard");
    assert_eq!(verdict(ZONE, "www.ads.test"), "exception");
    check_lines(
        ListFormat::Rpz,
        &[
            ("24.0.2.0.192.rpz-ip CNAME .", Err(Why::Trigger)),
            ("32.1.2.0.192.rpz-client-ip CNAME rpz-drop.", Err(Why::Trigger)),
            ("ns.example.rpz-nsdname CNAME .", Err(Why::Trigger)),
            ("a.test CNAME rpz-passthru", Err(Why::Action)),
            ("a.test CNAME rpz-other.", Err(Why::Action)),
            ("a.test CNAME", Err(Why::Record)),
            ("a.test CNAME . x", Err(Why::Record)),
            ("a.test", Err(Why::Record)),
            ("  CNAME .", Err(Why::Record)),
            ("a.test CH CNAME .", Err(Why::OtherRecord)),
            ("a.test WHAT x", Err(Why::OtherRecord)),
            ("a.test MX 10 mail.example.", Ok("/test/a exact local-data\n")),
            ("a.test NS ns.example.", Err(Why::OtherRecord)),
            ("a.test A 2001:db8::1", Err(Why::NotAnAddress)),
            ("a.test A 192.0.2", Err(Why::NotAnAddress)),
            ("a.test. CNAME .", Err(Why::OutOfZone)),
            ("a..test CNAME .", Err(Why::EmptyLabel)),
            ("a.test TXT (\"x\"", Err(Why::Record)),
            ("$INCLUDE other.zone", Err(Why::Record)),
            ("$GENERATE 1-3 a$ A 192.0.2.$", Err(Why::Record)),
            ("$TTL soon", Err(Why::Record)),
            ("a*.test CNAME .", Err(Why::Wildcard)),
        ],
    );
}

#[test]
fn a_soa_record_that_does_not_end_swallows_nothing() {
    let text = "@ SOA ns. host. (\n1\n";
    let error = read_list_from(text.as_bytes(), "test", &options(Some(ListFormat::Rpz), false)).unwrap_err();
    assert!(matches!(error, ListError::CutOff { .. }), "{error}");
    let long = format!("@ SOA ns. host. (\n{}", "a.test CNAME .\n".repeat(100));
    let (_, report) = read_list_from(long.as_bytes(), "test", &options(Some(ListFormat::Rpz), true)).unwrap();
    assert_eq!((report.skipped_for(Why::Record), report.routes), (1, 98));
    let (_, report) = read_list_from(text.as_bytes(), "test", &options(Some(ListFormat::Rpz), true)).unwrap();
    assert!(report.truncated.is_some());
}

/// A small list with each kind of rule, in the sections of the real one.
const SUFFIXES: &str = "// ===BEGIN ICANN DOMAINS===\ncom\nuk\nco.uk\n*.ck\n!www.ck\njp\nkobe.jp ignored after a blank\n\
    *.kobe.jp\n!city.kobe.jp\n公司.cn\ncn\n// ===END ICANN DOMAINS===\n\n// ===BEGIN PRIVATE DOMAINS===\n\
    blogspot.example\n*.deep.co.uk\n// ===END PRIVATE DOMAINS===\n";

#[test]
fn public_suffixes() {
    let (entries, report) = strict(SUFFIXES);
    assert_eq!((report.format, report.routes), (ListFormat::Psl, 13));
    assert!(entries.contains("/ck beneath icann\n/ck/www subtree 1 exception\n"), "{entries}");
    assert!(entries.contains("/uk/co/deep beneath private\n"), "{entries}");
    let text = SUFFIXES.as_bytes();
    let (all, _) = read_list_from(text, "psl", &options(None, false)).unwrap();
    let icann = ListOptions { icann_only: true, ..ListOptions::default() };
    let (icann, report) = read_list_from(text, "psl", &icann).unwrap();
    assert_eq!((report.skipped_for(Why::OtherSection), report.routes), (2, 11));
    let (all, icann) = (all.list.resolve(), icann.list.resolve());
    for (domain, suffix, registrable) in [
        ("com", "/com", None),
        ("example.com", "/com", Some("/com/example")),
        ("b.example.com", "/com", Some("/com/example")),
        ("a.b.example.com", "/com", Some("/com/example")),
        // No rule: the last label.
        ("test", "/test", None),
        ("a.b.test", "/test", Some("/test/b")),
        ("uk", "/uk", None),
        ("co.uk", "/uk/co", None),
        ("a.b.co.uk", "/uk/co", Some("/uk/co/b")),
        ("a.b.uk", "/uk", Some("/uk/b")),
        // A wildcard has a suffix of a label more; its name alone has no rule.
        ("ck", "/ck", None),
        ("a.ck", "/ck/a", None),
        ("c.b.a.ck", "/ck/a", Some("/ck/a/b")),
        ("www.ck", "/ck", Some("/ck/www")),
        ("a.www.ck", "/ck", Some("/ck/www")),
        // A rule for the name beside its wildcard, and an exception beneath it.
        ("kobe.jp", "/jp/kobe", None),
        ("a.kobe.jp", "/jp/kobe/a", None),
        ("b.a.kobe.jp", "/jp/kobe/a", Some("/jp/kobe/a/b")),
        ("b.city.kobe.jp", "/jp/kobe", Some("/jp/kobe/city")),
        ("xn--55qx5d.cn", "/cn/xn--55qx5d", None),
        ("a.xn--55qx5d.cn", "/cn/xn--55qx5d", Some("/cn/xn--55qx5d/a")),
    ] {
        let name = NameBuf::from_domain(domain.as_bytes()).unwrap();
        for list in [&all, &icann] {
            let found = list.suffix(&name).unwrap();
            assert_eq!(found.suffix.to_string(), suffix, "{domain}");
            assert_eq!(found.registrable.map(ToString::to_string).as_deref(), registrable, "{domain}");
        }
    }
    let listed = |list: &crate::list::Resolved, domain: &str| {
        let name = NameBuf::from_domain(domain.as_bytes()).unwrap();
        let found = list.suffix(&name).unwrap();
        (found.suffix.to_string(), found.is_listed)
    };
    for (domain, with_private, without) in [
        ("a.blogspot.example", ("/example/blogspot", true), ("/example", false)),
        ("x.a.deep.co.uk", ("/uk/co/deep/a", true), ("/uk/co", true)),
        ("deep.co.uk", ("/uk/co", true), ("/uk/co", true)),
    ] {
        assert_eq!(listed(&all, domain), (with_private.0.to_owned(), with_private.1), "{domain}");
        assert_eq!(listed(&icann, domain), (without.0.to_owned(), without.1), "{domain}");
    }
    assert_eq!(all.suffix(Name::ROOT), None);
    check_lines(
        ListFormat::Psl,
        &[
            ("*", Ok("/ beneath listed\n")),
            ("a.*.b", Err(Why::Wildcard)),
            ("*.", Err(Why::EmptyLabel)),
            ("!", Err(Why::EmptyLabel)),
            ("!*.ck", Err(Why::Wildcard)),
            ("a..b", Err(Why::EmptyLabel)),
            ("# a comment of other lists", Err(Why::NotADomain)),
        ],
    );
}

#[test]
fn what_is_no_list_of_a_known_format() {
    for text in
        ["", "a.example\nb.example\n", "/com/parc 3\n", "10.0.0.0/8 1\n", "http://a.example/x\n", "\0\x01"]
    {
        assert_eq!(ListFormat::recognise(text.as_bytes(), true), None, "{text:?}");
        let error = read_list_from(text.as_bytes(), "test", &options(None, false)).unwrap_err();
        assert!(matches!(error, ListError::UnknownFormat { .. }), "{error}");
    }
    // One line of a list among names makes no list of them.
    for text in
        ["0.0.0.0 a.example\nb.example\n", "b.example\n||a.example^\n", "b.example SOA\nc.example soa # x\n"]
    {
        assert_eq!(ListFormat::recognise(text.as_bytes(), true), None, "{text}");
    }
    for format in ListFormat::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
    assert!("zone".parse::<ListFormat>().is_err());
}

#[test]
fn overlong_lines_and_any_bytes_are_no_panic() {
    let long = format!("0.0.0.0 {}\n0.0.0.0 a.example\n", "a".repeat(300 << 10));
    for format in ListFormat::ALL {
        let (_, report) = read_list_from(long.as_bytes(), "test", &options(Some(format), true)).unwrap();
        assert_eq!(report.skipped_for(Why::LineTooLong), 1);
        for bytes in
            [&b"\xff\xfe\n||\xff^\n* \n!\n@@\n=\n$\n("[..], b"\"\\\n;\n  x\n//\n[]\n|", b"@ SOA )(\n@ SOA\n"]
        {
            read_list_from(bytes, "test", &options(Some(format), true)).unwrap();
        }
    }
}

/// Pieces that formats have in common, or that have a meaning in one of them.
const PIECES: [&str; 30] = [
    "\n",
    " ",
    "/",
    "#",
    "!",
    "@@",
    "||",
    "|",
    "^",
    "$important",
    "$",
    "*",
    "*.",
    ".",
    "..",
    "=",
    ";",
    "(",
    ")",
    "\"",
    "0.0.0.0 ",
    "::1",
    "a",
    "xn--",
    "\u{fc}",
    "CNAME .",
    "SOA ",
    "address=/",
    "server=/d/#",
    "//",
];

/// The text of a format with some pieces put in.
fn changed_text() -> impl Strategy<Value = (ListFormat, String)> {
    let seeds = [
        (ListFormat::Hosts, "0.0.0.0 a.test b.test # x\n192.0.2.1 c.a.test\n"),
        (
            ListFormat::Adblock,
            "||a.test^\n@@||b.a.test^$important\n|c.test^\nd.test\n||*.e.test^\n0.0.0.0 f.test\n",
        ),
        (
            ListFormat::Dnsmasq,
            "address=/a.test/b.test/0.0.0.0\nserver=/c.a.test/#\nlocal=/lan/\naddress=/*.d.test/::\n",
        ),
        (ListFormat::Rpz, ZONE),
        (ListFormat::Psl, SUFFIXES),
    ];
    let pieces =
        prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(PIECES.to_vec())), 0..8);
    (prop::sample::select(seeds.to_vec()), pieces).prop_map(|((format, seed), pieces)| {
        let mut text: Vec<char> = seed.chars().collect();
        for (at, piece) in pieces {
            let at = at.index(text.len());
            text.splice(at..at, piece.chars());
        }
        (format, text.into_iter().collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if rounds::is_long() { 20_000 } else { 500 }))]

    /// Nothing panics, strict and lenient reading agree, and the list answers as the walk over its entries.
    #[test]
    fn changed_lists_are_read_or_refused((format, text) in changed_text()) {
        let (list, report) = read_list_from(text.as_bytes(), "test", &options(Some(format), true)).unwrap();
        prop_assert_eq!(report.routes - report.repeated, list.list.len() as u64);
        let strictly = read_list_from(text.as_bytes(), "test", &options(Some(format), false));
        let is_whole = report.faults() == 0 && report.truncated.is_none() && report.routes > 0;
        prop_assert_eq!(strictly.is_ok(), is_whole);
        let oracle = Oracle(list.list.iter().collect());
        let resolved = list.list.resolve();
        for (name, ..) in &oracle.0 {
            let mut beneath = name.clone();
            beneath.push(b"x").unwrap();
            for name in [name.parent().unwrap_or(Name::ROOT), name, &beneath] {
                prop_assert_eq!(resolved.lookup(name), oracle.lookup(name), "{}", name);
            }
        }
    }
}
