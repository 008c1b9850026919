//! Lines of `ip xfrm state`: security associations.

use std::net::IpAddr;

use super::skip::{Skip, Skipping};
use super::words::{Selecting, Words};
use crate::crypto::Keys;
use crate::database::Change;
use crate::ip::Ports;
use crate::policy::Direction;
use crate::sa::{Sa, SaConfig};
use crate::secret::Secret;

/// The keys of a line, one for each kind of algorithm.
#[derive(Default)]
struct Given {
    src: Option<IpAddr>,
    dst: Option<IpAddr>,
    spi: Option<u32>,
    is_tunnel: bool,
    aead: Option<Secret>,
    cipher: Option<Secret>,
    is_null: bool,
    authentication: Option<Secret>,
    /// Upper halves of sequence numbers.
    sent_high: u64,
    received_high: u64,
}

pub(super) fn read(words: &mut Words<'_>, passed_over: &mut Vec<String>) -> Result<Vec<Change>, Skipping> {
    let command = words.value("state")?;
    match command {
        "flush" | "deleteall" => return Ok(vec![Change::FlushSas]),
        "add" | "new" | "update" | "set" | "delete" | "del" => {}
        other => return Err((Skip::Word, other.to_owned())),
    }
    let unset = IpAddr::from([0, 0, 0, 0]);
    let mut config = SaConfig::new(0, unset, unset, Keys::Gcm(Secret::new(Vec::new())));
    let mut given = Given::default();
    while let Some(word) = words.next() {
        take(word, words, &mut config, &mut given, passed_over)?;
    }
    let missing = |what: &str| (Skip::Missing, what.to_owned());
    config.dst = given.dst.ok_or_else(|| missing("dst"))?;
    config.spi = given.spi.ok_or_else(|| missing("spi"))?;
    if matches!(command, "delete" | "del") {
        return Ok(vec![Change::RemoveSa(config.dst, config.spi)]);
    }
    config.src = given.src.ok_or_else(|| missing("src"))?;
    if !given.is_tunnel {
        return Err(missing("mode tunnel"));
    }
    config.sent |= given.sent_high << 32;
    config.received |= given.received_high << 32;
    config.keys = match given {
        Given { aead: Some(key), cipher: None, authentication: None, is_null: false, .. } => Keys::Gcm(key),
        Given {
            aead: None,
            cipher: Some(cipher),
            authentication: Some(authentication),
            is_null: false,
            ..
        } => Keys::CtrSha1 { cipher, authentication },
        Given { aead: None, cipher: None, authentication: Some(authentication), is_null: true, .. } => {
            Keys::NullSha1 { authentication }
        }
        _ => return Err(missing("aead, or enc and auth-trunc")),
    };
    // What contradicts itself is told with its line.
    Sa::new(&config).map_err(|error| (Skip::Value, error.to_string()))?;
    Ok(vec![if matches!(command, "add" | "new") {
        Change::AddSa(Box::new(config))
    } else {
        Change::SetSa(Box::new(config))
    }])
}

fn take(
    word: &str,
    words: &mut Words<'_>,
    config: &mut SaConfig,
    given: &mut Given,
    passed_over: &mut Vec<String>,
) -> Result<(), Skipping> {
    match word {
        "src" => given.src = Some(words.parsed(word)?),
        "dst" => given.dst = Some(words.parsed(word)?),
        "spi" => given.spi = Some(words.number(word)?),
        "proto" => only(words, word, &["esp", "50"])?,
        "mode" => {
            only(words, word, &["tunnel"])?;
            given.is_tunnel = true;
        }
        "dir" => {
            config.direction = Some(match words.value(word)? {
                "in" => Direction::In,
                "out" => Direction::Out,
                other => return Err((Skip::Value, other.to_owned())),
            });
        }
        "reqid" => config.reqid = words.number(word)?,
        "replay-window" => config.window = words.number(word)?,
        "replay-oseq" => config.sent = words.number::<u32>(word)?.into(),
        "replay-oseq-hi" => given.sent_high = words.number::<u32>(word)?.into(),
        "replay-seq" => config.received = words.number::<u32>(word)?.into(),
        "replay-seq-hi" => given.received_high = words.number::<u32>(word)?.into(),
        "path-mtu" => config.path_mtu = words.number(word)?,
        "flag" => {
            while let Some(flag @ ("esn" | "af-unspec")) = words.peek() {
                config.is_extended |= flag == "esn";
                words.next();
            }
            if let Some(
                flag @ ("noecn" | "decap-dscp" | "nopmtudisc" | "wildrecv" | "icmp" | "align4" | "noalign4"),
            ) = words.peek()
            {
                return Err((Skip::Unsupported, format!("flag {flag}")));
            }
        }
        "aead" => {
            only(words, word, &["rfc4106(gcm(aes))"])?;
            given.aead = Some(key(words)?);
            only(words, "aead", &["128"])?;
        }
        "enc" => match words.value(word)? {
            "rfc3686(ctr(aes))" => given.cipher = Some(key(words)?),
            "ecb(cipher_null)" | "cipher_null" => {
                given.is_null = true;
                if words.peek().is_some_and(|key| key.is_empty() || key == "0x") {
                    words.next();
                }
            }
            other => return Err((Skip::Unsupported, other.to_owned())),
        },
        "auth" | "auth-trunc" => {
            only(words, word, &["hmac(sha1)", "sha1"])?;
            given.authentication = Some(key(words)?);
            if word == "auth-trunc" {
                only(words, word, &["96"])?;
            }
        }
        "encap" => {
            only(words, word, &["espinudp"])?;
            let ports = Ports { src: words.number(word)?, dst: words.number(word)? };
            // The original address is of no use to a tunnel.
            words.parsed::<IpAddr>(word)?;
            config.ports = Some(ports);
        }
        "nat-follow" => config.nat_follow = true,
        // 0 is none, as in Linux.
        "nat-keepalive" => config.nat_keepalive = Some(words.number(word)?).filter(|&seconds| seconds > 0),
        "limit" => match words.value(word)? {
            "packet-hard" => config.most_packets = Some(words.number(word)?),
            "byte-hard" => config.most_bytes = Some(words.number(word)?),
            // 0 is no limit, as in Linux.
            "time-hard" => config.most_seconds = Some(words.number(word)?).filter(|&seconds| seconds > 0),
            "time-use-hard" => {
                config.most_seconds_of_use = Some(words.number(word)?).filter(|&seconds| seconds > 0);
            }
            // It has a key daemon make new keys, and there is none here.
            soft @ ("packet-soft" | "byte-soft" | "time-soft" | "time-use-soft") => {
                words.number::<u64>(word)?;
                passed_over.push(format!("limit {soft}"));
            }
            other => return Err((Skip::Unsupported, format!("limit {other}"))),
        },
        "sel" => {
            let mut selecting = Selecting::default();
            while words.peek().is_some_and(|word| {
                matches!(word, "src" | "dst" | "proto" | "sport" | "dport" | "type" | "code")
            }) {
                let word = words.value("sel")?;
                selecting.take(word, words)?;
            }
            config.selector = Some(selecting.done()?);
        }
        other => return Err((Skip::Word, other.to_owned())),
    }
    Ok(())
}

/// Takes a value that has to be one of some words.
pub(super) fn only(words: &mut Words<'_>, of: &str, known: &[&str]) -> Result<(), Skipping> {
    let word = words.value(of)?;
    if known.contains(&word) { Ok(()) } else { Err((Skip::Unsupported, format!("{of} {word}"))) }
}

/// Takes a key. It is not told, whatever it is.
fn key(words: &mut Words<'_>) -> Result<Secret, Skipping> {
    let word = words.value("key")?;
    Secret::from_hex(word).ok_or_else(|| (Skip::Key, "not in hexadecimal, behind 0x".to_owned()))
}
