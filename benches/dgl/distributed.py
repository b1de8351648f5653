"""DGL's distributed GraphSAGE by mini-batches; distributed.sh starts the processes.

    python distributed.py partition DATA GRAPH PARTS FOLDER
    python distributed.py train FOLDER/GRAPH.json HOSTS EPOCHS
"""
import contextlib
import json
import os
import sys
import time

os.environ.setdefault("DGLBACKEND", "pytorch")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
import dgl
import torch
import torch.nn.functional as F
from dgl.distributed import rpc_client
from torch import nn

from inputs import Inputs


def partition(data, name, parts, folder):
    inputs = Inputs(data, name)
    g = inputs.graph()
    g.ndata["feat"], g.ndata["label"] = inputs.features, inputs.labels
    g.ndata["train_mask"] = torch.zeros(g.num_nodes(), dtype=torch.bool)
    g.ndata["train_mask"][inputs.train] = True
    dgl.distributed.partition_graph(g, name, int(parts), folder)


class Sage(nn.Module):
    def __init__(self, size, hidden, classes):
        super().__init__()
        self.first, self.second = dgl.nn.SAGEConv(size, hidden, "mean"), dgl.nn.SAGEConv(hidden, classes, "mean")

    def forward(self, blocks, x):
        return self.second(blocks[1], F.dropout(F.relu(self.first(blocks[0], x)), 0.5))


def train(config, hosts, epochs):
    # All parts have the same address here, so DGL would assign every process to the first part.
    rpc_client.get_local_machine_id = lambda _: int(os.environ["PART"])
    dgl.distributed.initialize(hosts)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    if world > 1:
        torch.distributed.init_process_group("gloo")
    with open(config) as file:
        name = json.load(file)["graph_name"]
    g = dgl.distributed.DistGraph(name, part_config=config)
    own = dgl.distributed.node_split(g.ndata["train_mask"], g.get_partition_book(), force_even=True)
    sampler = dgl.dataloading.NeighborSampler([10, 15])
    loader = dgl.dataloading.DistNodeDataLoader(g, own, sampler, batch_size=1024, shuffle=True, drop_last=False)
    classes = int(g.ndata["label"][torch.arange(g.num_nodes())].max()) + 1
    torch.manual_seed(0)
    net = Sage(g.ndata["feat"].shape[1], 256, classes)
    if world > 1:
        net = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    for epoch in range(int(epochs)):
        spent = dict(sample_s=0.0, fetch_s=0.0, compute_s=0.0)
        wall, cpu, steps = time.perf_counter(), time.process_time(), 0
        # Ranks may have different numbers of batches.
        with net.join() if world > 1 else contextlib.nullcontext():
            before = time.perf_counter()
            for nodes, seeds, blocks in loader:
                sampled = time.perf_counter()
                x, labels = g.ndata["feat"][nodes], g.ndata["label"][seeds]
                fetched = time.perf_counter()
                loss = F.cross_entropy(net(blocks, x), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                now = time.perf_counter()
                for key, seconds in zip(spent, [sampled - before, fetched - sampled, now - fetched]):
                    spent[key] += seconds
                before, steps = now, steps + 1
        line = dict(system="dgl", group="dist", graph=name, op=f"sage.distributed.world{world}.parts{world}", rank=rank, epoch=epoch)
        line |= dict(wall_s=time.perf_counter() - wall, cpu_s=time.process_time() - cpu, steps=steps) | spent
        print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in line.items()}), flush=True)


if __name__ == "__main__":
    commands = {("partition", 6): partition, ("train", 5): train}
    command = commands.get((sys.argv[1] if len(sys.argv) > 1 else "", len(sys.argv)))
    if command is None:
        raise SystemExit(__doc__)
    command(*sys.argv[2:])
