//! An OpenFlow 1.3 switch as an application of the router.
mod app;
mod error;
mod inject;
mod pipeline;
mod switch;
pub mod wire;

pub use app::{OpenFlow, Pending};
pub use error::Error;
pub use inject::Injector;
pub use pipeline::Sum;
pub use switch::{Fail, PortInfo, Switch, SwitchOptions};
