//! The example of a flow collector: with a feed, an image, a file that changes, and VRFs.

use std::path::Path;
use std::sync::mpsc::channel;

use wirespeed::prelude::*;
use wirespeed::{Reloader, VrfId, Vrfs};

#[allow(dead_code, unreachable_pub)] // its `main`
#[path = "../../examples/collector.rs"]
mod example;

use example::{Collector, feed, start};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The prefix length and the network of an address in a VRF.
fn end(collector: &Collector, vrf: u32, address: &str) -> (u8, String) {
    let mut found = None;
    let mut each = |_, len, network: &str| found = Some((len, network.to_owned()));
    collector.enrich(&[VrfId(vrf)], &[ip(address)], &mut each).unwrap();
    found.unwrap()
}

fn known(len: u8, network: &str) -> (u8, String) {
    (len, network.to_owned())
}

/// Replaces a file in one step.
fn write(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// Waits for the feed.
fn until(mut is_so: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed().as_secs() < 60, "it did not happen");
        std::thread::yield_now();
    }
}

#[test]
fn flows_get_networks_while_a_feed_and_a_file_change_them() {
    let dir = tempfile::tempdir().unwrap();
    let (file, image) = (dir.path().join("routes.txt"), dir.path().join("routes.img"));
    let routes = "192.0.2.0/24 64496,fra1,DE\n192.0.2.128/25 64497,ams2,NL\n2001:db8::/32 64496,fra1,DE\n";
    write(&file, routes);
    // From the file, then from the image.
    for is_image in [false, true] {
        assert_eq!(image.exists(), is_image);
        let (table, networks) = start(&file, &image).unwrap();
        let mut vrfs = Vrfs::builder().prefix_lookups().labels(&networks).build().unwrap();
        vrfs.set(
            VrfId(7),
            [(IpNet::from(Ipv4Net::default()), networks.intern("0,site7,-".to_owned()).unwrap())],
        )
        .unwrap();
        let collector = Collector(table.reader(), vrfs.reader(), networks.clone());
        let end = |vrf, address| end(&collector, vrf, address);
        assert_eq!(end(0, "192.0.2.200"), known(25, "64497,ams2,NL"));
        assert_eq!(end(0, "2001:db8::1"), known(32, "64496,fra1,DE"));
        assert_eq!((end(0, "203.0.113.1"), end(7, "203.0.113.1")), (known(0, ""), known(0, "0,site7,-")));
        assert_eq!(end(7, "2001:db8::1"), known(32, "64496,fra1,DE"));

        let (bgp, from) = channel();
        std::thread::scope(|scope| {
            let (networks, reloader) = (&networks, Reloader::new(&file));
            let feed = scope.spawn(move || feed(table, networks, reloader, &from));
            let net: IpNet = "203.0.113.0/24".parse().unwrap();
            bgp.send(Some((net, Some("64500,iad1,US".to_owned())))).unwrap();
            until(|| end(0, "203.0.113.1") == known(24, "64500,iad1,US"));
            // A route that the file does not have goes when the file is loaded.
            write(&file, &format!("{routes}198.51.100.0/24 64501,sin1,SG\n"));
            bgp.send(None).unwrap();
            until(|| end(0, "198.51.100.1") == known(24, "64501,sin1,SG"));
            assert_eq!(end(0, "203.0.113.1"), known(0, ""));
            // A file that is wrong leaves the routes, and the feed goes on.
            write(&file, "no route\n");
            bgp.send(None).unwrap();
            bgp.send(Some(("198.51.100.0/24".parse().unwrap(), None))).unwrap();
            until(|| end(0, "198.51.100.1") == known(0, ""));
            assert_eq!(end(0, "192.0.2.1"), known(24, "64496,fra1,DE"));
            drop(bgp);
            feed.join().unwrap().unwrap();
        });
        write(&file, routes);
    }
}

/// The page promises a short program.
#[test]
fn it_is_short() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/collector.rs");
    assert!(std::fs::read_to_string(path).unwrap().lines().count() <= 80);
}
