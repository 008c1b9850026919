//! The columns of records that are looked up and added, in the form that records are scanned by.

use std::sync::{Arc, OnceLock};

use wirespeed_commands::enrich::{Given, Header, Shape, Spec};
use wirespeed_records::{Format, Plan, Role};

/// The shape, which is known from the first header on.
pub(super) type Shared = Arc<OnceLock<Shape>>;

/// Plans by the names of a header. Later headers of one stream get the plan of the first.
pub(super) fn plan(
    given: &Given,
    specs: &[Spec],
    shape: &Shared,
    format: Format,
    names: &[String],
) -> Result<Plan, String> {
    let header = if format == Format::NdJson { Header::Members(names) } else { Header::Columns(names) };
    let planned = Shape::plan(given, specs, header, shape.get().map(|shape| &*shape.keys))?;
    let wanted = planned.columns().map(|column| column.name.clone()).collect();
    let is_text = |role| match role {
        Role::Source | Role::Destination | Role::Address => given.numbers.is_none(),
        role => role == Role::Name,
    };
    let numbers = planned.columns().filter(|column| !is_text(column.role));
    let numbers = numbers.map(|column| column.name.clone()).collect();
    let added = planned.names.clone();
    let _ = shape.set(planned);
    Ok(Plan { wanted, numbers, added })
}
