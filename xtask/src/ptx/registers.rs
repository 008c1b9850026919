//! What `ptxas` makes of the kernels on each GPU: registers, stack, spills and static shared memory.
//!
//! A driver assembles PTX for its own GPU, which nobody sees. This does the same ahead, for each that there
//! is: it shows that the PTX assembles, and that no kernel has to keep in memory what it wanted in registers.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::NamedTempFile;

/// The GPUs: Volta, Turing, Ampere (A100; others), Ada, Hopper.
pub(super) const ARCHITECTURES: [&str; 6] = ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90"];

/// All kernels on all GPUs.
#[derive(Debug)]
pub(super) struct Table {
    /// Sorted by module, kernel and architecture.
    rows: Vec<Row>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    module: String,
    kernel: String,
    architecture: &'static str,
    use_: Use,
}

/// What a kernel takes, a thread; shared memory a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    registers: u32,
    stack_bytes: u32,
    spill_store_bytes: u32,
    spill_load_bytes: u32,
    shared_bytes: u32,
}

impl Table {
    /// Assembles one module for all architectures.
    pub(super) fn of(ptxas: &Path, module: &str, ptx: &str) -> Result<Self> {
        let mut file = NamedTempFile::new().context("can't make a file for ptxas")?;
        file.write_all(ptx.as_bytes())?;
        let mut rows = Vec::new();
        for architecture in ARCHITECTURES {
            let uses = assemble(ptxas, file.path(), architecture)
                .and_then(|said| uses(&said))
                .with_context(|| format!("{module} for {architecture}"))?;
            // What ptxas says is for people; were it to say it otherwise some day, this notices.
            let (found, expected) = (uses.len(), ptx.matches(".entry ").count());
            ensure!(
                found == expected,
                "{module} for {architecture}: {expected} kernels, and ptxas names {found}"
            );
            let row = |(kernel, use_)| Row { module: module.to_owned(), kernel, architecture, use_ };
            rows.extend(uses.into_iter().map(row));
        }
        Ok(Self { rows })
    }

    /// The tables of several modules as one.
    pub(super) fn join(tables: Vec<Self>) -> Self {
        let mut rows: Vec<_> = tables.into_iter().flat_map(|table| table.rows).collect();
        rows.sort();
        Self { rows }
    }

    pub(super) fn to_csv(&self) -> String {
        let mut csv = "module,kernel,architecture,registers,stack_bytes,spill_store_bytes,spill_load_bytes,\
                       static_shared_bytes\n"
            .to_owned();
        for Row { module, kernel, architecture, use_ } in &self.rows {
            let Use { registers, stack_bytes, spill_store_bytes, spill_load_bytes, shared_bytes } = use_;
            csv += &format!(
                "{module},{kernel},{architecture},{registers},{stack_bytes},{spill_store_bytes},{spill_load_bytes},\
                 {shared_bytes}\n"
            );
        }
        csv
    }

    /// A line an architecture.
    pub(super) fn summary(&self) -> String {
        let line = |architecture| {
            let rows = || self.rows.iter().filter(move |row| row.architecture == architecture);
            let most = rows().max_by_key(|row| row.use_.registers);
            format!(
                "{architecture}: {} kernels, at most {} registers ({}), {} use local memory",
                rows().count(),
                most.map_or(0, |row| row.use_.registers),
                most.map_or("none", |row| &row.kernel),
                rows().filter(|row| row.use_.is_in_local_memory()).count(),
            )
        };
        ARCHITECTURES.map(line).join("\n")
    }

    /// The kernels that spill registers or keep a stack, a line each: both are memory traffic that nobody
    /// wrote.
    pub(super) fn in_local_memory(&self) -> Vec<String> {
        let offenders = self.rows.iter().filter(|row| row.use_.is_in_local_memory());
        offenders
            .map(|Row { module, kernel, architecture, use_ }| {
                let Use { stack_bytes, spill_store_bytes, spill_load_bytes, .. } = use_;
                format!(
                    "{module}: {kernel} on {architecture} uses local memory: {stack_bytes} bytes of stack, \
                     {spill_store_bytes} of spill stores, {spill_load_bytes} of spill loads"
                )
            })
            .collect()
    }
}

impl Use {
    fn is_in_local_memory(self) -> bool {
        self.stack_bytes + self.spill_store_bytes + self.spill_load_bytes > 0
    }
}

/// What `ptxas -v` says of a module.
fn assemble(ptxas: &Path, ptx: &Path, architecture: &str) -> Result<String> {
    let mut command = Command::new(ptxas);
    command.arg("-v").arg(format!("-arch={architecture}")).arg(ptx).args(["-o", "/dev/null"]);
    let output = command.output().with_context(|| format!("can't start {}", ptxas.display()))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "ptxas: {}", said.trim());
    Ok(said)
}

/// Reads what `ptxas -v` says of each kernel:
///
/// ```text
/// ptxas info    : Compiling entry function 'NAME' for 'sm_90'
/// ptxas info    : Function properties for NAME
///     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
/// ptxas info    : Used 31 registers, used 1 barriers, 16 bytes smem
/// ```
///
/// A function that it calls and that wasn't inlined has properties of its own there, which count as the
/// kernel's.
fn uses(said: &str) -> Result<Vec<(String, Use)>> {
    let mut uses: Vec<(String, Use)> = Vec::new();
    for line in said.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let (name, _) = rest.split_once('\'').context("ptxas: a kernel without a name")?;
            uses.push((name.to_owned(), Use::default()));
            continue;
        }
        let Some((_, use_)) = uses.last_mut() else { continue };
        let line = line.split_once("Used ").map_or(line, |(_, rest)| rest);
        for part in line.split(',').map(str::trim) {
            let Some((number, what)) = part.split_once(' ') else { continue };
            let sum = match what {
                "registers" => &mut use_.registers,
                "bytes stack frame" => &mut use_.stack_bytes,
                "bytes spill stores" => &mut use_.spill_store_bytes,
                "bytes spill loads" => &mut use_.spill_load_bytes,
                "bytes smem" => &mut use_.shared_bytes,
                _ => continue,
            };
            *sum += number.parse::<u32>().with_context(|| format!("ptxas: {line}"))?;
        }
    }
    Ok(uses)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
ptxas info    : 304 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_90'
ptxas info    : Function properties for one
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 31 registers, used 1 barriers, 4096 bytes smem, 368 bytes cmem[0]
ptxas info    : Compile time = 12.855 ms
ptxas info    : Compiling entry function 'two' for 'sm_90'
ptxas info    : Function properties for two
    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers
";

    fn table() -> Table {
        let row = |(kernel, use_)| Row { module: "m".into(), kernel, architecture: "sm_90", use_ };
        Table { rows: uses(SAID).unwrap().into_iter().map(row).collect() }
    }

    #[test]
    fn what_ptxas_says_becomes_rows() {
        let csv = table().to_csv();
        assert_eq!(
            csv.lines().skip(1).collect::<Vec<_>>(),
            ["m,one,sm_90,31,0,0,0,4096", "m,two,sm_90,255,8,12,16,0"]
        );
        assert_eq!(csv.lines().next().unwrap().split(',').count(), 8);
        let summary = table().summary();
        assert!(
            summary.ends_with("sm_90: 2 kernels, at most 255 registers (two), 1 use local memory"),
            "{summary}"
        );
    }

    #[test]
    fn kernels_that_spill_are_named() {
        let said = table().in_local_memory();
        assert_eq!(
            said,
            ["m: two on sm_90 uses local memory: 8 bytes of stack, 12 of spill stores, 16 of spill loads"]
        );
    }

    #[test]
    fn a_stack_alone_is_local_memory_too() {
        assert!(Use { stack_bytes: 8, ..Use::default() }.is_in_local_memory());
        assert!(!Use { registers: 255, shared_bytes: 49152, ..Use::default() }.is_in_local_memory());
    }
}
