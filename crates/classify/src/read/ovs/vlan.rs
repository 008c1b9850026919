//! [`Vlan`]: what a flow wants of the VLAN tag, by any of the words for it.
//!
//! Open vSwitch holds a tag as 16 bits, of which one is always set, and a frame without a tag as 0
//! (`vlan_tci` in ovs-fields(7)):
//!
//! ```text
//!  priority (3) | 1 | VLAN (12)
//! ```
//!
//! A match of some of these bits means untagged frames where all that it wants is 0, and tagged ones where it
//! doesn't want the bit that is always set to be 0.

pub use super::words::Masked;
use super::words::{number, ones};

/// The bit of a tag.
pub const PRESENT: u128 = 0x1000;

/// A demand of the tag, as the words come.
#[derive(Debug, Default)]
pub struct Vlan {
    /// What `vlan_tci` wants.
    tci: Option<Masked>,
    /// What `dl_vlan` or `vlan_vid` wants, as bits of the tag.
    vid: Option<Masked>,
    /// What `dl_vlan_pcp` or `vlan_pcp` wants, as bits of the tag.
    pcp: Option<Masked>,
}

/// The frames that are wanted.
#[derive(Debug, PartialEq, Eq)]
pub struct Ways {
    /// Whether untagged ones are among them.
    pub untagged: bool,
    /// The tagged ones among them.
    pub tagged: Option<Tagged>,
}

/// Frames with a tag.
#[derive(Debug, PartialEq, Eq)]
pub struct Tagged {
    /// The VLAN, 12 bits.
    pub vid: Masked,
    /// The priority, 3 bits.
    pub pcp: Masked,
}

impl Vlan {
    /// Takes a word, if it is about the VLAN. Fails with the reason if no flow can have it.
    pub fn take(&mut self, name: &str, text: &str) -> Result<bool, String> {
        let wrong = || format!("{text:?} is not a value of {name}");
        let (of, wanted) = match name {
            "vlan_tci" => (&mut self.tci, masked(text, ones(16)).ok_or_else(wrong)?),
            "vlan_vid" => (&mut self.vid, masked(text, 0x1fff).ok_or_else(wrong)?),
            "dl_vlan" => {
                let wanted = match number(text).ok_or_else(wrong)? {
                    0xffff => Masked { value: 0, mask: ones(16) },
                    vid @ 0..=0xfff => Masked { value: vid | PRESENT, mask: 0x1fff },
                    _ => return Err(wrong()),
                };
                (&mut self.vid, wanted)
            }
            "dl_vlan_pcp" | "vlan_pcp" => {
                let pcp = number(text).filter(|&pcp| pcp < 8).ok_or_else(wrong)?;
                (&mut self.pcp, Masked { value: pcp << 13 | PRESENT, mask: 0xf000 })
            }
            _ => return Ok(false),
        };
        // No frame is that, and Open vSwitch takes it for another match.
        let is_no_frame = wanted.mask & PRESENT != 0 && wanted.value & PRESENT == 0 && wanted.value != 0;
        if is_no_frame {
            return Err(wrong());
        }
        if of.replace(wanted).is_some_and(|before| before != wanted) {
            return Err(format!("two demands of {name}"));
        }
        // Open vSwitch lets the last one count.
        if self.tci.is_some() && (self.vid.is_some() || self.pcp.is_some()) {
            return Err("two demands of the VLAN".to_owned());
        }
        if self.pcp.is_some() && self.vid.is_some_and(|vid| vid.mask & PRESENT != 0 && vid.value == 0) {
            return Err("a priority of frames without a tag".to_owned());
        }
        Ok(true)
    }

    /// Whether anything is wanted.
    #[must_use]
    pub const fn is_given(&self) -> bool {
        self.tci.is_some() || self.vid.is_some() || self.pcp.is_some()
    }

    /// The frames that are wanted; `None` where any are.
    #[must_use]
    pub fn ways(&self) -> Option<Ways> {
        let given = [self.tci, self.vid, self.pcp].into_iter().flatten();
        let of = given.reduce(|a, b| Masked { value: a.value | b.value, mask: a.mask | b.mask })?;
        if of.mask == 0 {
            return None;
        }
        let is_tagged = of.mask & PRESENT == 0 || of.value & PRESENT != 0;
        let tagged = is_tagged.then_some(Tagged {
            vid: Masked { value: of.value & 0xfff, mask: of.mask & 0xfff },
            pcp: Masked { value: of.value >> 13, mask: of.mask >> 13 },
        });
        Some(Ways { untagged: of.value == 0, tagged })
    }
}

fn masked(text: &str, all: u128) -> Option<Masked> {
    let (value, mask) = match text.split_once('/') {
        Some((value, mask)) => (number(value)?, number(mask)?),
        None => (number(text)?, all),
    };
    (value <= all && mask <= ones(16)).then_some(Masked { value: value & mask & all, mask: mask & all })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(words: &[(&str, &str)]) -> Result<Option<Ways>, ()> {
        let mut vlan = Vlan::default();
        for (name, text) in words {
            assert!(vlan.take(name, text).map_err(|_| ())?, "{name}");
        }
        Ok(vlan.ways())
    }

    #[test]
    fn tags_as_the_manual_has_them() {
        let masked = |(value, mask)| Masked { value, mask };
        let tagged = |vid, pcp| Some(Tagged { vid: masked(vid), pcp: masked(pcp) });
        for (words, untagged, tagged) in [
            (&[("dl_vlan", "0xffff")][..], true, None),
            (&[("vlan_tci", "0")], true, None),
            (&[("vlan_tci", "0/0x1000")], true, None),
            (&[("vlan_vid", "0")], true, None),
            (&[("dl_vlan", "9")], false, tagged((9, 0xfff), (0, 0))),
            (&[("vlan_vid", "0x1009")], false, tagged((9, 0xfff), (0, 0))),
            (&[("dl_vlan", "9"), ("dl_vlan_pcp", "0")], false, tagged((9, 0xfff), (0, 7))),
            (&[("dl_vlan_pcp", "0")], false, tagged((0, 0), (0, 7))),
            (&[("vlan_tci", "0x1000/0x1000")], false, tagged((0, 0), (0, 0))),
            (&[("vlan_tci", "0xf123")], false, tagged((0x123, 0xfff), (7, 7))),
            (&[("vlan_tci", "0x5000/0xf000")], false, tagged((0, 0), (2, 7))),
            (&[("vlan_tci", "0/0xfff")], true, tagged((0, 0xfff), (0, 0))),
            (&[("vlan_tci", "0/0xefff")], true, tagged((0, 0xfff), (0, 7))),
            (&[("vlan_tci", "0x4000/0xe000")], false, tagged((0, 0), (2, 7))),
            (&[("vlan_tci", "1/1")], false, tagged((1, 1), (0, 0))),
        ] {
            assert_eq!(ways(words), Ok(Some(Ways { untagged, tagged })), "{words:?}");
        }
        assert_eq!(ways(&[("vlan_tci", "0/0")]), Ok(None));
        for wrong in [
            &[("dl_vlan", "4096")][..],
            &[("dl_vlan", "5/7")],
            &[("dl_vlan_pcp", "8")],
            &[("vlan_vid", "5")],
            &[("vlan_vid", "0x3005")],
            &[("vlan_tci", "0x5")],
            &[("dl_vlan", "5"), ("vlan_vid", "0x1006")],
            &[("dl_vlan", "0xffff"), ("dl_vlan_pcp", "3")],
            &[("dl_vlan", "5"), ("vlan_tci", "0x1000/0x1000")],
        ] {
            assert_eq!(ways(wrong), Err(()), "{wrong:?}");
        }
    }
}
