"""What longest-prefix match costs in SQL over flows in Parquet, beside a scan alone and beside other engines.

    python bench.py ROUTES.txt.zst [--rows 10000000] [--rounds 5] [--threads 1 2] [--flows EXAMPLE] [--ballista PROGRAM] [--folder /tmp]

ROUTES is a table of lines "prefix label", packed with zstd. The program draws flows whose destinations are hosts of its
prefixes, few prefixes having most flows (Zipf's law), and writes them as Parquet. Engines take turns, in another order each round: each scans the
columns that its query with lookups reads, and then runs that query. The number of matched flows, the sum of their
labels' indexes and the sum of their bytes have to equal those of an oracle: a binary search by numpy in disjoint
ranges, which shares no code with Wirespeed. A wrong answer ends the run.

DataFusion calls Wirespeed's wheel as a function of the user; --flows names the example `flows` of
wirespeed-datafusion (cargo build --release -p wirespeed-datafusion --example flows), which runs on the same file.
--ballista names the program wirespeed-ballista: two clusters on this machine, one with an executor of one core and one
with two of them, take turns. A query without lookups that only computes tells what the second core gives.
Engines that are not installed are left out, and named. maxminddb is no rival here: it reads MaxMind DB files alone, and
the table is none. Times are CPU time of the process, all threads together, and
wall time.
"""

import argparse
import contextlib
import ipaddress
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wirespeed import Table

SEED = 23
BLOCK = 1_000_000
# Addresses for engines that take one a call, and flows for joins that take minutes for all.
FEW = 1_000_000

Answer = tuple[int, int, int]
"""Matched flows, sum of indexes, sum of bytes."""

SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("ms")),
        ("src", pa.uint32()),
        ("dst", pa.uint32()),
        ("src16", pa.binary(16)),
        ("dst16", pa.binary(16)),
        ("sport", pa.uint16()),
        ("dport", pa.uint16()),
        ("proto", pa.uint8()),
        ("flags", pa.uint8()),
        ("input", pa.uint16()),
        ("packets", pa.uint32()),
        ("bytes", pa.uint64()),
    ]
)


def optional(name: str) -> Any:
    """Import a package, or say that it is left out."""
    try:
        return import_module(name)
    except ImportError:
        print(f"left out: {name} is not installed")
        return None


class Routes:
    """A table of IPv4 prefixes, whose labels have indexes from 1."""

    def __init__(self, path: Path) -> None:
        self.table = Table.from_file(path)
        of_label = {label: number for number, label in self.table.labels.items()}
        self.numbers = {prefix: of_label[str(label)] for prefix, label in self.table.items()}
        nets = [ipaddress.IPv4Network(prefix) for prefix in self.numbers]
        self.first = np.array([int(net.network_address) for net in nets], np.int64)
        self.len = np.array([net.prefixlen for net in nets], np.int64)
        self.number = np.array(list(self.numbers.values()), np.int64)
        self.starts, self.of_range = self.ranges()

    def ranges(self) -> tuple[Any, Any]:
        """Disjoint ranges of the whole address space: the first address of each, and its index or 0."""
        starts, numbers = [0], [0]
        open_ranges: list[tuple[int, int]] = [(2**32, 0)]

        def begin(start: int, number: int) -> None:
            if starts[-1] == start:
                numbers[-1] = number
            else:
                starts.append(start)
                numbers.append(number)

        order = np.lexsort((self.len, self.first))
        for at in order.tolist():
            first, end = int(self.first[at]), int(self.first[at]) + (1 << (32 - int(self.len[at])))
            while open_ranges[-1][0] <= first:
                closed, _ = open_ranges.pop()
                begin(closed, open_ranges[-1][1])
            open_ranges.append((end, int(self.number[at])))
            begin(first, int(self.number[at]))
        while len(open_ranges) > 1:
            closed, _ = open_ranges.pop()
            if closed < 2**32:
                begin(closed, open_ranges[-1][1])
        return np.array(starts, np.int64), np.array(numbers, np.int64)

    def lookup(self, addresses: Any) -> Any:
        """The oracle."""
        return self.of_range[np.searchsorted(self.starts, addresses, side="right") - 1]


def mapped(addresses: Any) -> pa.Array:
    """IPv4 addresses as IPv4-mapped IPv6 addresses, 16 bytes each."""
    octets = np.zeros((len(addresses), 16), np.uint8)
    octets[:, 10:12] = 0xFF
    octets[:, 12:] = addresses.astype(">u4").view(np.uint8).reshape(-1, 4)
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(addresses), [None, pa.py_buffer(octets)])


def write(path: Path, rows: int, routes: Routes) -> tuple[Answer, Any, int]:
    """Write flows. Returns the oracle's answer, the first destinations, and the number of decimal digits of all destinations."""
    source = np.random.default_rng(SEED)
    order = source.permutation(len(routes.number))
    share = np.cumsum(1 / np.arange(1, len(order) + 1))
    share /= share[-1]

    def hosts(count: int) -> Any:
        at = order[np.searchsorted(share, source.random(count))]
        return (routes.first[at] + (source.random(count) * 2.0 ** (32 - routes.len[at])).astype(np.int64)).astype(np.uint32)

    counted, indexes, octets, digits, firsts = 0, 0, 0, 0, []
    tens = 10 ** np.arange(1, 10)
    with pq.ParquetWriter(path, SCHEMA) as writer:
        for begin in range(0, rows, BLOCK):
            count = min(BLOCK, rows - begin)
            # One flow in fifty goes to any address at all: some have no route.
            dst = np.where(source.random(count) < 0.02, source.integers(0, 2**32, count, np.uint32), hosts(count))
            src = hosts(count)
            packets = source.geometric(0.1, count).astype(np.uint32)
            size = packets.astype(np.uint64) * source.integers(40, 1500, count).astype(np.uint64)
            ports = np.array([443, 53, 80, 22, 8080, 123], np.uint16)
            columns = [
                pa.array((1_764_000_000_000 + begin // 10 + np.sort(source.integers(0, 100_000, count)))).cast(SCHEMA[0].type),
                pa.array(src),
                pa.array(dst),
                mapped(src),
                mapped(dst),
                pa.array(source.integers(1024, 65536, count).astype(np.uint16)),
                pa.array(source.choice(ports, count)),
                pa.array(source.choice(np.array([6, 17, 1], np.uint8), count, p=[0.75, 0.23, 0.02])),
                pa.array(source.integers(0, 64, count).astype(np.uint8)),
                pa.array(source.integers(0, 16, count).astype(np.uint16)),
                pa.array(packets),
                pa.array(size),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=SCHEMA))
            found = routes.lookup(dst)
            counted += int(np.count_nonzero(found))
            indexes += int(found.sum())
            octets += int(size.sum())
            digits += count + int(np.searchsorted(tens, dst, side="right").sum())
            firsts.append(dst[: max(0, FEW - begin)])
    return (counted, indexes, octets), np.concatenate(firsts), digits


Run = Callable[[], Answer | None]
"""Runs a query. A scan alone has no answer that could be checked."""


def unchecked(run: Callable[[], object]) -> Run:
    """A scan alone."""

    def scan() -> None:
        run()

    return scan


def of_duckdb(path: Path, routes: Routes, threads: int) -> dict[str, Run]:
    duckdb = optional("duckdb")
    if not duckdb:
        return {}
    connection = duckdb.connect(config={"threads": threads})
    ranges = pa.table({"first": routes.starts.astype(np.uint32), "number": routes.of_range})
    connection.register("arrow_ranges", ranges)
    # Ranges cover the whole space, so a flow needs no second comparison with a range's end.
    connection.execute("CREATE TABLE ranges AS SELECT * FROM arrow_ranges ORDER BY first")
    flows = f"read_parquet('{path}')"
    scan = f"SELECT count(dst), sum(dst), sum(bytes) FROM {flows}"
    join = f"""SELECT count(*) FILTER (number > 0), sum(number), sum(bytes)
               FROM {flows} AS flows ASOF JOIN ranges ON flows.dst >= ranges.first"""
    return {
        "DuckDB, scan of dst, bytes": unchecked(lambda: connection.execute(scan).fetchone()),
        "DuckDB, ASOF join of disjoint ranges": lambda: answer(connection.execute(join).fetchone()),
    }


def of_chdb(path: Path, routes: Routes, threads: int, folder: Path) -> dict[str, Run]:
    if not optional("chdb"):
        return {}
    session_of = import_module("chdb.session")
    session = session_of.Session(str(folder / "chdb"))
    source = folder / "chdb-routes.parquet"
    pq.write_table(pa.table({"prefix": list(routes.numbers), "number": list(routes.numbers.values())}), source)
    session.query("CREATE DATABASE IF NOT EXISTS t")
    session.query("CREATE TABLE IF NOT EXISTS t.routes (prefix String, number UInt64) ENGINE = Memory")
    session.query("TRUNCATE TABLE t.routes")
    session.query(f"INSERT INTO t.routes SELECT prefix, number FROM file('{source}', Parquet)")
    session.query(
        "CREATE DICTIONARY IF NOT EXISTS t.d (prefix String, number UInt64 DEFAULT 0) PRIMARY KEY prefix "
        "SOURCE(CLICKHOUSE(DB 't' TABLE 'routes')) LAYOUT(IP_TRIE) LIFETIME(0)"
    )
    flows = f"file('{path}', Parquet)"
    limit = f"SETTINGS max_threads = {threads}"
    scan = f"SELECT count(dst), sum(dst), sum(bytes) FROM {flows} {limit}"
    trie = f"""SELECT countIf(number > 0), sum(number), sum(bytes)
               FROM (SELECT dictGet('t.d', 'number', tuple(assumeNotNull(dst))) AS number, bytes FROM {flows}) {limit}"""
    return {
        "chDB, scan of dst, bytes": unchecked(lambda: session.query(scan)),
        "chDB, ip_trie": lambda: answer(str(session.query(trie)).strip().split(",")),
    }


def counted(key: str, and_all: str = "") -> str:
    """A query. A scan alone has the aggregates of the query with lookups, over the column itself."""
    of_flows = f"SELECT *, {key} AS number FROM flows"
    return f"SELECT count(number), sum(CAST(number AS BIGINT UNSIGNED)), sum(bytes){and_all} FROM ({of_flows})"


def of_datafusion(path: Path, routes: Routes, threads: int) -> dict[str, Run]:
    datafusion = optional("datafusion")
    if not datafusion:
        return {}
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(threads))
    context.register_parquet("flows", str(path))

    def lpm(addresses: pa.Array) -> pa.Array:
        return pa.array(routes.table.lookup(addresses))

    for name, type_ in (("lpm", pa.uint32()), ("lpm16", pa.binary(16))):
        context.register_udf(datafusion.udf(lpm, [type_], pa.uint32(), "stable", name))

    def run(sql: str) -> list[Any]:
        batches = context.sql(sql).collect()
        return [column[0].as_py() for column in batches[0].columns]

    rest = ", max(time), max(src), max(sport), max(dport), max(proto), max(flags), max(input), max(packets)"
    return {
        "DataFusion, scan of dst, bytes": unchecked(lambda: run(counted("dst"))),
        "DataFusion, lpm(dst) by the wheel": lambda: answer(run(counted("lpm(dst)"))),
        "DataFusion, scan of dst16, bytes": unchecked(lambda: run("SELECT count(dst16), sum(bytes) FROM flows")),
        "DataFusion, lpm(dst16) by the wheel": lambda: answer(run(counted("lpm16(dst16)"))),
        "DataFusion, scan of ten columns": unchecked(lambda: run(counted("dst", rest))),
        "DataFusion, ten columns and lpm(dst) by the wheel": lambda: answer(run(counted("lpm(dst)", rest))[:3]),
    }


def by_joins(flows: pa.Table, routes: Routes, threads: int) -> dict[str, Run]:
    """Plain DataFusion: a hash join for each length of prefixes, the longest that matches taken."""
    datafusion = optional("datafusion")
    if not datafusion:
        return {}
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(threads))
    context.register_record_batches("flows", [flows.to_batches()])
    lengths = sorted(set(routes.len.tolist()), reverse=True)
    joins = ""
    for length in lengths:
        of_length = routes.len == length
        table = pa.table({"net": routes.first[of_length], "number": routes.number[of_length]})
        context.register_record_batches(f"p{length}", [table.to_batches()])
        mask = (2**32 - 1) ^ (2 ** (32 - length) - 1)
        joins += f" LEFT JOIN p{length} ON (CAST(flows.dst AS BIGINT) & {mask}) = p{length}.net"
    longest = f"coalesce({', '.join(f'p{length}.number' for length in lengths)})"
    sql = f"SELECT count(number), sum(number), sum(bytes) FROM (SELECT {longest} AS number, bytes FROM flows{joins})"
    name = f"DataFusion, {len(lengths)} hash joins, {flows.num_rows} flows in memory"

    def run() -> Answer:
        return answer([column[0].as_py() for column in context.sql(sql).collect()[0].columns])

    return {name: run}


def of_python(dst: Any, octets: int, routes: Routes, folder: Path) -> dict[str, Run]:
    """Packages that take one address a call. Addresses are texts before the clock starts."""
    texts = [str(ipaddress.IPv4Address(int(address))) for address in dst]
    runs: dict[str, Run] = {}

    def add(name: str, look_up: Callable[[], list[int]]) -> None:
        def run() -> Answer:
            found = look_up()
            return sum(number > 0 for number in found), sum(found), octets

        runs[f"{name}, {len(texts)} texts in memory"] = run

    if pytricia := optional("pytricia"):
        trie = pytricia.PyTricia(32)
        for prefix, number in routes.numbers.items():
            trie.insert(prefix, number)
        add("pytricia", lambda: [trie.get(text, 0) for text in texts])
    if pyasn := optional("pyasn"):
        path = folder / "pyasn.txt"
        path.write_text("".join(f"{prefix}\t{number}\n" for prefix, number in routes.numbers.items()))
        database = pyasn.pyasn(str(path))
        add("pyasn", lambda: [database.lookup(text)[0] or 0 for text in texts])
    return runs


def answer(row: Any) -> Answer:
    counted, indexes, octets = (int(value) for value in row)
    return counted, indexes, octets


def by_example(example: Path, path: Path, routes: Path, threads: int, rounds: int, expected: Answer) -> dict[str, float]:
    """The example of wirespeed-datafusion on the same file. It prints a line a query, with the answer."""
    seconds = {}
    command = [str(example), str(path), str(routes), str(threads), str(rounds)]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        name, rows, wall, cpu, *found = line.split("\t")
        if found:
            assert answer(found) == expected, f"{name}: {found}, and the oracle says {expected}"
        name = f"wirespeed-datafusion, {name}"
        seconds[name] = report(name, int(rows), [float(wall)], [float(cpu)])
    return seconds


@contextlib.contextmanager
def cluster(program: Path, executors: int, log: Any) -> Iterator[tuple[str, list[int]]]:
    """A scheduler and executors of one core each on 127.0.0.1. Gives the scheduler's address and the executors' process ids."""
    with contextlib.ExitStack() as processes:

        def start(*arguments: str, stdout: Any) -> Any:
            process = subprocess.Popen([program, *arguments, "--bind", "127.0.0.1:0"], stdout=stdout, stderr=log, text=True)
            processes.enter_context(process)
            processes.callback(process.terminate)
            return process

        scheduler = start("scheduler", stdout=subprocess.PIPE)
        address = scheduler.stdout.readline().strip().removeprefix("scheduler: ready on ")
        options = ["executor", "--scheduler", address, "--vcores", "1"]
        started = [start(*options, stdout=log).pid for _ in range(executors)]
        # Executors register.
        time.sleep(3)
        yield address, started


def cpu_of(processes: list[int]) -> float:
    """The CPU time of other processes, in seconds."""
    fields = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in processes]
    return sum(int(of[11]) + int(of[12]) for of in fields) / os.sysconf("SC_CLK_TCK")


def on_clusters(program: Path, path: Path, text: Path, rows: int, rounds: int, expected: Answer, digits: int) -> None:
    """One executor and two. Times are those of the client's process, its start and end included."""
    tables = path.parent / "tables"
    subprocess.run([program, "publish", text, "--to", tables, "--name", "t"], check=True, stdout=subprocess.DEVNULL)
    # The scheduler knows the number of rows without reading them.
    queries: dict[str, tuple[str, list[int] | None]] = {
        "count(*), no rows read": ("SELECT count(*) FROM flows", [rows]),
        "scan of dst, bytes": (counted("dst"), None),
        "lpm(dst)": (counted("lpm(dst)"), list(expected)),
        "digits of dst, no lookups": ("SELECT sum(length(CAST(dst AS VARCHAR))) FROM flows", [digits]),
    }
    times: dict[tuple[str, int], list[tuple[float, float]]] = {(name, count): [] for name in queries for count in (1, 2)}
    with (
        open(path.parent / "clusters.log", "w") as log,
        cluster(program, 1, log) as one,
        cluster(program, 2, log) as two,
    ):
        # In the round before the first, executors open the table.
        for at in range(rounds + 1):
            for name, (sql, wanted) in queries.items():
                for address, executors in (one, two) if at % 2 else (two, one):
                    options = ["--scheduler", address, "--table", f"t={tables}/t@latest", "--parquet", f"flows={path}"]
                    wall, cpu = time.perf_counter(), cpu_of(executors)
                    command = [program, "sql", *options, "--format", "csv", "-c", sql]
                    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                    wall, cpu = time.perf_counter() - wall, cpu_of(executors) - cpu
                    found = [int(value) for value in printed.splitlines()[1].split(",")]
                    assert wanted is None or found == wanted, f"{name}: {found}, and the oracle says {wanted}"
                    if at:
                        times[name, len(executors)].append((wall, cpu))
    for name in queries:
        walls, cpus = ([[run[of] for run in times[name, count]] for count in (1, 2)] for of in (0, 1))
        wall, cpu = ([statistics.median(of) for of in both] for both in (walls, cpus))
        spread = ", ".join(f"{min(of):.2f} to {max(of):.2f}" for of in walls)
        print(
            f"  {name:28} one executor {wall[0]:7.2f} s, two {wall[1]:7.2f} s ({spread}): {wall[0] / wall[1]:.2f} x; "
            f"CPU of executors {cpu[0]:.2f} s, {cpu[1]:.2f} s",
            flush=True,
        )


def report(name: str, rows: int, wall: list[float], cpu: list[float]) -> float:
    middle = statistics.median(cpu)
    spread = f"{min(cpu) / rows * 1e9:.1f} to {max(cpu) / rows * 1e9:.1f}"
    rate = f"{rows / middle / 1e6:8.2f} M flows a CPU second; wall {rows / statistics.median(wall) / 1e6:.2f} M/s"
    print(f"  {name:58} {middle / rows * 1e9:8.1f} ns a flow ({spread}); {rate}", flush=True)
    return middle / rows


def turns(runs: dict[str, tuple[int, Run, Answer]], rounds: int) -> dict[str, float]:
    """Run all in turns. Returns the median CPU time of each, in seconds a flow."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    order = list(runs.items())
    shuffle = random.Random(SEED).shuffle
    for _ in range(rounds):
        # An engine finds the memory and the caches that the one before it left.
        shuffle(order)
        for name, (_, run, expected) in order:
            wall, cpu = time.perf_counter(), time.process_time()
            found = run()
            times[name].append((time.perf_counter() - wall, time.process_time() - cpu))
            assert found is None or found == expected, f"{name}: {found}, and the oracle says {expected}"
    return {
        name: report(name, rows, [wall for wall, _ in times[name]], [cpu for _, cpu in times[name]])
        for name, (rows, _, _) in runs.items()
    }


def ratios(seconds: dict[str, float]) -> None:
    """Print what lookups cost beside the scan, and how much slower the rivals are."""
    ours = {
        "DataFusion, lpm(dst) by the wheel": "DataFusion, scan of dst, bytes",
        "DataFusion, lpm(dst16) by the wheel": "DataFusion, scan of dst16, bytes",
        "DataFusion, ten columns and lpm(dst) by the wheel": "DataFusion, scan of ten columns",
        "wirespeed-datafusion, lpm(dst)": "wirespeed-datafusion, scan of dst, bytes",
        "wirespeed-datafusion, lpm(dst16)": "wirespeed-datafusion, scan of dst16, bytes",
        "wirespeed-datafusion, ten columns and lpm(dst)": "wirespeed-datafusion, scan of ten columns",
    }
    for name, scan in ours.items():
        if name in seconds:
            added = seconds[name] - seconds[scan]
            print(f"  {name}: {added * 1e9:+.1f} ns a flow, {added / seconds[scan] * 100:+.0f} % of its scan")
    for query in ("DataFusion, lpm(dst) by the wheel", "wirespeed-datafusion, lpm(dst)"):
        for name, rival in seconds.items():
            if query in seconds and name not in ours and "scan" not in name:
                print(f"  {name}: {rival / seconds[query]:.1f} times the CPU time of {query}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("routes", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--flows", type=Path, help="the example flows of wirespeed-datafusion, in the release profile")
    parser.add_argument("--ballista", type=Path, help="the program wirespeed-ballista, in the release profile")
    parser.add_argument("--leave-out", nargs="+", default=[], help="leave out queries whose names have one of these words")
    parser.add_argument("--folder", type=Path, help="where files are made; they are deleted in the end")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder_name:
        folder = Path(folder_name)
        text = folder / "routes.txt"
        with pa.CompressedInputStream(pa.OSFile(str(options.routes)), "zstd") as source:
            text.write_bytes(source.read())
        routes = Routes(text)
        path = folder / "flows.parquet"
        expected, dst, digits = write(path, options.rows, routes)
        few = pq.ParquetFile(path).iter_batches(min(FEW, options.rows), columns=["dst", "bytes"])
        flows = pa.Table.from_batches([next(few)])
        found = routes.lookup(dst)
        octets = int(flows["bytes"].to_numpy().sum())
        expected_few = (int(np.count_nonzero(found)), int(found.sum()), octets)

        names = ["wirespeed", "numpy", "pyarrow", "datafusion", "duckdb", "chdb", "pytricia", "pyasn"]
        known = {dist.metadata["Name"].lower(): dist.version for dist in metadata.distributions()}
        print(f"Python {sys.version.split()[0]}, " + ", ".join(f"{name} {known[name]}" for name in names if name in known))
        print(
            f"{options.rows} flows, {os.path.getsize(path) / 1e6:.0f} MB of Parquet, seed {SEED}; {len(routes.numbers)} prefixes, "
            f"{len(routes.starts)} disjoint ranges; {expected[0]} flows match; {options.rounds} rounds in turns"
        )
        for threads in options.threads:
            print(f"threads: {threads}")
            runs: dict[str, tuple[int, Run, Answer]] = {}
            all_flows = of_datafusion(path, routes, threads) | of_duckdb(path, routes, threads)
            for name, run in (all_flows | of_chdb(path, routes, threads, folder)).items():
                runs[name] = (options.rows, run, expected)
            some = by_joins(flows, routes, threads)
            if threads == 1:
                some |= of_python(dst, octets, routes, folder)
            for name, run in some.items():
                runs[name] = (len(dst), run, expected_few)
            runs = {name: run for name, run in runs.items() if not any(word in name for word in options.leave_out)}
            seconds = turns(runs, options.rounds)
            if options.flows:
                seconds |= by_example(options.flows, path, text, threads, options.rounds, expected)
            ratios(seconds)
        if options.ballista:
            print("clusters, wall time")
            on_clusters(options.ballista, path, text, options.rows, options.rounds, expected, digits)


if __name__ == "__main__":
    main()
