"""Judges packets by the kernel: frames go in at one interface, and those that nftables lets through come out at another.

Runs in a network namespace of its own, of one router between two veth pairs:

    a0 --> a1 [forward chain] b0 --> b1

For each N in a folder, N.nft is loaded (rules, or what `nft -j list ruleset` wrote), N.json becomes what `nft -j list ruleset` says of it, N.packets holds IP packets (a line of
hexadecimal digits each), and N.seen becomes the numbers of those that came out. A packet ends with its magic word and its number.
"""

import os
import re
import socket
import struct
import subprocess
import sys
import time

MAGIC = b"WIRESPEED"


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def write(path, text):
    try:
        with open(path, "w") as to:
            to.write(text)
    except OSError:
        pass


def prepare():
    for pair in ("a", "b"):
        run("ip", "link", "add", pair + "0", "type", "veth", "peer", "name", pair + "1")
    run("ip", "link", "set", "a1", "address", "02:00:00:00:00:a1")
    for name in ("all", "default", "a0", "a1", "b0", "b1"):
        for family, key, value in (("ipv4", "rp_filter", 0), ("ipv4", "forwarding", 1), ("ipv6", "forwarding", 1), ("ipv6", "accept_dad", 0)):
            write("/proc/sys/net/%s/conf/%s/%s" % (family, name, key), str(value))
    write("/proc/sys/net/ipv4/ip_forward", "1")
    for name in ("lo", "a0", "a1", "b0", "b1"):
        run("ip", "link", "set", name, "up")
    run("ip", "address", "add", "10.254.0.1/24", "dev", "a1")
    run("ip", "address", "add", "10.255.0.1/24", "dev", "b0")
    run("ip", "-6", "address", "add", "2001:db8:ff::1/64", "dev", "b0", "nodad")
    run("ip", "neighbour", "add", "10.255.0.2", "lladdr", "02:00:00:00:00:02", "dev", "b0")
    run("ip", "neighbour", "add", "2001:db8:ff::2", "lladdr", "02:00:00:00:00:02", "dev", "b0")
    run("ip", "route", "add", "default", "via", "10.255.0.2")
    run("ip", "-6", "route", "add", "default", "via", "2001:db8:ff::2", "dev", "b0")


def addresses(packet):
    return packet[12:20] if packet[0] >> 4 == 4 else packet[8:40]


def judge(packets):
    into = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    into.bind(("a0", 0))
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    out.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    out.bind(("b1", 0))
    seen = set()

    def collect(wait):
        out.settimeout(wait)
        try:
            while True:
                frame = out.recv(65535)
                at = frame.rfind(MAGIC)
                if at < 0:
                    continue
                number = struct.unpack("!I", frame[at + len(MAGIC):][:4])[0]
                # What is rejected comes back within an error, from other addresses.
                if number < len(packets) and addresses(frame[14:]) == addresses(packets[number]):
                    seen.add(number)
        except (TimeoutError, socket.timeout, BlockingIOError):
            pass

    for packet in packets:
        ethertype = b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"
        into.send(b"\x02\0\0\0\0\xa1" + b"\x02\0\0\0\0\x01" + ethertype + packet)
    collect(0.25)
    return seen


def load(path):
    """Loads rules, in nft's words but for lines that it refuses, such as those that want two protocols at once."""
    with open(path) as of:
        text = of.read()
    if text.startswith("{"):
        subprocess.run(["nft", "-j", "-f", "-"], input=text, text=True, check=True)
        return
    lines = text.split("\n")
    while True:
        done = subprocess.run(["nft", "-f", "-"], input="\n".join(lines), text=True, capture_output=True)
        if done.returncode == 0:
            return
        at = [int(number) for number in re.findall(r"^/dev/stdin:(\d+):", done.stderr, re.M)]
        if not at or not lines[at[0] - 1].strip():
            raise SystemExit(done.stderr)
        lines[at[0] - 1] = ""


def main(folder):
    prepare()
    time.sleep(0.3)
    for name in sorted(os.listdir(folder)):
        case, dot, kind = name.partition(".")
        if kind != "nft":
            continue
        path = os.path.join(folder, case)
        subprocess.run(["nft", "flush", "ruleset"], check=True)
        load(path + ".nft")
        with open(path + ".json", "wb") as to:
            subprocess.run(["nft", "-j", "list", "ruleset"], check=True, stdout=to)
        with open(path + ".packets") as lines:
            packets = [bytes.fromhex(line) for line in lines]
        seen = judge(packets)
        with open(path + ".seen", "w") as to:
            to.write(" ".join(map(str, sorted(seen))))


main(sys.argv[1])
