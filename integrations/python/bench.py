"""Rates of lookups from Python, beside the façade in Rust and other packages of Python.

    WIRESPEED_DATA=DIR python bench.py --rust BATCH_RATE [--mmdb FILE] [--spark] [--rounds 7]

BATCH_RATE is the example of that name: cargo build --release -p wirespeed-python --example batch_rate. The table is
fib/ris-20260511-v4.txt.zst of the directory; the addresses are a million, each drawn in a random prefix of the table.
All take turns on the same addresses, and their answers are compared before a rate is printed. Rates are per second of
the thread's CPU time.

FILE is the table as a MaxMind DB, for maxminddb: lookupctl build --fib TABLE --to mmdb -o FILE. With --spark a local
cluster of pyspark with one core looks the addresses up by mapInArrow, and passes them through it without a lookup; its
rates are by the wall clock. It needs java, pyspark and pandas.
"""

import argparse
import importlib
import ipaddress
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wirespeed import Table

ADDRESSES = 1_000_000
SEED = 7


def optional(name: str) -> Any:
    """Import a package, or say that it is left out."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"skipped: {name} is not installed")
        return None


def others(
    numbers: dict[str, int], of_label: dict[str, int], texts: list[str], folder: Path, mmdb: Path | None
) -> dict[str, Callable[[], list[int]]]:
    """What other packages do with the same prefixes and addresses, one address a call."""
    runs: dict[str, Callable[[], list[int]]] = {}
    if pytricia := optional("pytricia"):
        trie = pytricia.PyTricia(32)
        for prefix, number in numbers.items():
            trie.insert(prefix, number)
        runs["pytricia, texts"] = lambda: [trie.get(text, 0) for text in texts]
    if radix := optional("radix"):
        tree = radix.Radix()
        for prefix, number in numbers.items():
            tree.add(prefix).data["number"] = number

        def by_radix() -> list[int]:
            search = tree.search_best
            return [node.data["number"] if (node := search(text)) else 0 for text in texts]

        runs["py-radix, texts"] = by_radix
    if pyasn := optional("pyasn"):
        path = folder / "pyasn.txt"
        path.write_text("".join(f"{prefix}\t{number}\n" for prefix, number in numbers.items()))
        database = pyasn.pyasn(str(path))
        runs["pyasn, texts"] = lambda: [database.lookup(text)[0] or 0 for text in texts]
    if mmdb and (maxminddb := optional("maxminddb")):
        get = maxminddb.open_database(str(mmdb), maxminddb.MODE_MMAP_EXT).get

        def by_mmdb() -> list[int]:
            return [of_label[str(record["value"])] if (record := get(text)) else 0 for text in texts]

        runs["maxminddb in C, texts"] = by_mmdb
    return runs


def by_spark(table: Table, hosts: np.ndarray[Any, Any], expected: int, folder: Path, rounds: int) -> None:
    """Rates of mapInArrow over a column of addresses in Parquet, with a lookup and without."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    flows, image = folder / "flows.parquet", str(folder / "table.img")
    table.save(image)
    repeats = 20
    pq.write_table(pa.table({"dst": pa.array(np.tile(hosts, repeats).view(np.int32))}), flows)
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")

    def summed(looks_up: bool) -> Callable[[], int]:
        def sums(batches: Any) -> Any:
            opened = Table.open(image)
            for batch in batches:
                found = batch.column(0).to_numpy().view(np.uint32)
                found = opened.lookup(found) if looks_up else found
                yield pa.RecordBatch.from_pydict({"total": pa.array([int(found.sum(dtype=np.uint64))])})

        return lambda: sum(row.total for row in session.read.parquet(str(flows)).mapInArrow(sums, "total long").collect())

    runs = {"Spark, mapInArrow alone": summed(False), "Spark, mapInArrow with lookup": summed(True)}
    assert runs["Spark, mapInArrow alone"]() == int(hosts.sum(dtype=np.uint64)) * repeats
    assert runs["Spark, mapInArrow with lookup"]() == expected * repeats, "Spark"
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    session.stop()
    print(f"{repeats * len(hosts)} addresses in Parquet, one core; M addresses per second of the wall clock")
    for name, times in seconds.items():
        rates = [repeats * len(hosts) / each / 1e6 for each in (statistics.median(times), max(times), min(times))]
        print(f"{name:30} median {rates[0]:8.2f}, {rates[1]:.2f} to {rates[2]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rust", type=Path, required=True, help="the example batch_rate")
    parser.add_argument("--mmdb", type=Path, help="the table as a MaxMind DB")
    parser.add_argument("--spark", action="store_true", help="measure pyspark, too")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    data = Path(os.environ.get("WIRESPEED_DATA", "/nonexistent")) / "fib/ris-20260511-v4.txt.zst"
    if not data.exists():
        print(f"skipped: there is no {data}")
        return
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        routes, packed = folder / "routes.txt", folder / "addresses.bin"
        with pa.CompressedInputStream(pa.OSFile(str(data)), "zstd") as source:
            routes.write_bytes(source.read())
        table = Table.from_file(routes)
        of_label = {label: number for number, label in table.labels.items()}
        numbers = {prefix: of_label[str(label)] for prefix, label in table.items()}

        source_of_random = random.Random(SEED)
        nets = [(int(net.network_address), net.num_addresses) for net in map(ipaddress.IPv4Network, numbers)]
        drawn = source_of_random.choices(nets, k=ADDRESSES)
        hosts = np.array([first + source_of_random.randrange(count) for first, count in drawn], dtype=np.uint32)
        packed.write_bytes(hosts.astype("<u4").tobytes())
        texts = [str(ipaddress.IPv4Address(int(host))) for host in hosts]
        arrow_hosts, arrow_texts = pa.array(hosts), pa.array(texts)
        binary = pa.array([int(host).to_bytes(4, "big") for host in hosts], pa.binary(4))

        rust = subprocess.Popen(
            [options.rust, routes, packed], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert rust.stdin and rust.stdout
        question, answer = rust.stdin, rust.stdout
        sums: list[int] = []

        def by_rust() -> float:
            question.write("\n")
            seconds, total = answer.readline().split()
            sums.append(int(total))
            return float(seconds)

        def timed(run: Callable[[], Sequence[int] | np.ndarray[Any, Any] | pa.Array | Any]) -> Callable[[], float]:
            def time_it() -> float:
                start = time.thread_time()
                run()
                return time.thread_time() - start

            return time_it

        ours: dict[str, Callable[[], Any]] = {
            "wirespeed, numpy uint32": lambda: table.lookup(hosts),
            "wirespeed, Arrow uint32": lambda: table.lookup(arrow_hosts),
            "wirespeed, Arrow binary of 4": lambda: table.lookup(binary),
            "wirespeed, Arrow texts": lambda: table.lookup(arrow_texts),
            "wirespeed, list of texts": lambda: table.lookup(texts),
        }
        rivals = others(numbers, of_label, texts, folder, options.mmdb)
        expected = [int(number) for number in ours["wirespeed, numpy uint32"]()]
        for name, run in ours.items():
            found = run()
            found = found if isinstance(found, list) else found.tolist() if isinstance(found, np.ndarray) else found.to_pylist()
            assert [number or 0 for number in found] == expected, name
        for name, rival in rivals.items():
            assert rival() == expected, name
        by_rust()
        assert sums[0] == sum(expected), "Rust"

        runs = {"Rust, u32": by_rust} | {name: timed(run) for name, run in (ours | rivals).items()}
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(options.rounds):
            for name, run_once in runs.items():
                seconds[name].append(run_once())
        question.close()
        rust.wait()
        print(f"{len(numbers)} prefixes, {ADDRESSES} addresses by prefix, seed {SEED}; Python {sys.version.split()[0]}")
        print(f"numpy {np.__version__}, pyarrow {pa.__version__}; {options.rounds} rounds in turns, one thread; M lookups per second of CPU time")
        to_rust, to_pytricia = (statistics.median(seconds.get(name, [0])) for name in ("Rust, u32", "pytricia, texts"))
        for name, times in seconds.items():
            middle = statistics.median(times)
            rate = [ADDRESSES / each / 1e6 for each in (middle, max(times), min(times))]
            ratios = f"{to_rust / middle:7.4f} of Rust, {to_pytricia / middle:8.1f} of pytricia"
            print(f"{name:30} median {rate[0]:8.2f}, {rate[1]:.2f} to {rate[2]:.2f}; {ratios}")
        if options.spark:
            by_spark(table, hosts, sum(expected), folder, options.rounds)


if __name__ == "__main__":
    main()
