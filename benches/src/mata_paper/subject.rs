//! What figures are about: tables with their traces, and the methods of section 6 on the GPU.

use std::time::Instant;

use anyhow::{Context, Result};
use wirespeed_gpu::driver::Shape;
use wirespeed_gpu::names::{ENDS, PACKED, ROWS};
use wirespeed_image::device::{Kind as Lie, OnDevice, Program};
use wirespeed_namelookup::ata::{Ata, AtaTable};
use wirespeed_namelookup::generate::Paths;
use wirespeed_namelookup::mata::{Mata, MataTable};
use wirespeed_namelookup::stt::{Stt, SttTable};
use wirespeed_namelookup::{Acta, ActaTable, BuildError, BuildOptions, Engine, NameDomain, NameTable, Names};

use crate::gpu::bench::{Bench, Uploaded};
use crate::gpu::in_form::{InForm, KernelRate, kernel_rates};
use crate::gpu::names::Layout;
use crate::names::data::{Kind, Table, Trace};

/// Names of a trace: enough that the caches of neither side hold them.
pub const TRACE: usize = 1 << 20;
/// Bytes of a batch in section 3 and after, before it is cut into parts.
pub const BATCH: usize = 16 << 20;
/// The most bytes of an STT.
pub const STT_CAP: u64 = 8 << 30;
const SEED: u64 = 1;

/// A table with an average and a heavy trace, and what engines make of it.
pub struct Subject {
    /// The table.
    pub table: Table,
    /// The names that are looked up.
    pub traces: [Trace; 2],
    /// The compiled tables, where they are wanted.
    pub compiled: Option<Compiled>,
}

impl Subject {
    /// Draws the traces.
    pub fn new(table: Table, paths: &Paths) -> Result<Self> {
        let draw = |kind| Trace::draw(&table.names, kind, paths, TRACE, SEED);
        let (average, heavy) = rayon::join(|| draw(Kind::Average), || draw(Kind::Heavy));
        Ok(Self { traces: [average?, heavy?], table, compiled: None })
    }

    /// Builds all tables, with STT where one fits [`STT_CAP`].
    pub fn compile(self, with_stt: bool) -> Result<Self> {
        let compiled = Compiled::new(&self.table.names, with_stt)?;
        Ok(Self { compiled: Some(compiled), ..self })
    }
}

/// The tables that engines compile of a table. All are built at once, so that their times are of a machine
/// that is busy.
pub struct Compiled {
    /// The state transition table, where there is one.
    pub stt: Option<Timed<SttTable>>,
    /// The aligned transition array by single bytes, where it can be built.
    pub ata: Option<Timed<AtaTable>>,
    /// MATA.
    pub mata: Timed<MataTable>,
    /// Ours.
    pub acta: Timed<ActaTable>,
}

/// A table and the seconds that building it took.
pub struct Timed<T> {
    /// The table.
    pub table: T,
    /// Seconds.
    pub seconds: f64,
}

fn timed<E: Engine<NameDomain>>(
    names: &NameTable,
    options: &BuildOptions,
) -> Result<Timed<E::Table>, BuildError> {
    let start = Instant::now();
    let (_, table) = E::build(names, options)?;
    Ok(Timed { table, seconds: start.elapsed().as_secs_f64() })
}

impl Compiled {
    fn new(names: &NameTable, with_stt: bool) -> Result<Self> {
        let options = BuildOptions::default();
        let cap = BuildOptions { memory_cap: Some(STT_CAP), ..BuildOptions::default() };
        let ((acta, mata), (ata, stt)) = rayon::join(
            || rayon::join(|| timed::<Acta>(names, &options), || timed::<Mata>(names, &options)),
            || {
                let stt = || with_stt.then(|| timed::<Stt>(names, &cap));
                rayon::join(|| timed::<Ata<1>>(names, &options), stt)
            },
        );
        let stt = stt.and_then(|stt| stt.inspect_err(|why| eprintln!("stt: left out: {why}")).ok());
        let ata = ata.inspect_err(|why| eprintln!("ata: left out: {why}")).ok();
        Ok(Self { stt, ata, mata: mata?, acta: acta? })
    }
}

/// The first names of a trace, as many as so many bytes hold.
pub fn batch_of(trace: &Trace, bytes: usize) -> Names<'_> {
    let names = trace.names.names();
    let count = names.ends().partition_point(|&end| end as usize <= bytes);
    names.part(0..count.max(1))
}

/// A method of section 6: an engine's table and how names lie for it.
pub struct Method<'u> {
    /// `stt`, `ata`, `mata`, `mata-nw`, `acta`.
    pub name: &'static str,
    /// The form of names in memory.
    pub layout: Layout,
    /// The table on the device.
    pub table: &'u Uploaded,
}

/// Tables on the device, for methods to share.
pub struct Placed(Vec<(&'static str, Uploaded)>);

impl Placed {
    /// Puts all tables on the device.
    pub fn new(bench: &mut Bench, tables: &Compiled) -> Result<Self> {
        let mut placed = Self(Vec::new());
        if let Some(stt) = &tables.stt {
            placed.put(bench, Stt::NAME, &stt.table)?;
        }
        if let Some(ata) = &tables.ata {
            placed.put(bench, Ata::<1>::NAME, &ata.table)?;
        }
        placed.put(bench, Mata::NAME, &tables.mata.table)?;
        placed.put(bench, Acta::NAME, &tables.acta.table)?;
        Ok(placed)
    }

    /// One engine's table that was built already.
    pub fn of<T: OnDevice>(bench: &mut Bench, name: &'static str, table: &T) -> Result<Self> {
        let mut placed = Self(Vec::new());
        placed.put(bench, name, table)?;
        Ok(placed)
    }

    fn put<T: OnDevice>(&mut self, bench: &mut Bench, name: &'static str, table: &T) -> Result<()> {
        self.0.push((name, bench.upload(table).with_context(|| name.to_owned())?));
        Ok(())
    }

    /// The methods: those of the paper, in its order, and ours.
    pub fn methods(&self) -> Vec<Method<'_>> {
        let mut methods = Vec::new();
        for (name, table) in &self.0 {
            let layout = if *name == Acta::NAME { Layout::Packed } else { Layout::Ends };
            methods.push(Method { name, layout, table });
            if *name == Mata::NAME {
                methods.push(Method { name: "mata-nw", layout: Layout::Rows(4), table });
            }
        }
        methods
    }

    /// Gives the tables' memory back.
    pub fn forget(self, bench: &mut Bench) -> Result<()> {
        self.0.iter().try_for_each(|(_, table)| bench.forget(table))
    }
}

impl<'u> Method<'u> {
    /// Puts names on the device as this method takes them.
    pub fn place(&self, bench: &mut Bench, names: Names<'_>) -> Result<InForm> {
        bench.names(self.layout, names)
    }

    /// Every launch that is tried for names on the device, the fastest first, results held against the right
    /// ones.
    pub fn kernels(&self, bench: &mut Bench, names: Names<'_>, right: &[u32]) -> Result<Vec<KernelRate>> {
        let there = self.place(bench, names)?;
        let rates = kernel_rates(bench, self.table, &there, &right[..names.len()], 3);
        bench.drop_in_form(&there)?;
        rates.with_context(|| self.name.to_owned())
    }

    /// The fastest program and launch for names on the device, and its rate.
    pub fn best(
        &self,
        bench: &mut Bench,
        names: Names<'_>,
        right: &[u32],
    ) -> Result<(&'u Program, Shape, f64)> {
        let rates = self.kernels(bench, names, right)?;
        let best = rates.first().context("a launch that fits")?;
        Ok((self.program(best.shared), best.shape, best.rate))
    }

    /// The program with so much shared memory a block.
    pub fn program(&self, shared: u32) -> &'u Program {
        let programs = &self.table.programs;
        programs.iter().find(|program| program.shared == shared).unwrap_or(&programs[0])
    }

    /// Whether a program can be launched with so many threads a block.
    pub fn fits(&self, bench: &mut Bench, program: &Program, threads: u32) -> Result<bool> {
        let kind = match self.layout {
            Layout::Packed => PACKED,
            Layout::Ends => ENDS,
            Layout::Rows(_) => ROWS,
        };
        let kernel = program.kernel(Lie::Named(kind));
        Ok(bench.driver.blocks_per_multiprocessor(&kernel, threads, program.shared)? > 0)
    }
}
