//! Lines of `ip xfrm policy`: policies.

use std::net::IpAddr;

use super::association::only;
use super::skip::{Skip, Skipping};
use super::words::{Selecting, Words};
use crate::database::Change;
use crate::policy::{Action, Direction, Policy, Template};

pub(super) fn read(words: &mut Words<'_>) -> Result<Vec<Change>, Skipping> {
    let command = words.value("policy")?;
    match command {
        "flush" | "deleteall" => return Ok(vec![Change::FlushPolicies]),
        "setdefault" => return defaults(words),
        "add" | "new" | "update" | "set" | "delete" | "del" => {}
        other => return Err((Skip::Word, other.to_owned())),
    }
    let mut selecting = Selecting::default();
    let (mut towards, mut priority, mut blocks, mut template) = (None, 0, false, None);
    while let Some(word) = words.next() {
        match word {
            "dir" => towards = Some(direction(words)?),
            "priority" => priority = words.number(word)?,
            "action" => match words.value(word)? {
                "allow" => {}
                "block" => blocks = true,
                other => return Err((Skip::Value, other.to_owned())),
            },
            "ptype" => only(words, word, &["main"])?,
            // The kernel's own number.
            "index" => drop(words.number::<u64>(word)?),
            "tmpl" if template.is_some() => return Err((Skip::Unsupported, "a second tmpl".to_owned())),
            "tmpl" => template = Some(tunnel(words)?),
            _ if selecting.take(word, words)? => {}
            other => return Err((Skip::Word, other.to_owned())),
        }
    }
    let selector = selecting.done()?;
    let direction = towards.ok_or_else(|| (Skip::Missing, "dir".to_owned()))?;
    let action = match template {
        _ if blocks => Action::Discard,
        Some(template) => Action::Protect(template),
        None => Action::Pass,
    };
    let policy = Policy { selector, direction, priority, action };
    Ok(vec![match command {
        "delete" | "del" => Change::RemovePolicy(selector, direction),
        "add" | "new" => Change::AddPolicy(policy),
        _ => Change::SetPolicy(policy),
    }])
}

fn direction(words: &mut Words<'_>) -> Result<Direction, Skipping> {
    match words.value("dir")? {
        "out" => Ok(Direction::Out),
        "in" | "fwd" => Ok(Direction::In),
        other => Err((Skip::Value, other.to_owned())),
    }
}

/// The defaults for packets without a policy: `in block fwd block out accept`.
fn defaults(words: &mut Words<'_>) -> Result<Vec<Change>, Skipping> {
    let mut changes = Vec::new();
    while words.peek().is_some() {
        let direction = direction(words)?;
        let passes = match words.value("setdefault")? {
            "accept" => true,
            "block" => false,
            other => return Err((Skip::Value, other.to_owned())),
        };
        changes.push(Change::SetOtherwise(direction, passes));
    }
    Ok(changes)
}

/// The tunnel of a template.
fn tunnel(words: &mut Words<'_>) -> Result<Template, Skipping> {
    let (mut src, mut dst): (Option<IpAddr>, Option<IpAddr>) = (None, None);
    let (mut reqid, mut spi, mut is_tunnel) = (0, 0, false);
    while let Some(word @ ("src" | "dst" | "proto" | "spi" | "reqid" | "mode" | "level")) = words.peek() {
        words.next();
        match word {
            "src" => src = Some(words.parsed(word)?),
            "dst" => dst = Some(words.parsed(word)?),
            "proto" => only(words, word, &["esp", "50"])?,
            "spi" => spi = words.number(word)?,
            "reqid" => reqid = words.number(word)?,
            "mode" => {
                only(words, word, &["tunnel"])?;
                is_tunnel = true;
            }
            _ => only(words, word, &["required"])?,
        }
    }
    let missing = |what: &str| (Skip::Missing, what.to_owned());
    if !is_tunnel {
        return Err(missing("mode tunnel"));
    }
    let src = src.ok_or_else(|| missing("tmpl src"))?;
    let dst = dst.ok_or_else(|| missing("tmpl dst"))?;
    Ok(Template { src, dst, reqid, spi })
}
