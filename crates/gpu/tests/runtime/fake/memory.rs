//! Memory of the device and pinned memory by address, and what may not be done with it.

use super::Fake;
use super::work::{Op, Place};

impl Fake {
    pub(super) fn load(&mut self, at: u64, bytes: u64) -> u64 {
        let data = self.read_place(Place::Device(at), 0, usize::try_from(bytes).unwrap());
        let mut word = [0; 8];
        word[..data.len()].copy_from_slice(&data);
        u64::from_le_bytes(word)
    }

    pub(super) fn store(&mut self, at: u64, value: u64, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap();
        self.write_place(Place::Device(at), 0, &value.to_le_bytes()[..bytes]);
    }

    pub(super) fn read_place(&mut self, place: Place, skip: usize, bytes: usize) -> Vec<u8> {
        match self.find(place, skip, bytes) {
            // SAFETY: `find` gives what lies in a block of ours.
            Some(at) => unsafe { std::slice::from_raw_parts(at, bytes) }.to_vec(),
            None => vec![0; bytes],
        }
    }

    pub(super) fn write_place(&mut self, place: Place, skip: usize, data: &[u8]) {
        if let Some(at) = self.find(place, skip, data.len()) {
            // SAFETY: as above; only the driver's thread is here, unless somebody breaks the rules that are
            // tested.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), at, data.len()) };
        }
    }

    /// Where so many bytes lie, all in one block.
    fn find(&mut self, place: Place, skip: usize, bytes: usize) -> Option<*mut u8> {
        let found = match place {
            Place::Device(at) => {
                let at = at + skip as u64;
                let inside = |base: u64, len: usize| at >= base && at + bytes as u64 <= base + len as u64;
                let offset = |base: u64| usize::try_from(at - base).unwrap();
                match self.blocks.range_mut(..=at).next_back() {
                    Some((&base, (_, block))) if inside(base, block.len()) => {
                        Some(block[offset(base)..].as_mut_ptr())
                    }
                    _ => match self.pinned.range_mut(..=at).next_back() {
                        Some((&base, block)) if inside(base, block.len() * 8) => {
                            // SAFETY: it lies inside.
                            Some(unsafe { block.as_mut_ptr().cast::<u8>().add(offset(base)) })
                        }
                        _ => None,
                    },
                }
            }
            Place::Host(at) => {
                let at = at + skip as u64;
                let end = at + bytes as u64;
                self.pinned.values_mut().find_map(|block| {
                    let base = block.as_mut_ptr() as u64;
                    let inside = at >= base && end <= base + 8 * block.len() as u64;
                    // SAFETY: it lies inside.
                    inside.then(|| unsafe {
                        block.as_mut_ptr().cast::<u8>().add(usize::try_from(at - base).unwrap())
                    })
                })
            }
        };
        if found.is_none() {
            let at = match place {
                Place::Device(at) => format!("{at:#x} of the device"),
                Place::Host(at) => format!("{at:#x} of the process"),
            };
            self.control.note(format!("{bytes} bytes at {at} + {skip} are nobody's"));
        }
        found
    }

    /// Notes where queued work has an address in a range that is given back.
    pub(super) fn check_unused(&self, device: std::ops::Range<u64>, host: std::ops::Range<u64>) {
        let uses = |place: &Place| match place {
            Place::Device(at) => device.contains(at),
            Place::Host(at) => host.contains(at),
        };
        for op in self.streams.values().flatten() {
            let used = match op {
                Op::Copy { to, from, .. } => uses(to) || uses(from),
                Op::Launch(rows) => rows
                    .iter()
                    .flat_map(|row| row.arguments.iter().flat_map(|bytes| bytes.chunks_exact(8)))
                    .any(|bytes| device.contains(&u64::from_le_bytes(bytes.try_into().unwrap()))),
                Op::Record(..) | Op::Wait(..) => false,
            };
            if used {
                self.control.note(format!("{device:#x?} is given back while it is in use"));
            }
        }
    }
}
