#!/usr/bin/env python3
"""Makes frames.txt: inner packets, and the ESP packets that scapy makes of them.

    python3 -m venv /tmp/scapy && /tmp/scapy/bin/pip install scapy cryptography
    /tmp/scapy/bin/python make.py > frames.txt

Each case is a line for the security association, as `ip xfrm state` takes it, and then pairs of lines: `inner` and
`outer` with a packet in hexadecimal. The sequence numbers of a case rise.
"""

import scapy
from scapy.config import conf

conf.ipv6_enabled = True
from scapy.all import ICMP, IP, TCP, UDP, IPv6, raw
from scapy.layers.ipsec import ESP, SecurityAssociation

KEY_128 = bytes(range(0x10, 0x20))
KEY_256 = bytes(range(0x20, 0x40))
SALT = b"\xca\xfe\xba\xbe"
AUTH = bytes(range(0x40, 0x54))

ALGORITHMS = {
    "gcm128": (dict(crypt_algo="AES-GCM", crypt_key=KEY_128 + SALT),
               f"aead rfc4106(gcm(aes)) 0x{(KEY_128 + SALT).hex()} 128"),
    "gcm256": (dict(crypt_algo="AES-GCM", crypt_key=KEY_256 + SALT),
               f"aead rfc4106(gcm(aes)) 0x{(KEY_256 + SALT).hex()} 128"),
    "ctr": (dict(crypt_algo="AES-CTR", crypt_key=KEY_128 + SALT, auth_algo="HMAC-SHA1-96", auth_key=AUTH),
            f"enc rfc3686(ctr(aes)) 0x{(KEY_128 + SALT).hex()} auth-trunc hmac(sha1) 0x{AUTH.hex()} 96"),
    "null": (dict(crypt_algo="NULL", auth_algo="HMAC-SHA1-96", auth_key=AUTH),
             f"enc cipher_null '' auth-trunc hmac(sha1) 0x{AUTH.hex()} 96"),
}

TUNNELS = {
    4: (IP(src="192.0.2.1", dst="192.0.2.2"), "192.0.2.1", "192.0.2.2"),
    6: (IPv6(src="2001:db8::1", dst="2001:db8::2"), "2001:db8::1", "2001:db8::2"),
}


def inner(family, length, tos=0):
    data = bytes(at % 251 for at in range(length))
    if family == 4:
        return IP(src="10.1.0.1", dst="10.2.0.2", ttl=64, tos=tos, flags="DF") / UDP(sport=1000, dport=2000) / data
    return IPv6(src="fd00:1::1", dst="fd00:2::2", hlim=64, tc=tos) / TCP(sport=1000, dport=2000) / data


def main():
    print(f"# Made by make.py with scapy {scapy.__version__}.")
    spi = 0x1000
    for name, (arguments, words) in ALGORITHMS.items():
        for outer, (header, src, dst) in TUNNELS.items():
            for esn in (False, True):
                for udp in (False, True):
                    if udp and (outer == 6 or esn):
                        continue
                    spi += 1
                    extra = dict(nat_t_header=UDP(sport=4500, dport=4500)) if udp else {}
                    sa = SecurityAssociation(ESP, spi=spi, seq_num=1, tunnel_header=header, esn_en=esn,
                                             esn=2 if esn else 0, **arguments, **extra)
                    line = f"ip xfrm state add src {src} dst {dst} proto esp spi {spi:#x} mode tunnel {words}"
                    if esn:
                        line += " flag esn replay-seq-hi 2 replay-seq 0 replay-oseq-hi 2"
                    if udp:
                        line += " encap espinudp 4500 4500 0.0.0.0"
                    print(f"# {name}, outer IPv{outer}{', ESN' if esn else ''}{', in UDP' if udp else ''}")
                    print(line)
                    for family in (4, 6):
                        for length in (0, 1, 2, 3, 100):
                            packet = inner(family, length, tos=0xb8 if length == 3 else 0)
                            packet = packet.__class__(raw(packet))
                            sealed = sa.encrypt(packet, esn_en=esn, esn=2 if esn else 0)
                            print("inner", raw(packet).hex())
                            print("outer", raw(sealed).hex())


main()
