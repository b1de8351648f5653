"""One partitioning with its files: wall and processor seconds, edge cut, balance, peak memory."""
import json
import os
import sys
import tempfile
import time

import dgl
import torch

from timing import emit, memory_mb


def run(inputs, parts, method):
    name, g = inputs.name, inputs.graph()
    nodes = g.nodes[inputs.target].data
    nodes["feat"] = inputs.features
    if not inputs.typed:
        nodes["label"], nodes["train_mask"] = inputs.labels, torch.zeros(g.num_nodes(), dtype=torch.bool)
        nodes["train_mask"][inputs.train] = True
    before, _ = memory_mb()
    with tempfile.TemporaryDirectory() as folder:
        # DGL prints progress, which must not be mixed with the lines.
        sys.stdout.flush()
        lines = os.dup(1)
        os.dup2(2, 1)
        cpu, wall = time.process_time(), time.perf_counter()
        originals, _ = dgl.distributed.partition_graph(g, name, parts, folder, part_method=method, return_mapping=True)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        sys.stdout.flush()
        os.dup2(lines, 1)
        peak = memory_mb()[1]
        files = [os.path.join(path, file) for path, _, names in os.walk(folder) for file in names]
        disk = sum(map(os.path.getsize, files)) / 2**20
        with open(os.path.join(folder, f"{name}.json")) as file:
            ranges = json.load(file)["node_map"]
    if not inputs.typed:
        originals = {"_N": originals}
    # New ids of a type are assigned part by part.
    owner = {}
    for ntype, bounds in ranges.items():
        sizes = torch.tensor([end - begin for begin, end in bounds])
        owner[ntype] = torch.empty(g.num_nodes(ntype), dtype=torch.int64)
        owner[ntype][originals[ntype]] = torch.repeat_interleave(torch.arange(parts), sizes)
    cut = 0
    for src, relation, dst in g.canonical_etypes:
        u, v = g.edges(etype=(src, relation, dst))
        cut += int((owner[src][u] != owner[dst][v]).sum())
    counts = torch.bincount(torch.cat(list(owner.values())), minlength=parts)
    balance = float(counts.max() / counts.float().mean())
    emit("partition", name, f"{method}.{parts}", wall_s=round(wall, 2), cpu_s=round(cpu, 2), edges=g.num_edges(), cut=cut,
         cut_share=round(cut / g.num_edges(), 4), balance=round(balance, 3), rss_before_mb=before, peak_mb=peak, disk_mb=round(disk, 1))
