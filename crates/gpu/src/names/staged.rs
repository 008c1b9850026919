//! Programs that bring names to shared memory, and one that doesn't.

use bytemuck::NoUninit;

use crate::program::Program;

/// Bytes of shared memory for a block's names: for 512 of usual length and 1,024, for 256, for none.
const STAGED: [u32; 3] = [32 << 10, 14 << 10, 0];

/// A program for each, whose table has so many bytes for names.
pub(super) fn staged<T: NoUninit>(
    engine: &'static str,
    result_bytes: u32,
    table: impl Fn(u32) -> T,
) -> Vec<Program> {
    let program =
        |bytes| Program::new(engine, engine, &table(bytes), result_bytes as usize).with_shared(bytes);
    STAGED.map(program).into()
}
