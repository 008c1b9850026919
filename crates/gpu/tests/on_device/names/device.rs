//! Engines of names whose tables answer from the device.

use wirespeed_gpu::names::{
    Wanted, bytes_of as bytes_of_names, pack, pack_ends, pack_rows, row_bytes_of, unpack, unpack_matches,
};
use wirespeed_gpu::runtime::Form;
use wirespeed_image::Patch;
use wirespeed_image::device::{OnDevice, Program};
use wirespeed_namelookup::{
    BuildError, BuildOptions, Engine, Lookup, Match, Name, NameBatch, NameDomain, NameTable, Names, NodeId,
    Outgrown, Standing, Step,
};

use crate::device::{Asked, Device};
use crate::mirror::{Mirrored, MirroredTable};

/// Marks an engine of names.
pub(crate) struct OfNames;

/// Tables that input numbers are cut for.
pub(crate) trait Stride {
    /// The most bytes of a number; `None` where the table's kernels take no rows.
    fn stride(&self) -> Option<usize>;
}

impl Stride for wirespeed_namelookup::ActaTable {
    fn stride(&self) -> Option<usize> {
        None
    }
}

impl<F: wirespeed_namelookup::aligned::Form> Stride for wirespeed_namelookup::aligned::AlignedTable<F> {
    fn stride(&self) -> Option<usize> {
        Some(F::STRIDE.bytes())
    }
}

impl Stride for wirespeed_namelookup::stt::SttTable {
    fn stride(&self) -> Option<usize> {
        Some(1)
    }
}

impl<E: Engine<NameDomain, Table: OnDevice + Stride>> Engine<NameDomain> for Mirrored<E, OfNames> {
    const NAME: &'static str = E::NAME;
    const STANDING: Standing = E::STANDING;
    type Table = MirroredTable<E::Table, OfNames>;

    fn build(names: &NameTable, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError> {
        let (engine, table) = E::build(names, options)?;
        Ok((Self::new(engine), MirroredTable::new(table)))
    }

    fn patch(
        &mut self,
        table: &Self::Table,
        names: &NameTable,
        changed: &[NodeId],
    ) -> Result<Patch, Outgrown> {
        self.0.patch(&table.table, names, changed)
    }

    fn memory_usage(&self) -> u64 {
        self.0.memory_usage()
    }
}

impl<T: OnDevice + Lookup<NameDomain> + Stride> Lookup<NameDomain> for MirroredTable<T, OfNames> {
    fn lookup(&self, name: &Name) -> Match {
        let batch: NameBatch = [name].into_iter().collect();
        let mut found = [Match { result: u32::MAX, length: u32::MAX }];
        self.match_batch(batch.names(), &mut found);
        found[0]
    }

    fn lookup_batch(&self, names: Names<'_>, results: &mut [u32]) {
        let mut matches = vec![Match::NONE; results.len()];
        self.match_batch(names, &mut matches);
        results.iter_mut().zip(&matches).for_each(|(to, found)| *to = found.result);
    }

    fn match_batch(&self, names: Names<'_>, matches: &mut [Match]) {
        assert_eq!(names.len(), matches.len(), "a match for each name");
        match self.turn(names.len()) {
            Some(turn) => self.ask(|device, programs| {
                let program = &programs[turn % programs.len()];
                device.match_all(program, names, self.table.stride(), turn, matches);
            }),
            None => self.table.match_batch(names, matches),
        }
    }

    fn shape(&self) -> Option<String> {
        self.table.shape()
    }

    fn explain(&self, name: &Name) -> Vec<Step> {
        self.table.explain(name)
    }
}

impl Device {
    /// Looks names up in each form, by results and by matches, all of which are to agree.
    pub(crate) fn match_all(
        &mut self,
        program: &Program,
        names: Names<'_>,
        stride: Option<usize>,
        turn: usize,
        matches: &mut [Match],
    ) {
        let forms = [pack as Pack, pack_ends];
        let [one, other] = if turn.is_multiple_of(2) { forms } else { [forms[1], forms[0]] };
        let mut bytes = vec![0xee; bytes_of_names(names)];
        let mut ask = |device: &mut Self, pack: Pack, wanted| {
            let form = pack(names, wanted, &mut bytes).expect("there is room");
            device.look_up_names(program, &bytes, form, turn)
        };
        unpack_matches(&ask(self, one, Wanted::Matches), matches);
        agree(program, &ask(self, one, Wanted::Results), Wanted::Results, matches);
        let wanted = if turn.is_multiple_of(3) { Wanted::Matches } else { Wanted::Results };
        agree(program, &ask(self, other, wanted), wanted, matches);
        if let Some(stride) = stride {
            let mut rows = vec![0xee; row_bytes_of(names, stride)];
            for wanted in [Wanted::Results, Wanted::Matches] {
                let form = pack_rows(names, stride, wanted, &mut rows).expect("there is room");
                agree(program, &self.look_up_names(program, &rows, form, turn), wanted, matches);
            }
        }
    }

    /// Looks up names as they lie in their form; the bytes of the results.
    fn look_up_names(&mut self, program: &Program, bytes: &[u8], form: Form, turn: usize) -> Vec<u8> {
        let second = form.second().expect("names have two parts");
        let asked = Asked {
            program,
            kernel: program.kernel(form.kind()),
            parts: [&bytes[..second], &bytes[second..form.bytes()]],
            count: form.count(),
            result_bytes: form.result_bytes().unwrap_or(program.result_bytes),
            lead: [0; 3],
            threads: 512,
        };
        self.look_up_batch(&asked, turn)
    }
}

/// Packs names into a batch's bytes.
type Pack = fn(Names<'_>, Wanted, &mut [u8]) -> Option<Form>;

/// Holds what was found in another form against matches.
fn agree(program: &Program, found: &[u8], wanted: Wanted, matches: &[Match]) {
    if wanted == Wanted::Matches {
        let mut again = vec![Match { result: u32::MAX, length: u32::MAX }; matches.len()];
        unpack_matches(found, &mut again);
        assert_eq!(again, matches, "{}: matches of another form", program.stem);
    } else {
        let mut results = vec![u32::MAX; matches.len()];
        unpack(found, program.result_bytes, &mut results);
        let right = matches.iter().map(|found| found.result);
        assert!(results.iter().copied().eq(right), "{}: results of another form", program.stem);
    }
}
