//! Engines of rules whose tables answer from the device.

use wirespeed_classify::{
    BuildError, BuildOptions, Changed, Engine, Load, Lookup, Outgrown, RuleSet, Standing, Step, Tuple,
};
use wirespeed_gpu::classify::{bytes_of as bytes_of_tuples, has_too_large, pack};
use wirespeed_gpu::numbers::unpack;
use wirespeed_image::Patch;
use wirespeed_image::device::{OnDevice, Program};

use crate::device::{Asked, Device};
use crate::mirror::{Mirrored, MirroredTable};

/// Marks an engine of rules.
pub(crate) struct OfRules;

impl<T: Tuple, E: Engine<T, Table: OnDevice>> Engine<T> for Mirrored<E, OfRules> {
    const NAME: &'static str = E::NAME;
    const STANDING: Standing = E::STANDING;
    type Table = MirroredTable<E::Table, OfRules>;

    fn build(rules: &RuleSet<T>, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError> {
        let (engine, table) = E::build(rules, options)?;
        Ok((Self::new(engine), MirroredTable::new(table)))
    }

    fn take(
        &mut self,
        table: &Self::Table,
        rules: &RuleSet<T>,
        changed: &[Changed<T>],
    ) -> Result<(), Outgrown> {
        self.0.take(&table.table, rules, changed)
    }

    fn patch(
        &mut self,
        table: &Self::Table,
        rules: &RuleSet<T>,
        changed: &[Changed<T>],
    ) -> Result<Patch, Outgrown> {
        self.0.patch(&table.table, rules, changed)
    }

    fn memory_usage(&self) -> u64 {
        self.0.memory_usage()
    }
}

impl<T: Tuple, C: OnDevice + Lookup<T>> Lookup<T> for MirroredTable<C, OfRules> {
    fn lookup(&self, tuple: &T) -> u32 {
        let mut number = [u32::MAX];
        self.lookup_batch(std::slice::from_ref(tuple), &mut number);
        number[0]
    }

    fn lookup_batch(&self, tuples: &[T], numbers: &mut [u32]) {
        assert_eq!(tuples.len(), numbers.len(), "a result for each tuple");
        match self.turn(tuples.len()) {
            Some(turn) => self.ask(|device, programs| {
                device.classify(&programs[turn % programs.len()], tuples, turn / programs.len(), numbers);
            }),
            None => self.table.lookup_batch(tuples, numbers),
        }
    }

    fn shape(&self) -> Option<String> {
        self.table.shape()
    }

    fn loads(&self) -> Vec<Load> {
        self.table.loads()
    }

    fn explain(&self, tuple: &T) -> Vec<Step> {
        self.table.explain(tuple)
    }
}

impl Device {
    /// Looks tuples up with results of 4 bytes and of one of the others, which has to say where it doesn't
    /// hold a number.
    pub(super) fn classify<T: Tuple>(
        &mut self,
        program: &Program,
        tuples: &[T],
        turn: usize,
        numbers: &mut [u32],
    ) {
        let found = self.look_up_tuples(program, tuples, 4, turn);
        unpack(&found, 4, numbers);
        let bytes = 1 + turn % 2;
        let narrow = self.look_up_tuples(program, tuples, bytes, turn / 2);
        let limit = (1 << (8 * bytes)) - 1;
        let mut again = vec![u32::MAX; numbers.len()];
        unpack(&narrow, bytes, &mut again);
        let right = numbers.iter().map(|&number| number.min(limit));
        assert!(again.iter().copied().eq(right), "{}: results of {bytes} bytes", program.stem);
        let is_too_large = numbers.iter().any(|&number| number >= limit);
        assert_eq!(has_too_large(&narrow, bytes), is_too_large, "{}", program.stem);
    }

    /// The bytes of the results of tuples.
    fn look_up_tuples<T: Tuple>(
        &mut self,
        program: &Program,
        tuples: &[T],
        result_bytes: usize,
        turn: usize,
    ) -> Vec<u8> {
        let mut bytes = vec![0xee; bytes_of_tuples::<T>(tuples.len())];
        let form = pack(tuples, result_bytes, &mut bytes).expect("there is room");
        let second = form.second().expect("tuples have two parts");
        let asked = Asked {
            program,
            kernel: program.kernel(form.kind()),
            parts: [&bytes[..second], &bytes[second..form.bytes()]],
            count: form.count(),
            result_bytes,
            lead: [0; 3],
            threads: 512,
        };
        self.look_up_batch(&asked, turn)
    }
}
