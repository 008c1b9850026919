//! A [`Shape`] as a file: an [`Image`] whose sections are its lists. `shapes/` has the shapes of two real
//! tables.
//!
//! ```text
//! kind      shape-v4 or shape-v6         entries   prefixes of the table that was measured
//!                                        results   its distinct next hops
//!
//! lengths        u32        prefixes of each length, from 0
//! regions        u32 x 2    leading bits, prefixes
//! own-places     u8 x 3     depth, size class, kind of node + 16 if covered
//! own            u16        probability
//! split-places   u8 x 3     as of own-places
//! split-odds     u16 x 3    probabilities of a copy, of a run from the start, of one up to the end
//! split-bins     u8 x 19    weights, as numbers of WEIGHTS
//! runs           u32 x 3    kind of run, length of its prefixes, how many such
//! outcomes       u32 x 4    by situation: as the cover, the previous, a recent, any
//! popularity     u32        fresh next hops by octave of rank
//! ```
//!
//! Weights are on a logarithmic scale with six steps an octave, which takes half the size of plain weights.
//! (A linear scale with as few steps was tried: it doubles the number of full blocks, because it distorts
//! rare splits.)

use wirespeed_image::{Element, Image, ImageError};

use super::hops::HopShape;
use super::shape::{BINS, CLASSES, KINDS, Place, Row, Shape, Split, run_kind};
use crate::address::Family;

/// The IPv4 table of May 2026: 1,042,325 prefixes of one peer. Only these sums of it are kept.
static TODAY_V4: &[u8] = include_bytes!("shapes/v4.bin");

/// The IPv6 table of May 2026: 246,175 prefixes of one peer.
static TODAY_V6: &[u8] = include_bytes!("shapes/v6.bin");

/// The version of these sections.
const LAYOUT: u32 = 1;

/// The number that is added to the kind of a covered node.
const COVERED: u8 = 16;

impl Shape {
    /// The IPv4 table of May 2026: 1,042,325 prefixes.
    pub fn ipv4() -> Self {
        Self::today(Family::V4)
    }

    /// The IPv6 table of May 2026: 246,175 prefixes.
    pub fn ipv6() -> Self {
        Self::today(Family::V6)
    }

    /// Today's full table of a family.
    pub fn today(family: Family) -> Self {
        let bytes = match family {
            Family::V4 => TODAY_V4,
            Family::V6 => TODAY_V6,
        };
        read(bytes).expect("the files are part of the program, and a test reads both")
    }
}

/// Reads a file. O(bytes).
fn read(bytes: &[u8]) -> Result<Shape, ImageError> {
    let image = Image::from_bytes(bytes)?;
    let known = [Family::V4, Family::V6].into_iter().find(|&family| image.kind() == kind_of(family));
    let (Some(family), LAYOUT) = (known, image.layout()) else {
        return malformed(format!("{:?} with layout {} is no kind of shape", image.kind(), image.layout()));
    };
    let shape = Shape {
        family,
        by_length: list(&image, "lengths")?.to_vec(),
        region_bits: Shape::region_bits_of(family),
        regions: rows(&image, "regions")?.iter().map(|&[bits, prefixes]| (bits, prefixes)).collect(),
        own: placed(&image, family, "own-places", list(&image, "own")?.iter().copied())?,
        splits: placed(&image, family, "split-places", splits(&image)?)?,
        runs: runs(&image, family)?,
        hops: HopShape {
            outcomes: rows(&image, "outcomes")?
                .try_into()
                .map_err(|_| ImageError::Malformed("the number of situations".into()))?,
            holders: u32::try_from(image.results())
                .map_err(|_| ImageError::Malformed("the number of next hops".into()))?,
            popularity: list(&image, "popularity")?.to_vec(),
        },
    };
    if shape.by_length.len() != usize::from(family.bits()) + 1 || shape.prefixes() as u64 != image.entries() {
        return malformed(format!("the lengths of {} prefixes", image.entries()));
    }
    Ok(shape)
}

fn kind_of(family: Family) -> &'static str {
    match family {
        Family::V4 => "shape-v4",
        Family::V6 => "shape-v6",
    }
}

fn malformed<T>(what: String) -> Result<T, ImageError> {
    Err(ImageError::Malformed(what))
}

/// The elements of a section.
fn list<'a, T: Element>(image: &'a Image, name: &str) -> Result<&'a [T], ImageError> {
    match image.find(name) {
        Some(id) if image.width(id).map(u64::from) == Some(size_of::<T>() as u64) => Ok(image.section(id)),
        _ => malformed(format!("no {name} of {} bytes an element", size_of::<T>())),
    }
}

/// The elements of a section in rows of `N`.
fn rows<'a, T: Element, const N: usize>(image: &'a Image, name: &str) -> Result<&'a [[T; N]], ImageError> {
    match list(image, name)?.as_chunks() {
        (rows, []) => Ok(rows),
        _ => malformed(format!("{name} are not rows of {N}")),
    }
}

/// Values with their places.
fn placed<T>(
    image: &Image,
    family: Family,
    places: &str,
    values: impl ExactSizeIterator<Item = T>,
) -> Result<Vec<Row<T>>, ImageError> {
    let place = |&[depth, class, node]: &[u8; 3]| {
        let place = Place { depth, class, covered: node >= COVERED, kind: node % COVERED };
        let is_one = depth <= family.bits()
            && usize::from(class) < CLASSES
            && usize::from(place.kind) < KINDS
            && node < 2 * COVERED;
        is_one.then_some(place).ok_or_else(|| ImageError::Malformed(format!("{places} have {place:?}")))
    };
    let rows = rows(image, places)?;
    if rows.len() != values.len() {
        return malformed(format!("{} {places} for {} values", rows.len(), values.len()));
    }
    rows.iter().zip(values).map(|(row, value)| Ok(Row { place: place(row)?, value })).collect()
}

fn splits(image: &Image) -> Result<impl ExactSizeIterator<Item = Split>, ImageError> {
    let (odds, bins) = (rows(image, "split-odds")?, rows::<u8, BINS>(image, "split-bins")?);
    if odds.len() != bins.len() || bins.as_flattened().iter().any(|&bin| usize::from(bin) >= WEIGHTS.len()) {
        return malformed(format!("the bins of {} splits", odds.len()));
    }
    Ok(odds.iter().zip(bins).map(|(&[copy, start, end], bins)| Split {
        runs: [start, end],
        bins: bins.map(|number| WEIGHTS[usize::from(number)]),
        copy,
    }))
}

fn runs(image: &Image, family: Family) -> Result<Vec<(u16, u8, u32)>, ImageError> {
    let run = |&[kind, len, count]: &[u32; 3]| {
        let kind = u16::try_from(kind).ok().filter(|&kind| kind <= run_kind(family.bits(), u64::MAX, true));
        let len = u8::try_from(len).ok().filter(|&len| len <= family.bits());
        match (kind, len) {
            (Some(kind), Some(len)) => Ok((kind, len, count)),
            _ => malformed("a run of no kind or length".into()),
        }
    };
    rows(image, "runs")?.iter().map(run).collect()
}

/// The weight of each number: 0, then steps of a sixth of an octave.
static WEIGHTS: [u16; 64] = {
    let mut weights = [0u16; 64];
    let mut number = 63;
    // The sixth root of a half, of 2^32.
    let mut weight: u64 = 65_535 << 32;
    while number > 0 {
        weights[number] = top_half(weight);
        weight = (weight >> 32) * 3_826_381_963 + (((weight & 0xffff_ffff) * 3_826_381_963) >> 32);
        number -= 1;
    }
    weights
};

#[allow(clippy::cast_possible_truncation)] // at most 65,535 times 2^32
const fn top_half(weight: u64) -> u16 {
    (weight >> 32) as u16
}

#[cfg(test)]
pub(super) mod tests {
    use wirespeed_image::ImageBuilder;

    use super::*;

    /// Writes a shape for [`read`]. Low bits of its weights are lost.
    pub(in super::super) fn write(shape: &Shape) -> Vec<u8> {
        let regions: Vec<u32> = shape.regions.iter().flat_map(|&(bits, prefixes)| [bits, prefixes]).collect();
        let own: Vec<u16> = shape.own.iter().map(|row| row.value).collect();
        let splits = || shape.splits.iter().map(|row| row.value);
        let odds: Vec<u16> = splits().flat_map(|it| [it.copy, it.runs[0], it.runs[1]]).collect();
        let bins: Vec<u8> = splits().flat_map(|it| numbers(&it.bins)).collect();
        let runs: Vec<u32> = shape
            .runs
            .iter()
            .flat_map(|&(kind, len, count)| [u32::from(kind), u32::from(len), count])
            .collect();
        let (own_places, split_places) = (places(&shape.own), places(&shape.splits));
        let outcomes = shape.hops.outcomes.as_flattened();
        let mut image = ImageBuilder::new(kind_of(shape.family), LAYOUT)
            .section::<u32>("lengths", shape.by_length.len() as u64)
            .section::<u32>("regions", regions.len() as u64)
            .section::<u8>("own-places", own_places.len() as u64)
            .section::<u16>("own", own.len() as u64)
            .section::<u8>("split-places", split_places.len() as u64)
            .section::<u16>("split-odds", odds.len() as u64)
            .section::<u8>("split-bins", bins.len() as u64)
            .section::<u32>("runs", runs.len() as u64)
            .section::<u32>("outcomes", outcomes.len() as u64)
            .section::<u32>("popularity", shape.hops.popularity.len() as u64)
            .build(None)
            .unwrap();
        put(&mut image, "lengths", &shape.by_length);
        put(&mut image, "regions", &regions);
        put(&mut image, "own-places", &own_places);
        put(&mut image, "own", &own);
        put(&mut image, "split-places", &split_places);
        put(&mut image, "split-odds", &odds);
        put(&mut image, "split-bins", &bins);
        put(&mut image, "runs", &runs);
        put(&mut image, "outcomes", outcomes);
        put(&mut image, "popularity", &shape.hops.popularity);
        image.set_counts(shape.prefixes() as u64, u64::from(shape.hops.holders));
        bytes(&image)
    }

    fn put<T: Element>(image: &mut Image, name: &str, elements: &[T]) {
        let id = image.find(name).unwrap();
        image.section_mut(id).unwrap().copy_from_slice(elements);
    }

    fn bytes(image: &Image) -> Vec<u8> {
        let mut bytes = Vec::new();
        image.write(&mut bytes).unwrap();
        bytes
    }

    fn places<T>(rows: &[Row<T>]) -> Vec<u8> {
        let place = |row: &Row<T>| {
            let Place { depth, class, covered, kind } = row.place;
            [depth, class, kind + COVERED * u8::from(covered)]
        };
        rows.iter().flat_map(place).collect()
    }

    /// The nearest numbers, the largest weight having the largest.
    fn numbers(weights: &[u16; BINS]) -> [u8; BINS] {
        let largest = u32::from(*weights.iter().max().unwrap()).max(1);
        weights.map(|weight| {
            let wanted = u32::from(weight) * 65_535 / largest;
            (0..64u8).min_by_key(|&n| u32::from(WEIGHTS[usize::from(n)]).abs_diff(wanted)).unwrap()
        })
    }

    #[test]
    fn the_files_are_of_their_families_and_written_as_they_were_read() {
        for (family, file, prefixes) in [(Family::V4, TODAY_V4, 1_042_325), (Family::V6, TODAY_V6, 246_175)] {
            let shape = read(file).unwrap();
            assert_eq!((shape.family, shape.prefixes()), (family, prefixes));
            assert!(write(&shape) == file, "{family}");
        }
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let mut file = TODAY_V4.to_vec();
        for at in (0..file.len()).step_by(401) {
            file[at] ^= 0x10;
            assert!(read(&file).is_err(), "byte {at}");
            file[at] ^= 0x10;
        }
        assert!(read(&file[..file.len() - 64]).is_err());
        assert!(read(&[]).is_err());
    }

    #[test]
    fn what_no_shape_has_is_refused_though_the_checksum_is_right() {
        let with = |change: &dyn Fn(&mut Image)| {
            let mut image = Image::from_bytes(TODAY_V6).unwrap();
            change(&mut image);
            read(&bytes(&image)).map(|shape| shape.prefixes()).map_err(|error| error.to_string())
        };
        let set = |name: &'static str, element: u8| {
            with(&move |image| {
                let id = image.find(name).unwrap();
                image.section_mut::<u8>(id).unwrap()[0] = element;
            })
        };
        assert_eq!(with(&|_| {}), Ok(246_175));
        assert!(with(&|image| image.set_counts(246_176, 1)).unwrap_err().contains("246176"));
        assert!(with(&|image| image.set_counts(246_175, 1 << 32)).unwrap_err().contains("next hops"));
        assert!(set("own-places", 129).unwrap_err().contains("depth: 129"));
        assert!(set("split-bins", 64).unwrap_err().contains("bins"));
        let other = ImageBuilder::new("sail", LAYOUT).build(None).unwrap();
        assert!(read(&bytes(&other)).unwrap_err().to_string().contains("\"sail\""));
        let empty = ImageBuilder::new("shape-v6", LAYOUT).build(None).unwrap();
        assert!(read(&bytes(&empty)).unwrap_err().to_string().contains("no lengths of 4 bytes"));
    }

    #[test]
    fn weights_survive_but_for_their_low_bits() {
        let mut shape = read(TODAY_V4).unwrap();
        let mut bins = [0; BINS];
        (bins[0], bins[3], bins[10]) = (4000, 2000, 10);
        shape.splits[0].value = Split { runs: [5, 4000], bins, copy: 77 };
        let back = read(&write(&shape)).unwrap().splits[0].value;
        assert_eq!((back.copy, back.runs), (77, [5, 4000]));
        let bins = back.bins.map(|weight| u32::from(weight) * 4000 / 65_535);
        assert_eq!((bins[0], bins[1]), (4000, 0));
        assert!(bins[3].abs_diff(2000) < 120 && bins[10].abs_diff(10) <= 1, "{bins:?}");
    }
}
