//! [`Counted`]: the labels in models, for each domain.

#[cfg(feature = "rules")]
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlow13Tuple, OpenFlowTuple, RuleSet, RuleUpdate};
use wirespeed_fib::{Address, NextHop, Prefix, Rib, Update, V4, V6};
use wirespeed_forest::{FibId, Fibs, FibsUpdate, InFibs};
#[cfg(feature = "names")]
use wirespeed_namelookup::{Name, NameDomain, NameModel, NameUpdate};
use wirespeed_table::Domain;

/// A domain whose models lead to labels.
pub trait Counted: Domain {
    /// The part of a model that leads to one label: a prefix, a name, or a rule's number.
    type Place<'u>: Copy + Ord;

    /// The places that updates of a model may change.
    fn places<'u>(model: &Self::Model, updates: &'u [Self::Update]) -> Vec<Self::Place<'u>>;

    /// Calls `give` with each label that an update leads to.
    fn announced(update: &Self::Update, give: &mut dyn FnMut(NextHop));

    /// The label that a place leads to, or [`NextHop::NONE`].
    fn label_at(model: &Self::Model, place: Self::Place<'_>) -> NextHop;

    /// Calls `give` with the label of each place.
    fn each_label(model: &Self::Model, give: &mut dyn FnMut(NextHop));
}

macro_rules! addresses {
    ($address:ty) => {
        impl Counted for $address {
            type Place<'u> = Prefix<Self>;

            fn places(_: &Rib<Self>, updates: &[Update<Self>]) -> Vec<Prefix<Self>> {
                let place = |update: &Update<Self>| match *update {
                    Update::Announce { prefix, .. } | Update::Withdraw { prefix } => prefix,
                };
                updates.iter().map(place).collect()
            }

            fn announced(update: &Update<Self>, give: &mut dyn FnMut(NextHop)) {
                if let Update::Announce { next_hop: Some(next_hop), .. } = *update {
                    give(next_hop);
                }
            }

            fn label_at(rib: &Rib<Self>, prefix: Prefix<Self>) -> NextHop {
                rib.get(prefix).unwrap_or_default()
            }

            fn each_label(rib: &Rib<Self>, give: &mut dyn FnMut(NextHop)) {
                rib.iter().for_each(|(_, next_hop)| give(next_hop));
            }
        }
    };
}

addresses!(V4);
addresses!(V6);

impl<A: Address> Counted for InFibs<A> {
    type Place<'u> = (FibId, Prefix<A>);

    fn places(fibs: &Fibs<A>, updates: &[FibsUpdate<A>]) -> Vec<(FibId, Prefix<A>)> {
        let mut places = Vec::new();
        for update in updates {
            match update {
                FibsUpdate::Route(id, update) => places.push((*id, update.prefix())),
                FibsUpdate::Set(id, _) | FibsUpdate::Remove(id) => {
                    fibs.visit(*id, |prefix, _| places.push((*id, prefix)));
                }
            }
            if let FibsUpdate::Set(id, rib) = update {
                places.extend(rib.iter().map(|(prefix, _)| (*id, prefix)));
            }
        }
        places
    }

    fn announced(update: &FibsUpdate<A>, give: &mut dyn FnMut(NextHop)) {
        match update {
            FibsUpdate::Route(_, Update::Announce { next_hop: Some(next_hop), .. }) => give(*next_hop),
            FibsUpdate::Set(_, rib) => rib.iter().for_each(|(_, next_hop)| give(next_hop)),
            FibsUpdate::Route(..) | FibsUpdate::Remove(_) => {}
        }
    }

    fn label_at(fibs: &Fibs<A>, (id, prefix): (FibId, Prefix<A>)) -> NextHop {
        fibs.get(id, prefix).unwrap_or_default()
    }

    fn each_label(fibs: &Fibs<A>, give: &mut dyn FnMut(NextHop)) {
        for id in fibs.ids() {
            fibs.visit(id, |_, next_hop| give(next_hop));
        }
    }
}

#[cfg(feature = "names")]
impl Counted for NameDomain {
    type Place<'u> = &'u Name;

    fn places<'u>(_: &NameModel, updates: &'u [NameUpdate]) -> Vec<&'u Name> {
        let place = |update: &'u NameUpdate| match update {
            NameUpdate::Insert(name, _) | NameUpdate::Remove(name) => &**name,
        };
        updates.iter().map(place).collect()
    }

    fn announced(update: &NameUpdate, give: &mut dyn FnMut(NextHop)) {
        if let NameUpdate::Insert(_, result) = *update {
            give(NextHop(result));
        }
    }

    fn label_at(model: &NameModel, name: &Name) -> NextHop {
        NextHop(model.names().result(name))
    }

    fn each_label(model: &NameModel, give: &mut dyn FnMut(NextHop)) {
        model.names().nodes().for_each(|node| give(NextHop(node.result())));
    }
}

#[cfg(feature = "rules")]
macro_rules! tuples {
    ($tuple:ty) => {
        impl Counted for $tuple {
            type Place<'u> = u32;

            fn places(rules: &RuleSet<Self>, updates: &[RuleUpdate<Self>]) -> Vec<u32> {
                let mut last = rules.last_number();
                let place = |update: &RuleUpdate<Self>| match *update {
                    RuleUpdate::Insert(_) => {
                        last = last.saturating_add(1);
                        last
                    }
                    RuleUpdate::Set(number, _) => {
                        last = last.max(number);
                        number
                    }
                    RuleUpdate::Remove(number) => number,
                };
                updates.iter().map(place).collect()
            }

            fn announced(update: &RuleUpdate<Self>, give: &mut dyn FnMut(NextHop)) {
                if let RuleUpdate::Insert(rule) | RuleUpdate::Set(_, rule) = update {
                    give(NextHop(rule.action()));
                }
            }

            fn label_at(rules: &RuleSet<Self>, number: u32) -> NextHop {
                NextHop(rules.action(number).unwrap_or_default())
            }

            fn each_label(rules: &RuleSet<Self>, give: &mut dyn FnMut(NextHop)) {
                rules.iter().for_each(|(_, rule)| give(NextHop(rule.action())));
            }
        }
    };
}

#[cfg(feature = "rules")]
tuples!(Ipv4Tuple);
#[cfg(feature = "rules")]
tuples!(Ipv6Tuple);
#[cfg(feature = "rules")]
tuples!(OpenFlowTuple);
#[cfg(feature = "rules")]
tuples!(OpenFlow13Tuple);
