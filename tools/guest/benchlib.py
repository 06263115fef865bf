# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the benches in a machine (bench, bench-network) share."""

import json
import math
import os
import re
import subprocess
import time

OUT = "/share"
LOGS = OUT + "/logs"
ROUNDS = int(os.environ.get("ARX_BENCH_ROUNDS", "5"))
ROWS = os.environ.get("ARX_BENCH_ROWS", "").split() or ["*"]


class Failure(Exception):
    """A measurement that gave no figure."""


def say(text):
    print(text, flush=True)


def run(*command, timeout=30):
    done = subprocess.run(command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=timeout)
    if done.returncode:
        raise Failure(
            f"{' '.join(command)}: {done.stdout.strip()[-300:] or done.returncode}")
    return done.stdout


def wait_active(name, dev):
    for _ in range(100):
        state = run("ip", "netns", "exec", name, "rdma", "link", "show",
                    dev + "/1")
        if "state ACTIVE" in state:
            return
        time.sleep(0.1)
    raise Failure(f"{dev} does not become active")


def number(value, what):
    value = float(value)
    if not math.isfinite(value) or value <= 0:
        raise Failure(f"{what} is {value}")
    return value


def clock():
    with open(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            encoding="ascii") as file:
        return file.read().strip()


def versions():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = re.search(r"model name\s*: (.*)", file.read())[1]
    uml = os.environ.get("ARX_KERNEL") == "uml"
    packages = run("dpkg-query", "-W", "-f", "${Package} ${Version}\n",
                   "rdma-core", "perftest", "iperf3")
    return {
        "kernel": os.uname().release + " " + os.uname().version,
        "accelerator": ("User-Mode Linux" if uml else
                        "TCG (QEMU's software CPU)" if "TCG" in cpu else "KVM"),
        "cpu": cpu,
        "cpus": os.cpu_count(),
        "clock": clock(),
        "host": os.environ.get("ARX_BENCH_HOST", ""),
        "wires": os.environ.get("ARX_WIRES", ""),
        "commit": os.environ.get("ARX_BENCH_COMMIT", ""),
        "packages": dict(line.split() for line in packages.splitlines()),
    }


def measured(result, name, driver, measure):
    """Add what measure() returns, {metric: value}, to the result; or say why it
    returns nothing.
    """
    try:
        values = measure()
    except (Failure, OSError, ValueError, KeyError,
            subprocess.SubprocessError) as failure:
        result["failed"].setdefault(name, {})[driver] = str(failure)
        say(f"  FAILED: {name} {driver}: {failure}")
        return
    for metric, value in values.items():
        here = result["values"].setdefault(name, {}).setdefault(driver, {})
        here.setdefault(metric, []).append(value)


def save(result):
    with open(OUT + "/raw.json.new", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    os.replace(OUT + "/raw.json.new", OUT + "/raw.json")
