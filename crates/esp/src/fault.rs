//! [`Fault`]: why a packet did not go through a tunnel. [`Faults`] counts by fault.

/// Writes the enum, its names and their order once.
macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $variant:ident => $name:literal,)+) => {
        /// The reason why a packet did not go through a tunnel.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Fault {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Fault {
            /// All faults.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name in reports, such as `esp_replay`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

faults! {
    /// The outer header is not whole, or its lengths or its checksum are wrong.
    Outer => "esp_outer",
    /// The ESP packet is shorter than its fields, or no multiple of four bytes.
    Cut => "esp_cut",
    /// The packet is a fragment of an ESP packet: its bytes wait for the others, or it can't be used.
    Fragment => "esp_fragment",
    /// No security association has the index and the destination.
    NoSa => "esp_no_sa",
    /// The security association was removed while the packet was under way.
    SaGone => "esp_sa_gone",
    /// The packet is in UDP and its security association is not, or the other way round.
    Encapsulation => "esp_encapsulation",
    /// The sequence number came before, or lies behind the window.
    Replay => "esp_replay",
    /// The integrity check failed: a wrong key, or a packet that was changed.
    Tag => "esp_tag",
    /// The padding is longer than the packet, or not 1, 2, 3 and so on.
    Padding => "esp_padding",
    /// The next header is neither IPv4 nor IPv6.
    NextHeader => "esp_next_header",
    /// The packet is a dummy that its sender made to hide how much it sends.
    Dummy => "esp_dummy",
    /// The inner packet is malformed.
    Inner => "esp_inner",
    /// The outer header says that a queue was congested, and the inner packet can't tell (RFC 6040, 4.2).
    Congestion => "esp_congestion",
    /// The UDP datagram keeps a mapping of addresses alive (RFC 3948, 2.3).
    Keepalive => "esp_keepalive",
    /// A policy discards the packet, or it came by a security association that its policy does not name.
    Policy => "esp_policy",
    /// The packet came in the clear, and its policy wants it protected.
    Unprotected => "esp_unprotected",
    /// The policy names a security association that there is none of.
    Unkeyed => "esp_unkeyed",
    /// All sequence numbers of the security association are used: it needs a new key.
    Sequence => "esp_sequence",
    /// A hard limit of the security association is reached: of packets, of bytes or of time.
    Lifetime => "esp_lifetime",
    /// The inner packet is too large for the tunnel, and must not be cut.
    TooBig => "esp_too_big",
    /// The time to live, or the hop limit, of the inner packet is spent.
    Expired => "esp_expired",
    /// The buffer has no room for the headers or for the padding.
    Buffer => "esp_buffer",
    /// The packet that was put together from fragments is larger than a buffer.
    Long => "esp_long",
}

/// Numbers of packets by fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults([u64; Fault::ALL.len()]);

impl Default for Faults {
    fn default() -> Self {
        Self([0; Fault::ALL.len()])
    }
}

impl Faults {
    /// Counts a packet.
    pub fn count(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    /// The number of packets with a fault.
    #[must_use]
    pub const fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// The faults that occurred, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Fault, u64)> + '_ {
        Fault::ALL.iter().map(|&fault| (fault, self.of(fault))).filter(|&(_, count)| count > 0)
    }
}
