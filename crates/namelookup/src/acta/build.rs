//! [`Acta`]: compiles names to buckets.
//!
//! Nodes with children get states, in order of their ids. Components are hashed on all threads, and then
//! placed one after the other, also in order of ids, with prefetched buckets. Equal names and seeds give
//! equal images, byte for byte.

use rayon::prelude::*;
use wirespeed_image::{Patch, Table};
use wirespeed_table::{BuildError, BuildOptions, Engine, Outgrown, Standing};

use super::hash::Seeds;
use super::layout::{
    ActaTable, B_AT, BUCKETS, HEAD, HEAD_LEN, HEADER_BYTES, INLINE_MOST, LONG, LONG_BYTES, MOST_BUCKETS,
    NO_STATE, ROOT_RESULT_AT, ROOT_STATE_AT, SEEDS_AT, STATE_BYTES, State, WIDTH_AT, allocate,
};
use super::place::{Form, Full, Gives, Key, ROOM};
use super::states::{OfNodes, States};
use crate::domain::NameDomain;
use crate::fetch::prefetch;
use crate::table::{NameTable, Node, NodeId};

/// The fill of buckets after a build: bytes of entries, in hundredths of the room.
const FILL: u64 = 84;
/// The fewest buckets, so that small tables have head room too.
const FEWEST: u64 = 16;
/// The number of attempts to place all nodes.
const ATTEMPTS: u64 = 12;
/// The least bytes of an entry in each class; classes are placed one after the other.
const CLASSES: [usize; 2] = [ROOM / 2 + 1, 0];
/// Nodes that are hashed at once.
const PART: usize = 1 << 16;
/// The distance, in nodes, of prefetches of buckets.
const AHEAD: usize = 12;

/// The control plane of ACTA.
#[derive(Debug)]
pub struct Acta {
    pub(super) form: Form<'static>,
    pub(super) states: OfNodes,
    pub(super) pool: States,
    /// The largest result of the table.
    pub(super) results: u32,
}

impl Engine<NameDomain> for Acta {
    const NAME: &'static str = "acta";
    const STANDING: Standing = Standing::Recommended;
    // See the head of `mod.rs`.
    const HEAD_ROOM: u32 = 30;
    const LATER_HEAD_ROOM: u32 = 40;
    type Table = ActaTable;

    fn build(names: &NameTable, options: &BuildOptions) -> Result<(Self, ActaTable), BuildError> {
        let random = || std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        let seed = options.seed.unwrap_or_else(random);
        let census = Census::of(names);
        let results = names.results();
        let width = bytes_of(results.max(options.results));
        let mut buckets = census.buckets(width, options.head_room);
        for attempt in 0..ATTEMPTS {
            if buckets > MOST_BUCKETS {
                let (what, limit) = ("buckets of 64 bytes", MOST_BUCKETS);
                return Err(BuildError::Limit { engine: Self::NAME, what, limit, found: buckets });
            }
            let count = u32::try_from(buckets).expect("at most 2^28");
            let mut form = Form::new(count, Seeds::of(seed, attempt), width);
            let mut pool = States::new(count);
            let states = pool.of_all(names).ok_or(Full);
            if let Ok(states) = states
                && place(names, &mut form, &states).is_ok()
            {
                let mut engine = Self { form, states, pool, results };
                let table = engine.table(names, options)?;
                engine.form = engine.form.over(&[]);
                return Ok((engine, table));
            }
            // Another seed is tried first, because someone may have chosen the names for this seed.
            buckets += buckets * attempt / 20 + attempt;
        }
        let (what, found) = ("attempts to place the names with ever more room", ATTEMPTS + 1);
        Err(BuildError::Limit { engine: Self::NAME, what, limit: ATTEMPTS, found })
    }

    fn patch(
        &mut self,
        table: &Self::Table,
        names: &NameTable,
        changed: &[NodeId],
    ) -> Result<Patch, Outgrown> {
        self.patch_of(table.image(), names, changed)
    }

    fn memory_usage(&self) -> u64 {
        let states = self.states.memory_usage() + self.pool.memory_usage();
        self.form.memory_usage() + states as u64
    }
}

impl Acta {
    /// Counts the entries that wait for a place, and those that there is room for, for tests.
    #[cfg(feature = "conformance")]
    #[doc(hidden)]
    pub fn waiting(&self) -> (usize, usize) {
        (self.form.waiting.len(), self.form.waiting.capacity())
    }

    fn table(&mut self, names: &NameTable, options: &BuildOptions) -> Result<ActaTable, BuildError> {
        let long = self.form.long.words().len();
        // New names may be longer than the present ones.
        let least = if options.tight { 64 } else { long / 8 + 1024 };
        let capacity = long + least + long * options.head_room as usize / 50;
        self.form.long.bound(capacity);
        let mut image = allocate(u64::from(self.form.count()), capacity as u64, options.memory_cap)?;
        let words = self.form.buckets().as_flattened();
        let to = image.section_mut::<u64>(BUCKETS)?;
        to.par_chunks_mut(PART).zip(words.par_chunks(PART)).for_each(|(to, from)| to.copy_from_slice(from));
        image.section_mut::<u64>(LONG)?[..long].copy_from_slice(self.form.long.words());
        let mut head = [0; HEAD_LEN];
        head[B_AT] = u64::from(self.form.count());
        head[WIDTH_AT] = self.form.width as u64;
        head[SEEDS_AT..SEEDS_AT + 2].copy_from_slice(&self.form.seeds.0);
        [head[ROOT_STATE_AT], head[ROOT_RESULT_AT]] = root(names, &self.states);
        image.section_mut::<u64>(HEAD)?.copy_from_slice(&head);
        image.set_counts(names.len() as u64, u64::from(self.results));
        debug_assert!(ActaTable::from_image(image.clone()).is_ok());
        Ok(ActaTable::new(image))
    }
}

/// The state and the result of the root, in the form of `head`.
pub(super) fn root(names: &NameTable, states: &OfNodes) -> [u64; 2] {
    let state = states.of(names.root()).map_or(NO_STATE, |State(state)| u64::from(state));
    [state, u64::from(names.root().result())]
}

/// Bytes of the narrowest results that hold this result.
pub(super) const fn bytes_of(result: u32) -> usize {
    match result {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xff_ffff => 3,
        _ => 4,
    }
}

/// The amounts to place.
#[derive(Clone, Copy, Debug, Default)]
struct Census {
    entries: u64,
    leading: u64,
    ending: u64,
    /// Bytes of components in the buckets.
    components: u64,
    /// Entries of which no two, or no three, fit into a bucket together.
    wide: u64,
    middling: u64,
}

impl Census {
    fn of(names: &NameTable) -> Self {
        let ids = names.id_bound();
        (0..ids.div_ceil(PART))
            .into_par_iter()
            .map(|part| {
                let mut census = Self::default();
                names.nodes_of(part * PART..ids.min((part + 1) * PART)).for_each(|node| census.add(node));
                census
            })
            .reduce(Self::default, Self::plus)
    }

    fn add(&mut self, node: Node<'_>) {
        if node.id() == NodeId::ROOT {
            return;
        }
        let len = match node.component().len() {
            len if len > INLINE_MOST => LONG_BYTES,
            len => len,
        };
        self.entries += 1;
        self.components += len as u64;
        self.leading += u64::from(node.has_children());
        self.ending += u64::from(node.result() != 0);
        let size = HEADER_BYTES + len + if node.has_children() { STATE_BYTES } else { 0 };
        self.wide += u64::from(2 * size > ROOM);
        self.middling += u64::from(3 * size > ROOM);
    }

    fn plus(self, other: Self) -> Self {
        Self {
            entries: self.entries + other.entries,
            leading: self.leading + other.leading,
            ending: self.ending + other.ending,
            components: self.components + other.components,
            wide: self.wide + other.wide,
            middling: self.middling + other.middling,
        }
    }

    /// The number of buckets to try. With two choices and room for one entry in a bucket, half of the buckets
    /// can be filled; with room for two about 0.9 of them.
    fn buckets(self, width: usize, head_room: u32) -> u64 {
        let headers = HEADER_BYTES as u64 * self.entries;
        let gives = STATE_BYTES as u64 * self.leading + width as u64 * self.ending;
        let bytes = headers + self.components + gives;
        let by_bytes = (bytes * 100).div_ceil(ROOM as u64 * FILL);
        let by_wide = self.wide * 9 / 4;
        let by_middling = self.middling * 10 / 17;
        let tight = by_bytes.max(by_wide).max(by_middling);
        (tight + tight * u64::from(head_room) / 100).max(FEWEST)
    }
}

/// Places all nodes, the largest first, so that small ones fit into the remaining room.
fn place(names: &NameTable, form: &mut Form<'_>, states: &OfNodes) -> Result<(), Full> {
    let (seeds, count, width, ids) = (form.seeds, form.count(), form.width, names.id_bound());
    let hashed = |part: usize| {
        let mut classes: [Vec<(NodeId, Key)>; CLASSES.len()] = Default::default();
        for node in names.nodes_of(part * PART..(part + 1) * PART) {
            let Some(above) = node.above() else { continue };
            let state = states.of_family(above).expect("whoever has children has a state");
            let component = node.component();
            let key = Key::new(state, seeds.hash(component), component.len(), count);
            let size = HEADER_BYTES + key.payload_bytes(gives(node, states), width);
            let class = CLASSES.iter().position(|&least| size >= least).unwrap_or(CLASSES.len() - 1);
            classes[class].push((node.id(), key));
        }
        classes
    };
    let parts: Vec<_> = (0..ids.div_ceil(PART)).into_par_iter().map(hashed).collect();
    (0..CLASSES.len())
        .flat_map(|class| parts.iter().map(move |classes| &classes[class]))
        .try_for_each(|part| place_part(names, form, states, part))
}

fn place_part(
    names: &NameTable,
    form: &mut Form<'_>,
    states: &OfNodes,
    part: &[(NodeId, Key)],
) -> Result<(), Full> {
    for (at, (id, key)) in part.iter().enumerate() {
        if let Some((_, ahead)) = part.get(at + AHEAD) {
            prefetch(form.buckets(), ahead.buckets[0] as usize);
        }
        let node = names.node(*id);
        form.insert(key, node.component(), gives(node, states))?;
    }
    Ok(())
}

/// The result and the state of a node's transition.
pub(super) fn gives(node: Node<'_>, states: &OfNodes) -> Gives {
    Gives { state: states.of(node), result: node.result() }
}
