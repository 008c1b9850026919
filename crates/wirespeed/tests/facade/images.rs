//! Tables that are saved and opened again.

use std::path::Path;

use wirespeed::fib::synth::{self, UpdateSpec};
use wirespeed::image::{Image, Table as _};
use wirespeed::prelude::*;
use wirespeed::{Error, Family, Reader, Table};

use crate::common::{self, Native, check, rib};

#[test]
fn an_image_answers_at_once_and_takes_updates_where_it_is_asked_to() {
    fn family<A: Native>(path: &Path) {
        for engine in common::engines::<A>() {
            let mut rib = rib::<A>(21);
            Table::builder().rib(rib.clone()).engine(engine).build().unwrap().save(path).unwrap();

            let reader = Reader::<A>::open(path).unwrap();
            assert_eq!(reader.engine(), engine);
            check(&reader, &rib, "read only");
            check(&reader.clone(), &rib, "a clone");

            let mut table = Table::<A>::open(path).unwrap();
            assert!(table.routes().iter().eq(rib.iter()));
            assert_eq!((table.engine(), table.rebuilds()), (engine, 0));
            let live = table.reader();
            check(&live, &rib, "opened");
            table.save(path).unwrap();
            check(&Reader::<A>::open(path).unwrap(), &rib, "opened and saved");
            let spec = UpdateSpec { next_hops: 400, ..UpdateSpec::real(A::FAMILY) };
            let updates: Vec<_> =
                synth::Updates::new(&rib, &spec).take(300).map(|timed| timed.update).collect();
            for (round, updates) in updates.chunks(100).enumerate() {
                let applied = table.apply(updates).unwrap();
                assert!(applied.rebuilt || round > 0, "an image brings no engine");
                updates.iter().for_each(|update| {
                    rib.apply(update);
                });
                check(&live, &rib, "opened and updated");
            }
            table.save(path).unwrap();
            check(&Reader::<A>::open(path).unwrap(), &rib, "saved again");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    family::<V4>(&dir.path().join("four"));
    family::<V6>(&dir.path().join("six"));
}

#[test]
fn labels_go_with_the_image() {
    let dir = tempfile::tempdir().unwrap();
    let (four, six) = (dir.path().join("four"), dir.path().join("six"));
    let labels = Labels::new();
    let mut table = IpTable::builder()
        .labelled_routes(
            &labels,
            [
                ("10.0.0.0/8".parse::<IpNet>().unwrap(), "ten".to_owned()),
                ("2001:db8::/32".parse().unwrap(), "documentation".to_owned()),
            ],
        )
        .build()
        .unwrap();
    table.v4().save_labelled(&four, &labels).unwrap();
    table.insert("::/0".parse::<IpNet>().unwrap(), labels.intern("default".to_owned()).unwrap()).unwrap();
    table.v6().save_labelled(&six, &labels).unwrap();

    // The labels of the image that was saved last are those of both.
    let labels = Labels::<String>::open(&six).unwrap();
    let table = IpTable::new(Ipv4Table::open(&four).unwrap(), Ipv6Table::open(&six).unwrap());
    let frozen = IpReader::new(Ipv4Reader::open(&four).unwrap(), Ipv6Reader::open(&six).unwrap());
    let known = labels.enter();
    for reader in [table.reader(), frozen] {
        let label = |address: &str| known.get(reader.lookup(address.parse().unwrap())).map(String::as_str);
        assert_eq!(
            ["10.0.0.1", "11.0.0.1", "2001:db8::1", "::1"].map(label),
            [Some("ten"), None, Some("documentation"), Some("default")]
        );
    }
    // New labels go on after the old ones.
    assert_eq!(labels.intern("ten".to_owned()).unwrap(), NextHop(1));
    assert_eq!(labels.intern("new".to_owned()).unwrap(), NextHop(4));

    let error = Labels::<u32>::open(&four).unwrap_err();
    assert!(matches!(&error, Error::Label { text, .. } if text == "ten"), "{error}");
    table.v4().save(&four).unwrap();
    assert!(Labels::<u32>::open(&four).unwrap().is_empty());
}

#[test]
fn labels_that_would_be_mixed_up_are_not_saved() {
    #[derive(PartialEq, Eq, Hash)]
    struct Alike(u32);
    impl std::fmt::Display for Alike {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("same")
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let labels = Labels::new();
    let table = Ipv4Table::builder()
        .labelled_routes(
            &labels,
            [1, 2].map(|n| (format!("{n}.0.0.0/8").parse::<Ipv4Net>().unwrap(), Alike(n))),
        )
        .build()
        .unwrap();
    let error = table.save_labelled(&path, &labels).unwrap_err();
    assert!(matches!(&error, Error::LabelsAlike { text } if text == "same"), "{error}");
    assert!(!path.exists());
}

#[test]
fn images_that_will_not_do_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let table = Ipv4Table::builder().rib(rib(2)).build().unwrap();
    table.save(&path).unwrap();
    let error = Ipv6Reader::open(&path).unwrap_err();
    assert!(matches!(error, Error::ImageFamily { found: Family::V4, wanted: Family::V6, .. }), "{error}");
    assert!(matches!(Ipv6Table::open(&path), Err(Error::ImageFamily { .. })));

    let bytes = std::fs::read(&path).unwrap();
    for at in (0..bytes.len()).step_by(bytes.len() / 50) {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        std::fs::write(&path, &bad).unwrap();
        assert!(Ipv4Table::open(&path).is_err(), "byte {at}");
    }
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = Ipv4Reader::open(&path).unwrap_err();
    assert!(matches!(error, Error::Image { .. }) && error.to_string().contains("image"), "{error}");
    assert!(matches!(Ipv4Reader::open(dir.path().join("none")), Err(Error::Image { .. })));

    // A compiled table alone: enough to look up, not to update.
    let bare = compiled_alone(&table);
    bare.save(&path).unwrap();
    check(&Ipv4Reader::open(&path).unwrap(), &table.routes().to_rib(), "bare");
    assert!(matches!(Ipv4Table::open(&path), Err(Error::ImageWithout { what: "routes", .. })));

    // Routes that are not those of the table.
    for routes in [&[][..], &[0; 9], &[1; 5]] {
        bare.with_attachment("routes", routes).unwrap().save(&path).unwrap();
        assert!(matches!(Ipv4Table::open(&path), Err(Error::Image { .. })));
    }
    wirespeed::image::ImageBuilder::new("other", 1).build(None).unwrap().save(&path).unwrap();
    let error = Ipv4Reader::open(&path).unwrap_err();
    assert!(matches!(&error, Error::ImageKind { kind, .. } if kind == "other"), "{error}");
}

fn compiled_alone(table: &Ipv4Table) -> Image {
    use wirespeed::fib::{Engine, V4};
    let (_, compiled) =
        <wirespeed_sail::SailL as Engine<V4>>::build(&table.routes().to_rib(), &Default::default()).unwrap();
    compiled.image().clone()
}

#[test]
fn lines_that_were_left_out_stay_told() {
    use wirespeed::image_file::{ImageFile, with_left_out};
    use wirespeed::names::image_file::NameImageFile;

    let dir = tempfile::tempdir().unwrap();
    let (path, again) = (dir.path().join("image"), dir.path().join("again"));
    let note = || {
        let image = Image::open(&path).unwrap();
        with_left_out(&image, 7, &path).unwrap().save(&path).unwrap();
    };
    let left_out = |family| ImageFile::open_family(&again, family).unwrap().left_out().unwrap();
    let table = Ipv4Table::builder().rib(rib::<V4>(21)).build().unwrap();
    table.save(&path).unwrap();
    note();
    let mut opened = Ipv4Table::open(&path).unwrap();
    opened.save(&again).unwrap();
    assert_eq!(left_out(Family::V4), 7);
    // Both families in one file.
    IpTable::open(&path).unwrap().save(&again).unwrap();
    assert_eq!((left_out(Family::V4), left_out(Family::V6)), (7, 0));
    let mut both = IpTable::open(&again).unwrap();
    both.save(&again).unwrap();
    assert_eq!((left_out(Family::V4), left_out(Family::V6)), (7, 0));
    // Changes do not bring the lines back, and other routes in place of all do.
    both.insert("10.1.0.0/16".parse::<IpNet>().unwrap(), NextHop(2)).unwrap();
    both.save(&again).unwrap();
    assert_eq!(left_out(Family::V4), 7);
    opened.replace(rib::<V4>(22)).unwrap();
    opened.save(&again).unwrap();
    assert_eq!(left_out(Family::V4), 0);

    let names =
        NameTable::builder().rib([(NameBuf::new("/com/example").unwrap(), 1)].into_iter().collect()).build();
    names.unwrap().save(&path).unwrap();
    note();
    NameTable::open(&path).unwrap().save(&again).unwrap();
    assert_eq!(NameImageFile::open(&again).unwrap().left_out().unwrap(), 7);
}
