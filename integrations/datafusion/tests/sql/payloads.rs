//! `rov`.

use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, StringArray, UInt32Array};
use arrow::datatypes::Int32Type;
use wirespeed::fib::rpki::{Vrp, Vrps};
use wirespeed_datafusion::{PayloadTable, Table, Tables};

use super::{Random, answer, error, register, session};

type Payload = (ipnet::IpNet, u8, u32);

fn table(payloads: &[Payload]) -> Table {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for &(net, max, asn) in payloads {
        match net {
            ipnet::IpNet::V4(net) => v4.push(Vrp::new(net.try_into().unwrap(), max, asn).unwrap()),
            ipnet::IpNet::V6(net) => v6.push(Vrp::new(net.try_into().unwrap(), max, asn).unwrap()),
        }
    }
    let vrps = Vrps { v4: v4.into_iter().collect(), v6: v6.into_iter().collect(), ..Vrps::default() };
    Table::Payloads(PayloadTable::new(vrps))
}

/// RFC 6811, payload by payload.
fn expected(payloads: &[Payload], net: ipnet::IpNet, origin: u32) -> &'static str {
    let covering: Vec<_> = payloads.iter().filter(|(payload, ..)| payload.contains(&net)).collect();
    let is_match = |(_, max, asn): &&Payload| *asn == origin && origin != 0 && net.prefix_len() <= *max;
    match () {
        () if covering.is_empty() => "not-found",
        () if covering.into_iter().any(|payload| is_match(&payload)) => "valid",
        () => "invalid",
    }
}

#[tokio::test]
async fn agrees_with_the_rfc() {
    let mut random = Random(3);
    let net = |random: &mut Random| -> ipnet::IpNet {
        let (bits, len) = (u32::try_from(random.below(16)).unwrap(), u8::try_from(random.below(5)).unwrap());
        match random.below(2) {
            0 => ipnet::Ipv4Net::new((0x0a00_0000 | bits << 20).into(), 10 + len).unwrap().trunc().into(),
            _ => {
                let bits = (0x2001_0db8_u128 << 96) | u128::from(bits) << 92;
                ipnet::Ipv6Net::new(bits.into(), 34 + len).unwrap().trunc().into()
            }
        }
    };
    let payloads: Vec<Payload> = (0..9)
        .map(|_| {
            let net = net(&mut random);
            let more = u8::try_from(random.below(3)).unwrap();
            (net, net.prefix_len() + more, u32::try_from(random.below(4)).unwrap())
        })
        .collect();
    let routes: Vec<_> =
        (0..200).map(|_| (net(&mut random), u32::try_from(random.below(5)).unwrap())).collect();
    let expected: Vec<_> = routes
        .iter()
        .enumerate()
        .map(|(n, (net, origin))| (n % 9 != 4).then(|| expected(&payloads, *net, *origin).to_owned()))
        .collect();
    for state in ["valid", "invalid", "not-found"] {
        assert!(expected.iter().any(|one| one.as_deref() == Some(state)), "{state}");
    }

    let tables = Tables::new();
    tables.insert("rpki", table(&payloads));
    let context = session(&tables);
    let nets: Vec<_> =
        routes.iter().enumerate().map(|(n, (net, _))| (n % 9 != 4).then(|| net.to_string())).collect();
    let texts: Vec<_> = routes.iter().map(|(_, origin)| format!("AS{origin}")).collect();
    let (nets, of_dictionary): (StringArray, DictionaryArray<Int32Type>) =
        (nets.iter().map(Option::as_deref).collect(), nets.iter().map(Option::as_deref).collect());
    let numbers: UInt32Array = routes.iter().map(|(_, origin)| Some(*origin)).collect();
    let columns: [(&str, ArrayRef); 4] = [
        ("net", Arc::new(nets)),
        ("net_dictionary", Arc::new(of_dictionary)),
        ("origin", Arc::new(numbers)),
        ("origin_text", Arc::new(StringArray::from(texts))),
    ];
    register(&context, "routes", &columns);
    for arguments in [
        "net, origin",
        "'rpki', net_dictionary, origin",
        "net, origin_text",
        "'rpki', net, CAST(origin AS BIGINT)",
    ] {
        let sql = format!("SELECT rov({arguments}) FROM routes ORDER BY n");
        assert_eq!(answer(&context, &sql).await.unwrap(), expected, "{sql}");
    }
}

#[tokio::test]
async fn what_is_no_route_is_refused() {
    let tables = Tables::new();
    tables.insert("rpki", table(&[("10.0.0.0/8".parse().unwrap(), 8, 1)]));
    let context = session(&tables);
    for (call, found) in [
        ("rov('10.0.0.0/8', 1)", Some("valid")),
        ("rov('10.0.0.0/8', '{1,2}')", Some("invalid")),
        ("rov(NULL, 1)", None),
        ("rov('10.0.0.0/8', NULL)", None),
    ] {
        let found = [found.map(str::to_owned)];
        assert_eq!(answer(&context, &format!("SELECT {call}")).await.unwrap(), found, "{call}");
    }
    for (call, reason) in [
        ("rov('10.0.0.1/8', 1)", "\"10.0.0.1/8\" is no prefix"),
        ("rov('net', 1)", "\"net\" is no prefix"),
        ("rov('10.0.0.0/8', 'me')", "\"me\": not an AS number"),
        ("rov('10.0.0.0/8', -1)", "-1"),
    ] {
        let error = error(&context, &format!("SELECT {call}")).await;
        assert!(error.contains(reason), "{call}: {error}");
    }
    context.sql("SET wirespeed.invalid = 'null'").await.unwrap();
    assert_eq!(answer(&context, "SELECT rov('net', 1)").await.unwrap(), [None]);
    assert_eq!(answer(&context, "SELECT rov('10.0.0.0/8', 'me')").await.unwrap(), [None]);
}
