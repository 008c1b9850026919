//! [`BuildOptions`]: what a user may ask of a table.

/// What a user may ask of a table. Nothing about sizes: these follow the data.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    /// Most bytes that one image may take; past it building fails.
    pub memory_cap: Option<u64>,
    /// A cap that grows with the table: the lower one counts, of this and [`memory_cap`](Self::memory_cap).
    pub memory_by_entries: Option<ByEntries>,
    /// Head room for entries to come, in hundredths of what the entries take, for engines of names and rules;
    /// they leave some in any case, and a live table asks for some. Engines of addresses leave what their
    /// updates need.
    pub head_room: u32,
    /// Whether to leave no head room beyond [`head_room`](Self::head_room) but what an engine can't do
    /// without, and to take time for that: for a table that would be over its cap otherwise.
    pub tight: bool,
    /// The largest result to make room for, where more are expected than the table has.
    pub results: u32,
    /// How a multi-bit trie is cut into levels. Engines whose levels are fixed take no notice.
    pub strides: Strides,
    /// What engines that hash draw their seed from; without it, something that is random for each process.
    /// Whoever can choose entries or keys must not know it.
    pub seed: Option<u64>,
}

/// Bytes that one image may take by the number of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByEntries {
    /// Bytes whatever their number.
    pub base: u64,
    /// Bytes for each entry, beside that.
    pub each: u64,
}

impl BuildOptions {
    /// The options for a table of so many entries: with what it may take as a
    /// [`memory_cap`](Self::memory_cap). A live table asks for them whenever it is built; engines look at the
    /// memory cap alone.
    #[must_use]
    pub fn for_entries(&self, entries: usize) -> Self {
        let by = |ByEntries { base, each }| each.saturating_mul(entries as u64).saturating_add(base);
        let cap = [self.memory_cap, self.memory_by_entries.map(by)].into_iter().flatten().min();
        Self { memory_cap: cap, ..self.clone() }
    }

    /// The options with this much [`head_room`](Self::head_room) at least.
    #[must_use]
    pub fn with_head_room(&self, least: u32) -> Self {
        Self { head_room: self.head_room.max(least), ..self.clone() }
    }

    /// Head room for things of which so many are in use: one part of so many, and at least so much in any
    /// table. A [`tight`](Self::tight) table gets hardly any.
    pub fn head_room_for(&self, in_use: u64, part: u64, least: u64) -> u64 {
        /// One that is always there, and one for the moment in which it takes the place of another.
        const LEAST: u64 = 2;
        if self.tight { LEAST } else { in_use / part + least }
    }

    /// [`head_room_for`](Self::head_room_for) of what is counted in 32 bits.
    pub fn head_room_of(&self, in_use: u32, part: u32, least: u32) -> u32 {
        let room = self.head_room_for(in_use.into(), part.into(), least.into());
        u32::try_from(room).unwrap_or(u32::MAX)
    }
}

/// How a multi-bit trie is cut into levels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Strides {
    /// Levels by which a lookup is expected to cost least on this table.
    #[default]
    Fastest,
    /// Levels that suit lookups on a GPU best. Engines to which that makes no difference take it for
    /// [`Fastest`](Self::Fastest).
    FastestOnGpu,
    /// A number of levels of which the widest is as narrow as can be, then with the fewest memory
    /// transactions of so many bytes (GAMT, section 4.2, Algorithm 3).
    Levels {
        /// The number of levels.
        levels: u8,
        /// Bytes of a transaction.
        transaction: u32,
    },
    /// Levels of so many bits, from the first bit on.
    Given(Vec<u8>),
}

impl Strides {
    /// Whether the engine is to choose.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Fastest | Self::FastestOnGpu)
    }

    /// Chooses for lookups on a GPU where the engine is to choose. Levels that were asked for stay.
    #[must_use]
    pub fn on_gpu(self) -> Self {
        if self.is_open() { Self::FastestOnGpu } else { self }
    }
}
