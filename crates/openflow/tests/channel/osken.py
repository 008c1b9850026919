"""Drives a switch with os-ken's codec: its messages go over TCP, and it reads all answers.

Arguments: host and port. Writes "done" and the number of messages that were read.
"""

import socket
import sys

from os_ken.lib import hub  # noqa: F401  os-ken wants it first
from os_ken.ofproto import ofproto_parser, ofproto_protocol, ofproto_v1_3
from os_ken.ofproto import ofproto_v1_3_parser as parser

ofp = ofproto_v1_3


class Path(ofproto_protocol.ProtocolDesc):
    id = 0
    ports = {}


path = Path(version=ofp.OFP_VERSION)
stream = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30)
count = 0
pending = b""


def send(message):
    message.set_xid(message.xid or 77)
    message.serialize()
    stream.sendall(bytes(message.buf))


def receive():
    global pending, count
    while True:
        if len(pending) >= 8:
            version, kind, length, xid = ofproto_parser.header(pending)
            if len(pending) >= length:
                message = ofproto_parser.msg(path, version, kind, length, xid, pending[:length])
                pending = pending[length:]
                count += 1
                return message
        part = stream.recv(65536)
        assert part, "the switch ended the connection"
        pending += part


def ask(message, wanted):
    """Sends a request and a barrier, and returns what came between."""
    send(message)
    send(parser.OFPBarrierRequest(path))
    found = []
    while True:
        answer = receive()
        if isinstance(answer, parser.OFPBarrierReply):
            break
        found.append(answer)
    assert all(isinstance(answer, wanted) for answer in found), (message, found)
    return found


send(parser.OFPHello(path, elements=[parser.OFPHelloElemVersionBitmap(versions=[4])]))
assert isinstance(receive(), parser.OFPHello)
assert ask(parser.OFPFeaturesRequest(path), parser.OFPSwitchFeatures)[0].n_tables == 254
matches = [
    dict(in_port=1, eth_dst=("02:00:00:00:00:01", "ff:00:00:00:00:ff")),
    dict(eth_type=0x0800, ip_proto=6, ipv4_src=("10.0.0.0", "255.0.0.0"), tcp_dst=80),
    dict(eth_type=0x0800, ip_proto=132, sctp_src=1, ip_dscp=7, ip_ecn=1),
    dict(eth_type=0x86DD, ipv6_dst=("2001:db8::", "ffff:ffff::"), ipv6_flabel=5, ipv6_exthdr=3),
    dict(eth_type=0x86DD, ip_proto=58, icmpv6_type=135, ipv6_nd_target="2001:db8::1", ipv6_nd_sll="02:00:00:00:00:02"),
    dict(eth_type=0x0806, arp_op=1, arp_spa="10.0.0.1", arp_tha="02:00:00:00:00:03"),
    dict(eth_type=0x8847, mpls_label=9, mpls_tc=2, mpls_bos=1),
    dict(eth_type=0x88E7, pbb_isid=77),
    dict(vlan_vid=(0x1000, 0x1000), vlan_pcp=3),
    dict(metadata=(5, 7), tunnel_id=9, in_port=2, in_phy_port=2),
]
actions = [
    parser.OFPActionPushVlan(0x8100),
    parser.OFPActionSetField(vlan_vid=0x1005),
    parser.OFPActionPopVlan(),
    parser.OFPActionPushMpls(0x8847),
    parser.OFPActionSetField(mpls_label=3),
    parser.OFPActionCopyTtlOut(),
    parser.OFPActionDecMplsTtl(),
    parser.OFPActionPopMpls(0x0800),
    parser.OFPActionPushPbb(0x88E7),
    parser.OFPActionPopPbb(),
    parser.OFPActionSetNwTtl(9),
    parser.OFPActionDecNwTtl(),
    parser.OFPActionSetField(eth_src="02:00:00:00:00:09"),
    parser.OFPActionOutput(2, 128),
]
bucket = parser.OFPBucket(weight=1, watch_port=ofp.OFPP_ANY, watch_group=ofp.OFPG_ANY, actions=actions[-2:])
assert not ask(parser.OFPGroupMod(path, ofp.OFPGC_ADD, ofp.OFPGT_SELECT, 1, [bucket]), ())
bands = [parser.OFPMeterBandDrop(1000, 10), parser.OFPMeterBandDscpRemark(500, 5, 1)]
assert not ask(parser.OFPMeterMod(path, ofp.OFPMC_ADD, ofp.OFPMF_KBPS | ofp.OFPMF_BURST, 1, bands), ())
for at, fields in enumerate(matches):
    instructions = [
        parser.OFPInstructionMeter(1, ofp.OFPIT_METER),
        parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions),
        parser.OFPInstructionActions(ofp.OFPIT_WRITE_ACTIONS, [parser.OFPActionGroup(1)]),
        parser.OFPInstructionWriteMetadata(3, 7),
        parser.OFPInstructionGotoTable(9),
    ]
    flow = parser.OFPFlowMod(
        path, cookie=at, table_id=1, priority=at, match=parser.OFPMatch(**fields), instructions=instructions
    )
    assert not ask(flow, ()), fields
stats = ask(parser.OFPFlowStatsRequest(path, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY), parser.OFPFlowStatsReply)
told = {stat.cookie: stat for answer in stats for stat in answer.body}
for at, fields in enumerate(matches):
    wanted = parser.OFPMatch(**fields)
    assert sorted(told[at].match.items()) == sorted(wanted.items()), (told[at].match, wanted)
    kinds = [type(action) for action in told[at].instructions[1].actions]
    assert kinds == [type(action) for action in actions], kinds
for request, reply in [
    (parser.OFPDescStatsRequest(path, 0), parser.OFPDescStatsReply),
    (parser.OFPAggregateStatsRequest(path, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0, parser.OFPMatch()),
     parser.OFPAggregateStatsReply),
    (parser.OFPTableStatsRequest(path, 0), parser.OFPTableStatsReply),
    (parser.OFPPortStatsRequest(path, 0, ofp.OFPP_ANY), parser.OFPPortStatsReply),
    (parser.OFPQueueStatsRequest(path, 0, ofp.OFPP_ANY, ofp.OFPQ_ALL), parser.OFPQueueStatsReply),
    (parser.OFPGroupStatsRequest(path, 0, ofp.OFPG_ALL), parser.OFPGroupStatsReply),
    (parser.OFPGroupDescStatsRequest(path, 0), parser.OFPGroupDescStatsReply),
    (parser.OFPGroupFeaturesStatsRequest(path, 0), parser.OFPGroupFeaturesStatsReply),
    (parser.OFPMeterStatsRequest(path, 0, ofp.OFPM_ALL), parser.OFPMeterStatsReply),
    (parser.OFPMeterConfigStatsRequest(path, 0, ofp.OFPM_ALL), parser.OFPMeterConfigStatsReply),
    (parser.OFPMeterFeaturesStatsRequest(path, 0), parser.OFPMeterFeaturesStatsReply),
    (parser.OFPTableFeaturesStatsRequest(path, 0, []), parser.OFPTableFeaturesStatsReply),
    (parser.OFPPortDescStatsRequest(path, 0), parser.OFPPortDescStatsReply),
    (parser.OFPGetConfigRequest(path), parser.OFPGetConfigReply),
    (parser.OFPGetAsyncRequest(path), parser.OFPGetAsyncReply),
    (parser.OFPRoleRequest(path, ofp.OFPCR_ROLE_MASTER, 1), parser.OFPRoleReply),
    (parser.OFPQueueGetConfigRequest(path, ofp.OFPP_ANY), parser.OFPQueueGetConfigReply),
    (parser.OFPEchoRequest(path, b"x"), parser.OFPEchoReply),
]:
    assert ask(request, reply), request
bad = parser.OFPFlowMod(path, table_id=1, match=parser.OFPMatch(tcp_dst=1))
error = ask(bad, parser.OFPErrorMsg)[0]
assert (error.type, error.code) == (4, 9)
# A bundle that fails as a whole, and one that is made.
for wrong, wanted in [(True, 0), (False, 2)]:
    flows = [parser.OFPFlowMod(path, table_id=2, priority=priority) for priority in (1, 2)]
    flows += [parser.OFPFlowMod(path, table_id=254)] if wrong else []
    flags = ofp.ONF_BF_ATOMIC | ofp.ONF_BF_ORDERED
    opened = ask(parser.ONFBundleCtrlMsg(path, 7, ofp.ONF_BCT_OPEN_REQUEST, flags, []), parser.ONFBundleCtrlMsg)
    assert opened[0].type == ofp.ONF_BCT_OPEN_REPLY and opened[0].bundle_id == 7
    for flow in flows:
        assert not ask(parser.ONFBundleAddMsg(path, 7, flags, flow, []), ())
    answers = ask(
        parser.ONFBundleCtrlMsg(path, 7, ofp.ONF_BCT_COMMIT_REQUEST, flags, []),
        parser.OFPErrorMsg if wrong else parser.ONFBundleCtrlMsg,
    )
    if wrong:
        told = [(answer.type, getattr(answer, "exp_type", None), answer.code) for answer in answers]
        assert told == [(5, None, 2), (0xFFFF, 2313, None)], told
    else:
        assert answers[0].type == ofp.ONF_BCT_COMMIT_REPLY
    sums = parser.OFPAggregateStatsRequest(path, 0, 2, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0, parser.OFPMatch())
    assert ask(sums, parser.OFPAggregateStatsReply)[0].body.flow_count == wanted
# Outputs of packets without a match, with an answer from the tables.
miss = parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [parser.OFPActionOutput(ofp.OFPP_CONTROLLER)])
assert not ask(parser.OFPFlowMod(path, priority=0, instructions=[miss]), ())
out = parser.OFPPacketOut(
    path, ofp.OFP_NO_BUFFER, 1, [parser.OFPActionOutput(ofp.OFPP_TABLE)], b"\x02" * 64
)
send(out)
packet = receive()
assert isinstance(packet, parser.OFPPacketIn) and packet.match["in_port"] == 1 and len(packet.data) == 64
remove = parser.OFPFlowMod(
    path, table_id=ofp.OFPTT_ALL, command=ofp.OFPFC_DELETE, out_port=ofp.OFPP_ANY, out_group=ofp.OFPG_ANY
)
assert not ask(remove, ())
print("done", count)
