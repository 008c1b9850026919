//! Images of VRFs: saved, opened with and without updates, with labels, damaged, and taken for others.

use std::collections::BTreeMap;
use std::path::Path;

use wirespeed::classify::{Ipv4Tuple, RuleReader};
use wirespeed::fib::synth::rng::Rng;
use wirespeed::image::Image;
use wirespeed::image_file::{ImageFile, VrfImageFile};
use wirespeed::prelude::*;
use wirespeed::{Error, Family, VrfRoutes};

use crate::vrfs::{check, drawn, insert, ip, net};

type Model = BTreeMap<VrfId, VrfRoutes>;

/// VRFs of some routes, many of them equal, and one without routes.
fn model(rng: &mut Rng) -> Model {
    let shared: Vec<_> = (0..40).map(|n| (drawn(rng), NextHop(1 + n % 7))).collect();
    let mut model = Model::from([(VrfId(3), VrfRoutes::default())]);
    for vrf in [0, 1, 8, 20, 900] {
        let mut routes = VrfRoutes::default();
        let own: Vec<_> = (0..5).map(|n| (drawn(rng), NextHop(300 * n + 1))).collect();
        shared.iter().chain(&own).for_each(|&(prefix, next_hop)| insert(&mut routes, prefix, Some(next_hop)));
        model.insert(VrfId(vrf), routes);
    }
    model
}

fn built(model: &Model, prefix_lookups: bool) -> Vrfs {
    let builder = Vrfs::builder();
    let builder = if prefix_lookups { builder.prefix_lookups() } else { builder };
    let mut vrfs = builder.build().unwrap();
    vrfs.apply(model.iter().map(|(&vrf, routes)| VrfUpdate::Set(vrf, routes.clone().into()))).unwrap();
    vrfs
}

fn holds(vrfs: &Vrfs, model: &Model) {
    assert!(vrfs.ids().eq(model.keys().copied()));
    for (&vrf, routes) in model {
        let held = vrfs.routes(vrf).unwrap();
        assert!(held.v4.iter().eq(routes.v4.iter()) && held.v6.iter().eq(routes.v6.iter()), "{vrf}");
    }
}

fn saved_and_opened(path: &Path, prefix_lookups: bool) {
    let mut rng = Rng::new(4);
    let mut model = model(&mut rng);
    built(&model, prefix_lookups).save(path).unwrap();
    for round in 0..3 {
        let reader = VrfReader::open(path).unwrap();
        check(&reader, &model, prefix_lookups);
        check(&reader.clone(), &model, prefix_lookups);
        let mut vrfs = Vrfs::open(path).unwrap();
        let live = vrfs.reader();
        check(&live, &model, prefix_lookups);
        holds(&vrfs, &model);

        // A route, a VRF that ends and one that comes.
        let (prefix, next_hop) = (drawn(&mut rng), NextHop(70_000 + round));
        insert(model.get_mut(&VrfId(8)).unwrap(), prefix, Some(next_hop));
        let applied = vrfs.insert(VrfId(8), prefix, next_hop).unwrap();
        assert!(applied.rebuilt, "an image brings no engine");
        let ends = *model.keys().next().unwrap();
        model.remove(&ends);
        vrfs.remove_vrf(ends).unwrap();
        let routes = VrfRoutes::new([(drawn(&mut rng), NextHop(9))]).unwrap();
        model.insert(VrfId(1_000 + round), routes.clone());
        vrfs.apply([VrfUpdate::Set(VrfId(1_000 + round), routes.into())]).unwrap();
        check(&live, &model, prefix_lookups);
        holds(&vrfs, &model);
        vrfs.save(path).unwrap();
    }
}

#[test]
fn an_image_of_vrfs_answers_at_once_and_takes_updates() {
    let dir = tempfile::tempdir().unwrap();
    for prefix_lookups in [false, true] {
        saved_and_opened(&dir.path().join("vrfs.img"), prefix_lookups);
    }
}

#[test]
fn no_vrf_is_saved_and_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vrfs.img");
    Vrfs::builder().build().unwrap().save(&path).unwrap();
    check(&VrfReader::open(&path).unwrap(), &Model::new(), false);
    let mut vrfs = Vrfs::open(&path).unwrap();
    assert!(vrfs.is_empty());
    vrfs.set(VrfId(5), [(net("::/0"), NextHop(1))]).unwrap();
    assert_eq!(vrfs.reader().lookup(VrfId(5), ip("::1")), NextHop(1));
}

#[test]
fn labels_go_with_the_image() {
    #[derive(Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
    struct Exit(u32);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vrfs.img");
    let (texts, exits) = (Labels::<String>::new(), Labels::<Exit>::new());
    let routes = |next_hop| [(net("10.0.0.0/8"), next_hop), (net("2001:db8::/32"), next_hop)];
    for prefix_lookups in [false, true] {
        let vrfs = |next_hop| {
            let builder = Vrfs::builder().vrf(VrfId(6), routes(next_hop));
            if prefix_lookups { builder.prefix_lookups() } else { builder }.build().unwrap()
        };
        texts.intern("first".to_owned()).unwrap();
        vrfs(texts.intern("exit".to_owned()).unwrap()).save_labelled(&path, &texts).unwrap();
        let (reader, labels) = (VrfReader::open(&path).unwrap(), Labels::<String>::open(&path).unwrap());
        for address in ["10.1.2.3", "2001:db8::1"] {
            let found = reader.lookup(VrfId(6), ip(address));
            assert_eq!(labels.get(found).as_deref().map(String::as_str), Some("exit"), "{address}");
        }
        assert!(matches!(Labels::<Exit>::open_json(&path), Err(Error::LabelType { .. })));

        // Labels of an opened image end with the last route that leads to them.
        let mut opened = Vrfs::open(&path).unwrap();
        opened.attach_labels(&labels);
        opened.remove_vrf(VrfId(6)).unwrap();
        labels.reclaim();
        assert!(labels.enter().iter().all(|(_, text)| text != "exit"));

        vrfs(exits.intern(Exit(7)).unwrap()).save_labelled_json(&path, &exits).unwrap();
        let (reader, labels) = (VrfReader::open(&path).unwrap(), Labels::<Exit>::open_json(&path).unwrap());
        let found = reader.lookup(VrfId(6), ip("10.1.2.3"));
        assert_eq!(labels.get(found).as_deref(), Some(&Exit(7)));
        assert!(matches!(Labels::<String>::open(&path), Err(Error::LabelType { .. })));
    }
}

#[test]
fn damaged_images_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vrfs.img");
    let model = model(&mut Rng::new(4));
    built(&model, true).save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 997) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        std::fs::write(&path, flipped).unwrap();
        assert!(VrfReader::open(&path).is_err() && Vrfs::open(&path).is_err(), "byte {at}");
        std::fs::write(&path, &whole[..at]).unwrap();
        let error = Vrfs::open(&path).unwrap_err();
        assert!(matches!(error, Error::Image { .. }), "cut to {at}: {error}");
    }
    assert!(matches!(VrfReader::open(dir.path().join("none")), Err(Error::Image { .. })));
}

/// Puts a part of a container in the place of what is there. `None` leaves it out.
fn with_part(container: &Image, name: &str, part: Option<&[u8]>) -> Image {
    let without = container.without_attachments(&[name]).unwrap();
    part.map_or_else(|| without.clone(), |part| without.with_attachment(name, part).unwrap())
}

fn bytes(image: &Image) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.write(&mut bytes).unwrap();
    bytes
}

#[test]
fn whole_images_of_wrong_parts_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("vrfs.img"), dir.path().join("other.img"));
    let mut model = model(&mut Rng::new(4));
    built(&model, true).save(&path).unwrap();
    model.remove(&VrfId(20));
    built(&model, true).save(&other).unwrap();
    let (image, other) = (Image::open(&path).unwrap(), Image::open(&other).unwrap());
    let (v4, v6) = (image.attachment("ipv4").unwrap(), image.attachment("ipv6").unwrap());
    let cases = [
        ("ipv4", None),
        ("ipv6", None),
        ("ipv4", Some(v6)),
        ("ipv6", Some(v4)),
        ("ipv6", Some(&v6[..v6.len() - 1])),
        ("match-ids", Some(&[][..])),
        ("match-ids", Some(&[1, 0, 0, 0, 129])),
    ];
    for (name, part) in cases {
        with_part(&image, name, part).save(&path).unwrap();
        for error in [VrfReader::open(&path).unwrap_err(), Vrfs::open(&path).unwrap_err()] {
            assert!(matches!(error, Error::Image { .. }), "{name}: {error}");
        }
    }
    // Readers look up in what is there. A table with updates needs VRFs that agree.
    let ipv6 = with_part(&image, "ipv6", other.attachment("ipv6"));
    for (container, name) in [(&ipv6, "match-ids"), (&image, "ipv6")] {
        with_part(container, name, other.attachment(name)).save(&path).unwrap();
        assert!(matches!(Vrfs::open(&path), Err(Error::Image { .. })), "{name}");
    }
}

/// Routes whose bytes are damaged while all checksums are right: refused, or other routes.
#[test]
fn damaged_routes_are_refused_or_others() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vrfs.img");
    built(&model(&mut Rng::new(4)), true).save(&path).unwrap();
    let container = Image::open(&path).unwrap();
    let (mut refused, mut opened) = (0, 0);
    for family in ["ipv4", "ipv6"] {
        let inner = Image::from_bytes(container.attachment(family).unwrap()).unwrap();
        let routes = inner.attachment("routes").unwrap();
        for at in (0..routes.len()).step_by(3) {
            for change in [1, 0x10] {
                let mut bad = routes.to_vec();
                bad[at] ^= change;
                let inner = with_part(&inner, "routes", Some(&bad));
                with_part(&container, family, Some(&bytes(&inner))).save(&path).unwrap();
                match Vrfs::open(&path) {
                    Err(error) => {
                        assert!(matches!(error, Error::Image { .. }), "{error}");
                        refused += 1;
                    }
                    Ok(mut vrfs) => {
                        opened += 1;
                        // What the routes say is what an update compiles.
                        vrfs.insert(VrfId(8), net("10.9.9.9/32"), NextHop(3)).unwrap();
                        vrfs.insert(VrfId(8), net("::9/128"), NextHop(3)).unwrap();
                        let ids: Vec<_> = vrfs.ids().collect();
                        let held = ids.into_iter().map(|vrf| (vrf, vrfs.routes(vrf).unwrap()));
                        check(&vrfs.reader(), &held.collect(), true);
                    }
                }
            }
        }
    }
    assert!(refused > opened, "{refused} refused, {opened} opened");
}

#[test]
fn other_images_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("table.img");
    let found = |error: Error| match error {
        Error::ImageOf { found, wanted, .. } => (found, wanted),
        other => panic!("{other}"),
    };
    Vrfs::builder().build().unwrap().save(&path).unwrap();
    let of_addresses = [
        ImageFile::open(&path).unwrap_err(),
        ImageFile::open_all(&path).unwrap_err(),
        ImageFile::open_family(&path, Family::V6).unwrap_err(),
        Ipv4Reader::open(&path).unwrap_err(),
        Ipv6Table::open(&path).unwrap_err(),
        IpReader::open(&path).unwrap_err(),
        IpTable::open(&path).unwrap_err(),
        Ipv4Table::builder().build().unwrap().load(&path, &Labels::<String>::new()).unwrap_err(),
    ];
    of_addresses.into_iter().for_each(|error| assert_eq!(found(error), ("VRFs", "addresses")));
    assert_eq!(found(NameReader::open(&path).unwrap_err()), ("VRFs", "names"));
    assert_eq!(found(RuleReader::<Ipv4Tuple>::open(&path).unwrap_err()), ("VRFs", "rules"));
    assert_eq!(VrfImageFile::open(&path).unwrap().image(Family::V4).unwrap().kind(), "forest-v4");

    Ipv4Table::builder().build().unwrap().save(&path).unwrap();
    assert_eq!(found(VrfReader::open(&path).unwrap_err()), ("addresses", "VRFs"));
    IpTable::builder().build().unwrap().save(&path).unwrap();
    assert_eq!(found(Vrfs::open(&path).unwrap_err()), ("addresses", "VRFs"));
    NameTable::builder().build().unwrap().save(&path).unwrap();
    assert_eq!(found(Vrfs::open(&path).unwrap_err()), ("names", "VRFs"));
    Classifier::<Ipv4Tuple>::builder().build().unwrap().save(&path).unwrap();
    let error = VrfReader::open(&path).unwrap_err();
    let text = "table.img: the image holds a table of rules, a table of VRFs is wanted";
    assert!(error.to_string().ends_with(text), "{error}");
}
