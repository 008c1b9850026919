"""Runs the switch tests of Ryu, which os-ken ships, against a pair of switches, and writes the outcome of each.

The tests, and the tester that runs them, come from the installed package os_ken: nothing of them is here. The
tester is a controller of two switches that three cables connect: it programs the target, sends a packet by the
tester switch, and compares what comes back.

    python3 run.py wirespeed OUTCOMES --program PATH    the example two_switches, cables in memory
    python3 run.py ovs OUTCOMES                         two bridges of Open vSwitch in userspace, cables of veth

For ovs the programs ovsdb-server and ovs-vswitchd have to be there, and a network namespace of its own:
`unshare --net python3 run.py ovs OUTCOMES`. OUTCOMES is a file of lines: category, file, test, outcome, apart by
tabs. `--only match,action` takes some categories alone. The package logs to standard error.
"""

import argparse
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

# The tester waits with a time limit, which the package's threads of the other kind don't keep.
os.environ["OSKEN_HUB_TYPE"] = "eventlet"

from os_ken.lib import hub

hub.patch(thread=False)

from os_ken import cfg
from os_ken.base import app_manager  # before the controller
from os_ken import flags, log  # noqa: F401  they register the tester's options
from os_ken.controller import controller  # noqa: F401  registers the port's option
from os_ken.lib.packet import (  # noqa: F401  tests name their classes, which the tester takes from what is loaded
    arp, ethernet, icmp, icmpv6, ipv4, ipv6, mpls, packet, pbb, sctp, tcp, udp, vlan,
)
import os_ken.tests.switch.tester as tester

CATEGORIES = ["match", "action", "group", "meter"]

arguments = argparse.ArgumentParser(description="Runs the switch tests of Ryu against a pair of switches.")
arguments.add_argument("switch", choices=["wirespeed", "ovs"])
arguments.add_argument("outcomes")
arguments.add_argument("--program", help="the example two_switches")
arguments.add_argument("--only", default=",".join(CATEGORIES), help="categories, apart by commas")
arguments.add_argument(
    "--settle", type=float, default=0, help="seconds between a change of flows and a packet: Open vSwitch's cache is late"
)
arguments.add_argument("--file", default="", help="takes files alone whose names contain this")
options = arguments.parse_args()
only = options.only.split(",")
unknown = [category for category in only if category not in CATEGORIES]
if unknown:
    sys.exit(f"--only {options.only}: {unknown[0]} is none of {', '.join(CATEGORIES)}")
if options.switch == "wirespeed" and not options.program:
    sys.exit("wirespeed needs --program PATH: the example two_switches")

directory = os.path.join(os.path.dirname(tester.__file__), "of13")
children = []
folders = []


class Tester(tester.OfTester):
    """The package's tester, which tells outcomes in a file in place of a text at the end."""

    def _test_sequential_execute(self, test_dir):
        files = tester.TestPatterns(test_dir, self.logger)
        with open(options.outcomes, "w") as out:
            for name in sorted(files):
                category = name.split(":")[0]
                if category not in only or options.file not in name:
                    continue
                for at, test in enumerate(files[name].tests):
                    outcome = self._test_execute(test, name if at == 0 else None)
                    print(category, name, test.description, outcome, sep="\t", file=out, flush=True)
        end(0)

    def _one_time_packet_send(self, pkt):
        hub.sleep(options.settle)
        super()._one_time_packet_send(pkt)


def end(status):
    for child in reversed(children):
        child.terminate()
        child.wait()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stderr.flush()
    os._exit(status)


def start(*command, **rest):
    child = subprocess.Popen(command, **rest)
    children.append(child)
    return child


def run(*command):
    subprocess.run(command, check=True)


def open_vswitch(port):
    """Two bridges without the kernel's datapath, and three pairs of veth between them."""
    place = tempfile.mkdtemp(prefix="ryu-tests-")
    folders.append(place)
    os.environ.update(OVS_RUNDIR=place, OVS_LOGDIR=place, OVS_DBDIR=place)
    # The kernel would send packets of its own out of the cables.
    for sysctl in ["all", "default"]:
        with open(f"/proc/sys/net/ipv6/conf/{sysctl}/disable_ipv6", "w") as file:
            file.write("1")
    run("ip", "link", "set", "lo", "up")
    database = os.path.join(place, "conf.db")
    run("ovsdb-tool", "create", database, "/usr/share/openvswitch/vswitch.ovsschema")
    start("ovsdb-server", database, f"--remote=punix:{place}/db.sock")
    while not os.path.exists(f"{place}/db.sock"):
        hub.sleep(0.1)
    vsctl = ["ovs-vsctl", f"--db=unix:{place}/db.sock"]
    run(*vsctl, "--no-wait", "init")
    start("ovs-vswitchd", f"unix:{place}/db.sock", "-vconsole:err")
    for number in (1, 2, 3):
        run("ip", "link", "add", f"a{number}", "type", "veth", "peer", "name", f"b{number}")
        for side in "ab":
            run("ip", "link", "set", f"{side}{number}", "up")
    for datapath, side in ((1, "a"), (2, "b")):
        bridge = f"br{side}"
        run(*vsctl, "add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=netdev",
            "protocols=OpenFlow13", "fail_mode=secure", f"other-config:datapath-id={datapath:016x}")
        for number in (1, 2, 3):
            name = f"{side}{number}"
            run(*vsctl, "add-port", bridge, name, "--", "set", "interface", name, f"ofport_request={number}")
        run(*vsctl, "set-controller", bridge, f"tcp:127.0.0.1:{port}")


def switches(port):
    # The controller listens by now, or does so soon: both kinds of switches try again.
    try:
        if options.switch == "ovs":
            open_vswitch(port)
        else:
            start(options.program, f"tcp:127.0.0.1:{port}", stdin=subprocess.PIPE)
    except Exception as error:
        print(f"the switches don't start: {error}", file=sys.stderr)
        end(1)
    while True:
        hub.sleep(1)
        if any(child.poll() is not None for child in children):
            print("a program of the switches has ended", file=sys.stderr)
            end(1)


# Tests of rates fail if the sender is late by a tenth, as it is on a busy machine. The switches stay as they are.
try:
    os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
except (AttributeError, PermissionError) as error:
    print(f"the tester has no priority ({error}): tests of rates may fail", file=sys.stderr)

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    number = free.getsockname()[1]
cfg.CONF(args=[], project="os_ken")
logging.basicConfig(level=logging.INFO)
cfg.CONF.set_override("ofp_listen_host", "127.0.0.1")
cfg.CONF.set_override("ofp_tcp_listen_port", number)
cfg.CONF.set_override("dir", directory, group="test-switch")
signal.signal(signal.SIGTERM, lambda *_: end(1))
apps = app_manager.AppManager.get_instance()
hub.spawn(switches, number)
apps.run_apps(["os_ken.controller.ofp_handler", "__main__"])
