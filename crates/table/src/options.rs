//! [`BuildOptions`]: the options of a table.

/// The options of a table. There are none for sizes: these follow the data.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    /// The most bytes of one image. Building fails above it.
    pub memory_cap: Option<u64>,
    /// A cap that grows with the table. The lower of this and [`memory_cap`](Self::memory_cap) counts.
    pub memory_by_entries: Option<ByEntries>,
    /// Head room for future entries, in hundredths of the space that the entries take, for engines of names
    /// and rules. They leave some in any case, and a live table asks for some. Engines of addresses leave the
    /// head room that their updates need.
    pub head_room: u32,
    /// Whether the table is given more room when it runs out of it, as a live table is: an engine that can
    /// [do so](crate::Engine::grow) leaves little.
    pub grows: bool,
    /// Whether to leave no head room beyond [`head_room`](Self::head_room) and the least that an engine
    /// needs, even if this takes time: for a table that would otherwise be over its cap.
    pub tight: bool,
    /// The largest result to leave head room for, if larger results than now are expected.
    pub results: u32,
    /// The levels of a multi-bit trie. Engines with fixed levels ignore it.
    pub strides: Strides,
    /// The seed of engines that hash. By default it is random for each process. Keep it secret from anyone
    /// who can choose entries or keys.
    pub seed: Option<u64>,
}

/// The most bytes of an image, by its number of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByEntries {
    /// Bytes for any number of entries.
    pub base: u64,
    /// Bytes for each entry, beside [`base`](Self::base).
    pub each: u64,
}

impl BuildOptions {
    /// The options for a table of `entries` entries, with [`memory_by_entries`](Self::memory_by_entries)
    /// counted into [`memory_cap`](Self::memory_cap). A live table calls this for every build; engines use
    /// the memory cap alone.
    #[must_use]
    pub fn for_entries(&self, entries: usize) -> Self {
        let by = |ByEntries { base, each }| each.saturating_mul(entries as u64).saturating_add(base);
        let cap = [self.memory_cap, self.memory_by_entries.map(by)].into_iter().flatten().min();
        Self { memory_cap: cap, ..self.clone() }
    }

    /// The options with at least this [`head_room`](Self::head_room).
    #[must_use]
    pub fn with_head_room(&self, least: u32) -> Self {
        Self { head_room: self.head_room.max(least), ..self.clone() }
    }

    /// Head room for pieces of which `in_use` are in use: one `part`-th of them plus `least`. A
    /// [`tight`](Self::tight) table gets almost none.
    pub fn head_room_for(&self, in_use: u64, part: u64, least: u64) -> u64 {
        /// One piece that is always there, and one for the moment in which a piece replaces another.
        const LEAST: u64 = 2;
        if self.tight { LEAST } else { in_use / part + least }
    }

    /// Like [`head_room_for`](Self::head_room_for), for counts of 32 bits.
    pub fn head_room_of(&self, in_use: u32, part: u32, least: u32) -> u32 {
        let room = self.head_room_for(in_use.into(), part.into(), least.into());
        u32::try_from(room).unwrap_or(u32::MAX)
    }
}

/// The levels of a multi-bit trie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Strides {
    /// Levels with the least expected cost of a lookup in this table.
    #[default]
    Fastest,
    /// Levels that suit lookups on a GPU best. Engines without such a choice treat it like
    /// [`Fastest`](Self::Fastest).
    FastestOnGpu,
    /// A number of levels, where the widest level is as narrow as possible and then memory transactions of
    /// this many bytes are fewest (GAMT, section 4.2, Algorithm 3).
    Levels {
        /// The number of levels.
        levels: u8,
        /// Bytes of a transaction.
        transaction: u32,
    },
    /// Levels of these widths in bits, from the first bit on.
    Given(Vec<u8>),
}

impl Strides {
    /// Whether the engine chooses the levels.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Fastest | Self::FastestOnGpu)
    }

    /// Makes the engine choose for lookups on a GPU, if it chooses. Given levels stay.
    #[must_use]
    pub fn on_gpu(self) -> Self {
        if self.is_open() { Self::FastestOnGpu } else { self }
    }
}
