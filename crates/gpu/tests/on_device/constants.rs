//! The constants of the kernels' sources against those of the layouts: each of one has its like in the other.

use std::collections::BTreeMap;

use wirespeed_classify::linear::layout as linear;
use wirespeed_classify::quilt::{hash as quilt_hash, layout as quilt};
use wirespeed_classify::tss::{hash as tss_hash, kernel as tss_kernel, layout as tss};
use wirespeed_dir24::layout as dir24;
use wirespeed_fib::{Address, V4, V6};
use wirespeed_fold::hot::layout as hot;
use wirespeed_fold::{v4 as fold_v4, v6 as fold_v6};
use wirespeed_gamt::layout as gamt;
use wirespeed_gpu::GpuError;
use wirespeed_kernels_host::{BuildError, HostDriver, Sanitizers, build};
use wirespeed_namelookup::acta::{hash, layout as acta};
use wirespeed_namelookup::aligned::layout as aligned;
use wirespeed_namelookup::stt::layout as stt;
use wirespeed_rank::layout as rank;
use wirespeed_sail::sail_b::layout as sail_b;
use wirespeed_sail::sail_l::layout as sail_l;
use wirespeed_waldvogel::layout as waldvogel;

/// What each module's constants are here, as numbers of 64 bits.
macro_rules! layouts {
    ($($module:ident { $($name:ident: $value:expr),+ $(,)? })+) => {
        fn layouts() -> Vec<(&'static str, &'static str, u64)> {
            vec![$($((stringify!($module), stringify!($name), number($value))),+),+]
        }
    };
}

layouts! {
    acta {
        ACTA_BUCKET_BYTES: acta::BUCKET_BYTES,
        ACTA_BASE_BITS: acta::BASE_BITS,
        ACTA_LONG: acta::LONG_MARK,
        ACTA_LEADS: acta::LEADS,
        ACTA_ENDS: acta::ENDS,
        ACTA_CHOICE_SHIFT: acta::SECOND.ilog2(),
        ACTA_HEADER_TURN_SHIFT: acta::TURN_SHIFT,
        ACTA_TAG_SHIFT: acta::TAG_SHIFT,
        ACTA_FILTER_SHIFT: acta::COUNT_BITS,
        ACTA_FILTER_BITS: acta::FILTER_BITS,
        ACTA_INLINE_MOST: acta::INLINE_MOST,
        ACTA_ROOT_STATE_AT: acta::ROOT_STATE_AT,
        ACTA_ROOT_RESULT_AT: acta::ROOT_RESULT_AT,
        ACTA_K: hash::K,
        ACTA_K2: hash::K2,
    }
    linear {
        LINEAR_LANES: linear::LANES,
        LINEAR_GROUPS_AT: linear::GROUPS_AT,
    }
    names {
        NAMES_GROUP: wirespeed_gpu::names::GROUP,
        NAMES_SLASH: b'/',
    }
    aligned {
        ALIGNED_ROOT_STATE_AT: aligned::ROOT,
        ALIGNED_ROOT_RESULT_AT: aligned::ROOT_RESULT,
        ALIGNED_ARRAY_WORDS: aligned::RECORD,
        ALIGNED_ACCEPTING: aligned::ACCEPTING,
    }
    classes {
        CLASSES_THREADS: tss_kernel::THREADS,
        CLASSES_TUPLES: tss_kernel::TUPLES,
        CLASSES_RECORD: tss_kernel::RECORD,
        CLASSES_FLAGS: tss_kernel::FLAGS,
    }
    dir24 {
        DIR24_CHUNK: dir24::CHUNK,
    }
    fold_hot {
        HOT_SLOT_BITS: hot::SLOT_BITS,
        HOT_SHORT: hot::SHORT,
        HOT_LONG: hot::LONG,
    }
    fold_v4 {
        FOLD_SLOT_BITS: fold_v4::layout::SLOT_BITS,
        FOLD_SHORT: fold_v4::layout::SHORT,
        FOLD_LONG: fold_v4::layout::LONG,
    }
    fold_v6 {
        FOLD_MOST_STEPS: fold_v6::layout::MOST_STEPS,
    }
    gamt {
        GAMT_JUMP_BITS: gamt::JUMP_BITS,
        GAMT_MOST_LEVELS_V4: V4::BITS,
        GAMT_MOST_LEVELS_V6: V6::BITS,
    }
    quilt {
        QUILT_COUNT_AT: quilt::COUNT_AT,
        QUILT_REST_AT: quilt::REST_AT,
        QUILT_MASK_AT: quilt::MASK_AT,
        QUILT_BLOCK: quilt::BLOCK,
        QUILT_LANES: quilt::LANES,
        QUILT_GROUP_BITS: quilt::GROUP_BITS,
        QUILT_FORM_SHIFT: quilt::FORM_SHIFT,
        QUILT_FILTER_SHIFT: quilt::FILTER_SHIFT,
        QUILT_LAYERS_AT_ONCE: quilt::LAYERS_AT_ONCE,
        QUILT_KEYS: quilt_hash::MOST_WORDS,
        QUILT_FILTERS: quilt_hash::FILTER.len(),
        QUILT_SCAN_AT: quilt::SCAN_AT,
        QUILT_SCAN_LANES: quilt::SCAN_LANES,
        QUILT_TOPS: quilt::TOPS,
    }
    rank {
        RANK_SLOTS: rank::SLOTS,
        RANK_WORDS: rank::WORDS,
        RANK_WORD: rank::WORD,
    }
    sail {
        SAIL_FIRST: sail_l::FIRST,
        SAIL_CHUNK: sail_l::CHUNK,
        SAIL_LEAF: sail_l::LEAF,
        // Neither the first, of 16 bits, nor the last, of 128.
        SAIL_BETWEEN: sail_l::levels::<V6>() - 2,
    }
    sail_b {
        SAIL_B_PIVOT: sail_b::PIVOT,
        SAIL_B_MOST_LEVELS: sail_b::MOST_LEVELS,
        SAIL_B_CHUNK: sail_b::CHUNK,
    }
    stt {
        STT_ROW: stt::ROW,
    }
    tss {
        TSS_CLASSES_AT: tss::CLASSES_AT,
        TSS_CLASS_WORDS: tss::CLASS_WORDS,
        TSS_FIRST_SLOT_AT: tss::FIRST_SLOT_AT,
        TSS_SUBTABLE_AT: tss::SUBTABLE_AT,
        TSS_FIRST_BITS_AT: tss::FIRST_BITS_AT,
        TSS_LOG_BITS_AT: tss::LOG_BITS_AT,
        TSS_BOUND_AT: tss::BOUND_AT,
        TSS_LEAST_LOG: tss::LEAST_LOG,
        TSS_KEYS: tss_hash::KEYS,
        TSS_K: tss_hash::K,
        TSS_SLOT_OF_4: tss::slot_elements(4),
        TSS_SLOT_OF_9: tss::slot_elements(9),
        TSS_SLOT_OF_10: tss::slot_elements(10),
    }
    tuples {
        TUPLES_GROUP: wirespeed_gpu::classify::GROUP,
    }
    waldvogel {
        WALDVOGEL_ROOT_BITS: waldvogel::ROOT_BITS,
        WALDVOGEL_CHUNK_BITS: waldvogel::CHUNK_BITS,
        WALDVOGEL_MOST_TRIES: waldvogel::MOST_TRIES,
        WALDVOGEL_OPEN: waldvogel::OPEN,
        WALDVOGEL_NUMBER_BITS: waldvogel::NUMBER_BITS,
        WALDVOGEL_WIDE_LENGTH: waldvogel::WIDE_LENGTH,
        WALDVOGEL_STEPS: waldvogel::STEPS,
        WALDVOGEL_HASH_BITS: waldvogel::HASH_BITS,
        WALDVOGEL_FOLD: waldvogel::FOLD,
        WALDVOGEL_BUCKET_WORDS: waldvogel::BUCKET_WORDS,
        WALDVOGEL_BUCKET_SLOTS: waldvogel::BUCKET_SLOTS,
        WALDVOGEL_BUCKET_VALUES: waldvogel::BUCKET_VALUES,
        WALDVOGEL_BUCKET_LENGTHS: waldvogel::BUCKET_LENGTHS,
        WALDVOGEL_BUCKET_SPILLED: waldvogel::BUCKET_SPILLED,
    }
}

#[test]
fn the_kernels_have_the_constants_of_the_layouts() -> Result<(), GpuError> {
    let program = match build(Sanitizers::On) {
        Ok(program) => program,
        Err(BuildError::NoCompiler) => {
            eprintln!("skipped: no C++ compiler for the host build of the kernels");
            return Ok(());
        }
        Err(refused) => panic!("{refused}"),
    };
    let mut kernels = HostDriver::start(&program).expect("the server starts");
    let name = |module: &str, name: &str| format!("{module}: {name}");
    let of_kernels: BTreeMap<_, _> = kernels
        .constants()?
        .into_iter()
        .map(|(module, constant, value)| (name(&module, &constant), value))
        .collect();
    let of_layouts: BTreeMap<_, _> =
        layouts().into_iter().map(|(module, constant, value)| (name(module, constant), value)).collect();
    assert_eq!(of_kernels, of_layouts);
    Ok(())
}

/// Any integer that isn't negative.
fn number<T: TryInto<u64>>(value: T) -> u64 {
    value.try_into().ok().expect("a constant of a layout")
}
