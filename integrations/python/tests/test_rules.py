"""Packet classification."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wirespeed
from wirespeed import Classifier

RULES = ["dport=443 proto=tcp priority=10 action=5", "src=10.0.0.0/8 action=6"]
SRC = ["192.0.2.1", "10.1.2.3", "192.0.2.1"]
DST = ["198.51.100.1"] * 3
PROTO, SPORT, DPORT = [6, 17, 17], [40000, 53, 53], [443, 53, 53]


def columns() -> dict[str, tuple[object, ...]]:
    hosts = [np.array([0xC0000201, 0x0A010203, 0xC0000201], np.uint32), np.full(3, 0xC6336401, np.uint32)]
    return {
        "lists": (SRC, DST, PROTO, SPORT, DPORT),
        "numpy": (*hosts, np.array(PROTO, np.uint8), np.array(SPORT, np.uint16), np.array(DPORT)),
        "arrow": (
            pa.array(SRC), pa.chunked_array([DST[:1], DST[1:]]), pa.array(PROTO, pa.uint8()), pa.array(SPORT, pa.uint16()),
            pa.array(DPORT, pa.int32()),
        ),
        "mixed": (SRC, pa.array(DST), np.array(PROTO), tuple(SPORT), pa.array(DPORT)),
    }


@pytest.mark.parametrize("kind", columns())
def test_lookups_of_every_kind(kind: str) -> None:
    classifier = Classifier(RULES)
    packets: tuple[object, ...] = columns()[kind]

    def plain(found: object) -> list[int | None]:
        if isinstance(found, np.ndarray):
            return [int(number) or None for number in found]
        return found if isinstance(found, list) else found.to_pylist()  # type: ignore[attr-defined]

    assert plain(classifier.lookup(*packets)) == [1, 2, None]  # type: ignore[call-overload]
    assert plain(classifier.lookup_actions(*packets)) == [5, 6, None]  # type: ignore[call-overload]


def test_one_packet_and_labels() -> None:
    classifier = Classifier()
    assert classifier.insert("dport=443 proto=tcp", "allow") == 1
    assert classifier.insert("src=10.0.0.0/8", "drop") == 2
    assert classifier.lookup("192.0.2.1", "198.51.100.1", 6, 40000, 443) == 1
    assert classifier.lookup_labels(SRC, DST, PROTO, SPORT, DPORT) == ["allow", "drop", None]
    assert classifier.lookup(["10.0.0.1", None], DST[:2], [6, 6], [1, 1], [443, 443]) == [1, None]
    assert classifier.labels == {1: "allow", 2: "drop"} and len(classifier) == 2
    assert classifier.remove(1) is True and classifier.remove(1) is False
    assert classifier.lookup("192.0.2.1", "198.51.100.1", 6, 40000, 443) is None
    with pytest.raises(wirespeed.StateError):
        Classifier(RULES).insert("proto=udp", "label")


def test_changes_are_whole() -> None:
    classifier = Classifier(RULES)
    assert classifier.apply([(None, "proto=udp priority=99"), (1, None), (2, "src=192.0.2.0/24 action=9")]) == 3
    assert sorted(classifier.rules) == [2, 3]
    assert classifier.lookup_actions(SRC[:1], DST[:1], [6], [1], [1]) == [9]
    wrong: Any
    for wrong in [[(None, None)], [(None, "proto=tcp"), (None, "nonsense")]]:
        with pytest.raises(wirespeed.InputError, match=f"element {len(wrong) - 1}"):
            classifier.apply(wrong)
    assert sorted(classifier.rules) == [2, 3]


def test_ipv6() -> None:
    classifier = Classifier(["src=2001:db8::/32 action=1"], family=6)
    assert classifier.lookup("2001:db8::1", "::1", 6, 1, 2) == 1 and classifier.family == 6
    with pytest.raises(wirespeed.InputError, match="element 0: .* no IPv6 addresses"):
        classifier.lookup("10.0.0.1", "::1", 6, 1, 2)
    assert classifier.lookup(["10.0.0.1"], ["::1"], [6], [1], [2], errors="null") == [None]
    with pytest.raises(wirespeed.InputError, match="family 5"):
        Classifier(family=5)  # type: ignore[arg-type]


def test_wrong_fields() -> None:
    classifier = Classifier(RULES)
    with pytest.raises(wirespeed.InputError, match="dport: element 2: 65536 is not from 0 to 65535"):
        classifier.lookup(SRC, DST, PROTO, SPORT, [1, 2, 65536])
    assert classifier.lookup(SRC, DST, [6, 6, 256], SPORT, [443, 443, 443], errors="null") == [1, 1, None]
    with pytest.raises(wirespeed.InputError, match="elements"):
        classifier.lookup(SRC, DST, PROTO, SPORT, [1])
    with pytest.raises(wirespeed.InputError, match="src: element 0"):
        classifier.lookup(["x"], ["10.0.0.1"], [1], [1], [1])
    wrong: Any
    for wrong in [1.5, "443", np.zeros(3), pa.array([1.5])]:
        with pytest.raises(TypeError, match="dport: no numbers"):
            classifier.lookup(SRC, DST, PROTO, SPORT, wrong)


def test_files_images_and_pickles(tmp_path: Path) -> None:
    saved, image = tmp_path / "rules.v4", tmp_path / "rules.img"
    saved.write_text("*filter\n:INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\n-A INPUT -p tcp --dport 443 -j ACCEPT\nCOMMIT\n")
    with pytest.raises(wirespeed.FileError, match="assume"):
        Classifier.from_file(saved)
    classifier = Classifier.from_file(saved, assume=["in=eth0"])
    expected = ["ACCEPT", "DROP", "DROP"]
    assert classifier.lookup_labels(SRC, DST, PROTO, SPORT, DPORT) == expected
    assert pickle.loads(pickle.dumps(classifier)).lookup_labels(SRC, DST, PROTO, SPORT, DPORT) == expected
    classifier.save(image)
    for copy in [Classifier.open(image), pickle.loads(pickle.dumps(classifier))]:
        assert copy.lookup_labels(SRC, DST, PROTO, SPORT, DPORT) == expected and copy.family == 4
    classifier.remove(1)
    with pytest.raises(wirespeed.StateError, match="save it first"):
        pickle.dumps(classifier)


def test_a_chain_of_a_file(tmp_path: Path) -> None:
    saved, wrong = tmp_path / "rules.v4", tmp_path / "wrong"
    saved.write_text("*filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp --dport 443 -j REJECT\nCOMMIT\n")
    wrong.write_text("dport=443 action=1\n")
    classifier = Classifier.from_file(saved, chain="FORWARD", rule_table="filter")
    expected = ["REJECT", "ACCEPT", "ACCEPT"]
    for _ in range(2):
        assert classifier.lookup_labels(SRC, DST, PROTO, SPORT, DPORT) == expected
        assert pickle.loads(pickle.dumps(Classifier.from_file(saved, chain="FORWARD"))).rules == classifier.rules
        classifier.load(saved)
    assert Classifier.from_file(saved, "iptables").lookup_labels(SRC, DST, PROTO, SPORT, DPORT) == ["DROP"] * 3
    with pytest.raises(wirespeed.FileError, match="OUTPUT"):
        Classifier.from_file(saved, chain="OUTPUT")
    with pytest.raises(wirespeed.InputError, match="no chains"):
        Classifier.from_file(wrong, chain="FORWARD")
    with pytest.raises(wirespeed.InputError, match="xls"):
        Classifier.from_file(saved, "xls")


def test_all_rules_are_replaced(tmp_path: Path) -> None:
    saved, image, wrong = tmp_path / "rules.v4", tmp_path / "rules.img", tmp_path / "wrong"
    saved.write_text("*filter\n:INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\n-A INPUT -p tcp --dport 443 -j ACCEPT\nCOMMIT\n")
    wrong.write_text("*filter\n:INPUT DROP [0:0]\n-A INPUT -m owner --uid-owner 7 -j ACCEPT\nCOMMIT\n")
    classifier = Classifier.from_file(saved, assume=["in=eth0"])
    classifier.save(image)
    saved.write_text("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp --dport 443 -j REJECT\nCOMMIT\n")
    classifier.load(saved)
    assert classifier.lookup_labels(SRC, DST, PROTO, SPORT, DPORT) == ["REJECT", "ACCEPT", "ACCEPT"]
    with pytest.raises(wirespeed.StateError, match="save it first"):
        pickle.dumps(classifier)
    for path, says in [(wrong, "owner"), (tmp_path / "missing", "missing")]:
        with pytest.raises(wirespeed.FileError, match=says):
            classifier.load(path)
    assert classifier.lookup_labels(SRC, DST, PROTO, SPORT, DPORT) == ["REJECT", "ACCEPT", "ACCEPT"]
    classifier.load(image)
    assert classifier.lookup_labels(SRC, DST, PROTO, SPORT, DPORT) == ["ACCEPT", "DROP", "DROP"]
    with pytest.raises(wirespeed.StateError, match="no labels"):
        Classifier(RULES).load(saved)
    with pytest.raises(wirespeed.FileError):
        Classifier(family=6).load(image)
