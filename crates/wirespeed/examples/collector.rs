//! A flow collector: prefix and network (AS, site and country) of each end, in 200 VRFs and the Internet.
//! `cargo run --release -p wirespeed --example collector ROUTES IMAGE`; a route: `10.0.0.0/8 64496,fra1,DE`.

use std::{iter::once, mem::take, path::Path, str::FromStr, sync::mpsc::*, thread, time::Instant};
use wirespeed::{Error, Reloader, prelude::*};
type Done = Result<(), Error>;
/// The state of all threads that look up: the Internet, the VRFs, and the networks of both.
#[derive(Clone)]
pub struct Collector(pub IpReader, pub VrfReader, pub Labels<String>);

impl Collector {
    /// Calls `each` with each address, the length of its prefix and its network (empty: unknown).
    pub fn enrich(&self, vrfs: &[VrfId], ends: &[IpAddr], mut each: impl FnMut(IpAddr, u8, &str)) -> Done {
        let networks = self.2.enter(); // before the lookups: then all that they find resolves
        let (mut found, mut lens) = (vec![NextHop::NONE; ends.len()], vec![0; ends.len()]);
        let (mut own, mut own_lens) = (found.clone(), lens.clone());
        self.0.lookup_prefixes(ends, &mut found, &mut lens)?;
        self.1.lookup_prefixes(vrfs, ends, &mut own, &mut own_lens)?;
        for (at, &end) in ends.iter().enumerate() {
            let (found, len) =
                if own[at].is_some() { (own[at], own_lens[at]) } else { (found[at], lens[at]) };
            each(end, len, networks.get(found).map_or("", |network| network));
        }
        Ok(())
    }
}

/// Opens the image, which takes milliseconds, or reads the file and writes its image.
pub fn start(file: &Path, image: &Path) -> Result<(IpTable, Labels<String>), Error> {
    if let (Ok(mut table), Ok(networks)) = (IpTable::open(image), Labels::open(image)) {
        table.attach_labels(&networks);
        return Ok((table, networks));
    }
    let networks = Labels::new();
    let table = IpTable::builder().prefix_lookups().file(file, &networks).build()?;
    table.save_labelled(image, &networks)?;
    Ok((table, networks))
}

/// A route of a BGP session, or its end; `None`: load the file again if it has changed, as on SIGHUP.
pub type Event = Option<(IpNet, Option<String>)>;

/// Takes events until all senders are gone. Readers see what waited together in one step.
pub fn feed(mut table: IpTable, known: &Labels<String>, mut file: Reloader, from: &Receiver<Event>) -> Done {
    while let Ok(first) = from.recv() {
        let mut updates = Vec::new();
        for event in once(first).chain(from.try_iter()) {
            match event {
                Some((net, Some(network))) => updates.push(AnyUpdate::announce(net, known.intern(network)?)?),
                Some((net, None)) => updates.push(AnyUpdate::withdraw(net)?),
                None => {
                    table.apply(&take(&mut updates))?;
                    file.if_changed(|p| table.load(p, known)).map_or_else(|why| eprintln!("{why}"), drop);
                }
            }
        }
        table.apply(&updates)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [file, image] = [1, 2].map(|at| std::env::args_os().nth(at).expect("ROUTES IMAGE"));
    let (table, networks) = start(file.as_ref(), image.as_ref())?;
    let ends: Vec<IpAddr> = table.routes().map(|(net, _)| net.addr()).collect();
    let mut vrfs = Vrfs::builder().prefix_lookups().labels(&networks).build()?;
    for vrf in 0..200 {
        vrfs.set(VrfId(vrf), [(IpNet::from_str("10.0.0.0/8")?, networks.intern(format!("0,vrf{vrf},-"))?)])?;
    }
    let collector = Collector(table.reader(), vrfs.reader(), networks.clone());
    let (bgp, from) = channel();
    let feed = thread::spawn(move || feed(table, &networks, Reloader::new(file), &from));
    let (began, mut known) = (Instant::now(), 0);
    for ends in ends.chunks(1024) {
        collector.enrich(&[VrfId(7); 1024][..ends.len()], ends, |_, len, _| known += usize::from(len > 0))?;
    }
    println!("{known} of {} ends are known, in {:.2?}", ends.len(), began.elapsed());
    drop(bgp);
    Ok(feed.join().expect("the feed ends")?)
}
