//! Packet classification: which of many rules a packet's header fields match.

mod builder;
mod classifier;
pub mod device;
pub mod engine;
mod erased;
pub mod image_file;
mod pipeline;
mod reader;
pub mod tuple_name;
mod turnover;

pub use builder::ClassifierBuilder;
pub use classifier::Classifier;
pub use pipeline::RulePipeline;
pub use reader::{RuleGuard, RuleMatch, RuleReader};
pub use tuple_name::TupleName;

pub use wirespeed_classify::{
    Applied, BuildError, Classify, ClassifyEngine, FieldRange, FrameError, Ipv4Tuple, Ipv6Tuple,
    OpenFlowTuple, Pattern, Rule, RuleError, RuleNumber, RuleSet, RuleTextError, RuleUpdate, Step, Tuple,
    TupleError, UpdateError, VLAN_NONE, generate, oracle, read, tuple, write,
};
