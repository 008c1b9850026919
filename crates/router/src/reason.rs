//! [`Reason`]: why a frame was dropped. [`Drops`] counts by reason. Those of tunnels are the faults of
//! `wirespeed-esp`, by name.

/// Writes the enum, its names and their order once.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident => $name:literal,)+) => {
        /// The reason why a frame was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Reason {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name in reports, such as `no_route`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

reasons! {
    /// A header is not whole.
    Cut => "cut",
    /// The EtherType is none that the application forwards.
    OtherProtocol => "other_protocol",
    /// The version in an IP header is wrong.
    Version => "version",
    /// The length in a header does not fit the frame.
    Length => "length",
    /// The checksum of an IPv4 header is wrong.
    Checksum => "checksum",
    /// An IPv4 option is malformed, or asks for a source route.
    Options => "options",
    /// The source or the destination is an address that no router forwards (RFC 1812, 5.3.7; RFC 4291, 2.5),
    /// or the source is an IPv4 address of the router itself (RFC 1812, 5.3.8).
    Martian => "martian",
    /// The time to live, or the hop limit, is spent.
    Expired => "expired",
    /// No route leads to the destination.
    NoRoute => "no_route",
    /// The next hop is not resolved yet.
    Unresolved => "unresolved",
    /// The route drops silently.
    Blackhole => "blackhole",
    /// The route says that the destination can't be reached.
    Unreachable => "unreachable",
    /// The route says that the destination is prohibited.
    Prohibited => "prohibited",
    /// The packet is larger than the next link takes, and must not be cut.
    TooBig => "too_big",
    /// The access list denies it.
    Denied => "denied",
    /// The queue of the port is full.
    QueueFull => "queue_full",
    /// No buffer is free.
    NoBuffer => "no_buffer",
    /// The router has no such port, or it is down.
    NoPort => "no_port",
    /// The frame would go out of the port that it came from, and no flow asks for that.
    SamePort => "same_port",
    /// The outer header is not whole, or its lengths or its checksum are wrong.
    EspOuter => "esp_outer",
    /// The ESP packet is shorter than its fields, or no multiple of four bytes.
    EspCut => "esp_cut",
    /// The packet is a fragment of an ESP packet: its bytes wait for the others, or it can't be used. The
    /// frame of the fragment that makes the packet whole goes on.
    EspFragment => "esp_fragment",
    /// No security association has the index and the destination.
    EspNoSa => "esp_no_sa",
    /// The security association was removed while the packet was under way.
    EspSaGone => "esp_sa_gone",
    /// The packet is in UDP and its security association is not, or the other way round.
    EspEncapsulation => "esp_encapsulation",
    /// The sequence number came before, or lies behind the window.
    EspReplay => "esp_replay",
    /// The integrity check failed: a wrong key, or a packet that was changed.
    EspTag => "esp_tag",
    /// The padding is longer than the packet, or not 1, 2, 3 and so on.
    EspPadding => "esp_padding",
    /// The next header is neither IPv4 nor IPv6.
    EspNextHeader => "esp_next_header",
    /// The packet is a dummy that its sender made to hide how much it sends.
    EspDummy => "esp_dummy",
    /// The inner packet is malformed.
    EspInner => "esp_inner",
    /// The outer header says that a queue was congested, and the inner packet can't tell (RFC 6040, 4.2).
    EspCongestion => "esp_congestion",
    /// The UDP datagram keeps a mapping of addresses alive (RFC 3948, 2.3).
    EspKeepalive => "esp_keepalive",
    /// A policy discards the packet, or it came by a security association that its policy does not name, or
    /// the host sent it into tunnels and no policy protects it.
    EspPolicy => "esp_policy",
    /// The packet came in the clear, and its policy wants it protected.
    EspUnprotected => "esp_unprotected",
    /// The policy names a security association that there is none of.
    EspUnkeyed => "esp_unkeyed",
    /// All sequence numbers of the security association are used: it needs a new key.
    EspSequence => "esp_sequence",
    /// A hard limit of the security association is reached: of packets, of bytes or of time.
    EspLifetime => "esp_lifetime",
    /// The inner packet is too large for the tunnel, and must not be cut.
    EspTooBig => "esp_too_big",
    /// The time to live, or the hop limit, of the inner packet is spent.
    EspExpired => "esp_expired",
    /// The buffer has no room for the headers or for the padding.
    EspBuffer => "esp_buffer",
    /// The ESP packet that was put together from fragments is larger than a buffer.
    EspLong => "esp_long",
    /// The frame has a part of a packet, and the whole is needed: parts are not put together.
    Fragment => "fragment",
    /// The link packet says that an Interest found no Data (a Nack of NDNLPv2). It is not passed on.
    Nack => "nack",
    /// The link packet of NDN carries no packet.
    Idle => "idle",
    /// The link packet of NDN has a field that is not known and may not be passed over, or that is wrong.
    LinkField => "link_field",
    /// An Interest like it is on its way: the Data of that one goes to this face, too.
    Pending => "pending",
    /// The Interest was here before: it came back by another way.
    Loop => "loop",
    /// There is no place to note who sent the Interest.
    PitFull => "pit_full",
    /// Nobody waits for the Data.
    Unsolicited => "unsolicited",
    /// The Interest asks for what is not found again by a name: for Data of a digest, for all Data, or for a
    /// prefix of more than 32 components.
    Unanswerable => "unanswerable",
    /// The application dropped it for a reason of its own.
    Application => "application",
    /// The application decided nothing.
    Undecided => "undecided",
}

/// Numbers of dropped frames by reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drops([u64; Reason::ALL.len()]);

impl Default for Drops {
    fn default() -> Self {
        Self([0; Reason::ALL.len()])
    }
}

impl Drops {
    /// Counts a frame.
    #[inline]
    pub fn count(&mut self, reason: Reason) {
        self.0[reason as usize] += 1;
    }

    /// The number of frames that were dropped for a reason.
    #[must_use]
    pub const fn of(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    /// The number of all frames that were dropped.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons that occurred, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL.iter().map(|&reason| (reason, self.of(reason))).filter(|&(_, count)| count > 0)
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at].saturating_sub(before.0[at])))
    }

    /// Adds the numbers of another worker.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }
}
