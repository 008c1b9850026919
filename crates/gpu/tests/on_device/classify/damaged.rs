//! Quilts that no engine made: whatever an image that is taken says, kernels read nothing outside of it and
//! answer as the CPU does.

use wirespeed_classify::quilt::QuiltTable;
use wirespeed_classify::quilt::layout::{
    CELLS, COUNT_AT, FACTOR_AT, FILTER_SHIFT, FORM_SHIFT, GROUP_BITS, HEAD, HEAD_LEN, KEYS_AT, LANES, LAYERS,
    RANKS, REST_AT, SCAN, SCAN_AT, SCAN_LANES, SCAN_RANKS, SCAN_TOPS, SHIFT_AT, SLOTS, SPANS_AFTER, TOPS,
    WORDS_AT, group_len, record_len, scan_len,
};
use wirespeed_classify::{
    Ipv4Tuple, Ipv6Tuple, Lookup, OpenFlow13Tuple, OpenFlowTuple, Rank, RuleNumber, Tuple,
};
use wirespeed_fib::synth::rng::Rng;
use wirespeed_image::{Image, ImageBuilder, Table};

use crate::device::{device, lock};

/// The largest number.
const RESULTS: u32 = 300;
/// Tuples of a batch: more than a thread's in the smallest grids.
const TUPLES: usize = 700;

/// What an image has of each.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    layers: usize,
    /// Layers that are read.
    used: usize,
    slots: usize,
    groups: usize,
    /// Groups of scanned cells, all in use.
    scan: usize,
    /// Whether bounds descend.
    descends: bool,
}

fn low(bits: u64) -> u32 {
    u32::try_from(bits & 0xffff_ffff).expect("32 bits")
}

fn below(rng: &mut Rng, end: usize) -> u64 {
    rng.below(end as u64)
}

/// An element whose halves of 16 bits are each drawn, or mostly a given one.
fn halves(rng: &mut Rng, mostly: u64) -> u64 {
    (0..4).fold(0, |all, _| all << 16 | if rng.below(12) == 0 { rng.bits() & 0xffff } else { mostly })
}

fn image<T: Tuple>(sizes: Sizes, rng: &mut Rng) -> Image {
    let Sizes { layers, used, slots, groups, scan, descends } = sizes;
    let record = record_len::<T>();
    let mut image = ImageBuilder::new(QuiltTable::<T>::KIND, QuiltTable::<T>::LAYOUT)
        .section::<u64>("head", HEAD_LEN as u64)
        .section::<u64>("layers", (layers * record) as u64)
        .section::<u64>("slots", slots as u64)
        .section::<u64>("cells", (groups * group_len::<T>()) as u64)
        .section::<u64>("ranks", (groups * LANES) as u64)
        .section::<u64>("tops", (scan * TOPS) as u64)
        .section::<u32>("scan", (scan * scan_len(T::WORDS)) as u64)
        .section::<u64>("scan_ranks", (scan * SCAN_LANES) as u64)
        .build(None)
        .expect("a small image");
    image.set_counts(100, RESULTS.into());
    let head = image.section_mut::<u64>(HEAD).expect("its own");
    head[KEYS_AT..].fill_with(|| rng.bits());
    (head[WORDS_AT], head[COUNT_AT]) = (T::WORDS as u64, used as u64);
    (head[FACTOR_AT], head[SHIFT_AT]) = (rng.bits() | 1, rng.below(33));
    head[SCAN_AT] = scan as u64;
    for (at, layer) in image.section_mut::<u64>(LAYERS).expect("its own").chunks_mut(record).enumerate() {
        let bits = rng.below(u64::from(slots.ilog2()) + 1);
        let last = slots as u64 - (1 << bits);
        // Some end with the slots.
        let base = if at % 3 == 0 { last } else { rng.below(last + 1) };
        layer.fill_with(|| halves(rng, 0));
        layer[0] = bits << 32 | base;
        layer[REST_AT] = if descends { u64::MAX - ((at as u64).min(120) << 57) } else { rng.bits() };
    }
    for slot in image.section_mut::<u64>(SLOTS).expect("its own") {
        let more = rng.below(4);
        let group = below(rng, groups - 3);
        let top = if rng.below(3) == 0 { rng.bits() >> 32 } else { u64::from(u32::MAX) };
        let filter = if rng.below(3) == 0 { 0xff } else { rng.below(0x100) & rng.below(0x100) };
        let form = u64::from(rng.below(4) == 0);
        *slot = top << 32
            | filter << FILTER_SHIFT
            | form << FORM_SHIFT
            | more << GROUP_BITS
            | if rng.below(8) == 0 { groups as u64 - 1 - more } else { group };
    }
    let cells = image.section_mut::<u64>(CELLS).expect("its own");
    // Of each block what comes first is a, then b: ranges that hold most numbers, and a few masks that many
    // have.
    for (at, cell) in cells.iter_mut().enumerate() {
        let is_a = (at / (2 * LANES)).is_multiple_of(2);
        let is_mask = (at / group_len::<T>()).is_multiple_of(4);
        *cell = halves(rng, if is_a || is_mask { 0 } else { 0xffff });
    }
    // Some are too low, so that what is there is passed over.
    for top in image.section_mut::<u64>(SCAN_TOPS).expect("its own") {
        *top = if rng.below(3) == 0 { rng.bits() } else { u64::MAX };
    }
    // Of each word masks, least numbers, spans.
    for (at, element) in image.section_mut::<u32>(SCAN).expect("its own").iter_mut().enumerate() {
        let is_span = at % (SPANS_AFTER + SCAN_LANES) >= SPANS_AFTER;
        *element = low(halves(rng, if is_span { 0xffff } else { 0 }));
    }
    for section in [RANKS, SCAN_RANKS] {
        for rank in image.section_mut::<u64>(section).expect("its own") {
            let number = 1 + low(rng.below(u64::from(RESULTS)));
            let of = Rank::new(low(rng.bits()), RuleNumber::new(number).expect("a number"));
            *rank = if rng.below(3) == 0 { 0 } else { of.bits() };
        }
    }
    image
}

fn tuples<T: Tuple>(rng: &mut Rng) -> Vec<T> {
    let mut one = || {
        let words: Vec<u32> = (0..T::WORDS).map(|_| low(rng.bits())).collect();
        T::from_words(&words).and(&T::USED)
    };
    (0..TUPLES).map(|_| one()).collect()
}

fn answers_are_the_cpus<T: Tuple>() {
    let Some(device) = device() else { return };
    let mut rng = Rng::new(8);
    let usual = Sizes { layers: 70, used: 67, slots: 900, groups: 40, scan: 3, descends: true };
    // As few as there can be; no layer; bounds that go up; more layers than are staged, more slots than any
    // block has room for; nothing scanned, and many scanned.
    let all = [
        usual,
        Sizes { layers: 1, used: 1, slots: 1, groups: 4, ..usual },
        Sizes { used: 0, scan: 0, ..usual },
        Sizes { descends: false, ..usual },
        Sizes { layers: 600, used: 530, slots: 60_003, descends: false, ..usual },
        Sizes { scan: 0, ..usual },
        Sizes { scan: 40, ..usual },
    ];
    for sizes in all {
        let image = image::<T>(sizes, &mut rng);
        let table = QuiltTable::<T>::from_image(image).expect("it is taken");
        assert_eq!(table.descends(), sizes.descends || sizes.used == 1);
        let tuples = tuples(&mut rng);
        let mut right = vec![u32::MAX; tuples.len()];
        table.lookup_batch(&tuples, &mut right);
        let hits = right.iter().filter(|&&number| number != 0).count();
        assert!(if sizes.used > 1 { hits > 50 } else { sizes.used == 1 || hits == 0 }, "{hits} of {sizes:?}");
        let mut device = lock(&device);
        let copy = device.upload(&table);
        for (turn, program) in copy.programs.iter().enumerate() {
            let mut found = vec![u32::MAX; tuples.len()];
            device.classify(program, &tuples, turn, &mut found);
            assert_eq!(found, right, "{sizes:?}, {} bytes shared", program.shared);
        }
        device.forget(&copy);
    }
}

#[test]
fn quilts_that_no_engine_made() {
    answers_are_the_cpus::<Ipv4Tuple>();
    answers_are_the_cpus::<Ipv6Tuple>();
    answers_are_the_cpus::<OpenFlowTuple>();
    answers_are_the_cpus::<OpenFlow13Tuple>();
}
