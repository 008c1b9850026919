//! All engines, and what each says of its kernels.

use wirespeed_classify::bloom::BloomSearch;
use wirespeed_classify::linear::Linear;
use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::tuple_search::TupleSearch;
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlow13Tuple, OpenFlowTuple, Tuple};
use wirespeed_dir24::Dir24;
use wirespeed_fib::{Address, Engine, V4, V6};
use wirespeed_fold::{FoldHot, FoldV4, FoldV6};
use wirespeed_forest::ForestOf;
use wirespeed_gamt::{GamtS, GamtT};
use wirespeed_gpu::classify::kind as kind_of_tuples;
use wirespeed_gpu::ip::KeyBytes;
use wirespeed_gpu::names::{ENDS, PACKED, ROWS, Wanted};
use wirespeed_image::device::{Constants, Kernel, Kind, OnDevice, Stem};
use wirespeed_namelookup::NameDomain;
use wirespeed_namelookup::acta::Acta;
use wirespeed_namelookup::ata::Ata;
use wirespeed_namelookup::mata::{Mata, MataNw};
use wirespeed_namelookup::stt::Stt;
use wirespeed_rank::Rank;
use wirespeed_sail::sail_m::kernel::{bytes_with_fibs, kernels_with_fibs};
use wirespeed_sail::{SailB, SailL, SailM, SailU};
use wirespeed_waldvogel::Waldvogel;

/// What an engine says.
pub(crate) struct Said {
    /// Every kernel that it may ask for, with each kind of keys that its tables are asked with.
    pub(crate) kernels: Vec<Kernel>,
    /// The constants of the kernels' sources.
    pub(crate) constants: Vec<Constants>,
}

/// What the engine of such tables says, of keys of these kinds.
fn said<T: OnDevice>(kinds: &[Kind]) -> Said {
    Said { kernels: with(&T::kernels(), kinds), constants: T::constants() }
}

/// The kernels of stems with each kind of keys.
pub(crate) fn with(stems: &[Stem], kinds: &[Kind]) -> Vec<Kernel> {
    stems.iter().flat_map(|stem| kinds.iter().map(|&kind| stem.kernel(kind))).collect()
}

fn of_addresses<A: Address, E: Engine<A, Table: OnDevice>>() -> Said {
    let kinds = KeyBytes::kinds(A::FAMILY).iter().map(|bytes| Kind::Bytes(bytes.count()));
    said::<E::Table>(&kinds.collect::<Vec<_>>())
}

fn of_addresses_in_fibs<A: Address>() -> Said {
    let kinds = bytes_with_fibs(A::FAMILY).iter().map(|&bytes| Kind::Bytes(bytes));
    let kernels = with(&kernels_with_fibs::<A>(), &kinds.collect::<Vec<_>>());
    Said { kernels, constants: Vec::new() }
}

fn of_names<E: Engine<NameDomain, Table: OnDevice>>(forms: &[&'static str]) -> Said {
    let wanted = |form| [Wanted::Results, Wanted::Matches].map(|wanted| Kind::Named(wanted.kind(form)));
    let kinds: Vec<_> = forms.iter().flat_map(|&form| wanted(form)).collect();
    said::<E::Table>(&kinds)
}

fn of_tuples<T: Tuple, E: Engine<T, Table: OnDevice>>() -> Said {
    said::<E::Table>(&[Kind::Named(kind_of_tuples::<T>().expect("tuples that go to a device"))])
}

/// All engines, each with all that its tables may be asked with.
pub(crate) fn all() -> Vec<Said> {
    // Rows are of input numbers, which components have none of.
    let (lines, all) = (&[PACKED, ENDS][..], &[PACKED, ENDS, ROWS][..]);
    vec![
        of_addresses::<V4, Dir24>(),
        of_addresses::<V4, FoldV4>(),
        of_addresses::<V6, FoldV6>(),
        of_addresses::<V4, FoldHot>(),
        of_addresses::<V4, ForestOf<V4>>(),
        of_addresses::<V6, ForestOf<V6>>(),
        of_addresses::<V4, GamtT<V4>>(),
        of_addresses::<V6, GamtT<V6>>(),
        of_addresses::<V4, GamtS<V4>>(),
        of_addresses::<V6, GamtS<V6>>(),
        of_addresses::<V4, Rank>(),
        of_addresses::<V4, SailB>(),
        of_addresses::<V4, SailU>(),
        of_addresses::<V4, SailL>(),
        of_addresses::<V6, SailL>(),
        of_addresses::<V4, SailM>(),
        of_addresses::<V6, SailM>(),
        of_addresses_in_fibs::<V4>(),
        of_addresses_in_fibs::<V6>(),
        of_addresses::<V4, Waldvogel<V4>>(),
        of_addresses::<V6, Waldvogel<V6>>(),
        of_names::<Acta>(lines),
        of_names::<Ata>(all),
        of_names::<Ata<2>>(all),
        of_names::<Mata>(all),
        of_names::<MataNw>(all),
        of_names::<Stt>(all),
        of_tuples::<_, Linear<Ipv4Tuple>>(),
        of_tuples::<_, Linear<Ipv6Tuple>>(),
        of_tuples::<_, Linear<OpenFlowTuple>>(),
        of_tuples::<_, Linear<OpenFlow13Tuple>>(),
        of_tuples::<_, TupleSearch<Ipv4Tuple>>(),
        of_tuples::<_, TupleSearch<Ipv6Tuple>>(),
        of_tuples::<_, TupleSearch<OpenFlowTuple>>(),
        of_tuples::<_, BloomSearch<Ipv4Tuple>>(),
        of_tuples::<_, BloomSearch<Ipv6Tuple>>(),
        of_tuples::<_, BloomSearch<OpenFlowTuple>>(),
        of_tuples::<_, Quilt<Ipv4Tuple>>(),
        of_tuples::<_, Quilt<Ipv6Tuple>>(),
        of_tuples::<_, Quilt<OpenFlowTuple>>(),
        of_tuples::<_, Quilt<OpenFlow13Tuple>>(),
    ]
}
