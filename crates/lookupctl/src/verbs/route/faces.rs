//! [`Faces`]: the next hops of a table of names between interfaces.

use anyhow::{Context, Result, ensure};
use wirespeed::{Labels, NextHop};
use wirespeed_router::io::Interface;
use wirespeed_router::{Group, Hop, Mac, PortId, Route};

/// The group of the NDN forwarders of a link.
const GROUP: Mac = Mac([0x01, 0x00, 0x5e, 0x00, 0x17, 0xaa]);

/// The next hops of a table of names, as its texts name them.
pub(super) struct Faces(Vec<String>);

impl Faces {
    pub(super) fn of(texts: &Labels<String>) -> Self {
        let text = |index| texts.get(index).map(|text| String::clone(&text)).unwrap_or_default();
        Self((1..).map(NextHop).take(texts.len()).map(text).collect())
    }

    /// What each next hop does, under the index of its text. Fails if one is none.
    pub(super) fn routes(&self, interfaces: &[Interface]) -> Result<Labels<Route>> {
        let routes = Labels::new();
        for (index, text) in (1..).map(NextHop).zip(&self.0) {
            // Two texts may mean the same, and each has an index of its own.
            let unlike = Route::Via(Hop::new(PortId(u16::MAX), number(index), Mac([0xff; 6]), 0));
            let given = routes.intern(unlike)?;
            ensure!(given == index, "next hop {} has the index {}", index.0, given.0);
            routes.replace(index, route_of(text, interfaces)?)?;
        }
        Ok(routes)
    }

    /// Lets next hops follow interfaces whose addresses changed.
    pub(super) fn update(&self, interfaces: &[Interface], routes: &Labels<Route>) -> Result<()> {
        for (index, text) in (1..).map(NextHop).zip(&self.0) {
            routes.replace(index, route_of(text, interfaces)?)?;
        }
        Ok(())
    }
}

/// An address that is unlike that of every other next hop.
const fn number(index: NextHop) -> Mac {
    let [a, b, c, d] = index.0.to_be_bytes();
    Mac([0, 0, a, b, c, d])
}

/// What a text means: an interface, a neighbour of one, several of these with commas between, or a word of
/// `ip route` for routes without a next hop.
fn route_of(text: &str, interfaces: &[Interface]) -> Result<Route> {
    Ok(match text {
        "blackhole" => Route::Blackhole,
        "unreachable" => Route::Unreachable,
        "prohibit" => Route::Prohibited,
        "local" => Route::Kernel,
        _ => {
            let hops: Vec<Hop> =
                text.split(',').map(|member| hop_of(member, text, interfaces)).collect::<Result<_>>()?;
            match hops[..] {
                [hop] => Route::Via(hop),
                _ => Group::new(hops.into_iter().map(|hop| (hop, 1))).map_or(Route::Blackhole, Route::Group),
            }
        }
    })
}

fn hop_of(member: &str, text: &str, interfaces: &[Interface]) -> Result<Hop> {
    let (to, name) = match member.split_once('%') {
        Some((address, name)) => (address.parse().with_context(|| format!("the next hop {text:?}"))?, name),
        None => (GROUP, member),
    };
    let at = interfaces.iter().position(|interface| interface.name == name);
    let at = at.with_context(|| {
        format!(
            "the next hop {text:?} is none of the interfaces that are given: it should be IF, or ADDRESS%IF \
             with a link-layer address"
        )
    })?;
    let interface = &interfaces[at];
    // Frames without an IP packet have no length that a link is asked for, and there are few interfaces.
    let (port, mtu) = (PortId(u16::try_from(at)?), u16::try_from(interface.mtu).unwrap_or(u16::MAX));
    Ok(Hop::new(port, to, Mac(interface.mac), mtu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_hops_are_interfaces_and_their_neighbours() {
        let mut interface = Interface::open("lo").expect("a loopback");
        interface.mac = [2, 0, 0, 0, 0, 1];
        let mut other = interface.clone();
        (other.name, other.mac) = ("other".to_owned(), [2, 0, 0, 0, 0, 2]);
        let all = [interface, other];
        let texts = Labels::new();
        for text in ["lo", "02:00:00:00:00:09%other", "lo,other", "blackhole", "local"] {
            texts.intern(text.to_owned()).unwrap();
        }
        let routes = Faces::of(&texts).routes(&all).unwrap();
        let hop = |at: u16, to: Mac| {
            let low = u8::try_from(at).unwrap() + 1;
            Hop::new(PortId(at), to, Mac([2, 0, 0, 0, 0, low]), u16::try_from(all[0].mtu).unwrap_or(u16::MAX))
        };
        let neighbour = hop(1, Mac([2, 0, 0, 0, 0, 9]));
        let both = Group::new([(hop(0, GROUP), 1), (hop(1, GROUP), 1)]).unwrap();
        let expected = [
            Route::Via(hop(0, GROUP)),
            Route::Via(neighbour),
            Route::Group(both),
            Route::Blackhole,
            Route::Kernel,
        ];
        for (index, expected) in (1..).map(NextHop).zip(expected) {
            assert_eq!(*routes.get(index).unwrap(), expected);
        }
        for wrong in ["eth7", "192.0.2.1", "02:00%lo", "", "lo,", "02:00:00:00:00:09%eth7"] {
            let error = route_of(wrong, &all).unwrap_err().to_string();
            assert!(error.contains("the next hop"), "{error}");
        }
    }
}
