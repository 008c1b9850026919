//! [`FoldV6`]: build and update, on top of the [`Form`]. A table is built by bringing an empty one up to date
//! with everything at once.

use wirespeed_fib::{
    Address, BuildError, BuildOptions, Engine, Outgrown, Prefix, Rib, Standing, Strides, V6,
};
use wirespeed_image::{Changes, Image, Patch, Table};

use super::form::Form;
use super::layout::{
    FASTEST, FoldTableV6, ON_GPU, SHAPES, SHARED_FROM, SMALLEST, Width, allocate, chunk_bytes,
};
use super::reached::Changed;
use super::walk::Walk;

/// The largest next-hop index that an element can hold beside the numbers of chunks.
const MAX_NEXT_HOP: u32 = (1 << 30) - 1;
/// Most that the first two steps of the fastest shape may take before the next shape is asked.
const LARGE: u64 = 64 << 20;

/// FOLD's control plane for IPv6: build, and keep up to date, a [`FoldTableV6`].
///
/// Memory: about 18 bytes for each shared chunk of the table. An update reads the chunks in the table.
#[derive(Clone, Debug)]
pub struct FoldV6 {
    pub(super) form: Form,
}

impl Engine<V6> for FoldV6 {
    const NAME: &'static str = "fold";
    const STANDING: Standing = Standing::Recommended;
    type Table = FoldTableV6;

    fn build(rib: &Rib<V6>, options: &BuildOptions) -> Result<(Self, FoldTableV6), BuildError> {
        let results = rib.max_next_hop().0;
        let widest = results.max(options.results);
        if widest > MAX_NEXT_HOP {
            let (limit, found) = (u64::from(MAX_NEXT_HOP), u64::from(widest));
            return Err(BuildError::Limit { engine: "fold", what: "next hops", limit, found });
        }
        let shape = shape_for(rib, &options.strides)?;
        // Room for next hops to come; what is left of two bytes is for the numbers of chunks.
        let base = (widest + widest / 8 + 64).min(MAX_NEXT_HOP + 1);
        let narrow = (u64::from(base) < Width::Two.values()).then(|| filled(rib, shape, Width::Two, base));
        let mut form = match narrow {
            Some(Ok(form)) => form,
            _ => filled(rib, shape, Width::Four, base).map_err(|_| BuildError::Limit {
                engine: "fold",
                what: "chunks a step",
                limit: Width::Four.values() - u64::from(base),
                found: Width::Four.values(),
            })?,
        };
        let image = compile(&mut form, rib.len(), results, options)?;
        let table = FoldTableV6::of_shape(image)?;
        form.results = results;
        Ok((Self { form }, table))
    }

    fn patch(
        &mut self,
        table: &Self::Table,
        rib: &Rib<V6>,
        changed: &[Prefix<V6>],
    ) -> Result<Patch, Outgrown> {
        self.patch(table.image(), rib, changed)
    }

    fn memory_usage(&self) -> u64 {
        self.form.memory_usage()
    }
}

/// The shape of the options, or the fastest shape, unless the table is so scattered that [`SMALLEST`] takes
/// less memory for the steps whose chunks aren't shared.
fn shape_for(rib: &Rib<V6>, strides: &Strides) -> Result<&'static [u8], BuildError> {
    if let Strides::Given(given) = strides {
        return SHAPES
            .into_iter()
            .find(|shape| shape == given)
            .ok_or_else(|| BuildError::Strides { engine: "fold", why: format!("there are {SHAPES:?}") });
    }
    // Those for a GPU are worth some memory, but not any.
    if *strides == Strides::FastestOnGpu && upper_bytes(rib, ON_GPU) <= 4 * LARGE {
        return Ok(ON_GPU);
    }
    let fastest = upper_bytes(rib, FASTEST);
    let is_scattered = fastest > LARGE && upper_bytes(rib, SMALLEST) < fastest;
    Ok(if is_scattered { SMALLEST } else { FASTEST })
}

/// Bytes that an image takes at most: as if no two chunks were equal, with next hops of two bytes and without
/// head room. Real tables stay far below, scattered host routes take all of it. Nothing is built: passes over
/// the routes.
pub fn most_bytes(rib: &Rib<V6>, strides: &Strides) -> u64 {
    let shape = shape_for(rib, strides).unwrap_or(FASTEST);
    bytes_of(shape, &places(rib, shape))
}

/// The bytes of the steps of a shape whose chunks aren't shared.
fn upper_bytes(rib: &Rib<V6>, shape: &'static [u8]) -> u64 {
    let upper = shape.iter().scan(0, |from, stride| {
        let before = *from;
        *from += stride;
        Some(before)
    });
    let steps = upper.take_while(|&from| from < SHARED_FROM).count();
    bytes_of(&shape[..steps], &places(rib, &shape[..steps]))
}

/// The bytes of a number of chunks of each step.
fn bytes_of(shape: &[u8], chunks: &[u64]) -> u64 {
    let bytes = |&stride: &u8| chunk_bytes(stride, Width::Two) as u64;
    shape.iter().map(bytes).zip(chunks).map(|(bytes, chunks)| bytes * chunks).sum()
}

/// Counts for each step the places where it begins that have longer routes: its chunks, where no two are
/// equal.
fn places(rib: &Rib<V6>, shape: &[u8]) -> Vec<u64> {
    let mut count = vec![0; shape.len()];
    // Of each step, the last route that is longer than what comes before it. They come in order.
    let mut last = vec![None::<V6>; shape.len()];
    for (prefix, _) in rib {
        let mut from = 0;
        for ((&stride, count), last) in shape.iter().zip(&mut count).zip(&mut last) {
            if prefix.len() <= from {
                break;
            }
            let is_new = last.is_none_or(|last| last.common_bits(prefix.address()) < from);
            *count += u64::from(is_new);
            *last = Some(prefix.address());
            from += stride;
        }
    }
    // The first is there whatever the routes.
    count[0] = 1;
    count
}

/// The form of a whole Rib.
fn filled(rib: &Rib<V6>, shape: &'static [u8], width: Width, base: u32) -> Result<Form, Outgrown> {
    let mut form = Form::new(shape, width, base);
    let all = Changed { cover: Some(V6::BITS), inside: &[] };
    form.refresh(&mut Walk::new(rib), all, &mut Changes::none())?;
    Ok(form)
}

/// The image of a form, and the bounds that it sets.
fn compile(
    form: &mut Form,
    routes: usize,
    results: u32,
    options: &BuildOptions,
) -> Result<Image, BuildError> {
    let most = form.width.values() - u64::from(form.base);
    let room = |in_use: u32| (u64::from(in_use) + options.head_room_for(in_use.into(), 8, 8)).min(most);
    let steps = 1..form.shape.len();
    let chunks: Vec<u64> = steps.clone().map(|step| room(form.in_use(step))).collect();
    for (&chunks, &stride) in chunks.iter().zip(&form.shape[1..]) {
        let limit = (1 << 31 >> stride) - 1;
        if chunks > limit {
            return Err(BuildError::Limit { engine: "fold", what: "chunks a step", limit, found: chunks });
        }
    }
    let mut image = allocate(form.shape, &chunks, form.width, form.base, options.memory_cap)?;
    for (step, &chunks) in steps.zip(&chunks) {
        form.set_capacity(step, u32::try_from(chunks).unwrap_or(u32::MAX));
    }
    form.compile(&mut image)?;
    image.set_counts(routes as u64, u64::from(results));
    Ok(image)
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::NextHop;
    use wirespeed_fib::conformance::tables;
    use wirespeed_image::Table;

    use super::*;

    /// Compares with figures found by hand, and as a bound with what is built.
    #[test]
    fn what_a_table_takes_at_most() {
        let host: Rib<V6> = [("2001:db8::1/128".parse().unwrap(), NextHop(1))].into_iter().collect();
        let chunks: u64 = FASTEST.iter().map(|stride| 2 << stride).sum();
        assert_eq!(most_bytes(&host, &Strides::Fastest), chunks);
        assert_eq!(places(&host, FASTEST), [1; 15]);
        let two: Rib<V6> = ["2001:db8::/33", "2001:db8:8000::/48"]
            .map(|text| (text.parse().unwrap(), NextHop(1)))
            .into_iter()
            .collect();
        // The second one goes its own way from bit 37 on.
        assert_eq!(places(&two, FASTEST)[..6], [1, 1, 1, 1, 1, 0]);
        for (name, rib) in tables::hand_picked::<V6>() {
            let options = BuildOptions::default();
            let (_, table) = FoldV6::build(&rib, &options).expect("a valid table is built");
            if table.entry_width() == 2 {
                // Head room is an eighth, and nine chunks a step with it.
                let spare: u64 = table.strides()[1..].iter().map(|stride| 9 * (2 << stride)).sum();
                let most = most_bytes(&rib, &options.strides) / 8 * 9 + spare + 4_096;
                assert!(table.image().bytes() <= most, "{name}: {} {most}", table.image().bytes());
            }
        }
    }
}
