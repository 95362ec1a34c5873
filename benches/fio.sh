#!/usr/bin/env bash
# `snowmelt-lab read` against fio, cell by cell and in turns: the same engine, file, size, depth and cache, random reads from cold.
# Prints, per cell, the medians of both and the median of the ratios of neighbours, and at the end the worst and the middle of
# those; the goal is a ratio of IOPS of at least 0.97 and of processor time per request of at most 1. Needs fio 3 and python3.
#
# Two things of the machine's are held still for both, where root runs it. Processors stay awake (/dev/cpu_dma_latency): asleep, a single
# read costs what waking costs, and that depends on what else ticks: fio's main process does, every 10 ms, and alone makes ours
# 4 % faster when it runs beside it. And free memory is compacted before each run: how scattered the pages of a buffer are
# decides into how many requests a long read is cut.
#
#   benches/fio.sh FILE [TURNS] [SECONDS]       FILE is only read; 2 GiB or more, on the device to be measured
#
#   SNOWMELT  the command that runs the laboratory      [target/release/snowmelt-lab]
#   SIZES, DEPTHS, DIRECT, ENGINE                       [4k,8k,64k,2m  1,16,64  1,0  io_uring]
#   MEM       what holds the buffers of both            [malloc; mmaphuge: fio needs /proc/sys/vm/nr_hugepages ≥ depth × size + 1]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 1 ] || { sed -n '2,15p' "$0" >&2; exit 2; }
command -v fio > /dev/null || { echo "no fio: apt-get install fio" >&2; exit 1; }
export FILE=$1 TURNS=${2:-5} SECONDS_EACH=${3:-3}
export SNOWMELT=${SNOWMELT:-$here/../target/release/snowmelt-lab}
export SIZES=${SIZES:-4k,8k,64k,2m} DEPTHS=${DEPTHS:-1,16,64} DIRECT=${DIRECT:-1,0} ENGINE=${ENGINE:-io_uring} MEM=${MEM:-malloc}
echo "# $(fio --version), $(uname -sr), $(nproc) processors, $(findmnt -no SOURCE,FSTYPE -T "$FILE"), load $(cut -d' ' -f1 /proc/loadavg), $(date -u +%F)"
exec python3 - <<'PY'
import json, os, random, shutil, statistics, struct, subprocess, tempfile

env = os.environ
path, turns, seconds = env["FILE"], int(env["TURNS"]), float(env["SECONDS_EACH"])


def ours(bs, depth, direct):
    folder = tempfile.mkdtemp()
    try:
        command = env["SNOWMELT"].split() + [
            "read", path, "--bs", bs, "--iodepth", depth, "--direct", direct, "--ioengine", env["ENGINE"], "--mem", env["MEM"],
            # As fio's randrepeat=0: what was read before may be in a cache below this machine.
            "--seed", str(random.getrandbits(32)), "--runtime", str(seconds), "--out", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        cell = json.loads(open(folder + "/cells.jsonl").readline())
        return cell["iops"], cell["cpu_us_per_io"]
    finally:
        shutil.rmtree(folder)


def fio(bs, depth, direct):
    # A buffered file that was read once is cached: both stop there, so no time_based.
    command = ["fio", "--name=cell", "--filename=" + path, "--readonly", "--rw=randread", "--bs=" + bs,
               "--iodepth=" + depth, "--direct=" + direct, "--ioengine=" + env["ENGINE"], "--mem=" + env["MEM"], "--runtime=%g" % seconds,
               "--invalidate=1", "--randrepeat=0", "--output-format=json"]
    if direct == "1":
        command.append("--time_based")
    job = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["jobs"][0]
    read = job["read"]
    # usr_cpu and sys_cpu are percent of the runtime, which is in ms.
    cpu_us = (job["usr_cpu"] + job["sys_cpu"]) / 100 * read["runtime"] * 1000
    return read["iops"], cpu_us / read["total_ios"]


def hold_still():
    try:
        awake = open("/dev/cpu_dma_latency", "wb", buffering=0)
        awake.write(struct.pack("i", 0))
        print("# processors awake, memory compacted before each run")
        return awake  # as long as it is open
    except OSError as e:
        print("# processors may sleep, memory as it is: both need root (%s)" % e)


def compact():
    try:
        open("/proc/sys/vm/compact_memory", "w").write("1")
    except OSError:
        pass  # said by hold_still


def steal():
    ticks = [int(n) for n in open("/proc/stat").readline().split()[1:9]]
    return ticks[7], sum(ticks)


held = hold_still()
print("%-22s %10s %10s %8s   %9s %9s %8s" % (
    "cell", "fio iops", "ours", "ratio", "fio µs", "ours µs", "ratio"))
cells = []
before = steal()
for direct in env["DIRECT"].split(","):
    for bs in env["SIZES"].split(","):
        for depth in env["DEPTHS"].split(","):
            pairs = []
            for turn in range(turns):
                order = [fio, ours] if turn % 2 == 0 else [ours, fio]
                got = {}
                for f in order:
                    compact()
                    got[f.__name__] = f(bs, depth, direct)
                pairs.append((got["fio"], got["ours"]))
            median = statistics.median
            iops = median(o[0] / f[0] for f, o in pairs)
            cpu = median(o[1] / f[1] for f, o in pairs)
            good = iops >= 0.97 and cpu <= 1
            name = "%s depth %s %s" % (bs, depth, "direct" if direct == "1" else "buffered")
            cells.append((name, iops, cpu, good, median(f[1] for f, o in pairs), median(o[1] for f, o in pairs)))
            print("%-22s %10.0f %10.0f %8.3f   %9.2f %9.2f %8.3f%s" % (
                name, median(f[0] for f, o in pairs), median(o[0] for f, o in pairs), iops,
                median(f[1] for f, o in pairs), median(o[1] for f, o in pairs), cpu,
                "" if good else "  *"), flush=True)
after = steal()
slowest, costliest = min(cells, key=lambda c: c[1]), max(cells, key=lambda c: c[2])
print("%d of %d cells outside (*); IOPS ours / fio's: worst %.3f (%s), median %.3f; CPU per request ours / fio's: worst %.3f (%s), "
      "median %.3f, of all cells %.2f and %.2f µs; steal %.1f %%" % (
          sum(not c[3] for c in cells), len(cells), slowest[1], slowest[0], statistics.median(c[1] for c in cells),
          costliest[2], costliest[0], statistics.median(c[2] for c in cells),
          statistics.median(c[5] for c in cells), statistics.median(c[4] for c in cells),
          100 * (after[0] - before[0]) / max(1, after[1] - before[1])))
PY
