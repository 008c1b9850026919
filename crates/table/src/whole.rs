//! [`whole!`](crate::whole!): engines that are compiled where they are written.

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
