//! GAMT by its number of levels.

use anyhow::Result;
use wirespeed_fib::{BuildOptions, Engine, InFib, Strides};
use wirespeed_gamt::GamtT;
use wirespeed_image::Table;

use super::{Effort, Subject};
use crate::gpu::bench::Bench;
use crate::gpu::kernels;
use crate::report::Sheet;

/// GAMT by its number of levels: the paper's figures 11 and 15 on a GPU.
#[allow(clippy::cast_precision_loss)] // for reading
pub fn levels<A: InFib>(
    bench: &mut Bench,
    subject: &Subject<A>,
    sweep: impl Iterator<Item = u8>,
    effort: &Effort,
) -> Result<Sheet> {
    let mut sheet = Sheet {
        title: format!("GAMT on a GPU by levels ({})", A::FAMILY),
        columns: &["table", "trace", "levels", "kernel_gkeys_per_s", "table_bytes", "bytes_a_prefix"],
        rows: Vec::new(),
    };
    let key = [*subject.widths().last().unwrap_or(&4)];
    for levels in sweep {
        let strides = Strides::Levels { levels, transaction: 32 };
        let options = BuildOptions { strides, ..BuildOptions::default() };
        let (_, table) = GamtT::<A>::build(&subject.rib, &options)?;
        let bytes = table.image().bytes();
        let rates = kernels::rates::<A, GamtT<A>>(bench, &table, &subject.traces(), &key, effort.rounds)?;
        sheet.rows.extend(rates.into_iter().map(|(trace, rate)| {
            vec![
                subject.name.clone(),
                trace,
                levels.to_string(),
                format!("{:.1}", rate.best().1 / 1e9),
                bytes.to_string(),
                format!("{:.1}", bytes as f64 / subject.rib.len() as f64),
            ]
        }));
    }
    Ok(sheet)
}
