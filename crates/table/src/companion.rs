//! [`Companion`]: what readers see of a model beside results.

use std::fmt::Debug;

use wirespeed_image::live::Beside;

use crate::domain::Domain;

/// Data of a model that readers see beside results, such as the actions of rules. It has the same state as
/// the table.
pub trait Companion<D: Domain>: Beside<Change: Default> {
    /// The choice of data that readers see.
    type Wanted: Clone + Debug + Send + Sync + 'static;

    /// Makes the data of a model.
    fn of(model: &D::Model, wanted: Self::Wanted) -> Self;

    /// Adds further changes to a change. `model` is the model after them.
    fn changed(model: &D::Model, wanted: Self::Wanted, changed: &[D::Change], change: &mut Self::Change);

    /// Makes the change that replaces the data by that of a model.
    fn replaced(model: &D::Model, wanted: Self::Wanted) -> Self::Change;
}

/// No data.
impl<D: Domain> Companion<D> for () {
    type Wanted = ();

    fn of(_: &D::Model, (): ()) {}
    fn changed(_: &D::Model, (): (), _: &[D::Change], (): &mut ()) {}
    fn replaced(_: &D::Model, (): ()) {}
}
