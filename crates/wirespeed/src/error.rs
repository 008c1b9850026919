//! What can go wrong with a table.

use std::path::{Path, PathBuf};

#[cfg(feature = "text")]
use wirespeed_fib::read::ReadError;
use wirespeed_fib::{BuildError, Family, TooManyNextHops};
use wirespeed_image::ImageError;

#[cfg(feature = "rules")]
use crate::classify;
use crate::engine::{EngineName, Engines, UnknownEngine};
use crate::gpu::GpuError;
use crate::memory::Cap;
#[cfg(feature = "names")]
use crate::names;

/// Why a table could not be built, changed, saved or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine is none of the table's domain; the message lists those that are.
    #[error(transparent)]
    UnknownEngine(#[from] UnknownEngine),
    /// The compiled table takes more than it may.
    #[error(
        "the compiled {} takes {needed} bytes in its two copies, over the cap of {cap}: raise the cap or choose a smaller engine",
        table_of(what)
    )]
    MemoryCap {
        /// What the table is of: a family, names or rules.
        what: &'static str,
        /// Bytes that both copies take.
        needed: u64,
        /// Bytes that they may take.
        cap: u64,
    },
    /// The compiled table takes more than it may where no cap is stated.
    #[error(
        "the compiled {} takes {needed} bytes in its two copies with the engine {engine}, over the {cap} that it may take where no \
         cap is stated: build it anew, choose another engine (`engine`), or state a cap (`memory_cap`)",
        table_of(what)
    )]
    DefaultMemoryCap {
        /// What the table is of: a family, names or rules.
        what: &'static str,
        /// Its engine.
        engine: EngineName,
        /// Bytes that both copies take.
        needed: u64,
        /// Bytes that they may take: [`Builder::memory_cap`](crate::Builder::memory_cap) says how many.
        cap: u64,
    },
    /// The engine can't hold the table, or there is no memory for it.
    #[error("the {} can't be built: {source}", table_of(what))]
    Build {
        /// What the table is of: a family, names or rules.
        what: &'static str,
        /// Why.
        source: BuildError,
    },
    /// A route is to lead to nothing. To take one out, withdraw it.
    #[error("the route {prefix} is given no next hop: indexes start at 1")]
    RouteWithoutNextHop {
        /// The prefix.
        prefix: String,
    },
    /// A name is to lead to nothing. To take one out, remove it.
    #[cfg(feature = "names")]
    #[error("the name {name} is given no result: indexes start at 1")]
    NameWithoutResult {
        /// The name.
        name: String,
    },
    /// A file of names can't be read; the message names file and line.
    #[cfg(feature = "names")]
    #[error(transparent)]
    ReadNames(#[from] names::read::ReadError),
    /// A rule can't be, or not under the number that it is to have.
    #[cfg(feature = "rules")]
    #[error(transparent)]
    Rule(#[from] classify::RuleError),
    /// Rules can't be updated.
    #[cfg(feature = "rules")]
    #[error("the rules can't be updated: {source}")]
    UpdateRules {
        /// Why.
        source: classify::UpdateError,
    },
    /// A file of rules can't be read; the message names file and line.
    #[cfg(feature = "rules")]
    #[error(transparent)]
    ReadRules(#[from] classify::read::ReadError),
    /// A file has rules that a packet's header fields alone can't decide.
    #[cfg(feature = "rules")]
    #[error(
        "{}: {} can't be told from a packet's fields ({}); `assume` states what they depend on, `leave_out` builds without them \
         and keeps what is then in doubt",
        .report.name, counted(.report.left_out.len()), first(.report)
    )]
    RulesLeftOut {
        /// All of them, with the reasons.
        report: Box<classify::read::RuleReport>,
    },
    /// An assumption is none, or contradicts another one.
    #[cfg(feature = "rules")]
    #[error(transparent)]
    Assumption(#[from] classify::read::AssumptionError),
    /// An assumption was stated after a file was read, and the file was read without it.
    #[cfg(feature = "rules")]
    #[error("{fact} is assumed after {file} was read: assume it before")]
    AssumedLate {
        /// The assumption.
        fact: String,
        /// The file.
        file: String,
    },
    /// Lookups can't run on a GPU, and that was asked for.
    #[error("no lookups on a GPU: {0}")]
    Gpu(#[from] GpuError),
    /// A file of routes can't be read; the message names file and line.
    #[cfg(feature = "text")]
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file has no route of the family that a table is for.
    #[cfg(feature = "text")]
    #[error("{}: no {wanted} routes, only those of the other family", path.display())]
    NoRoutesOfFamily {
        /// The file.
        path: PathBuf,
        /// The table's family.
        wanted: Family,
    },
    /// The text that a source has for a next hop is no label of the type that is wanted.
    #[error("next hop {text:?} is no label: {reason}")]
    Label {
        /// The text in the source.
        text: String,
        /// What the parser of the label said.
        reason: String,
    },
    /// Two labels that differ have one text, and can't be saved as texts.
    #[error("two labels are written {text:?}")]
    LabelsAlike {
        /// The text.
        text: String,
    },
    /// There are more distinct labels than indexes.
    #[error(transparent)]
    TooManyLabels(#[from] TooManyNextHops),
    /// An image file can't be written or read, or is damaged.
    #[error("{}: {source}", path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ImageError,
    },
    /// No engine of this build reads the image.
    #[error("{}: no engine of this build reads images of kind {kind:?}{}", path.display(), left_out())]
    ImageKind {
        /// The file.
        path: PathBuf,
        /// Its kind.
        kind: String,
    },
    /// The image is of another kind of table than is wanted.
    #[error("{}: the image is of a table of {found}, one of {wanted} is wanted", path.display())]
    ImageOf {
        /// The file.
        path: PathBuf,
        /// What it is of: addresses, names or rules.
        found: &'static str,
        /// What is wanted.
        wanted: &'static str,
    },
    /// The image is of rules of another tuple.
    #[error("{}: the image is of rules of tuple {found}, those of {wanted} are wanted", path.display())]
    ImageTuple {
        /// The file.
        path: PathBuf,
        /// The image's.
        found: &'static str,
        /// The classifier's.
        wanted: &'static str,
    },
    /// The image is of a table of the other family.
    #[error("{}: the image is of an {found} table, {wanted} is wanted", path.display())]
    ImageFamily {
        /// The file.
        path: PathBuf,
        /// The image's.
        found: Family,
        /// The table's.
        wanted: Family,
    },
    /// The image holds the compiled table alone. A table that takes updates needs what it was compiled from,
    /// and so does a reader of rules, for their actions.
    #[error("{}: the image holds no {what} beside its table{}", path.display(), advice(what))]
    ImageWithout {
        /// The file.
        path: PathBuf,
        /// What is missing: routes, names or rules.
        what: &'static str,
    },
}

impl Error {
    /// Why a table with this cap could not be built or rebuilt.
    pub(crate) fn of_build<D: Engines>(engine: EngineName, source: BuildError, cap: Cap) -> Self {
        let (what, both) = (D::WHAT, |bytes: u64| bytes.saturating_mul(2));
        match (source, cap) {
            (BuildError::Image(ImageError::OverCap { needed, .. }), Cap::Stated(cap)) => {
                Self::MemoryCap { what, needed: both(needed), cap }
            }
            (BuildError::Image(ImageError::OverCap { needed, cap }), Cap::Auto | Cap::Named) => {
                Self::DefaultMemoryCap { what, engine, needed: both(needed), cap: both(cap) }
            }
            (source, _) => Self::Build { what, source },
        }
    }

    /// Says that a file holds the compiled table alone.
    pub(crate) fn without(path: &Path, what: &'static str) -> Self {
        Self::ImageWithout { path: path.to_owned(), what }
    }
}

/// A table in words, by what it is of.
fn table_of(what: &str) -> String {
    match what {
        "names" | "rules" => format!("table of {what}"),
        family => format!("{family} table"),
    }
}

/// What an error about an image says of what the build leaves out.
fn left_out() -> String {
    let features = [
        ("names", cfg!(feature = "names")),
        ("rules", cfg!(feature = "rules")),
        ("papers", cfg!(feature = "papers")),
    ];
    let missing: Vec<_> =
        features.into_iter().filter(|&(_, is_on)| !is_on).map(|(name, _)| format!("`{name}`")).collect();
    match &missing[..] {
        [] => String::new(),
        [one] => format!("; it may need the feature {one}"),
        several => format!("; it may need one of the features {}", several.join(", ")),
    }
}

/// What can be done with an image that lacks this.
fn advice(what: &str) -> &'static str {
    if what == "rules" { "" } else { " to update: open it with a reader" }
}

#[cfg(feature = "rules")]
fn counted(rules: usize) -> String {
    if rules == 1 { "a rule".to_owned() } else { format!("{rules} rules") }
}

/// The first of what was left out, and how many more there are.
#[cfg(feature = "rules")]
fn first(report: &classify::read::RuleReport) -> String {
    const SHOWN: usize = 3;
    let mut all: Vec<_> = report.left_out.iter().take(SHOWN).map(ToString::to_string).collect();
    match report.left_out.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => all.push(format!("and {more} more")),
        _ => {}
    }
    all.join("; ")
}
