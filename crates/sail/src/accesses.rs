//! The cost of an update by the paper's measure: memory accesses (section 6.3, Figure 11).
//!
//! An access is of 64 bits: elements of a patch that lie in the same aligned 8 bytes are written by one
//! (section 4.2, "FIB Update"). The paper's machine has two memories, fast memory on the chip and slow memory
//! off it, and says what each variant keeps in which:
//!
//! | variant | on-chip | source |
//! |---|---|---|
//! | SAIL_B | b0, b1 … b24 | section 3.2 |
//! | SAIL_U | b6, b12, b18, b24 | section 4.1 |
//! | SAIL_L, IPv4 | B16, C16, B24 | section 4.2, Figure 4 |
//! | SAIL_L, IPv6 | B16 … B40, C16 … C40, B48 | section 7 |
//!
//! Our SAIL_L has B16, C16 and N16 in one array, and B and N of each level past that in one (the paper's BCN
//! and BN). A word of bcn16 is on-chip. A word of a bn array counts as on-chip if one of its elements turns
//! from zero to another value or back, as this is what B says; else it counts as off-chip. Each word is one
//! access to one of the two, as it is in a memory that has the arrays combined.

use wirespeed_fib::{Address, V4, V6};
use wirespeed_image::{Image, Patch, SectionId, Table, Write};

use crate::sail_b::{EveryLength, EverySixth, is_on_chip};
use crate::sail_l::{BCN16, chunk_ids, levels, next_hops};
use crate::{SailBTable, SailLTable, SailUTable};

/// Memory accesses, of 64 bits each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Accesses to what the paper has in on-chip memory.
    pub on_chip: u64,
    /// Accesses to the rest.
    pub off_chip: u64,
}

impl Accesses {
    /// The accesses that write a patch to a table whose image before the patch is `before`. `None` if that is
    /// not an image of SAIL_B, SAIL_U or SAIL_L, or the patch doesn't fit it. O(writes).
    pub fn of(before: &Image, patch: &Patch) -> Option<Self> {
        let memory_of: fn(SectionId) -> Memory = match before.kind() {
            SailBTable::KIND => |section| Memory::of(is_on_chip::<EveryLength>(section)),
            SailUTable::KIND => |section| Memory::of(is_on_chip::<EverySixth>(section)),
            SailLTable::<V4>::KIND => sail_l::<V4>,
            SailLTable::<V6>::KIND => sail_l::<V6>,
            _ => return None,
        };
        before.check(patch).ok()?;
        let mut accesses = Self::default();
        for word in patch.writes().chunk_by(|a, b| place(before, a) == place(before, b)) {
            let on_chip = match memory_of(word[0].section()) {
                Memory::OnChip => true,
                Memory::OffChip => false,
                Memory::Combined => word.iter().any(|write| is_zero(before, write) != (write.value == 0)),
            };
            accesses.on_chip += u64::from(on_chip);
            accesses.off_chip += u64::from(!on_chip);
        }
        Some(accesses)
    }

    /// Accesses to both memories.
    pub fn total(self) -> u64 {
        self.on_chip + self.off_chip
    }
}

/// The memory in which the paper puts a section.
#[derive(Clone, Copy)]
enum Memory {
    OnChip,
    OffChip,
    /// A bit map that it has in on-chip memory together with next hops that it has in the other.
    Combined,
}

impl Memory {
    fn of(on_chip: bool) -> Self {
        if on_chip { Self::OnChip } else { Self::OffChip }
    }
}

/// The memory of a section of SAIL_L.
fn sail_l<A: Address>(section: SectionId) -> Memory {
    if section == BCN16 {
        return Memory::OnChip;
    }
    // Levels 24, 32 and so on to the one at which prefixes are split by length: 24, or 48 for IPv6.
    let split = if A::OCTETS == 4 { 1 } else { 4 };
    for level in 1..levels::<A>() {
        if section == next_hops(level) {
            return if level <= split { Memory::Combined } else { Memory::OffChip };
        }
        if section == chunk_ids(level) {
            return Memory::of(level < split);
        }
    }
    Memory::OffChip
}

/// The section of a write and the 8 bytes of it that it goes to.
fn place(image: &Image, write: &Write) -> (SectionId, u64) {
    let width = u64::from(image.width(write.section()).unwrap_or(8));
    (write.section(), write.index() * width / 8)
}

/// Whether an element is zero before it is written.
fn is_zero(image: &Image, write: &Write) -> bool {
    // The patch was found to fit.
    let index = usize::try_from(write.index()).unwrap_or(usize::MAX);
    match image.width(write.section()) {
        Some(1) => image.section::<u8>(write.section())[index] == 0,
        Some(2) => image.section::<u16>(write.section())[index] == 0,
        Some(4) => image.section::<u32>(write.section())[index] == 0,
        _ => image.section::<u64>(write.section())[index] == 0,
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::{BuildOptions, Engine, NextHop, Prefix, Rib};
    use wirespeed_image::{ImageBuilder, PatchBuilder};

    use super::*;
    use crate::{SailB, SailL, SailU};

    /// Makes one change after another to a table (next hop 0: withdraws); what each takes, on-chip and
    /// off-chip.
    fn costs<A: Address, E: Engine<A>>(start: &[(&str, u32)], changes: &[(&str, u32)]) -> Vec<(u64, u64)> {
        let prefix = |text: &str| text.parse::<Prefix<A>>().ok().unwrap();
        let mut rib: Rib<A> = start.iter().map(|&(text, n)| (prefix(text), NextHop(n))).collect();
        let (mut engine, mut table) = E::build(&rib, &BuildOptions::default()).unwrap();
        let mut costs = Vec::new();
        for &(text, next_hop) in changes {
            match next_hop {
                0 => rib.remove(prefix(text)),
                n => rib.insert(prefix(text), NextHop(n)),
            };
            let patch = engine.update(&table, &rib, &[prefix(text)]).unwrap();
            let accesses = Accesses::of(table.image(), &patch).unwrap();
            assert_eq!(accesses.total(), accesses.on_chip + accesses.off_chip);
            costs.push((accesses.on_chip, accesses.off_chip));
            table.apply(&patch).unwrap();
        }
        costs
    }

    const START: [(&str, u32); 2] = [("10.0.0.0/8", 1), ("10.1.2.0/24", 2)];

    #[test]
    fn sail_b() {
        let changes = [
            ("10.16.0.0/12", 3),  // a bit of b12 and an element of n12
            ("10.16.0.0/12", 4),  // the bit is set already
            ("10.16.0.0/12", 0),  // the bit; what lies under it is never read
            ("10.1.2.0/24", 5),   // an element of n24, of one byte
            ("10.1.2.128/25", 6), // an element of n24, and a chunk of 256 bytes
            ("10.1.2.192/26", 7), // 64 bytes of the chunk
            ("10.1.3.4/32", 8),   // a bit of b24, an element of n24, a chunk
            ("10.0.0.0/8", 9),    // an element of n8, and all of the second chunk but a byte: 32 words
            ("10.1.2.192/26", 0), // 64 bytes
            ("10.1.2.128/25", 0), // an element of n24: the chunk is only left
            ("10.1.3.4/32", 0),   // a bit of b24
        ];
        let costs = costs::<V4, SailB>(&START, &changes);
        let by_hand =
            [(1, 1), (0, 1), (1, 0), (0, 1), (0, 33), (0, 8), (1, 33), (0, 33), (0, 8), (0, 1), (1, 0)];
        assert_eq!(costs, by_hand);
    }

    #[test]
    fn sail_u() {
        let changes = [
            ("10.16.0.0/12", 3), // an element of n12; 10.0.0.0/8 has set the bit
            ("11.16.0.0/12", 3), // a bit of b12 and an element of n12
            ("10.1.0.0/19", 4),  // 31 bits of a word of b24, around the /24 there; 31 of 32 bytes of n24
            ("10.1.0.0/19", 5),  // the same bytes
            ("10.1.2.0/24", 0),  // the bit stays: 10.1.0.0/19 has the element now
            ("10.1.0.0/19", 0),  // one word for all 32 bits
            ("0.0.0.0/0", 6),    // a word of b6, 64 bytes of n6
        ];
        let costs = costs::<V4, SailU>(&START, &changes);
        assert_eq!(costs, [(0, 1), (1, 1), (1, 4), (0, 4), (0, 1), (1, 0), (1, 8)]);
    }

    #[test]
    fn sail_l_v4() {
        let changes = [
            ("10.1.2.0/24", 3),   // an element of bn24, of one byte, which stays other than zero
            ("10.1.4.0/23", 4),   // two such, in one word
            ("10.2.0.0/15", 5),   // two elements of bcn16, of four bytes each, in one word
            ("10.1.2.128/25", 6), // bn24 to zero, an id in c24, 256 bytes of n32
            ("10.1.2.128/25", 7), // 128 bytes of n32
            ("10.1.2.128/25", 0), // bn24 from zero
            ("10.8.8.0/24", 8),   // an element of bcn16, and a chunk of bn24 that is zero before
        ];
        let costs = costs::<V4, SailL>(&START, &changes);
        assert_eq!(costs, [(0, 1), (0, 1), (1, 0), (1, 33), (0, 16), (1, 0), (33, 0)]);
    }

    #[test]
    fn sail_l_v6() {
        let changes = [
            ("2001:db8::/32", 3), // an element of bn32
            ("2001:db8::/48", 4), // bn32 to zero and c32; chunks of bn40 and bn48, bn40's link one of them, c40
            ("2001:db8::/48", 5), // an element of bn48
            ("2001:db8::/56", 6), // bn48 to zero on-chip; c48 and a chunk of bn56 off-chip
            ("2001:db8::/56", 7), // an element of bn56
        ];
        let costs = costs::<V6, SailL>(&[("2001:db8::/32", 1)], &changes);
        // Of the chunk of bn40 the word with the link turns from zero to other values too.
        assert_eq!(costs, [(0, 1), (1 + 1 + 32 + 1 + 32, 0), (0, 1), (1, 1 + 32), (0, 1)]);
    }

    #[test]
    fn neither_other_images_nor_other_patches() {
        let other = ImageBuilder::new("other", 1).section::<u8>("b0", 8).build(None).unwrap();
        assert_eq!(Accesses::of(&other, &Patch::default()), None);
        let (_, table) = SailU::build(&Rib::new(), &BuildOptions::default()).unwrap();
        assert_eq!(Accesses::of(table.image(), &Patch::default()), Some(Accesses::default()));
        let mut patch = PatchBuilder::new();
        patch.set(SectionId(0), 1, 0);
        assert_eq!(Accesses::of(table.image(), &patch.finish(None)), None, "b6 is one word");
    }
}
