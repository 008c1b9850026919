//! [`Sorted`]: the simplest engine. The names in order, a binary search for each prefix of a query; an update
//! writes all of it anew.
//!
//! ```text
//! head      u64  number of entries, length of the longest
//! text      u8   the names one after the other
//! ends      u32  where each ends
//! results   u32  and its result
//! ```

use wirespeed_image::{
    Checked, Image, ImageBuilder, ImageError, Patch, PatchBuilder, PatchError, SectionId, Table,
};
use wirespeed_namelookup::{
    BuildError, BuildOptions, Engine, Lookup, Match, Name, NameDomain, NameTable, Names, NodeId, Outgrown,
    Standing, Step,
};

const HEAD: SectionId = SectionId(0);
const TEXT: SectionId = SectionId(1);
const ENDS: SectionId = SectionId(2);
const RESULTS: SectionId = SectionId(3);

/// The engine: what its image has room for.
pub(crate) struct Sorted {
    text: usize,
    entries: usize,
}

/// Its table.
#[derive(Clone)]
pub(crate) struct SortedTable(Image);

/// What goes into an image.
struct Flat {
    text: Vec<u8>,
    ends: Vec<u32>,
    results: Vec<u32>,
}

impl Flat {
    fn of(names: &NameTable) -> Self {
        let mut entries: Vec<_> = names.iter().collect();
        entries.sort_unstable();
        let mut flat = Self { text: Vec::new(), ends: Vec::new(), results: Vec::new() };
        for (name, result) in entries {
            flat.text.extend_from_slice(name.as_bytes());
            flat.ends.push(u32::try_from(flat.text.len()).unwrap());
            flat.results.push(result);
        }
        flat
    }

    /// All of it, as writes.
    fn patch(&self) -> Patch {
        let mut patch = PatchBuilder::new();
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let longest = starts.zip(&self.ends).map(|(start, end)| end - start).max().unwrap_or(0);
        patch.set(HEAD, 0, self.ends.len() as u64);
        patch.set(HEAD, 1, longest.into());
        (0..).zip(&self.text).for_each(|(at, &byte)| patch.set(TEXT, at, byte.into()));
        (0..).zip(&self.ends).for_each(|(at, &end)| patch.set(ENDS, at, end.into()));
        (0..).zip(&self.results).for_each(|(at, &result)| patch.set(RESULTS, at, result.into()));
        let most = self.results.iter().copied().max().unwrap_or(0);
        patch.finish(Some((self.ends.len() as u64, most.into())))
    }
}

impl Engine<NameDomain> for Sorted {
    const NAME: &'static str = "sorted";
    const STANDING: Standing = Standing::Niche("tests");
    type Table = SortedTable;

    fn build(names: &NameTable, options: &BuildOptions) -> Result<(Self, SortedTable), BuildError> {
        let flat = Flat::of(names);
        let [text, entries] = [flat.text.len(), flat.ends.len()].map(|used| used * 2 + 64);
        let mut image = ImageBuilder::new(SortedTable::KIND, SortedTable::LAYOUT)
            .section::<u64>("head", 2)
            .section::<u8>("text", text as u64)
            .section::<u32>("ends", entries as u64)
            .section::<u32>("results", entries as u64)
            .build(options.memory_cap)?;
        image.apply(&flat.patch()).expect("there is room");
        Ok((Self { text, entries }, SortedTable(image)))
    }

    fn patch(&mut self, _: &Self::Table, names: &NameTable, changed: &[NodeId]) -> Result<Patch, Outgrown> {
        assert!(!changed.is_empty(), "an update that changes nothing");
        let flat = Flat::of(names);
        // A patch of all of it costs more than a table anew.
        let is_long = flat.text.len() > 1 << 22;
        if is_long || flat.text.len() > self.text || flat.ends.len() > self.entries {
            return Err(Outgrown("room"));
        }
        Ok(flat.patch())
    }

    fn memory_usage(&self) -> u64 {
        0
    }
}

impl Sorted {
    /// Has room for fewer entries from now on, for engines that are to be seen to be wrong.
    pub(crate) fn lose(&mut self, entries: usize) -> Result<(), Outgrown> {
        self.entries = self.entries.checked_sub(entries).ok_or(Outgrown("room"))?;
        Ok(())
    }
}

impl SortedTable {
    fn len(&self) -> usize {
        usize::try_from(self.0.section::<u64>(HEAD)[0]).unwrap()
    }

    fn name(&self, at: usize) -> &[u8] {
        let ends = self.0.section::<u32>(ENDS);
        let start = if at == 0 { 0 } else { ends[at - 1] };
        &self.0.section::<u8>(TEXT)[start as usize..ends[at] as usize]
    }

    /// Which entry a name is.
    fn find(&self, name: &Name) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.name(middle).cmp(name.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// The result of the entry of this name.
    pub(crate) fn exact(&self, name: &Name) -> Option<u32> {
        self.find(name).map(|at| self.0.section::<u32>(RESULTS)[at])
    }

    /// The length of the longest entry: no prefix that is longer has to be searched for.
    fn longest(&self) -> usize {
        usize::try_from(self.0.section::<u64>(HEAD)[1]).unwrap()
    }

    /// Number and length of the entry that matches: of few entries each is tried, of many those that prefixes
    /// of the name are.
    fn longest_match(&self, name: &Name, longest: usize) -> Option<(usize, usize)> {
        const FEW: usize = 64;
        if self.len() < FEW {
            let is_prefix = |entry: &[u8]| {
                name.as_bytes().starts_with(entry)
                    && name.as_bytes().get(entry.len()).is_none_or(|&next| next == b'/')
            };
            let entries = (0..self.len()).map(|at| (at, self.name(at)));
            let found = entries.filter(|(_, entry)| is_prefix(entry)).max_by_key(|(_, entry)| entry.len());
            return found.map(|(at, entry)| (at, entry.len()));
        }
        let mut prefixes = name.prefixes().skip_while(|prefix| prefix.len() > longest);
        prefixes.find_map(|prefix| Some((self.find(prefix)?, prefix.len())))
    }

    fn lookup_below(&self, name: &Name, longest: usize) -> Match {
        self.longest_match(name, longest)
            .map_or(Match::NONE, |(at, length)| Match::new(self.0.section::<u32>(RESULTS)[at], length))
    }

    /// Whether an image is one that lookups stay inside of.
    fn is_valid(image: &Image) -> Option<()> {
        let widths: Vec<_> = image.memory_usage().into_iter().map(|s| (s.name, s.width)).collect();
        let named =
            [("head", 8), ("text", 1), ("ends", 4), ("results", 4)].map(|(name, w)| (name.to_owned(), w));
        if widths != named {
            return None;
        }
        let count = usize::try_from(*image.section::<u64>(HEAD).first()?).ok()?;
        image.section::<u64>(HEAD).get(1)?;
        let ends = image.section::<u32>(ENDS).get(..count)?;
        let results = image.section::<u32>(RESULTS).get(..count)?;
        let is_inside =
            ends.is_sorted() && ends.iter().all(|&e| e as usize <= image.section::<u8>(TEXT).len());
        let is_stated = results.iter().all(|&r| r != 0 && u64::from(r) <= image.results());
        (is_inside && is_stated).then_some(())
    }
}

impl Table for SortedTable {
    const KIND: &'static str = "sorted-names";
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        Self::expect_kind(&image)?;
        Self::is_valid(&image).ok_or(ImageError::Malformed("not in order".into()))?;
        Ok(Self(image))
    }

    fn image(&self) -> &Image {
        &self.0
    }

    fn image_mut(&mut self, _: Checked) -> &mut Image {
        &mut self.0
    }

    fn admits(&self, _: SectionId, _: u64, _: u64) -> bool {
        true
    }

    fn check(&self, patch: &Patch) -> Result<(), PatchError> {
        let mut patched = self.0.clone();
        patched.apply(patch)?;
        Self::is_valid(&patched).ok_or(PatchError::Section(HEAD))
    }
}

impl Lookup<NameDomain> for SortedTable {
    fn lookup(&self, name: &Name) -> Match {
        self.lookup_below(name, self.longest())
    }

    fn lookup_batch(&self, names: Names<'_>, results: &mut [u32]) {
        assert_eq!(names.len(), results.len());
        let longest = self.longest();
        for (name, result) in names.iter().zip(results) {
            *result = self.lookup_below(name, longest).result;
        }
    }

    fn match_batch(&self, names: Names<'_>, matches: &mut [Match]) {
        assert_eq!(names.len(), matches.len());
        let longest = self.longest();
        for (name, found) in names.iter().zip(matches) {
            *found = self.lookup_below(name, longest);
        }
    }

    fn explain(&self, name: &Name) -> Vec<Step> {
        let count = self.0.section::<u64>(HEAD)[0];
        let step = |section, index, value, meaning| Step { section, index, value, meaning };
        match self.longest_match(name, self.longest()) {
            None => vec![step("head", 0, count, format!("none of {count}: no match"))],
            Some((at, _)) => {
                let result = self.0.section::<u32>(RESULTS)[at];
                let end = self.0.section::<u32>(ENDS)[at].into();
                let at = at as u64;
                vec![
                    step("head", 0, count, format!("{count} entries")),
                    step("ends", at, end, format!("entry {at}")),
                    step("results", at, result.into(), format!("result {result}")),
                ]
            }
        }
    }
}

/// A table of an image that nobody checked, for engines that are to be seen to be wrong.
pub(crate) fn unchecked(image: Image) -> SortedTable {
    SortedTable(image)
}
