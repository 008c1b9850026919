"""Sends packets through the FORWARD chain of a network namespace, and says which of them came out on its other side.

    sender (namespace s) a0 ==== a1 router (this namespace) b1 ==== b0 receiver (namespace s)

Started in a network and mount namespace of its own, with a folder that has, for each N in its file `rounds`:
  N.family   4 or 6
  N.sets     `ipset restore` input, may be empty
  N.rules    what iptables-restore or ip6tables-restore loads
  N.packets  a packet a line: src dst sport dport proto
and writes N.accepted, the places of those that were forwarded, or N.refused, with what the tool said.
"""

import ctypes, os, pathlib, select, socket, struct, subprocess, sys, time

CLONE_NEWNET = 0x40000000
SO_RCVBUFFORCE = 33
LAST = 0xFFFE  # the place of the packet that says that all before it are through
folder = pathlib.Path(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)


def run(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, **more)


def enter(path):
    with open(path) as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def lay_out():
    run("mount", "-t", "tmpfs", "none", "/run")
    run("ip", "netns", "add", "s")
    for end in "ab":
        run("ip", "link", "add", end + "1", "type", "veth", "peer", "name", end + "0", "netns", "s")
        run("ip", "-n", "s", "link", "set", end + "0", "up")
    for name, value in [
        ("ipv4/ip_forward", 1), ("ipv4/conf/all/rp_filter", 0), ("ipv4/conf/default/rp_filter", 0),
        ("ipv4/conf/a1/rp_filter", 0), ("ipv4/conf/b1/rp_filter", 0), ("ipv6/conf/all/forwarding", 1),
        ("ipv4/conf/all/send_redirects", 0), ("ipv4/conf/a1/send_redirects", 0), ("ipv4/conf/b1/send_redirects", 0),
    ]:
        pathlib.Path("/proc/sys/net/" + name).write_text(str(value))
    run("ip", "link", "set", "lo", "up")
    for end, v4, v6 in [("a", "198.18.1.1/24", "fd00:1::1/64"), ("b", "198.18.2.1/24", "fd00:2::1/64")]:
        run("ip", "link", "set", end + "1", "up")
        run("ip", "addr", "add", v4, "dev", end + "1")
        run("ip", "addr", "add", v6, "dev", end + "1", "nodad")
    for family, gateway in [("-4", "198.18.2.2"), ("-6", "fd00:2::2")]:
        run("ip", family, "neigh", "add", gateway, "lladdr", "02:00:00:00:00:02", "dev", "b1", "nud", "permanent")
        run("ip", family, "route", "add", "default", "via", gateway, "dev", "b1")


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def transport(sport, dport, proto, pseudo):
    """The header, with the right checksum where connection tracking looks at it."""
    if proto == 6:
        head, at = struct.pack("!HHIIBBHHH", sport, dport, 1, 0, 0x50, 0x02, 1024, 0, 0), 16
    elif proto in (17, 136):
        head, at = struct.pack("!HHHH", sport, dport, 12 if proto == 17 else 8, 0) + b"data", 6
    elif proto in (1, 58):
        head, at = struct.pack("!BBHI", sport, dport, 0, 0x00010001) + b"data", 2
    elif proto == 132:
        return struct.pack("!HHII", sport, dport, 1, 0) + struct.pack("!BBHIIHHI", 1, 0, 20, 1, 1024, 1, 1, 1)
    elif proto == 33:
        return struct.pack("!HHBBHBBHI", sport, dport, 4, 0, 0, 0, 0, 0, 0) + b"\0" * 4
    else:
        return b"some data without ports "
    over = head if proto == 1 else pseudo + struct.pack("!II", len(head), proto) + head
    return head[:at] + struct.pack("!H", checksum(over) or 0xFFFF) + head[at + 2:]


def frame(family, place, src, dst, sport, dport, proto, to):
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    src, dst = socket.inet_pton(kind, src), socket.inet_pton(kind, dst)
    rest = transport(sport, dport, proto, src + dst)
    if family == 4:
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(rest), place, 0, 64, proto, 0) + src + dst
        head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
        return to + b"\x02\0\0\0\0\x01" + b"\x08\0" + head + rest
    head = struct.pack("!IHBB", 6 << 28 | place, len(rest), proto, 64) + src + dst
    return to + b"\x02\0\0\0\0\x01" + b"\x86\xdd" + head + rest


def place_of(family, data):
    """The place of a frame that came out, with its addresses."""
    if family == 4 and data[12:14] == b"\x08\0":
        return struct.unpack("!H", data[18:20])[0], data[26:34]
    if family == 6 and data[12:14] == b"\x86\xdd":
        return struct.unpack("!I", data[14:18])[0] & 0xFFFFF, data[22:54]
    return None, None


def through(family, packets, sender, receiver, to):
    """The places of the packets that come out."""
    last = ("198.18.9.9", "198.18.9.10", 9, 9, 17) if family == 4 else ("fd00:9::9", "fd00:9::10", 9, 9, 17)
    frames = [(place, frame(family, place, *packet, to)) for place, packet in enumerate(packets)]
    addresses = slice(26, 34) if family == 4 else slice(22, 54)
    sent = {place: data[addresses] for place, data in frames}
    end = frame(family, LAST, *last, to)
    sent[LAST] = end[addresses]
    out = set()
    for at in range(0, len(frames), 100):
        for _, data in frames[at:at + 100]:
            sender.send(data)
        sender.send(end)
        until = time.time() + 5
        while time.time() < until and select.select([receiver], [], [], 0.2)[0]:
            place, found = place_of(family, receiver.recv(2048))
            if place is not None and sent.get(place) == found:
                if place == LAST:
                    break
                out.add(place)
        else:
            raise RuntimeError("the last packet did not come through")
    # What was still under way on another core.
    while select.select([receiver], [], [], 0.02)[0]:
        place, found = place_of(family, receiver.recv(2048))
        if place is not None and place != LAST and sent.get(place) == found:
            out.add(place)
    return sorted(out)


def main():
    lay_out()
    own = "/proc/self/ns/net"
    with open(own) as router:
        to = bytes.fromhex(pathlib.Path("/sys/class/net/a1/address").read_text().strip().replace(":", "")) \
            if pathlib.Path("/sys/class/net/a1/address").exists() else address_of("a1")
        enter("/run/netns/s")
        sender, receiver = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in "ab")
        sender.bind(("a0", 0))
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        receiver.bind(("b0", 3))
        libc.setns(router.fileno(), CLONE_NEWNET)
    for name in (folder / "rounds").read_text().split():
        family = int((folder / (name + ".family")).read_text())
        six = "6" if family == 6 else ""
        for each in ("", "6"):
            run(f"ip{each}tables-restore", input=b"*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n")
        run("ipset", "destroy")
        sets = (folder / (name + ".sets")).read_bytes()
        filled = subprocess.run(["ipset", "-exist", "restore"], input=sets, capture_output=True)
        if filled.returncode != 0:
            (folder / (name + ".refused")).write_bytes(filled.stderr)
            continue
        loaded = subprocess.run([f"ip{six}tables-restore", folder / (name + ".rules")], capture_output=True)
        if loaded.returncode != 0:
            (folder / (name + ".refused")).write_bytes(loaded.stderr)
            continue
        packets = [line.split() for line in (folder / (name + ".packets")).read_text().splitlines()]
        packets = [(src, dst, int(sport), int(dport), int(proto)) for src, dst, sport, dport, proto in packets]
        accepted = through(family, packets, sender, receiver, to)
        (folder / (name + ".accepted")).write_text("\n".join(map(str, accepted)))
        saved = run(f"ip{six}tables-save", "-t", "filter").stdout
        (folder / (name + ".saved")).write_bytes(saved)
    print("done")


def address_of(link):
    words = run("ip", "-o", "link", "show", link).stdout.decode().split()
    return bytes.fromhex(words[words.index("link/ether") + 1].replace(":", ""))


main()
