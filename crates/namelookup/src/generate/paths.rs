//! [`Paths`]: the paths after a table's names in a trace.

use wirespeed_fib::synth::rng::Rng;

use super::label::{Labels, Shares};
use crate::name::SLASH;
use crate::names::NameBatch;

/// The source of a trace's paths (MATA paper, 5.4).
///
/// ```
/// use wirespeed_namelookup::generate::Paths;
/// use wirespeed_namelookup::read::{ReadOptions, read_paths_from};
///
/// let urls = "parc.com/a/b?c\nhttp://www.parc.com\n";
/// let (paths, _) = read_paths_from(urls.as_bytes(), "urls", &ReadOptions::default())?;
/// assert_eq!(paths.names().name(0).to_string(), "/=a/b?c");
/// assert_eq!(Paths::from(paths).to_string(), "1 paths");
/// assert_eq!(Paths::made().to_string(), "made paths");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub enum Paths {
    /// No paths: names as in the table.
    #[default]
    None,
    /// Random paths of these.
    Of(NameBatch),
    /// Generated paths.
    Made(MadePaths),
}

impl Paths {
    /// Generated paths, with numbers of components and lengths as in real URLs.
    pub fn made() -> Self {
        Self::Made(MadePaths {
            depths: Shares::new(DEPTHS),
            lengths: Shares::new(LENGTHS),
            labels: Labels::new(),
        })
    }

    pub(super) fn append(&self, rng: &mut Rng, out: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::Of(paths) if paths.is_empty() => {}
            Self::Of(paths) => out.extend_from_slice(paths.names().name(rng.index(paths.len())).as_bytes()),
            Self::Made(made) => made.append(rng, out),
        }
    }
}

impl From<NameBatch> for Paths {
    fn from(paths: NameBatch) -> Self {
        Self::Of(paths)
    }
}

impl std::fmt::Display for Paths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("no paths"),
            Self::Of(paths) => write!(f, "{} paths", paths.len()),
            Self::Made(_) => f.write_str("made paths"),
        }
    }
}

/// Generated paths.
#[derive(Clone, Debug)]
pub struct MadePaths {
    depths: Shares,
    lengths: Shares,
    labels: Labels,
}

/// Shares of paths by number of components, from 1, in 1,000: those of 300,000 real URLs.
const DEPTHS: [u32; 10] = [405, 310, 117, 72, 45, 27, 12, 6, 2, 1];

/// Shares of their components by length, from 1, in 1,000.
const LENGTHS: [u32; 64] = [
    26, 70, 70, 119, 80, 88, 68, 65, 72, 46, 34, 32, 21, 24, 17, 15, 12, 13, 10, 5, 4, 6, 3, 4, 4, 3, 3, 3,
    6, 3, 2, 15, 2, 5, 1, 16, 1, 1, 1, 2, 1, 1, 1, 5, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0,
    0, 1,
];

impl MadePaths {
    fn append(&self, rng: &mut Rng, out: &mut Vec<u8>) {
        for _ in 0..=self.depths.draw(rng) {
            out.push(SLASH);
            let len = 1 + self.lengths.draw(rng);
            self.labels.append(rng, len, out);
        }
    }
}
