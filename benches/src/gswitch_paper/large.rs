//! Larger sets than the paper's: as many rules of 12 fields in 512 classes as are asked for, its largest set
//! four times over where nothing is said, and as many rules of 5 fields in the style of ClassBench.

use anyhow::{Result, ensure};
use wirespeed_classify::generate::{Kind, Shape};
use wirespeed_classify::{Ipv4Tuple, OpenFlowTuple};

use super::device::Rig;
use super::sets::{COLUMNS, plots, rows};
use super::subject::Subject;
use super::{Figure, Scale};
use crate::gpu::plot::Plot;
use crate::report::Sheet;

/// Classes of the sets of 12 fields.
const CLASSES: usize = 512;

/// Sets of each of [`Scale::large`] rules.
pub fn figure(mut rig: Option<&mut Rig>, scale: &Scale) -> Result<Figure> {
    let title = format!("Large sets: 12 fields in {CLASSES} classes; 5 fields in the style of ClassBench");
    let mut sheet = Sheet { title, columns: COLUMNS, rows: Vec::new() };
    for &most in &scale.large {
        ensure!(most >= CLASSES, "{most} rules are fewer than {CLASSES} classes");
        let shape = Shape::even(most, CLASSES);
        let subject = Subject::<OpenFlowTuple>::made(shape, scale.tuples)?;
        rows(rig.as_deref_mut(), &subject, scale, &mut sheet)?;
        for kind in Kind::ALL {
            let subject = Subject::<Ipv4Tuple>::in_style(kind, most, scale.tuples)?;
            rows(rig.as_deref_mut(), &subject, scale, &mut sheet)?;
        }
    }
    let plots = plots(rig.is_some(), "rules").into_iter();
    let plots = plots.map(|plot| Plot { curves: &["method", "kind"], ..plot }).collect();
    Ok(Figure { name: "large".into(), sheet, plots })
}
