//! [`Event`]: a message, read.

use super::address::read_address;
use super::link::read_link;
use super::message::{Message, kind};
use super::neighbour::read_neighbour;
use super::next_hop::{NextHopObject, read_next_hop, read_next_hop_gone};
use super::route::{RouteMessage, read_route};
use super::rule::read_rule;
use super::{Fault, attributes};
use crate::model::{InterfaceAddress, Link, Neighbour, Rule};
use crate::status::Skip;

/// A message, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    Link(Box<Link>),
    LinkGone(u32),
    Address(InterfaceAddress),
    AddressGone(InterfaceAddress),
    Neighbour(Neighbour),
    NeighbourGone(Neighbour),
    Rule(Box<Rule>),
    RuleGone(Box<Rule>),
    NextHop(NextHopObject),
    NextHopGone(u32),
    Route(RouteMessage<'a>),
    RouteGone(RouteMessage<'a>),
    /// A dump is over, with an error of the kernel unless it is 0.
    Done(i32),
    /// The kernel's answer to a request: 0, or an error number.
    Error(i32),
    /// Messages were lost.
    Overrun,
    /// Nothing that a table needs.
    Skipped(Skip),
}

/// Reads a message.
pub(crate) fn read<'a>(message: &Message<'a>) -> Result<Event<'a>, Fault> {
    let body = message.body;
    Ok(match message.kind {
        16 => read_link(body)?.map_or(Event::Skipped(Skip::OtherFamily), |link| Event::Link(Box::new(link))),
        17 => read_link(body)?.map_or(Event::Skipped(Skip::OtherFamily), |link| Event::LinkGone(link.index)),
        20 => Event::Address(read_address(body)?),
        21 => Event::AddressGone(read_address(body)?),
        28 => read_neighbour(body)?.map_or(Event::Skipped(Skip::OtherFamily), Event::Neighbour),
        29 => read_neighbour(body)?.map_or(Event::Skipped(Skip::OtherFamily), Event::NeighbourGone),
        24 => read_route(body)?.map_or_else(Event::Skipped, Event::Route),
        25 => read_route(body)?.map_or_else(Event::Skipped, Event::RouteGone),
        32 => read_rule(body)?.map_or(Event::Skipped(Skip::OtherFamily), |rule| Event::Rule(Box::new(rule))),
        33 => {
            read_rule(body)?.map_or(Event::Skipped(Skip::OtherFamily), |rule| Event::RuleGone(Box::new(rule)))
        }
        104 => Event::NextHop(read_next_hop(body)?),
        105 => Event::NextHopGone(read_next_hop_gone(body)?),
        kind::DONE => Event::Done(error_number(body).unwrap_or(0)),
        kind::ERROR => Event::Error(error_number(body).ok_or(Fault::Truncated)?),
        kind::OVERRUN => Event::Overrun,
        _ => Event::Skipped(Skip::OtherKind),
    })
}

/// The error number, as a positive number.
fn error_number(body: &[u8]) -> Option<i32> {
    Some(attributes::u32_at(body, 0)?.cast_signed().wrapping_neg())
}
