//! [`whole!`](crate::whole!) and [`one_copy!`](crate::one_copy!): code that is compiled where it is written.

use wirespeed_image::{Image, Table};

use crate::domain::{Domain, Model};
use crate::engine::Engine;
use crate::live::Live;
use crate::lookup::Lookup;
use crate::options::BuildOptions;

/// Compiles engines in the crate of this line: `whole! { V4, MyEngine; V6, MyEngine; }`.
///
/// Engines are generic, so each program that uses one has its code made anew. With little optimisation, as in
/// the profile of tests, the compiler takes code that a crate beneath has already. Without debug assertions,
/// as in release builds, the line does nothing, nor in a crate's own unit tests.
#[macro_export]
macro_rules! whole {
    ($($domain:ty, $engine:ty;)+) => {
        $(#[cfg(all(debug_assertions, not(test)))]
        const _: () = {
            #[used]
            static WHOLE: $crate::Whole<$domain, $engine> = $crate::use_all;
        };)+
    };
}

/// Compiles generic functions in the crate of this line, for each of some types:
/// `one_copy! { A: Address = V4, V6; build::<A>, Rib::<A>::new }`.
///
/// In release builds each crate has a copy of the generic functions that it calls, and of all that they call,
/// unless a function is `#[inline(never)]`: then the compiler takes a copy for the same types from a crate
/// beneath. So functions with much code behind them, which need not be inlined, have that attribute. Where
/// the crate that defines them does not use them for all types, this line does.
#[doc(hidden)]
#[macro_export]
macro_rules! one_copy {
    ($type:ident: $bound:path = $($of:ty),+; $($function:expr),+ $(,)?) => {
        #[cfg(not(test))]
        const _: () = {
            fn each<$type: $bound>() {
                $(std::hint::black_box($function as *const ());)+
            }
            #[used]
            static EACH: &[fn()] = &[$(each::<$of>),+];
        };
    };
}

/// The type of [`use_all`].
#[doc(hidden)]
pub type Whole<D, E> =
    fn(<D as Domain>::Model, Image, &[<D as Domain>::Update], &[<D as Domain>::Change]) -> Option<Used<D, E>>;

/// What [`use_all`] makes.
type Used<D, E> = (Live<D, E>, Box<dyn Lookup<D>>);

/// Uses all of an engine and its live table, to have it compiled. Nobody calls it.
#[doc(hidden)]
pub fn use_all<D: Domain, E: Engine<D>>(
    model: D::Model,
    image: Image,
    updates: &[D::Update],
    changed: &[D::Change],
) -> Option<Used<D, E>> {
    let options = BuildOptions::default();
    let (mut engine, mut table) = E::build(model.source(), &options).ok()?;
    engine.take(&table, model.source(), changed).ok()?;
    let patch = engine.patch(&table, model.source(), changed).ok()?;
    table.apply(&patch).ok()?;
    engine.unpublished();
    let patch = engine.update(&table, model.source(), changed).ok()?;
    table.check(&patch).ok()?;
    table = engine.grow(&table, model.source(), &options)?;
    let opened = E::Table::from_image(image).ok()?;
    let mut live = Live::<D, E>::resume(model, opened, options);
    live.apply(updates).ok()?;
    let is_less = engine.memory_usage() < live.reader().enter().image().bytes();
    is_less.then(|| (live, Box::new(table) as Box<dyn Lookup<D>>))
}
