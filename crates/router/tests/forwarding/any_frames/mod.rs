//! Any bytes as frames through an IP router: each frame is sent, dropped for a reason, or the kernel's, and
//! what is sent has a header that says its length.

use wirespeed::prelude::*;
use wirespeed_router::apps::Ip;
use wirespeed_router::apps::ip::{Own, Owns};
use wirespeed_router::header::{TYPE_IPV4, TYPE_IPV6, network};
use wirespeed_router::{Hop, Mac, PortId, Route, Settings};

use crate::list;

/// The ports, and the router's address at each.
const PORTS: u16 = 2;

/// Cuts bytes as frames: a length of two bytes is before each.
pub(crate) fn cut(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let [high, low, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]) % 1600).min(rest.len());
        let (frame, more) = rest.split_at(length);
        frames.push(frame.to_vec());
        bytes = more;
    }
    frames
}

/// The router's address at a port.
pub(crate) fn mac(port: u16) -> Mac {
    let [high, low] = port.to_be_bytes();
    Mac([2, 0, 0, 0, high, low])
}

/// Routes frames that come in at port 0.
pub(crate) fn check(frames: &[Vec<u8>]) {
    let labels = Labels::new();
    let next = |mtu| Route::Via(Hop::new(PortId(1), Mac([2, 0, 0, 0, 1, 1]), mac(1), mtu));
    let routes = [("0.0.0.0/1", 1500), ("128.0.0.0/2", 600), ("::/1", 1500), ("8000::/2", 1280)];
    let routes = routes.map(|(net, mtu)| (net.parse::<IpNet>().expect("a network"), next(mtu)));
    let table = IpTable::builder().labelled_routes(&labels, routes).build().expect("a table");
    let own = (0..PORTS).map(|port| Own {
        mac: mac(port),
        v4: Some([192, 0, 2, u8::try_from(port).unwrap_or_default()].into()),
        v6: Some([0x2001, 0xdb8, 0, 0, 0, 0, 0, port].into()),
    });
    let own = Owns::new(own.collect());
    let app = Ip::new(&table.reader(), &labels, &own).errors_per_second(10);
    // `run` fails if a buffer is lost.
    let (stats, sent) = list::run(app, frames, PORTS, Settings { chunk: 64, ..Settings::default() });
    assert!(stats.is_whole(), "{stats:?}");
    assert_eq!((stats.frames_in, stats.queued), (frames.len() as u64, 0));
    for frame in sent.iter().flat_map(|sent| sent.lock().expect("no panic").clone()) {
        // Tags of VLANs stay.
        let (kind, at) = network(&frame).expect("an IP packet");
        let (length, there) = (
            |place: usize| usize::from(u16::from_be_bytes([frame[place], frame[place + 1]])),
            frame.len() - at,
        );
        match kind {
            TYPE_IPV4 => assert!((20..=there).contains(&length(at + 2)), "{frame:?}"),
            TYPE_IPV6 => assert!(length(at + 4) + 40 <= there, "{frame:?}"),
            kind => panic!("a frame of type {kind:#x}"),
        }
    }
}
