//! Whatever is written reads back the same.

use super::*;
use crate::fib::AnyUpdate;
use crate::read::tests::{read_strict, text_of, text_of_updates};
use crate::read::{ReadOptions, collect_updates_from};
use crate::update::Update;

fn table(text: &str) -> Fib {
    read_strict(Format::Plain, text.as_bytes()).unwrap().0
}

fn written(fib: &Fib, format: Format) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::new();
    write_fib(fib, format, &mut out).map(|()| out)
}

const ADDRESSES: &str = "\
0.0.0.0/0 192.0.2.1
10.0.0.0/8 192.0.2.1
10.128.0.0/9 2001:db8::1
10.1.2.3/32 192.0.2.2
::/0 2001:db8::1
2001:db8::/33 2001:db8::2
2001:db8::1/128 192.0.2.1
";

const KERNEL: &str = "\
0.0.0.0/0 tun0
10.0.0.0/8 192.0.2.1
10.1.0.0/16 192.0.2.1,tun0,fe80::1%eth0
10.2.0.0/16 blackhole
10.3.0.0/16 unreachable
10.4.0.0/16 prohibit
10.5.0.0/16 2001:db8::1
10.6.0.0/16 13335
10.7.0.0/16 192.0.2.1%eth0
10.8.0.0/16 2001:db8::1%eth0
10.9.0.0/16 fe80::1
10.10.0.0/16 2001:DB8::1
::/0 blackhole
2001:db8::/32 fe80::1%eth0
2001:db8:1::/48 192.0.2.1
";

const ORIGINS: &str = "10.0.0.0/8 13335\n10.1.0.0/16 1,2\n2001:db8::/32 4294967295\n";

#[test]
fn every_format_reads_back_the_same() {
    for (text, formats) in [
        (
            ADDRESSES,
            &[
                Format::Plain,
                Format::Bgpdump,
                Format::IpRoute,
                Format::IpRouteJson,
                Format::FrrJson,
                Format::Mrt,
            ][..],
        ),
        (KERNEL, &[Format::Plain, Format::Bgpdump, Format::IpRoute, Format::IpRouteJson, Format::FrrJson]),
        (ORIGINS, &[Format::Plain, Format::Bgpdump, Format::Pfx2as]),
        ("::/0 tun0\n", &[Format::Plain, Format::IpRoute, Format::IpRouteJson, Format::FrrJson]),
        ("0.0.0.0/0 tun0\n::/0 tun0\n", &[Format::Plain, Format::IpRoute, Format::IpRouteJson]),
        ("0.0.0.0/0 blackhole\n2001:db8::/32 a\n", &[Format::Plain, Format::IpRoute, Format::IpRouteJson]),
    ] {
        let fib = table(text);
        for &format in formats {
            let bytes = written(&fib, format).unwrap();
            assert_eq!(Format::recognise(&bytes), Some(format), "{}", bytes.escape_ascii());
            let (again, report) = read_strict(format, &bytes).unwrap();
            assert_eq!(text_of(&again), text_of(&fib), "{format}: {}", bytes.escape_ascii());
            assert_eq!((report.repeated, report.truncated), (0, None));
        }
    }
}

#[test]
fn plain_reads_back_exactly() {
    let fib = table("10.0.0.0/8 a\n10.1.0.0/16 b\n::/0 a\n");
    let bytes = written(&fib, Format::Plain).unwrap();
    let (again, _) = read_strict(Format::Plain, &bytes).unwrap();
    assert!(again.v4.iter().eq(fib.v4.iter()) && again.v6.iter().eq(fib.v6.iter()));
    assert!(again.next_hops.iter().eq(fib.next_hops.iter()));
    assert_eq!(written(&again, Format::Plain).unwrap(), bytes);
}

#[test]
fn an_empty_table_is_well_formed() {
    let empty = Fib::default();
    assert_eq!(written(&empty, Format::IpRouteJson).unwrap(), b"[]\n");
    assert_eq!(written(&empty, Format::FrrJson).unwrap(), b"{}\n");
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let words = table("10.0.0.0/8 core|1\n");
    for format in [Format::Pfx2as, Format::Mrt, Format::Bgpdump] {
        let message = written(&words, format).unwrap_err().to_string();
        assert_eq!(message, format!("{format} can't hold 10.0.0.0/8 with the next hop \"core|1\""));
    }
    let mut spaced = Fib::default();
    let hop = spaced.next_hops.intern("by way\nof").unwrap();
    spaced.v4.insert("10.0.0.0/8".parse().unwrap(), hop);
    for format in Format::ALL.into_iter().filter(|f| f.is_written()) {
        assert!(matches!(written(&spaced, format), Err(WriteError::NextHop { .. })));
    }
    let mut hole = table("10.0.0.0/8 a\n");
    hole.v4.insert("10.1.0.0/16".parse().unwrap(), NextHop::NONE);
    let message = written(&hole, Format::Plain).unwrap_err().to_string();
    assert_eq!(message, "10.1.0.0/16 has next hop 0, which is not among the 1 known");
    assert!(matches!(written(&words, Format::Updates), Err(WriteError::WrongKind { .. })));
}

#[test]
fn an_update_is_written_whole_or_not_at_all() {
    let update = TimedUpdate {
        time: Some(std::time::Duration::from_secs(7)),
        update: AnyUpdate::V4(Update::Announce {
            prefix: "10.0.0.0/8".parse().unwrap(),
            next_hop: Some(NextHop(9)),
        }),
    };
    let mut text = Vec::new();
    assert!(write_updates([&update], &NextHops::new(), Format::Updates, &mut text).is_err());
    assert_eq!(text, b"");
}

#[test]
fn updates_read_back_the_same() {
    let text = "\
1470931200 A 10.0.0.0/8 192.0.2.1
1470931200.00025 W 10.0.0.0/8
1470931201 A 2001:db8::/32 2001:db8::1
1470931202.5 W 2001:db8::/32
1470931203 A 10.0.0.0/8 2001:db8::1
";
    let mut hops = NextHops::new();
    let options = ReadOptions::default();
    let (updates, _) = collect_updates_from(text.as_bytes(), "test", &options, &mut hops).unwrap();
    for format in [Format::Updates, Format::Bgpdump, Format::Mrt] {
        let mut bytes = Vec::new();
        write_updates(&updates, &hops, format, &mut bytes).unwrap();
        assert_eq!(Format::recognise(&bytes), Some(format));
        let mut again_hops = NextHops::new();
        let (again, _) = collect_updates_from(&bytes[..], "test", &options, &mut again_hops).unwrap();
        assert_eq!(text_of_updates(&again, &again_hops), text, "{format}");
    }
    let (bare, _) = collect_updates_from(&b"A 10.0.0.0/8\n"[..], "test", &options, &mut hops).unwrap();
    for format in [Format::Bgpdump, Format::Mrt] {
        let result = write_updates(&bare, &hops, format, &mut Vec::new());
        assert!(matches!(result, Err(WriteError::NextHop { .. })));
    }
}
