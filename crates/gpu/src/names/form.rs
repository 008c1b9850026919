//! The layout of names in a batch: the forms of `kernels/names.cuh`, and results as numbers and matches.
//!
//! ```text
//! packed   start u32, 32 ends u16 │ start, 32 ends │ … (to 16 bytes)   bytes of all names (to 16 bytes)   2.125 bytes a name
//! ends     u32 for each name                       … (to 16 bytes)   the same                             4 bytes a name
//! rows     first row u32 of each group, and the end … (to 16 bytes)   row: u32 × 32, and so on
//! ```
//!
//! *Packed* is the fastest form on the bus: the unchanged names, the start of each group of 32, and the end
//! of each name relative to it. It does not suit groups of 64 KiB and more. Such batches use one end of 4
//! bytes for each name, which is also the paper's plain layout (MATA). *Rows* is the paper's other layout
//! (MATA-NW, section 4.3): each name is cut into the input numbers of the table, and the numbers of 32 names
//! are interleaved, so that the threads of a warp read consecutive memory. Shorter names are filled with
//! zeros.
//!
//! All forms are written directly into a batch's pinned memory, packed names and ends at the speed of a copy.
//! The first names of a batch form a batch, too, in the same memory.

use bytemuck::cast_slice_mut;
use wirespeed_namelookup::{Match, Name, Names};

use crate::runtime::Form;
use crate::simd;

/// Names of a group.
pub const GROUP: usize = 32;
/// Alignment of the second part and of the end.
pub(super) const ALIGN: usize = 16;
/// Bytes of a group's ends in the packed form.
const PACKED_GROUP: usize = size_of::<u32>() + GROUP * size_of::<u16>();
/// Bytes of a row.
const ROW: usize = GROUP * size_of::<u32>();
/// The most bytes of an input number.
const MOST_STRIDE: usize = size_of::<u32>();
/// The end of a component.
const SLASH: u8 = b'/';

/// Names with short ends.
pub const PACKED: &str = "packed";
/// Names with an end of 4 bytes each.
pub const ENDS: &str = "ends";
/// Interleaved input numbers.
pub const ROWS: &str = "rows";

/// The result wanted for each name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// The table's result, in the table's width.
    Results,
    /// A [`Match`]: the result and the length that matched.
    Matches,
}

impl Wanted {
    /// The name of the kernels that give this result for names in the form [`PACKED`], [`ENDS`] or [`ROWS`].
    pub fn kind(self, lie: &'static str) -> &'static str {
        match (self, lie) {
            (Self::Results, lie) => lie,
            (Self::Matches, PACKED) => "packed_matches",
            (Self::Matches, ENDS) => "ends_matches",
            (Self::Matches, _) => "rows_matches",
        }
    }

    /// A form for this result and these names.
    pub(super) fn form(self, lie: &'static str, count: usize, second: usize, bytes: usize) -> Form {
        let form = Form::parts(self.kind(lie), count, second, bytes);
        match self {
            Self::Results => form,
            Self::Matches => form.with_results_of(size_of::<Match>()),
        }
    }
}

/// The most bytes that names take, packed or with one end for each.
pub fn bytes_of(names: Names<'_>) -> usize {
    let places = names.len() * size_of::<u32>() + PACKED_GROUP;
    places.next_multiple_of(ALIGN) + text(names).len().next_multiple_of(ALIGN)
}

/// Bytes of names as rows. O(bytes).
pub fn row_bytes_of(names: Names<'_>, stride: usize) -> usize {
    let groups = names.len().div_ceil(GROUP);
    let numbers =
        |name: &Name| name.components().map(|component| (component.len() + 1).div_ceil(stride)).sum();
    let rows = |at: usize| {
        let group = names.part(at * GROUP..names.len().min((at + 1) * GROUP));
        group.iter().map(numbers).max().unwrap_or(0)
    };
    ((groups + 1) * size_of::<u32>()).next_multiple_of(ALIGN) + (0..groups).map(rows).sum::<usize>() * ROW
}

/// Writes names to the start of `to`, packed if possible, otherwise with one end for each. `None` if they
/// don't fit.
pub fn pack(names: Names<'_>, wanted: Wanted, to: &mut [u8]) -> Option<Form> {
    pack_to(names, wanted, to, false)
}

/// Packs names, their bytes past the caches if it is said so.
pub(super) fn pack_to(names: Names<'_>, wanted: Wanted, to: &mut [u8], is_streamed: bool) -> Option<Form> {
    let second = second_of(names.len());
    let places = to.get_mut(..second)?;
    if write_ends(names, 0, places) < names.len() {
        return pack_ends(names, wanted, to);
    }
    let bytes = copy_text(names, second, to, is_streamed)?;
    Some(wanted.form(PACKED, names.len(), second, bytes))
}

/// Writes names with one end for each. `None` if they don't fit.
pub fn pack_ends(names: Names<'_>, wanted: Wanted, to: &mut [u8]) -> Option<Form> {
    let second = (names.len() * size_of::<u32>()).next_multiple_of(ALIGN);
    let places = to.get_mut(..second)?;
    let (places, _) = places.as_chunks_mut::<4>();
    for (place, &end) in places.iter_mut().zip(names.ends()) {
        *place = (end - names.start()).to_le_bytes();
    }
    let bytes = copy_text(names, second, to, false)?;
    Some(wanted.form(ENDS, names.len(), second, bytes))
}

/// Writes names as input numbers of up to `stride` bytes, 1 to 4, interleaved by groups. `stride` must be the
/// table's. `None` if they don't fit.
pub fn pack_rows(names: Names<'_>, stride: usize, wanted: Wanted, to: &mut [u8]) -> Option<Form> {
    assert!((1..=MOST_STRIDE).contains(&stride), "a stride of {stride} bytes");
    let groups = names.len().div_ceil(GROUP);
    let second = ((groups + 1) * size_of::<u32>()).next_multiple_of(ALIGN);
    let (firsts, rows) = to.split_at_mut_checked(second)?;
    let (firsts, _) = firsts.as_chunks_mut::<4>();
    let (rows, _) = rows.as_chunks_mut::<ROW>();
    let mut used = 0;
    for (group, first) in firsts.iter_mut().take(groups).enumerate() {
        *first = u32::try_from(used).ok()?.to_le_bytes();
        let part = names.part(group * GROUP..names.len().min((group + 1) * GROUP));
        used += write_rows(part, stride, &mut rows[used..])?;
    }
    firsts[groups] = u32::try_from(used).ok()?.to_le_bytes();
    Some(wanted.form(ROWS, names.len(), second, second + used * ROW))
}

/// The offset of the second part of so many packed names.
pub(super) const fn second_of(names: usize) -> usize {
    (names.div_ceil(GROUP) * PACKED_GROUP).next_multiple_of(ALIGN)
}

/// The offset of the group that begins with the name at an index, in the first part.
pub(super) const fn group_at(name: usize) -> usize {
    name / GROUP * PACKED_GROUP
}

/// Writes the end of one packed name to its place in the first part. Its group starts at `group`, and the end
/// is less than 64 KiB from there.
#[inline]
#[allow(clippy::cast_possible_truncation)] // a slot is less than 4 GiB, and the caller saw to the group
pub(super) fn write_end(places: &mut [u8], name: usize, group: usize, end: usize) {
    let (start, ends) = places[group_at(name)..][..PACKED_GROUP].split_at_mut(size_of::<u32>());
    if name.is_multiple_of(GROUP) {
        start.copy_from_slice(&(group as u32).to_le_bytes());
    }
    ends.as_chunks_mut::<2>().0[name % GROUP] = ((end - group) as u16).to_le_bytes();
}

/// Reads the end of one packed name.
pub(super) fn end_in(places: &[u8], name: usize) -> usize {
    let (start, ends) = places[group_at(name)..][..PACKED_GROUP].split_at(size_of::<u32>());
    let [start, ..] = *start.as_chunks::<4>().0 else { unreachable!("a start has 4 bytes") };
    u32::from_le_bytes(start) as usize
        + usize::from(u16::from_le_bytes(ends.as_chunks::<2>().0[name % GROUP]))
}

/// The bytes of all names.
pub(super) fn text(names: Names<'_>) -> &[u8] {
    let end = names.ends().last().copied().unwrap_or(names.start());
    &names.bytes()[names.start() as usize..end as usize]
}

/// Copies the names after their ends and fills the last 16 bytes. Returns the end.
fn copy_text(names: Names<'_>, second: usize, to: &mut [u8], is_streamed: bool) -> Option<usize> {
    let text = text(names);
    let end = second + text.len().next_multiple_of(ALIGN);
    let (bytes, rest) = to.get_mut(second..end)?.split_at_mut(text.len());
    simd::copy(text, bytes, is_streamed);
    rest.fill(0);
    Some(end)
}

/// Writes the ends of names to `places`, in the packed form, from the start of a group on. The text of the
/// first name starts at `at`. Returns the number of names: it stops at a group of 64 KiB and more.
pub(super) fn write_ends(names: Names<'_>, at: u32, places: &mut [u8]) -> usize {
    let (groups, rest) = names.ends().as_chunks::<GROUP>();
    let (places, _) = places.as_chunks_mut::<PACKED_GROUP>();
    let first = names.start();
    let mut write = |group: usize, start: u32, ends: &[u8; GROUP * size_of::<u16>()]| {
        let (place, short) = places[group].split_at_mut(size_of::<u32>());
        place.copy_from_slice(&(at + (start - first)).to_le_bytes());
        short.copy_from_slice(ends);
    };
    let mut done = simd::short_ends(groups, first, &mut write);
    let mut start = if done == 0 { first } else { groups[done - 1][GROUP - 1] };
    // The last group may have fewer names: the last of them stands for those that it lacks.
    let rest = rest.last().map(|&last| std::array::from_fn(|at| rest.get(at).copied().unwrap_or(last)));
    for ends in groups[done..].iter().chain(&rest) {
        let last = ends[GROUP - 1];
        if last - start > u16::MAX.into() {
            return done * GROUP;
        }
        write(done, start, bytemuck::cast_ref(&ends.map(|end| short_end(end, start))));
        (done, start) = (done + 1, last);
    }
    names.len()
}

/// An end relative to the start of its group, below 64 KiB.
#[allow(clippy::cast_possible_truncation)] // seen to by the caller for the last of the group, the largest
fn short_end(end: u32, start: u32) -> u16 {
    ((end - start) as u16).to_le()
}

/// Writes a group's names side by side. Returns the number of rows.
fn write_rows(names: Names<'_>, stride: usize, rows: &mut [[u8; ROW]]) -> Option<usize> {
    let mut used = 0;
    for (lane, name) in names.iter().enumerate() {
        let Some(text) = name.as_bytes().get(1..) else { continue };
        let (mut at, mut row) = (0, 0);
        // The final slash is at the text's length.
        while at <= text.len() {
            let (number, bytes) = input_number(&text[at..], stride);
            let to = rows.get_mut(row)?;
            if row == used {
                to.fill(0);
                used += 1;
            }
            to.as_chunks_mut::<MOST_STRIDE>().0[lane] = number.to_le_bytes();
            at += bytes;
            row += 1;
        }
    }
    Some(used)
}

/// The first input number of a text that ends with a slash, and its bytes: up to `stride`, with a slash only
/// at the end.
#[inline]
fn input_number(text: &[u8], stride: usize) -> (u32, usize) {
    let word = match text.first_chunk::<MOST_STRIDE>() {
        Some(&word) => word,
        None => {
            let mut word = [SLASH; MOST_STRIDE];
            word[..text.len()].copy_from_slice(text);
            word
        }
    };
    let word = u32::from_le_bytes(word);
    let other = word ^ u32::from_le_bytes([SLASH; MOST_STRIDE]);
    // The lowest set bit belongs to the first zero byte.
    let zeros = other.wrapping_sub(0x0101_0101) & !other & 0x8080_8080;
    let bytes = (zeros.trailing_zeros() as usize / 8 + 1).min(stride);
    (word & (u32::MAX >> (8 * (MOST_STRIDE - bytes))), bytes)
}

/// Reads results with lengths. Panics if the number of results is not the length of `to`.
pub fn unpack_matches(results: &[u8], to: &mut [Match]) {
    cast_slice_mut(to).copy_from_slice(results);
}

#[cfg(test)]
mod tests {
    use wirespeed_namelookup::{NameBatch, NameBuf};

    use super::*;

    fn batch(names: impl IntoIterator<Item = String>) -> NameBatch {
        let names: Vec<_> = names.into_iter().map(|name| NameBuf::new(&name).unwrap()).collect();
        names.iter().map(|name| &**name as &Name).collect()
    }

    fn number(bytes: &[u8], at: usize) -> usize {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    }

    /// A name out of its form, as a kernel finds it.
    fn name_at(bytes: &[u8], form: Form, packed: bool, at: usize) -> &[u8] {
        let end = |at: usize| {
            if packed {
                let group = &bytes[at / GROUP * PACKED_GROUP..];
                number(group, 0)
                    + usize::from(u16::from_le_bytes([group[4 + at % GROUP * 2], group[5 + at % GROUP * 2]]))
            } else {
                number(bytes, 4 * at)
            }
        };
        let start = match (packed, at % GROUP) {
            (true, 0) => number(bytes, at / GROUP * PACKED_GROUP),
            _ if at == 0 => 0,
            _ => end(at - 1),
        };
        &bytes[form.second().unwrap()..][start..end(at)]
    }

    #[test]
    fn names_come_back_from_both_forms() {
        let batch =
            batch((0..100).map(|n| if n % 7 == 0 { "/".into() } else { format!("/com/{n}/x{}", n * n) }));
        for part in [0..100, 5..71, 3..4, 9..9] {
            let names = batch.names().part(part);
            let mut bytes = vec![0xee; bytes_of(names)];
            for packed in [true, false] {
                let form = if packed { pack } else { pack_ends }(names, Wanted::Results, &mut bytes).unwrap();
                assert!(form.bytes() <= bytes.len() && form.second().unwrap() % ALIGN == 0);
                for (at, name) in names.iter().enumerate() {
                    assert_eq!(name_at(&bytes, form, packed, at), name.as_bytes());
                }
                let mut short = vec![0; form.bytes().saturating_sub(1)];
                let again = if packed { pack } else { pack_ends }(names, Wanted::Results, &mut short);
                assert!(again.is_none() || form.bytes() == 0);
            }
        }
    }

    #[test]
    fn streamed_names_are_as_others() {
        let batch = batch((0..999).map(|n| format!("/{}", "a".repeat(n % 90))));
        let mut memory = vec![[0u8; 64]; 2 + bytes_of(batch.names()) / 64];
        let mut written = |beside: usize, is_streamed| {
            let bytes = &mut memory.as_flattened_mut()[beside..];
            bytes.fill(0xee);
            let form = pack_to(batch.names(), Wanted::Results, bytes, is_streamed).unwrap();
            bytes[..form.bytes()].to_vec()
        };
        let plain = written(0, false);
        assert!([0, 1, 48].iter().all(|&beside| written(beside, true) == plain));
    }

    #[test]
    fn ends_stop_at_a_group_of_64_kib() {
        let long = "a".repeat(2500);
        let batch =
            batch((0..200).map(|n| if n / GROUP == 4 { format!("/{long}{n}") } else { format!("/{n}") }));
        // From names at the start of no group of theirs, and to a place after other text.
        for (from, whole) in [(0, 128), (5, 128), (32, 96), (160, 40)] {
            let names = batch.names().part(from..200);
            let mut places = vec![0; second_of(names.len())];
            let count = write_ends(names, 1000, &mut places);
            assert_eq!(count, whole, "from {from}");
            let ends = (0..count).map(|at| end_in(&places, at));
            let right = names.ends()[..count].iter().map(|end| 1000 + (end - names.start()) as usize);
            assert!(ends.eq(right), "from {from}");
        }
    }

    #[test]
    fn a_group_of_64_kib_has_long_ends() {
        let component = "a".repeat(4000);
        for (names, kind) in [(16, PACKED), (17, ENDS), (64, ENDS)] {
            let batch = batch((0..names).map(|n| format!("/{component}/{n:02}")));
            let mut bytes = vec![0; bytes_of(batch.names())];
            let form = pack(batch.names(), Wanted::Results, &mut bytes).unwrap();
            assert_eq!(form.kind(), Form::parts(kind, 0, 0, 0).kind(), "{names} names");
        }
    }

    #[test]
    fn rows_hold_the_numbers_of_32_names() {
        let batch = batch((0..40).map(|n| match n {
            0 => "/".into(),
            1 => "/com/parc/www".into(),
            33 => "/abcd/e".into(),
            _ => "/a".into(),
        }));
        let mut bytes = vec![0xee; 4096];
        let form = pack_rows(batch.names(), 4, Wanted::Results, &mut bytes).unwrap();
        let second = form.second().unwrap();
        assert_eq!([0, 4, 8].map(|at| number(&bytes, at)), [0, 4, 7]);
        assert_eq!(form.bytes(), second + 7 * ROW);
        let at = |row: usize, lane: usize| bytes[second + row * ROW + lane * 4..][..4].to_vec();
        assert_eq!([0, 1, 2, 3].map(|row| at(row, 1)), [&b"com/"[..], b"parc", b"/\0\0\0", b"www/"]);
        assert_eq!([at(0, 0), at(0, 2), at(1, 2)], [&b"\0\0\0\0"[..], b"a/\0\0", b"\0\0\0\0"]);
        assert_eq!([4, 5, 6].map(|row| at(row, 1)), [&b"abcd"[..], b"/\0\0\0", b"e/\0\0"]);
        assert_eq!(row_bytes_of(batch.names(), 4), form.bytes());
        assert!(pack_rows(batch.names(), 4, Wanted::Results, &mut bytes[..form.bytes() - 1]).is_none());
        let form = pack_rows(batch.names(), 1, Wanted::Matches, &mut bytes);
        assert_eq!(form.unwrap().result_bytes(), Some(8));
    }

    #[test]
    fn matches_come_back() {
        let mut to = [Match::NONE; 1];
        unpack_matches(&[5, 0, 0, 0, 9, 0, 0, 0], &mut to);
        assert_eq!(to, [Match { result: 5, length: 9 }]);
    }
}
