//! A program with the smallest build: tables of addresses on the CPU, live, saved and opened. What is left
//! out is refused by an error that names the feature. `cargo xtask ci` runs it, alone and with `text`.

use wirespeed::image::ImageBuilder;
use wirespeed::prelude::*;
use wirespeed::{Prefix, Rib};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let routes = [("10.0.0.0/8".parse::<IpNet>()?, NextHop(1)), ("2001:db8::/32".parse()?, NextHop(2))];
    let mut table = IpTable::builder().routes(routes).build()?;
    let reader = table.reader();
    table.insert("10.1.0.0/16".parse::<IpNet>()?, NextHop(3))?;
    let mut found = [NextHop::NONE; 3];
    reader.lookup_batch(&["10.1.2.3".parse()?, "2001:db8::1".parse()?, "192.0.2.1".parse()?], &mut found);
    assert_eq!(found, [NextHop(3), NextHop(2), NextHop::NONE]);

    let folder = std::env::temp_dir().join(format!("wirespeed-smallest-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let checked = images(&folder, &table);
    std::fs::remove_dir_all(&folder)?;
    checked?;

    let builder = || Ipv4Table::builder().routes([("10.0.0.0/8".parse::<Ipv4Net>().unwrap(), NextHop(1))]);
    let table = builder().device(Device::Auto).build()?;
    assert_eq!(
        table.device_note().as_deref(),
        Some("this build leaves GPUs out: they need the feature `gpu`")
    );
    assert_eq!((table.fleet().is_none(), table.lookups()), (true, None));
    let (reader, keys, mut found) = (table.reader(), [V4(0x0a00_0001)], [NextHop::NONE]);
    let mut pipeline = reader.pipeline();
    pipeline.submit(&keys);
    assert_eq!((pipeline.next(&mut found), found), (Some(&keys[..]), [NextHop(1)]));
    says(builder().device(Device::Gpu).build(), "this build leaves GPUs out: they need the feature `gpu`");

    // What `auto` means, it means in every build.
    let hosts: Rib<V4> =
        (0..100_000u32).map(|n| (Prefix::host(V4(n.wrapping_mul(0x9e37_79b1))), NextHop(1))).collect();
    assert_eq!(Ipv4Table::builder().rib(hosts).build()?.engine().as_str(), "waldvogel");
    says(builder().engine("sail-l").build(), "those of papers need the feature `papers`");
    #[cfg(feature = "text")]
    text::what_it_leaves_out_is_refused();
    Ok(())
}

/// Saves a table and opens it; an image of an engine that is left out is refused.
fn images(folder: &std::path::Path, table: &IpTable) -> Result<(), Box<dyn std::error::Error>> {
    let path = folder.join("table.img");
    table.v4().save(&path)?;
    assert_eq!(Ipv4Reader::open(&path)?.lookup(V4(0x0a01_0203)), NextHop(3));
    assert_eq!(Ipv4Table::open(&path)?.len(), 2);
    let image = ImageBuilder::new("sail-l-v4", 1).build(None)?;
    image.save(&path)?;
    let said = "images of kind \"sail-l-v4\"; it may need one of the features `names`, `rules`, `papers`";
    says(Ipv4Reader::open(&path), said);
    Ok(())
}

/// Checks how an error ends.
fn says<T>(got: Result<T, wirespeed::Error>, end: &str) {
    let said = got.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(said.ends_with(end), "{said:?} is to end with {end:?}");
}

/// Files that need more than the readers of text.
#[cfg(feature = "text")]
mod text {
    use wirespeed::fib::read::{Format, ReadOptions, collect_updates_from, read_fib_from};
    use wirespeed::fib::write::write_fib;
    use wirespeed::fib::{Fib, NextHops, trace};
    use wirespeed::prelude::*;

    pub(super) fn what_it_leaves_out_is_refused() {
        let start = &b"\x53\x7e\xd6\x00\x00\x0d\x00\x01\x00\x00\x00\x10"[..];
        for format in [None, Some(Format::Mrt)] {
            for lenient in [false, true] {
                let options = ReadOptions { format, lenient, ..ReadOptions::default() };
                let said = "t: mrt needs a build with the feature `mrt`";
                assert_eq!(read_fib_from(start, "t", &options).unwrap_err().to_string(), said);
                let updates = collect_updates_from(start, "t", &options, &mut NextHops::default());
                assert_eq!(updates.unwrap_err().to_string(), said);
            }
        }
        let written = write_fib(&Fib::default(), Format::Mrt, &mut std::io::sink());
        assert_eq!(written.unwrap_err().to_string(), "mrt needs a build with the feature `mrt`");
        for magic in [0xa1b2_c3d4_u32, 0x0a0d_0d0a] {
            let read = trace::from_reader::<V4>(&magic.to_le_bytes()[..], "t.pcap", None);
            let said = "t.pcap: a capture needs a build with the feature `capture`";
            assert_eq!(read.unwrap_err().to_string(), said);
        }
    }
}
