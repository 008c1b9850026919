//! Senders: messages of netlink, FPM and BMP, made by hand.
#![allow(dead_code, reason = "each test uses some of them")]

pub(crate) mod bmp;
pub(crate) mod netlink;
