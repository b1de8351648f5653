"""Neighbour sampling with blocks: batches of 1,024 seeds."""
import dgl
import torch

from timing import Times, bench, emit, wanted

BATCH = 1024
# Batches per pass; there is one pass to warm up, then three passes.
BATCHES = 30


def run(inputs):
    name, g = inputs.name, inputs.graph().formats(["csc"])
    seeds = (lambda ids: {inputs.target: ids}) if inputs.typed else (lambda ids: ids)
    if len(inputs.train) < 2 * BATCH:
        raise SystemExit(f"{name} has {len(inputs.train)} training nodes, fewer than two batches of {BATCH}")
    for hops in [(15, 10), (25, 10)]:
        op = f"sample_blocks.{hops}"
        if not wanted(op):
            continue
        sampler = dgl.dataloading.NeighborSampler(list(reversed(hops)))
        times, edges = Times(), 0
        for number in range(4):
            order = inputs.train[torch.randperm(len(inputs.train))]
            batches = [ids for ids in order.split(BATCH) if len(ids) == BATCH][: BATCHES + 1]

            def blocks_of(ids):
                _, _, blocks = sampler.sample_blocks(g, seeds(ids))
                return sum(block.num_edges() for block in blocks)

            blocks_of(batches[0])
            count = len(batches) - 1
            if number == 0:
                for ids in batches[1:]:
                    blocks_of(ids)
            else:
                edges = times.add(lambda: sum(blocks_of(ids) for ids in batches[1:]), count) // count
        rate = lambda n: round(n / min(times.wall) * 1e3)
        emit("sample", name, op, times, seeds_per_s=rate(BATCH), edges_per_s=rate(edges), edges_per_batch=edges, batch=BATCH)
    # The two halves of a hop, on one batch of (15, 10).
    dst = seeds(inputs.train[:BATCH])
    for hop, fanout in [(1, 15), (2, 10)]:
        frontier = dgl.sampling.sample_neighbors(g, dst, fanout)
        bench("sample", name, f"to_block.hop{hop}", lambda: dgl.to_block(frontier, dst))
        bench("sample", name, f"sample_neighbors.hop{hop}", lambda: dgl.sampling.sample_neighbors(g, dst, fanout))
        block = dgl.to_block(frontier, dst)
        dst = {t: block.srcnodes[t].data[dgl.NID] for t in block.srctypes} if inputs.typed else block.srcdata[dgl.NID]
