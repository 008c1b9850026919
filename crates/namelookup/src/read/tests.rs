use std::fmt::Write;

use super::*;
use crate::name::{NameBuf, NameError};
use crate::read::NameReason as Why;

fn options(lenient: bool) -> ReadOptions {
    ReadOptions { lenient, ..ReadOptions::default() }
}

/// A table as text: names in order with their labels.
pub(crate) fn text_of(fib: &NameFib) -> String {
    let mut entries: Vec<_> = fib.names.iter().collect();
    entries.sort_unstable();
    entries.iter().fold(String::new(), |mut text, (name, result)| {
        let label = fib.labels.label(*result).expect("results have labels");
        writeln!(text, "{name} {label}").unwrap();
        text
    })
}

fn strict(text: &str) -> (NameFib, ReadReport) {
    read_table_from(text.as_bytes(), "test", &options(false)).unwrap()
}

#[test]
fn each_form_is_recognised_and_read() {
    for (text, format, expected) in [
        ("/com/parc/www 3\n/ 7\n/a%2Fb#c 3\n", NameFormat::Names, "/ 7\n/a%2Fb#c 3\n/com/parc/www 3\n"),
        (
            "# list\nwww.Parc.com\n\n*.example.com\n.org\n*\n_dns.a-b.net\n",
            NameFormat::Domains,
            "/ 6\n/com/example 4\n/com/parc/www 2\n/net/a-b/_dns 7\n/org 5\n",
        ),
        (
            "parc.com a\nhttps://www.parc.com:443/x/y/ b # c\nparc.com/x?q=/1 a\n",
            NameFormat::Urls,
            "/com/parc a\n/com/parc/=x?q=%2F1 a\n/com/parc/www/=x/y b\n",
        ),
        ("ndn:/a%2fb/v=3 x\nndn:/%41/8=b x\n", NameFormat::Ndn, "/A/b x\n/a%2Fb/54=%03 x\n"),
    ] {
        let (fib, report) = strict(text);
        assert_eq!((report.format, text_of(&fib).as_str()), (format, expected));
    }
}

#[test]
fn hosts_ports_and_paths_of_urls() {
    for (url, name) in [
        ("http://www.example.com/a/b", "/com/example/www/=a/b"),
        ("www.example.com", "/com/example/www"),
        ("//example.com/a", "/com/example/=a"),
        ("HTTP://me:you@Example.COM:80/A/", "/com/example/=A"),
        ("http://example.com:443/a", "/com/example/:443/=a"),
        ("example.com:443/a", "/com/example/=a"),
        ("example.com:", "/com/example"),
        ("example.com:08080", "/com/example/:8080"),
        ("https://*.example.com:8443", "/com/example/:8443"),
        ("http://[2001:DB8:0::1]:81/x", "/[2001:db8::1]/:81/=x"),
        ("http://[FE80::0:1%25Eth0]/", "/[fe80::1%25eth0]"),
        ("[::ffff:192.0.2.1]", "/[::ffff:192.0.2.1]"),
        ("http://192.0.2.1/x", "/192.0.2.1/=x"),
        ("http://192.0.2.256/x", "/256/2/0/192/=x"),
        ("example.com/a?b=//c#d/e", "/com/example/=a?b=%2F%2Fc"),
        ("example.com/a/?b", "/com/example/=a/?b"),
        ("example.com?b", "/com/example/?b"),
        ("example.com#b", "/com/example"),
        ("example.com/a%20b%2fc", "/com/example/=a%20b%2fc"),
        ("example.com/user@host:1", "/com/example/=user@host:1"),
        ("example.com/=a", "/com/example/==a"),
        ("http://*/a/b", "/=a/b"),
        ("example.com/a/./b/../c", "/com/example/=a/c"),
        ("example.com/a/%2E%2e/.%2e/b", "/com/example/=b"),
        ("example.com/../..", "/com/example"),
        ("example.com/a/..?b", "/com/example/?b"),
        ("example.com/a/b/..?c", "/com/example/=a/?c"),
        ("example.com/a/.?b", "/com/example/=a/?b"),
        ("example.com/.../..a", "/com/example/=.../..a"),
        ("me:you@example.com/a", "a user without a scheme such as https://: an e-mail address is no URL"),
        ("mailto:me@example.com", "a user without a scheme such as https://: an e-mail address is no URL"),
        ("//me@example.com/@", "/com/example/=@"),
        ("http://a.example\\@example.com/", "a backslash, which no URL has"),
        ("example.com/http://a", "slashes in a row"),
        ("example.com//", "slashes in a row"),
        ("example..com/a", "a label is empty"),
        ("http:///a", "a label is empty"),
        ("example.com:65536/", "not a port"),
        ("example.com:a/", "not a port"),
        ("example.com:000080/", "not a port"),
        ("example.com:99999999999/", "not a port"),
        ("[::1]a/", "not a port"),
        ("http://[2001:db8::x]/", "not an IPv6 address in brackets"),
        ("http://[::1/", "not an IPv6 address in brackets"),
        ("http://[192.0.2.1]/", "not an IPv6 address in brackets"),
        ("http://a|b.com/", "a character that no domain has"),
        ("http://www.BÜCHER.example/ü", "/example/xn--bcher-kva/www/=ü"),
    ] {
        let found = NameFormat::Urls.parse(url.as_bytes());
        let found = found.map_or_else(|reason| reason.to_string(), |name| name.to_string());
        assert_eq!(found, name, "{url}");
    }
}

#[test]
fn the_first_bad_line_is_the_error_and_lenient_reading_counts_them() {
    let empty = |at| Why::Name(NameError::EmptyComponent(at));
    for (good, bad, reason) in [
        ("/a", "/a//b", empty(2)),
        ("/a", "//", empty(1)),
        ("/a", "b", Why::Name(NameError::NoSlash)),
        ("/a", "/b x", Why::TooManyColumns),
        ("/a x", "/b", Why::ResultMissing),
        ("/a x", "/b # x", Why::ResultMissing),
        ("/a x", "/b x y", Why::TooManyColumns),
        ("/a x", "/b x#y", Why::Result),
        ("a", "a..b", Why::EmptyLabel),
        ("a", "..", Why::EmptyLabel),
        ("a", "*.", Why::Wildcard),
        ("a.b/c", "a//c", Why::RepeatedSlash),
        ("a.b/c", "a:b/c", Why::Port),
        ("ndn:/a", "ndn:/..", Why::Uri(crate::tlv::UriError::Periods(2))),
    ] {
        let text = format!("{good}\n# note\n{bad}\n{bad}\n");
        match read_table_from(text.as_bytes(), "test", &options(false)) {
            Err(ReadError::Bad { place: Place::Line(3), reason: found, .. }) if found == reason => {}
            other => panic!("{text}: {other:?}"),
        }
        let (fib, report) = read_table_from(text.as_bytes(), "test", &options(true)).unwrap();
        assert_eq!((fib.names.len(), report.faults(), report.skipped_for(reason)), (1, 2, 2), "{text}");
        assert_eq!((report.records, report.routes, report.skipped_for(Why::Comment)), (3, 1, 1));
    }
    let forced = ReadOptions { format: Some(NameFormat::Domains), ..ReadOptions::default() };
    let error = read_table_from(&b"parc.com/a\n"[..], "test", &forced).unwrap_err();
    assert_eq!(error.to_string(), "test:1: not a domain alone: \"parc.com/a\"");
}

#[test]
fn lines_of_other_things_are_refused_by_what_they_look_like() {
    for (bad, reason) in [
        ("0.0.0.0 ads.example.com", Why::HostsFile),
        ("127.0.0.1\tlocalhost", Why::HostsFile),
        ("10.0.0.1", Why::Address),
        ("ads.example.com,ads", Why::Csv),
        ("\"ads.example.com\",\"ads\"", Why::Csv),
        ("||ads.example.com^", Why::Filter),
        ("@@||ads.example.com^", Why::Filter),
        ("@@ads.example.com", Why::Filter),
        ("ads.example.com##.banner", Why::Filter),
        ("! Title: a list", Why::Filter),
        ("[Adblock Plus 2.0]", Why::Filter),
        ("ads*.example.com", Why::Wildcard),
        ("*ads.example.com", Why::Wildcard),
        ("*.*.com", Why::Wildcard),
        ("ads.example.*", Why::Wildcard),
        ("ads|tracker.example.com", Why::Character),
        ("ads.example.com$important", Why::Character),
        ("ads@example.com", Why::Character),
        ("ads\u{7f}.example.com", Why::Character),
        ("a\u{ff0c}b.example", Why::Character),
        ("xn--\u{fc}.example", Why::Idna),
        ("a\u{0}b.example", Why::Character),
    ] {
        let text = format!("parc.com\n{bad}\nwww.parc.com\n");
        match read_table_from(
            text.as_bytes(),
            "test",
            &ReadOptions { format: Some(NameFormat::Domains), ..ReadOptions::default() },
        ) {
            Err(ReadError::Bad { place: Place::Line(2), reason: found, .. }) => {
                assert_eq!(found, reason, "{bad}");
            }
            other => panic!("{bad}: {other:?}"),
        }
        let (fib, report) = read_table_from(text.as_bytes(), "test", &options(true)).unwrap();
        assert_eq!((fib.names.len(), report.faults()), (2, 1), "{bad}");
    }
    // From its first line on, without a word on the form.
    for (text, says) in [
        ("127.0.0.1 localhost\n::1 localhost\n0.0.0.0 ads.example.com\n", "hosts file"),
        ("::1 localhost\n", "hosts file"),
        ("! a comment\n||ads.example.com/a^\n", "filter list"),
        ("[Adblock Plus 2.0]\nhttp://ads.example.com/a\n", "filter list"),
        ("ads.example.com,ads\nmore.example.com,ads\n", "CSV"),
        ("10.0.0.1\n10.0.0.2\n", "an IP address"),
        ("2001:db8::1\n", "an IP address"),
    ] {
        for read in [true, false] {
            let message = match read {
                true => read_table_from(text.as_bytes(), "test", &options(false)).unwrap_err().to_string(),
                false => read_trace_from(text.as_bytes(), "test", &options(false)).unwrap_err().to_string(),
            };
            assert!(message.starts_with("test:1: ") && message.contains(says), "{message}");
        }
    }
    let latin = read_table_from(&b"parc.com\nb\xfccher.example\n"[..], "test", &options(false)).unwrap_err();
    assert!(latin.to_string().starts_with("test:2: not an internationalised domain"), "{latin}");
}

#[test]
fn an_internationalised_domain_is_one_name_however_it_is_written() {
    let one = NameBuf::new("/de/xn--mnchen-3ya/www").unwrap();
    for domain in [
        "www.m\u{fc}nchen.de",
        "WWW.M\u{dc}NCHEN.DE",
        "www.mu\u{308}nchen.de",
        "www.xn--mnchen-3ya.de",
        "www.XN--MNCHEN-3YA.de.",
        "www\u{3002}m\u{fc}nchen\u{ff0e}de",
        "*.www.m\u{fc}nchen.de",
    ] {
        assert_eq!(NameFormat::Domains.parse(domain.as_bytes()).unwrap(), one, "{domain}");
        if !domain.starts_with('*') {
            let url = format!("https://{domain}:443");
            assert_eq!(NameFormat::Urls.parse(url.as_bytes()).unwrap(), one, "{url}");
        }
    }
    // Two letters, and not one of them spelt otherwise.
    let sharp = NameFormat::Domains.parse("stra\u{df}e.de".as_bytes()).unwrap();
    assert_eq!(sharp.to_string(), "/de/xn--strae-oqa");
    // What is ASCII is as it is, even where it decodes to nothing that Unicode knows.
    let odd = NameFormat::Domains.parse(b"xn--example-.com").unwrap();
    assert_eq!(odd.to_string(), "/com/xn--example-");
    // Names of other kinds are bytes.
    let name = NameFormat::Names.parse("/de/M\u{dc}NCHEN".as_bytes()).unwrap();
    assert_eq!(name.to_string(), "/de/M\u{dc}NCHEN");
}

#[test]
fn of_two_lines_for_a_name_the_later_one_stays() {
    let (fib, report) = strict("/a x\n/b y\n/a/ y\n");
    assert_eq!(text_of(&fib), "/a y\n/b y\n");
    assert_eq!((report.routes, report.repeated), (3, 1));
}

#[test]
fn files_of_other_things_are_refused() {
    for text in ["10.0.0.0/8 192.0.2.1\n::/0 x\n", "A /com x\nW /com\n", "\0\x01\x02", "", "# nothing\n\n"] {
        assert!(read_table_from(text.as_bytes(), "test", &options(false)).is_err(), "{text}");
    }
    let (fib, report) = read_table_from(&b"# nothing\n"[..], "test", &options(true)).unwrap();
    assert!(fib.names.is_empty() && report.routes == 0);
}

#[test]
fn any_bytes_but_blanks_are_names() {
    let mut bytes: Vec<u8> = (0..=255).filter(|b: &u8| !b.is_ascii_whitespace()).collect();
    bytes.splice(0..0, *b"/x");
    let (fib, _) = read_table_from(&[&bytes[..], b" r\n"].concat()[..], "test", &options(false)).unwrap();
    assert_eq!(fib.names.iter().next().unwrap().0.as_bytes(), bytes);
    let long = [&b"/"[..], &vec![b'x'; Input::LONGEST_LINE - 1]].concat();
    let (fib, _) = read_table_from(&long[..], "test", &options(false)).unwrap();
    assert_eq!(fib.names.iter().next().unwrap().0.len(), Input::LONGEST_LINE);
    let error =
        read_table_from(&[&b"/a\n"[..], &long, b"x"].concat()[..], "test", &options(false)).unwrap_err();
    assert_eq!(error.to_string(), "test:2: an overlong line");
}

#[test]
fn compressed_files_and_cut_ones() {
    let text: String = (0..50_000).fold(String::new(), |mut text, n| {
        writeln!(text, "/com/n{n} {}", n % 9).unwrap();
        text
    });
    let packed = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let (fib, report) = read_table_from(&packed[..], "test", &options(false)).unwrap();
    assert_eq!((fib.names.len(), fib.labels.len(), report.compression), (50_000, 9, Compression::Zstd));
    let cut = &packed[..packed.len() / 2];
    let error = read_table_from(cut, "test", &options(false)).unwrap_err();
    assert!(matches!(error, ReadError::CutOff { .. }), "{error}");
    let (fib, report) = read_table_from(cut, "test", &options(true)).unwrap();
    assert_eq!(fib.names.len() as u64, report.routes);
    assert!(report.truncated.is_some());
}

#[test]
fn traces_keep_order_and_repetition() {
    let text = "www.parc.com 17\nparc.com\nwww.parc.com # again\n";
    let (trace, report) = read_trace_from(text.as_bytes(), "test", &options(false)).unwrap();
    let names: Vec<_> = trace.names().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["/com/parc/www", "/com/parc", "/com/parc/www"]);
    assert_eq!(report.routes, 3);
}

#[test]
fn updates_in_every_form() {
    for (text, expected) in [
        ("A /a x\n1.5 W /a\n# note\n2 A / y # why\n", "A /a x\n1.5 W /a\n2 A / y\n"),
        ("W www.parc.com\n", "W /com/parc/www\n"),
        ("7 A parc.com/x y\n", "7 A /com/parc/=x y\n"),
    ] {
        let mut labels = Labels::new();
        let mut updates = Vec::new();
        read_updates_from(text.as_bytes(), "test", &options(false), &mut labels, |update| {
            updates.push(update);
            ControlFlow::Continue(())
        })
        .unwrap();
        let mut written = Vec::new();
        crate::write::write_updates(&updates, &labels, &mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }
    for (line, reason) in [
        ("X /a", Why::UpdateKind),
        ("A /a", Why::ResultMissing),
        ("W /a x", Why::TooManyColumns),
        ("5x W /a", Why::Time),
        ("A", Why::Name(NameError::NoSlash)),
    ] {
        let text = format!("W /a\n{line}\n");
        match read_updates_from(text.as_bytes(), "test", &options(false), &mut Labels::new(), |_| {
            ControlFlow::Continue(())
        }) {
            Err(ReadError::Bad { place: Place::Line(2), reason: found, .. }) if found == reason => {}
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn words_of_updates_come_after_the_lines_of_a_list() {
    let (NameFib { mut names, mut labels }, _) = strict("parc.com\n# note\nwww.parc.com\n");
    let update = |update: TimedUpdate| {
        names.apply(&update.update);
        ControlFlow::Continue(())
    };
    read_updates_from(&b"A /org x\nA /net y\nA /com x\n"[..], "test", &options(false), &mut labels, update)
        .unwrap();
    assert_eq!(
        text_of(&NameFib { names, labels: labels.clone() }),
        "/com x\n/com/parc 1\n/com/parc/www 3\n/net y\n/org x\n"
    );
    assert_eq!((labels.find("x"), labels.find("y"), labels.len()), (Some(4), Some(5), 5));
    let again = Labels::from_bytes(&labels.to_bytes()).unwrap();
    assert!(again.iter().eq(labels.iter()));
    assert!(Labels::from_bytes(&labels.to_bytes()[..3]).is_none());
}

#[test]
fn the_caller_may_stop() {
    let stop = |_: &Name, _| ControlFlow::Break(());
    let (_, report) = read_entries_from(&b"/a\nnonsense\n"[..], "test", &options(false), stop).unwrap();
    assert_eq!(report.routes, 1);
}

#[test]
fn real_lists_are_read_whole() {
    let Some(data) = wirespeed_image::real_data("names") else { return };
    let source = |file| Source::from_arg(data.join(file));
    let (fib, report) = read_table(&source("domains-3.6m.txt.zst"), &options(false)).unwrap();
    assert_eq!((report.format, fib.names.len() as u64 + report.repeated), (NameFormat::Domains, 3_646_918));
    let (trace, report) = read_trace(&source("urls-300k.txt.zst"), &options(true)).unwrap();
    assert_eq!((report.format, report.records), (NameFormat::Urls, 300_000));
    assert!(trace.len() > 290_000, "{report}");
}
