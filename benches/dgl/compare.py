"""Ratios of two systems, entry by entry; below 1 the first one is better.

    python compare.py OURS.jsonl PEER.jsonl

Times: medians of processor time and least wall times; peak memory and partitionings by their own fields. Entries that only
one system has, and failed entries, are listed. Needs no package.
"""
import json
import math
import sys

KEY = ["group", "graph", "op", "dim", "hidden"]
# Field, heading, unit; both times are on one line.
TIMES = ["cpu_ms", "min_ms"]
OTHERS = [("peak_mb", "MiB at the peak"), ("wall_s", "s of wall time"), ("cut_share", "of all edges cut")]


def read(path):
    """The lines of a file by entry."""
    with open(path) as file:
        lines = [json.loads(line) for line in file if line.startswith("{")]
    return {tuple(line.get(k) for k in KEY): line for line in lines}


def title(key):
    return " ".join(str(part) for part in key if part is not None)


def ratio(a, b):
    return a / b if b else math.nan


def compare(ours, peer):
    """The table as text."""
    out = [f"{'entry':62} {'cpu ms':>10} {'peer':>10} {'ratio':>6}  {'wall ms':>10} {'peer':>10} {'ratio':>6}"]
    ratios = []
    for key in [k for k in ours if k in peer]:
        a, b = ours[key], peer[key]
        if "error" in a or "error" in b:
            out.append(f"{title(key):62} failed: ours {a.get('error', 'did not')}, the peer {b.get('error', 'did not')}")
            continue
        columns = []
        for field in TIMES:
            if field in a and field in b:
                columns.append(f"{a[field]:10.3f} {b[field]:10.3f} {ratio(a[field], b[field]):6.2f}")
            else:
                columns.append(f"{'':28}")
        if any(c.strip() for c in columns):
            out.append(f"{title(key):62} {'  '.join(columns)}".rstrip())
            # The time of a single call is not reliable.
            if a.get("cpu_ms") and b.get("cpu_ms") and key[0] != "build":
                ratios.append((a["cpu_ms"] / b["cpu_ms"], title(key)))
        for field, unit in OTHERS:
            if field in a and field in b:
                out.append(f"{title(key):62} {a[field]:10.4g} {b[field]:10.4g} {ratio(a[field], b[field]):6.2f}  {unit}")
    for side, mine, other in [("ours", ours, peer), ("the peer", peer, ours)]:
        out += [f"only {side} has {title(key)}" for key in mine if key not in other]
    if ratios:
        mean = math.exp(sum(math.log(r) for r, _ in ratios) / len(ratios))
        worst, entry = max(ratios)
        out.append(f"{len(ratios)} entries: geometric mean of the ratios of processor time {mean:.2f}, worst {worst:.2f} ({entry})")
    return "\n".join(out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    print(compare(read(sys.argv[1]), read(sys.argv[2])))
