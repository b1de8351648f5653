"""Ratios of wall times, entry by entry, and shares of the copy bandwidth:  python table.py OURS.jsonl PEERS.jsonl DATA"""
import json, os, sys

read = lambda path: [json.loads(line) for line in open(path) if line.startswith("{")]
key = lambda r: (r["group"], r["graph"], r["op"], r.get("dim"))
ours, peers = {key(r): r for r in read(sys.argv[1])}, read(sys.argv[2])
copy = next((r["gb_s"] for r in ours.values() if r["op"] == "device copy"), None)
print(f"device copy: {copy} GB/s")
print(f"{'entry':60} {'ours ms':>10} {'peer ms':>10} {'ratio':>6}  peer")
for r in peers:
    mine = ours.get(key(r))
    name = " ".join(str(x) for x in key(r) if x is not None)
    if "error" in r:
        print(f"{name:60} {'':>10} {'failed':>10} {'':>6}  {r['system']}: {r['error']}")
    elif mine and "median_ms" in mine:
        print(f"{name:60} {mine['median_ms']:10.3f} {r['median_ms']:10.3f} {mine['median_ms'] / r['median_ms']:6.2f}  {r['system']}")
    else:
        print(f"{name:60} {'':>10} {r['median_ms']:10.3f} {'':>6}  {r['system']}")
if copy:
    print(f"\n{'copy_u_sum, bytes moved':60} {'GB/s':>10} {'share of copy':>14}")
    for (group, graph, op, dim), r in ours.items():
        if group == "gspmm" and op == "copy_u_sum.fwd":
            meta = json.load(open(os.path.join(sys.argv[3], graph, "meta.json")))
            # Bytes: a row read per edge, a row written per node, and the layout.
            moved = 4 * (meta["edges"] * (dim + 1) + meta["nodes"] * (dim + 1))
            rate = moved / r["median_ms"] / 1e6
            print(f"{f'{graph} D{dim}':60} {rate:10.1f} {rate / copy:14.2f}")
