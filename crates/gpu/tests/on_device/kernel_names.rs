//! Names of kernels: all that can be asked for against all that the modules have, both ways.

use std::collections::BTreeSet;

use wirespeed_classify::bloom::BloomSearch;
use wirespeed_classify::linear::Linear;
use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::tuple_search::TupleSearch;
use wirespeed_classify::{ClassifyEngine, Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, Tuple};
use wirespeed_dir24::{Dir24, Dir24Table};
use wirespeed_fib::{Address, Engine, V4, V6};
use wirespeed_fold::{FoldHot, FoldV4, FoldV6};
use wirespeed_gamt::{GamtS, GamtT};
use wirespeed_gpu::classify::kind as kind_of_tuples;
use wirespeed_gpu::driver::{Kernel, writers};
use wirespeed_gpu::ip::KeyBytes;
use wirespeed_gpu::names::{ENDS, PACKED, ROWS, Wanted};
use wirespeed_image::device::{Kind, OnDevice, Stem, Unsupported, Width};
use wirespeed_kernels::MODULES;
use wirespeed_namelookup::NameEngine;
use wirespeed_namelookup::acta::Acta;
use wirespeed_namelookup::ata::Ata;
use wirespeed_namelookup::mata::{Mata, MataNw};
use wirespeed_namelookup::stt::Stt;
use wirespeed_rank::Rank;
use wirespeed_sail::sail_m::kernel::{bytes_with_fibs, kernels_with_fibs};
use wirespeed_sail::{SailB, SailL, SailM, SailU};
use wirespeed_waldvogel::Waldvogel;

/// A module and a name.
type Named = (String, String);

/// What no engine asks for: the kernel that measures memory, for the benches and the runtime's tests.
const GATHER: &str = "gather";

/// The kernels of stems with each kind of keys.
fn with(stems: Vec<Stem>, kinds: &[Kind]) -> Vec<Kernel> {
    stems.iter().flat_map(|stem| kinds.iter().map(|&kind| stem.kernel(kind))).collect()
}

fn of_addresses<A: Address, E: Engine<A, Table: OnDevice>>() -> Vec<Kernel> {
    let kinds = KeyBytes::kinds(A::FAMILY).iter().map(|bytes| Kind::Bytes(bytes.count()));
    with(E::Table::kernels(), &kinds.collect::<Vec<_>>())
}

fn of_addresses_in_fibs<A: Address>() -> Vec<Kernel> {
    let kinds = bytes_with_fibs(A::FAMILY).iter().map(|&bytes| Kind::Bytes(bytes));
    with(kernels_with_fibs::<A>(), &kinds.collect::<Vec<_>>())
}

fn of_names<E: NameEngine<Table: OnDevice>>(forms: &[&'static str]) -> Vec<Kernel> {
    let wanted = |form| [Wanted::Results, Wanted::Matches].map(|wanted| Kind::Named(wanted.kind(form)));
    let kinds: Vec<_> = forms.iter().flat_map(|&form| wanted(form)).collect();
    with(E::Table::kernels(), &kinds)
}

fn of_tuples<T: Tuple, E: ClassifyEngine<T, Table: OnDevice>>() -> Vec<Kernel> {
    with(E::Table::kernels(), &[Kind::Named(kind_of_tuples::<T>().expect("tuples that go to a device"))])
}

fn of_all_tuples<X, Y, Z>() -> Vec<Kernel>
where
    X: ClassifyEngine<Ipv4Tuple, Table: OnDevice>,
    Y: ClassifyEngine<Ipv6Tuple, Table: OnDevice>,
    Z: ClassifyEngine<OpenFlowTuple, Table: OnDevice>,
{
    [of_tuples::<_, X>(), of_tuples::<_, Y>(), of_tuples::<_, Z>()].concat()
}

/// All that can be asked for.
fn asked() -> BTreeSet<Named> {
    // Rows are of input numbers, which components have none of.
    let (lines, all) = (&[PACKED, ENDS][..], &[PACKED, ENDS, ROWS][..]);
    let kernels = [
        of_addresses::<V4, Dir24>(),
        of_addresses::<V4, FoldV4>(),
        of_addresses::<V6, FoldV6>(),
        of_addresses::<V4, FoldHot>(),
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
        of_all_tuples::<Linear<_>, Linear<_>, Linear<_>>(),
        of_all_tuples::<TupleSearch<_>, TupleSearch<_>, TupleSearch<_>>(),
        of_all_tuples::<BloomSearch<_>, BloomSearch<_>, BloomSearch<_>>(),
        of_all_tuples::<Quilt<_>, Quilt<_>, Quilt<_>>(),
        with(Width::ALL.map(|elements| Stem::of(GATHER).width('w', elements)).into(), &[Kind::Bytes(4)]),
        vec![writers::patch(), writers::patch_one()],
    ];
    kernels.concat().into_iter().map(|kernel| (kernel.module.to_owned(), kernel.name)).collect()
}

/// All that there are.
fn there() -> BTreeSet<Named> {
    let of = |ptx: &str| -> Vec<String> {
        let entries = ptx.split(".entry ").skip(1);
        entries.filter_map(|entry| Some(entry.split_once('(')?.0.trim().to_owned())).collect()
    };
    let kernels = MODULES
        .iter()
        .flat_map(|module| of(&module.ptx()).into_iter().map(|name| (module.name.to_owned(), name)));
    kernels.collect()
}

#[test]
fn kernels_that_are_asked_for_are_those_that_there_are() {
    let (asked, there) = (asked(), there());
    assert!(there.len() > 150, "{} kernels were read", there.len());
    let lacking: Vec<_> = asked.difference(&there).collect();
    assert!(lacking.is_empty(), "asked for and in no module: {lacking:?}");
    let idle: Vec<_> = there.difference(&asked).collect();
    assert!(idle.is_empty(), "in a module and asked for by nobody: {idle:?}");
}

#[test]
fn a_program_has_a_kernel_of_its_engine() {
    let program = |stem| Dir24Table::program(stem, &0u64, 1);
    let listed = Dir24Table::kernels()[0];
    assert_eq!(program(listed).map(|program| program.stem), Ok(listed));
    let other = Stem::of("dir24").word("other");
    assert_eq!(program(other), Err(Unsupported("this shape: there is no dir24_other".into())));
}
