//! [`Rule`]: a rule of policy routing, which says in which table packets are looked up.

use std::fmt;

use ipnet::IpNet;

use super::route::TableId;

/// A rule of policy routing. The kernel asks the rules of a family in the order of their priorities, until a
/// table has a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Rule {
    /// Whether the rule is for IPv6; else it is for IPv4.
    pub is_v6: bool,
    /// The rule's place among the others: the lowest is asked first.
    pub priority: u32,
    /// The way of the packets.
    pub action: RuleAction,
    /// Whether the rule is for all packets that do *not* match.
    pub is_inverted: bool,
    /// The sources of the packets; all if `None`.
    pub from: Option<IpNet>,
    /// The destinations of the packets; all if `None`.
    pub to: Option<IpNet>,
    /// The interface that the packets come from; any if `None`.
    pub came_by: Option<String>,
    /// The interface that a socket is bound to; any if `None`.
    pub bound_to: Option<String>,
    /// The mark of the packets and the bits of it that count; any if `None`.
    pub mark: Option<(u32, u32)>,
    /// Whether the rule asks for more, such as ports, a user, or the length of the prefix that is found.
    pub has_more: bool,
}

/// The way of packets that a [`Rule`] matches (`FR_ACT_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RuleAction {
    /// They are looked up in a table.
    Lookup(TableId),
    /// They are looked up in the table of the VRF that they come from or are for.
    LookupInVrf,
    /// They go on with the rule of this priority.
    GoTo(u32),
    /// Nothing.
    Nothing,
    /// They are dropped silently.
    Blackhole,
    /// They are dropped, and the sender is told that the host is unreachable.
    Unreachable,
    /// They are dropped, and the sender is told that this is prohibited.
    Prohibit,
    /// None of these.
    Other(u8),
}

impl Rule {
    /// The kernel's table for routes that are used if the main table has none.
    const DEFAULT: TableId = TableId(253);

    /// A rule for all packets of a family.
    #[must_use]
    pub const fn of_all(is_v6: bool, priority: u32, action: RuleAction) -> Self {
        Self {
            is_v6,
            priority,
            action,
            is_inverted: false,
            from: None,
            to: None,
            came_by: None,
            bound_to: None,
            mark: None,
            has_more: false,
        }
    }

    /// Whether the rule is for all packets.
    #[must_use]
    pub fn is_for_all(&self) -> bool {
        *self == Self::of_all(self.is_v6, self.priority, self.action)
    }

    /// Whether the rule is one that every Linux has: the local table, at any priority, then the main one and
    /// the default one; or the one that leads packets to the tables of their VRFs.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.is_for_all()
            && match self.action {
                RuleAction::Lookup(TableId::LOCAL) | RuleAction::LookupInVrf => true,
                RuleAction::Lookup(TableId::MAIN) => self.priority == 32_766,
                RuleAction::Lookup(Self::DEFAULT) => self.priority == 32_767,
                _ => false,
            }
    }
}

/// Writes a rule as `ip rule` does, after its family.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = if self.is_v6 { "IPv6" } else { "IPv4" };
        write!(f, "{family} {}:", self.priority)?;
        if self.is_inverted {
            f.write_str(" not")?;
        }
        match self.from {
            Some(from) => write!(f, " from {from}")?,
            None => f.write_str(" from all")?,
        }
        if let Some(to) = self.to {
            write!(f, " to {to}")?;
        }
        if let Some((mark, mask)) = self.mark {
            write!(f, " fwmark {mark:#x}")?;
            if mask != u32::MAX {
                write!(f, "/{mask:#x}")?;
            }
        }
        if let Some(interface) = &self.came_by {
            write!(f, " iif {interface}")?;
        }
        if let Some(interface) = &self.bound_to {
            write!(f, " oif {interface}")?;
        }
        if self.has_more {
            f.write_str(" and more")?;
        }
        match self.action {
            RuleAction::Lookup(TableId::LOCAL) => f.write_str(" lookup local"),
            RuleAction::Lookup(TableId::MAIN) => f.write_str(" lookup main"),
            RuleAction::Lookup(Self::DEFAULT) => f.write_str(" lookup default"),
            RuleAction::Lookup(TableId(table)) => write!(f, " lookup {table}"),
            RuleAction::LookupInVrf => f.write_str(" lookup [l3mdev-table]"),
            RuleAction::GoTo(priority) => write!(f, " goto {priority}"),
            RuleAction::Nothing => f.write_str(" nop"),
            RuleAction::Blackhole => f.write_str(" blackhole"),
            RuleAction::Unreachable => f.write_str(" unreachable"),
            RuleAction::Prohibit => f.write_str(" prohibit"),
            RuleAction::Other(number) => write!(f, " action {number}"),
        }
    }
}
