//! [`Failure`]: the type and the code of an error message.

/// The reason why a request fails, as an error message tells it (specification 1.3.5, section 7.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("OpenFlow error {kind}, code {code}")]
pub struct Failure {
    /// The type.
    pub kind: u16,
    /// The code within the type.
    pub code: u16,
}

macro_rules! failures {
    ($($kind:literal: $($code:literal $name:ident)+;)+) => {
        #[allow(missing_docs)] // the names are those of the specification
        impl Failure {
            $($(pub const $name: Self = Self { kind: $kind, code: $code };)+)+
        }
    };
}

failures! {
    0: 0 HELLO_INCOMPATIBLE;
    1: 0 BAD_VERSION 1 BAD_TYPE 2 BAD_MULTIPART 3 BAD_EXPERIMENTER 6 BAD_LEN 8 BUFFER_UNKNOWN 9 BAD_TABLE_ID
       10 IS_SLAVE 11 BAD_PORT 12 BAD_PACKET 13 MULTIPART_OVERFLOW;
    2: 0 ACTION_TYPE 1 ACTION_LEN 2 ACTION_EXPERIMENTER 4 ACTION_OUT_PORT 5 ACTION_ARGUMENT 7 ACTION_TOO_MANY 9 ACTION_OUT_GROUP
       10 ACTION_INCONSISTENT 12 ACTION_TAG 13 ACTION_SET_TYPE 14 ACTION_SET_LEN 15 ACTION_SET_ARGUMENT;
    3: 0 INSTRUCTION_UNKNOWN 1 INSTRUCTION_UNSUPPORTED 2 INSTRUCTION_TABLE 5 INSTRUCTION_EXPERIMENTER
       7 INSTRUCTION_LEN;
    4: 0 MATCH_TYPE 1 MATCH_LEN 6 MATCH_FIELD 7 MATCH_VALUE 8 MATCH_MASK 9 MATCH_PREREQ 10 MATCH_DUP;
    5: 1 FLOW_TABLE_FULL 2 FLOW_TABLE 3 FLOW_OVERLAP 6 FLOW_COMMAND 7 FLOW_FLAGS;
    6: 0 GROUP_EXISTS 1 GROUP_INVALID 3 OUT_OF_GROUPS 4 OUT_OF_BUCKETS 7 GROUP_LOOP 8 GROUP_UNKNOWN
       9 GROUP_CHAINED 10 GROUP_TYPE 11 GROUP_COMMAND 12 GROUP_BUCKET 13 GROUP_WATCH;
    7: 0 PORT_BAD 1 PORT_ADDRESS 2 PORT_CONFIG;
    8: 0 TABLE_BAD 1 TABLE_CONFIG;
    9: 0 QUEUE_PORT;
    10: 0 CONFIG_FLAGS;
    11: 0 ROLE_STALE 2 ROLE_BAD;
    12: 1 METER_EXISTS 2 METER_INVALID 3 METER_UNKNOWN 4 METER_COMMAND 5 METER_FLAGS 6 METER_RATE
        8 METER_BAND 9 METER_BAND_VALUE 10 OUT_OF_METERS 11 OUT_OF_BANDS;
    13: 5 FEATURES_EPERM;
}
