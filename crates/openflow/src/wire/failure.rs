//! [`Failure`]: the type and the code of an error message.

use std::fmt;

/// The reason why a request fails, as an error message tells it (specification 1.3.5, section 7.4.4). Errors
/// of bundles have their numbers of version 1.4, where they are of type 17.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub struct Failure {
    /// The type.
    pub kind: u16,
    /// The code within the type.
    pub code: u16,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, code } = self;
        match self.reason() {
            Some(reason) => write!(f, "{reason} (OpenFlow error {kind}, code {code})"),
            None => write!(f, "OpenFlow error {kind}, code {code}"),
        }
    }
}

macro_rules! failures {
    ($($kind:literal: $($code:literal $name:ident $reason:literal),+;)+) => {
        #[allow(missing_docs)] // the names are those of the specification
        impl Failure {
            $($(pub const $name: Self = Self { kind: $kind, code: $code };)+)+

            /// The reason in words, if the error is one that this switch sends.
            const fn reason(self) -> Option<&'static str> {
                match (self.kind, self.code) {
                    $($(($kind, $code) => Some($reason),)+)+
                    _ => None,
                }
            }
        }
    };
}

failures! {
    0: 0 HELLO_INCOMPATIBLE "no common version";
    1: 0 BAD_VERSION "another version than the one agreed on",
       1 BAD_TYPE "unknown type of message",
       2 BAD_MULTIPART "unknown type of multipart request",
       3 BAD_EXPERIMENTER "unknown experimenter of a message",
       4 BAD_EXP_TYPE "unknown type of an experimenter's message",
       6 BAD_LEN "wrong length of a message",
       8 BUFFER_UNKNOWN "unknown buffer",
       9 BAD_TABLE_ID "no such table",
       10 IS_SLAVE "a controller in the role slave changes nothing",
       11 BAD_PORT "no such port",
       12 BAD_PACKET "packet that can't be sent",
       13 MULTIPART_OVERFLOW "too long a multipart request";
    2: 0 ACTION_TYPE "unknown action",
       1 ACTION_LEN "wrong length of an action",
       2 ACTION_EXPERIMENTER "unknown experimenter of an action",
       4 ACTION_OUT_PORT "output to a port that is not there",
       5 ACTION_ARGUMENT "wrong argument of an action",
       7 ACTION_TOO_MANY "too many actions",
       8 ACTION_QUEUE "no such queue: ports have none",
       9 ACTION_OUT_GROUP "no such group",
       10 ACTION_INCONSISTENT "action that the match does not allow",
       12 ACTION_TAG "unknown tag to push",
       13 ACTION_SET_TYPE "field that can't be set",
       14 ACTION_SET_LEN "wrong length of a field to set",
       15 ACTION_SET_ARGUMENT "wrong value of a field to set";
    3: 0 INSTRUCTION_UNKNOWN "unknown instruction",
       1 INSTRUCTION_UNSUPPORTED "instruction that this switch does not have",
       2 INSTRUCTION_TABLE "goto to a table that does not come later",
       5 INSTRUCTION_EXPERIMENTER "unknown experimenter of an instruction",
       7 INSTRUCTION_LEN "wrong length of an instruction";
    4: 0 MATCH_TYPE "unknown type of match",
       1 MATCH_LEN "wrong length of a match",
       6 MATCH_FIELD "unknown field in a match",
       7 MATCH_VALUE "wrong value in a match",
       8 MATCH_MASK "wrong mask in a match",
       9 MATCH_PREREQ "match of a field without what it needs, such as a protocol",
       10 MATCH_DUP "field that a match has twice";
    5: 1 FLOW_TABLE_FULL "the table is full",
       2 FLOW_TABLE "no such table",
       3 FLOW_OVERLAP "a flow of this priority overlaps",
       6 FLOW_COMMAND "unknown command for a flow",
       7 FLOW_FLAGS "unknown flags of a flow";
    6: 0 GROUP_EXISTS "the group is there already",
       1 GROUP_INVALID "wrong group",
       3 OUT_OF_GROUPS "too many groups",
       4 OUT_OF_BUCKETS "too many buckets",
       7 GROUP_LOOP "groups that lead to each other",
       8 GROUP_UNKNOWN "no such group",
       9 GROUP_CHAINED "group that others lead to",
       10 GROUP_TYPE "unknown type of group",
       11 GROUP_COMMAND "unknown command for a group",
       12 GROUP_BUCKET "wrong bucket",
       13 GROUP_WATCH "no such port or group to watch";
    7: 0 PORT_BAD "no such port",
       1 PORT_ADDRESS "another address than the port's",
       2 PORT_CONFIG "setting of a port that can't be had";
    8: 0 TABLE_BAD "no such table",
       1 TABLE_CONFIG "setting of a table that can't be had";
    9: 0 QUEUE_PORT "no such port";
    10: 0 CONFIG_FLAGS "unknown flags of the switch";
    11: 0 ROLE_STALE "request for a role by an old generation",
        2 ROLE_BAD "unknown role";
    12: 1 METER_EXISTS "the meter is there already",
        2 METER_INVALID "wrong meter",
        3 METER_UNKNOWN "no such meter",
        4 METER_COMMAND "unknown command for a meter",
        5 METER_FLAGS "unknown flags of a meter",
        6 METER_RATE "rate that can't be had",
        8 METER_BAND "unknown band of a meter",
        9 METER_BAND_VALUE "wrong value of a band",
        10 OUT_OF_METERS "too many meters",
        11 OUT_OF_BANDS "too many bands";
    13: 5 FEATURES_EPERM "this switch's tables can't be changed";
    17: 2 BUNDLE_ID "no such bundle, or one that was there already",
        4 BUNDLE_CLOSED "the bundle is closed",
        5 OUT_OF_BUNDLES "too many bundles",
        6 BUNDLE_TYPE "unknown type of request about a bundle",
        7 BUNDLE_FLAGS "unknown flags of a bundle, or others than it was opened with",
        8 BUNDLE_MSG_LEN "wrong length of a message in a bundle",
        9 BUNDLE_MSG_XID "message in a bundle with another number than the one around it",
        10 BUNDLE_MSG_UNSUP "message that can't be in a bundle",
        12 BUNDLE_MSG_TOO_MANY "too many messages in bundles",
        13 BUNDLE_MSG_FAILED "a message of the bundle failed",
        14 BUNDLE_TIMEOUT "nothing was said of the bundle for too long";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_why_in_words() {
        let told =
            [Failure::ACTION_OUT_PORT, Failure { kind: 99, code: 7 }].map(|failure| failure.to_string());
        let right =
            ["output to a port that is not there (OpenFlow error 2, code 4)", "OpenFlow error 99, code 7"];
        assert_eq!(told, right);
    }
}
