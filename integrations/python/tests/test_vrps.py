"""Origin validation by the RPKI."""

import json
import pickle
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wirespeed
from wirespeed import Vrps

PAYLOADS: list[tuple[Any, int | None, int]] = [
    ("10.0.0.0/8", 16, 1), ("10.0.0.0/12", None, 2), ("2001:db8::/32", 48, 1), ("192.0.2.0/24", None, 0)
]
# RFC 6811: a payload matches by its AS and the length, and covers a route by its prefix.
PREFIXES = ["10.9.0.0/16", "10.9.9.0/24", "10.0.0.0/12", "11.0.0.0/8", "2001:db8:1::/48", "192.0.2.0/24", "10.0.0.0/12"]
ORIGINS = [1, 1, 2, 1, 1, 0, 3]
STATES = ["valid", "invalid", "valid", "not-found", "valid", "invalid", "invalid"]


def test_routes_of_every_kind() -> None:
    vrps = Vrps(PAYLOADS)
    assert len(vrps) == 4 and vrps.rov("10.9.0.0/16", 1) == "valid" and vrps.rov("10.9.0.0/16", "AS2") == "invalid"
    assert vrps.rov(PREFIXES, ORIGINS) == STATES
    assert vrps.rov(tuple(ip_network(prefix) for prefix in PREFIXES), tuple(ORIGINS)) == STATES
    assert vrps.rov(PREFIXES, np.array(ORIGINS, np.uint32)) == STATES
    texts = [f"AS{origin}" for origin in ORIGINS]
    for origins in [
        texts, pa.array(ORIGINS, pa.uint32()), pa.array(ORIGINS), pa.array(texts), pa.array(texts).dictionary_encode(),
        pa.chunked_array([ORIGINS[:2], ORIGINS[2:]]),
    ]:
        assert vrps.rov(PREFIXES, origins) == STATES
        for prefixes in [
            pa.array(PREFIXES), pa.chunked_array([PREFIXES[:3], PREFIXES[3:]]), pa.array(PREFIXES).dictionary_encode()
        ]:
            assert pa.array(vrps.rov(prefixes, origins)).to_pylist() == STATES
    assert vrps.rov(["10.9.0.0/16", None, "10.9.0.0/16"], [None, 1, "{1,2}"]) == [None, None, "invalid"]
    assert vrps.rov(["10.9.0.0/16"] * 2, [1, "AS2"]) == ["valid", "invalid"]
    assert Vrps().rov(["10.0.0.0/8"], [1]) == ["not-found"]


def test_wrong_routes() -> None:
    vrps = Vrps(PAYLOADS)
    wrong: Any
    for prefixes, wrong, says in [
        (["10.0.0.0/8", "10.0.0.0/33"], [1, 1], "prefixes: element 1: \"10.0.0.0/33\" is no prefix"),
        (["10.0.0.1/8"], [1], "prefixes: element 0: \"10.0.0.1/8\" is no prefix"),
        (["10.0.0.0/8"], [1 << 32], "origins: element 0: 4294967296 is not from 0 to 4294967295"),
        (["10.0.0.0/8"], [-1], "origins: element 0: -1 is not from"),
        (["10.0.0.0/8"], ["ASx"], "origins: element 0: \"ASx\" is not an AS number"),
    ]:
        with pytest.raises(wirespeed.InputError, match=says.replace(".", r"\.")):
            vrps.rov(prefixes, wrong)
        assert vrps.rov(prefixes, wrong, errors="null")[-1] is None
    with pytest.raises(wirespeed.InputError, match=r"prefixes and origins have \[1, 2\] elements"):
        vrps.rov(["10.0.0.0/8"], [1, 1])
    routes: Any
    one = ["10.0.0.0/8"]
    for routes, wrong in [(one, [1.5]), ([1], [1]), (one, pa.array([1.5])), (one, 1.5)]:
        with pytest.raises(TypeError):
            vrps.rov(routes, wrong)


def test_wrong_payloads() -> None:
    wrong: Any
    for wrong, says in [
        (("10.0.0.0/8", 7, 1), "element 0: 10.0.0.0/8: a longest length of 7"),
        (("10.0.0.0/8", 33, 1), "a longest length of 33"),
        (("10.0.0.1/8", 16, 1), "host bits are set"),
        (("10.0.0.0/8", 16, -1), "-1 is no AS number"),
        (("10.0.0.0/8", 256, 1), "256 is no longest length"),
    ]:
        with pytest.raises(wirespeed.InputError, match=says):
            Vrps([wrong])
    for wrong in [[("10.0.0.0/8", 16)], ["10.0.0.0/8"], [("10.0.0.0/8", 16, "AS1")]]:
        with pytest.raises(TypeError, match="element 0"):
            Vrps(wrong)


def test_files_and_pickles(tmp_path: Path) -> None:
    path = tmp_path / "vrps.json"
    roas = [
        {"asn": 1, "prefix": "10.0.0.0/8", "maxLength": 16, "ta": "ripe"},
        {"asn": 2, "prefix": "2001:db8::/32", "maxLength": 32, "ta": "arin"},
    ]
    path.write_text(json.dumps({"roas": roas}))
    vrps = Vrps.from_file(path)
    for copy in [vrps, pickle.loads(pickle.dumps(vrps))]:
        assert copy.rov(PREFIXES[:2], [1, 1]) == ["valid", "invalid"] and len(copy) == 2 and copy.skipped == {}
    assert repr(vrps) == "<wirespeed.Vrps of 1 IPv4 and 1 IPv6 payloads>"
    with pytest.raises(wirespeed.StateError, match="not what a file holds: read a file"):
        pickle.dumps(Vrps(PAYLOADS))
    path.write_text("ASN,IP Prefix,Max Length,Trust Anchor\nAS1,10.0.0.0/8,16,ripe\nAS1,10.0.0.0/8,33,ripe\n")
    with pytest.raises(wirespeed.FileError, match="vrps.json:3"):
        Vrps.from_file(path)
    lenient = Vrps.from_file(path, lenient=True)
    assert len(lenient) == 1 and sum(lenient.skipped.values()) == 1
