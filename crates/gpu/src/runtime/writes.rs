//! [`Writes`]: a patch in the form of the kernel.

use bytemuck::{Pod, Zeroable};
use wirespeed_image::{Image, Patch, PatchError, SectionId, SectionUsage};

use super::Result;
use crate::driver::DevicePtr;

/// `Write` of `kernels/table.cu`: an address on the device, and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct DeviceWrite {
    pub(super) at: u64,
    pub(super) value: u64,
}

/// The addresses and element widths of a table's sections.
#[derive(Debug)]
pub(super) struct Places {
    sections: Vec<SectionUsage>,
    at: Vec<DevicePtr>,
}

impl Places {
    /// The sections of an image at these addresses. A section that was left out has address 0.
    pub(super) fn new(image: &Image, at: Vec<DevicePtr>) -> Self {
        Self { sections: image.memory_usage(), at }
    }

    /// No sections.
    pub(super) const fn none() -> Self {
        Self { sections: Vec::new(), at: Vec::new() }
    }
}

/// The writes of one or several patches, by the width of the element: 1, 2, 4 and 8 bytes.
#[derive(Debug, Default)]
pub(super) struct Writes {
    by_width: [Vec<DeviceWrite>; 4],
    /// Whether a location may occur more than once. Then its last value counts.
    is_merged: bool,
}

impl Writes {
    /// Finds the address of each write, after checking it against its section. O(writes).
    pub(super) fn of(patch: &Patch, places: &Places) -> Result<Self> {
        let mut writes = Self::default();
        for part in patch.writes().chunk_by(|a, b| a.section() == b.section()) {
            let section = part[0].section();
            let (usage, base) = find(places, section)?;
            let width = u64::from(usage.width);
            let to = &mut writes.by_width[usage.width.trailing_zeros() as usize];
            to.reserve(part.len());
            for write in part {
                let (index, value) = (write.index(), write.value);
                if index >= usage.len {
                    return Err(PatchError::Index { section, index, len: usage.len }.into());
                }
                if width < 8 && value >> (8 * width) != 0 {
                    return Err(PatchError::Value { section, value }.into());
                }
                to.push(DeviceWrite { at: base.plus(index * width).0, value });
            }
        }
        Ok(writes)
    }

    /// Appends a later patch.
    pub(super) fn append(&mut self, later: Self) {
        for (to, more) in self.by_width.iter_mut().zip(later.by_width) {
            if to.is_empty() {
                *to = more;
            } else {
                to.extend(more);
            }
        }
        self.is_merged = true;
    }

    /// Leaves each location once, with its last value. O(n log n), or O(n) for few runs.
    pub(super) fn settle(&mut self) {
        if !std::mem::take(&mut self.is_merged) {
            return;
        }
        for writes in &mut self.by_width {
            // The sort is stable, so the last write to a location is the last of its run.
            writes.sort_by_key(|write| write.at);
            writes.dedup_by(|later, kept| {
                let same = later.at == kept.at;
                if same {
                    kept.value = later.value;
                }
                same
            });
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_width.iter().map(Vec::len).sum()
    }

    /// All writes with the bytes of their elements, narrow elements first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, DeviceWrite)> {
        self.by_width.iter().zip([1, 2, 4, 8]).flat_map(|(of, bytes)| of.iter().map(move |&w| (bytes, w)))
    }

    /// The writes in pieces of up to `most` for one launch each. A piece has its writes by width.
    pub(super) fn pieces(&self, most: usize) -> impl Iterator<Item = [&[DeviceWrite]; 4]> {
        (0..self.len()).step_by(most.max(1)).map(move |first| {
            let mut skip = first;
            let mut room = most.max(1);
            self.by_width.each_ref().map(|of| {
                let from = skip.min(of.len());
                skip -= from;
                let to = of.len().min(from + room);
                room -= to - from;
                &of[from..to]
            })
        })
    }
}

fn find(places: &Places, section: SectionId) -> Result<(&SectionUsage, DevicePtr)> {
    let at = usize::from(section.0);
    match (places.sections.get(at), places.at.get(at)) {
        (Some(usage), Some(&base)) if base.0 != 0 => Ok((usage, base)),
        _ => Err(PatchError::Section(section).into()),
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_image::{ImageBuilder, PatchBuilder};

    use super::*;

    fn places() -> Places {
        let image = ImageBuilder::new("t", 1)
            .section::<u32>("a", 10)
            .section::<u8>("b", 10)
            .section::<u64>("left_out", 10)
            .build(None)
            .unwrap();
        Places::new(&image, vec![DevicePtr(0x1000), DevicePtr(0x2000), DevicePtr(0)])
    }

    fn patch(writes: &[(u16, u64, u64)]) -> Patch {
        let mut patch = PatchBuilder::new();
        for &(section, index, value) in writes {
            patch.set(SectionId(section), index, value);
        }
        patch.finish(None)
    }

    #[test]
    fn writes_go_to_their_section_by_width() {
        let writes = Writes::of(&patch(&[(0, 3, 7), (1, 9, 255)]), &places()).unwrap();
        let got: Vec<_> = writes.iter().map(|(bytes, w)| (bytes, w.at, w.value)).collect();
        assert_eq!(got, [(1, 0x2009, 255), (4, 0x100c, 7)]);
    }

    #[test]
    fn what_has_no_place_is_an_error() {
        for bad in [(0, 10, 0), (1, 0, 256), (2, 0, 0), (3, 0, 0)] {
            assert!(Writes::of(&patch(&[(0, 0, 0), bad]), &places()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn of_merged_patches_the_last_value_stays() {
        let mut all = Writes::of(&patch(&[(0, 3, 7), (0, 4, 1)]), &places()).unwrap();
        all.append(Writes::of(&patch(&[(0, 3, 8), (1, 0, 2)]), &places()).unwrap());
        all.append(Writes::of(&patch(&[(0, 3, 9)]), &places()).unwrap());
        all.settle();
        let got: Vec<_> = all.iter().map(|(_, w)| (w.at, w.value)).collect();
        assert_eq!(got, [(0x2000, 2), (0x100c, 9), (0x1010, 1)]);
    }

    #[test]
    fn pieces_are_all_writes_in_order() {
        let all: Vec<_> = (0..10).flat_map(|i| [(0, i, i), (1, i, i)]).collect();
        let writes = Writes::of(&patch(&all), &places()).unwrap();
        for most in [1, 3, 7, 10, 11, 20, 100] {
            let pieces: Vec<_> = writes.pieces(most).collect();
            assert_eq!(pieces.len(), 20usize.div_ceil(most));
            assert!(pieces.iter().all(|piece| piece.iter().map(|of| of.len()).sum::<usize>() <= most));
            let got: Vec<_> = pieces.iter().flatten().copied().flatten().copied().collect();
            assert_eq!(got, writes.iter().map(|(_, w)| w).collect::<Vec<_>>());
        }
        assert_eq!(Writes::default().pieces(4).count(), 0);
    }
}
