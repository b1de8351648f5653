"""Times entries and prints one JSON line for each, with the fields and the settings of `benches/peers/measure.rs`.

BENCH_THREADS (2), BENCH_SECONDS for an entry (4), BENCH_LEAST repetitions (3), BENCH_ONLY=text for some entries.
"""
import json
import os
import resource
import statistics
import time

# Spinning threads would count as processor time.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
import torch

THREADS = int(os.environ.get("BENCH_THREADS", "2"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
LEAST = int(os.environ.get("BENCH_LEAST", "3"))
MOST = 25
ONLY = os.environ.get("BENCH_ONLY", "")
torch.set_num_threads(THREADS)


class Times:
    """Wall and processor times of repetitions, in milliseconds."""

    def __init__(self):
        self.wall, self.cpu = [], []

    def add(self, run, parts=1):
        """One call of `run`, which does the work of the entry `parts` times."""
        cpu, wall = time.process_time(), time.perf_counter()
        result = run()
        self.wall.append((time.perf_counter() - wall) * 1e3 / parts)
        self.cpu.append((time.process_time() - cpu) * 1e3 / parts)
        return result

    def fields(self):
        wall = dict(median_ms=statistics.median(self.wall), min_ms=min(self.wall), max_ms=max(self.wall))
        return {k: round(v, 3) for k, v in wall.items()} | dict(n=len(self.wall), cpu_ms=round(statistics.median(self.cpu), 3))


def wanted(op, dim=""):
    return ONLY in f"dgl {op}  D{dim}."


def emit(group, graph, op, times=None, **more):
    line = dict(system="dgl", group=group, graph=graph, op=op)
    line |= times.fields() if times else {}
    print(json.dumps(line | more | dict(threads=THREADS, load1=round(os.getloadavg()[0], 1))), flush=True)


def bench(group, graph, op, run, **more):
    """One call to warm up, then at least LEAST and at most MOST calls within the time limit."""
    if not wanted(op, more.get("dim", "")):
        return
    try:
        run()
        times, begin = Times(), time.perf_counter()
        while len(times.wall) < LEAST or (len(times.wall) < MOST and time.perf_counter() - begin < SECONDS):
            times.add(run)
    except Exception as error:  # what the peer cannot do leaves the other entries alone
        emit(group, graph, op, error=f"{type(error).__name__}: {str(error)[:160]}", **more)
    else:
        emit(group, graph, op, times, **more)


def once(group, graph, op, run, **more):
    """One call without a warm-up, whose result is returned."""
    times = Times()
    result = times.add(run)
    emit(group, graph, op, times, **more)
    return result


def memory_mb():
    """Resident memory now and at its peak, in MiB."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return round(now / 2**20), round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
