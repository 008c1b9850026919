//! Section 6.1, and one thread of a CPU, section 6.2.2: bytes of each structure beside the state transition
//! table, and lookups a second.

use anyhow::Result;
use wirespeed_image::Table;
use wirespeed_namelookup::ata::Ata;
use wirespeed_namelookup::fsm::{Fsm, Stride};
use wirespeed_namelookup::mata::Mata;
use wirespeed_namelookup::{Acta, Engine, Lookup, NameDomain, NameTable};

use super::growth::cpu_rate;
use super::subject::{Subject, Timed};
use crate::report::Sheet;

/// Section 6.1: each structure's bytes; the paper's own ratios to STT are 101 (102) for ATA and 130 (142) for
/// MATA.
pub fn sizes(subjects: &[&Subject]) -> Result<Sheet> {
    let mut sheet = Sheet {
        title: "Section 6.1: memory; and lookups by one thread of a CPU".into(),
        columns: &[
            "table",
            "method",
            "names",
            "bytes",
            "bytes_a_name",
            "ratio_to_stt",
            "papers_ratio",
            "build_seconds",
            "cpu_average_mnames_per_s",
            "cpu_heavy_mnames_per_s",
        ],
        rows: Vec::new(),
    };
    for (subject, papers) in subjects.iter().zip([["101", "130"], ["102", "142"]]) {
        let names = &subject.table.names;
        let census = Fsm::of(names, Stride::ONE)?.census();
        let stt = census.stt_bytes();
        let share = |states: u64| percent(states, census.states);
        eprintln!(
            "{}: {} states by one byte a step, {} with one transition, {} with none",
            subject.table.name,
            census.states,
            share(census.single),
            share(census.leaves),
        );
        let dash = || "-".to_owned();
        let row = [subject.table.name.clone(), "stt".into(), names.len().to_string(), stt.to_string()];
        let rest = [each(stt, names), "1.0".into(), "1".into(), dash(), dash(), dash()];
        sheet.rows.push(row.into_iter().chain(rest).collect());
        let Some(compiled) = &subject.compiled else { continue };
        let ata = compiled.ata.iter();
        sheet.rows.extend(ata.map(|ata| row_of(subject, Ata::<1>::NAME, ata, stt, papers[0])));
        sheet.rows.push(row_of(subject, Mata::NAME, &compiled.mata, stt, papers[1]));
        sheet.rows.push(row_of(subject, Acta::NAME, &compiled.acta, stt, "-"));
    }
    Ok(sheet)
}

fn row_of<T: Table + Lookup<NameDomain>>(
    subject: &Subject,
    method: &str,
    built: &Timed<T>,
    stt: u64,
    papers: &str,
) -> Vec<String> {
    let names = &subject.table.names;
    let bytes = built.table.image().bytes();
    let [average, heavy] = subject.traces.each_ref().map(|trace| cpu_rate(&built.table, trace));
    #[allow(clippy::cast_precision_loss)] // a ratio
    let ratio = stt as f64 / bytes as f64;
    vec![
        subject.table.name.clone(),
        method.into(),
        names.len().to_string(),
        bytes.to_string(),
        each(bytes, names),
        format!("{ratio:.1}"),
        papers.into(),
        format!("{:.2}", built.seconds),
        format!("{:.2}", average / 1e6),
        format!("{:.2}", heavy / 1e6),
    ]
}

#[allow(clippy::cast_precision_loss)] // for reading
fn each(bytes: u64, names: &NameTable) -> String {
    format!("{:.1}", bytes as f64 / names.len().max(1) as f64)
}

#[allow(clippy::cast_precision_loss)] // for reading
fn percent(part: u64, of: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / of.max(1) as f64)
}
