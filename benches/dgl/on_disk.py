"""Graphs on disk under a limit of memory: GraphBolt's OnDiskDataset and PyG's NeighborLoader on the graph of `billion`.

    cargo run --release --example billion -- --edges 25000000 --memory 4GiB --width 128 --hidden 256 --keep --out DIR
    python benches/dgl/on_disk.py DIR --memory 4 [graphbolt] [pyg]

Each system builds its format of the graph from the edges that `billion` left in DIR, samples, and trains GraphSAGE on
mapped features, one phase per process. The memory of a process is limited as in `billion`, by a cgroup that counts the
page cache; the files are dropped from the page cache before. A process that is killed prints one line with `"error"`.
Prints one JSON line per phase, with wall and processor time, and the peak memory of the process and of the group.
`load_s` is the time to open the built files.
"""
import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

PHASES = ["build", "sample", "train"]
BATCH, FANOUTS, CLASSES = 1024, [15, 10], 16


class Group:
    """A cgroup that the process `pid` will enter."""

    def __init__(self, pid):
        text = Path("/proc/self/cgroup").read_text().splitlines()
        root = Path("/sys/fs/cgroup")
        version_1 = [line.split(":memory:")[1] for line in text if ":memory:" in line]
        if (root / "memory").exists() and version_1:
            inside, names = root / "memory" / version_1[0].lstrip("/"), ("memory.limit_in_bytes", "memory.max_usage_in_bytes")
            parent = inside if inside.exists() else root / "memory"
        else:
            own = root / [line[3:] for line in text if line.startswith("0::")][0].lstrip("/")
            parent, names = own.parent if (own / "memory.max").exists() else own, ("memory.max", "memory.peak")
        self.dir, (self.limit_file, self.peak_file) = parent / f"on-disk-{pid}", names

    def enter(self, limit):
        self.dir.mkdir()
        (self.dir / self.limit_file).write_text(str(limit))
        (self.dir / "cgroup.procs").write_text(str(os.getpid()))

    def peak(self):
        return int((self.dir / self.peak_file).read_text())

    def remove(self):
        """Removes the cgroup after the process has ended or was killed."""
        if self.dir.exists():
            self.dir.rmdir()


def labels_of(nodes, num_nodes):
    """Classes as in `billion`: communities of about 4,096 ids, whose classes alternate."""
    communities = max(-(-num_nodes // 4096), min(CLASSES, num_nodes))
    return nodes * communities // num_nodes % CLASSES


def forget(folder):
    """Drops the folder's files from the page cache, so that reads of a phase count towards its limit."""
    for path in Path(folder).rglob("*"):
        if path.is_file():
            with open(path, "rb+") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def spread(num_nodes, count, seed):
    """Seeds spread over all ids, in random order."""
    import numpy as np

    count = min(count, num_nodes)
    ids = np.arange(count, dtype=np.int64) * (num_nodes // count)
    return np.random.default_rng(seed).permutation(ids)


class GraphBolt:
    """The official way: a folder with `metadata.yaml`, preprocessed by `OnDiskDataset`, features with `in_memory: false`."""

    def __init__(self, args):
        self.args, self.dir = args, Path(args.dir) / "graphbolt"

    def prepare(self):
        """Writes edges and features to the files of `metadata.yaml`."""
        import numpy as np

        self.dir.mkdir(exist_ok=True)
        shutil.rmtree(self.dir / "preprocessed", ignore_errors=True)
        edges, args = self.dir / "edges.npy", self.args
        if not edges.exists():
            out = np.lib.format.open_memmap(edges, mode="w+", dtype=np.int64, shape=(2, args.edges))
            for row, name in enumerate(["src.npy", "dst.npy"]):
                ids = np.load(Path(args.dir) / name, mmap_mode="r")
                for at in range(0, args.edges, 1 << 24):
                    out[row, at : at + (1 << 24)] = ids[at : at + (1 << 24)]
            out.flush()
        if not (self.dir / "features.npy").exists():
            out = np.lib.format.open_memmap(self.dir / "features.npy", mode="w+", dtype=np.float16, shape=(args.nodes, args.width))
            rows = args.rows()
            for at in range(0, args.nodes, 1 << 18):
                out[at : at + (1 << 18)] = rows[at : at + (1 << 18)]
            out.flush()
        (self.dir / "metadata.yaml").write_text(
            f"""dataset_name: billion
graph:
  nodes: [{{num: {args.nodes}}}]
  edges: [{{format: numpy, path: edges.npy}}]
feature_data:
  - {{domain: node, name: feat, format: numpy, in_memory: false, path: features.npy}}
tasks: []
"""
        )

    def build(self):
        import dgl.graphbolt as gb

        gb.OnDiskDataset(str(self.dir))

    def load(self):
        import dgl.graphbolt as gb

        dataset = gb.OnDiskDataset(str(self.dir)).load()
        self.graph, self.features = dataset.graph, dataset.feature

    def batches(self, ids, with_features):
        import dgl.graphbolt as gb
        import torch

        seeds = gb.ItemSet(torch.from_numpy(ids).to(self.graph.indices.dtype), names="seed_nodes")
        pipe = gb.ItemSampler(seeds, batch_size=BATCH, shuffle=False)
        # Fan-outs are listed from the input layer.
        pipe = pipe.sample_neighbor(self.graph, FANOUTS[::-1])
        if with_features:
            pipe = pipe.fetch_feature(self.features, node_feature_keys=["feat"])
        return gb.DataLoader(pipe)

    def edges_of(self, batch):
        return sum(len(layer.sampled_csc.indices) for layer in batch.sampled_subgraphs)

    def network(self, width, hidden):
        import torch
        from dgl.nn import SAGEConv

        class Sage(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.convs = torch.nn.ModuleList([SAGEConv(width, hidden, "mean"), SAGEConv(hidden, CLASSES, "mean")])

            def forward(self, batch):
                h = batch.node_features["feat"].float()
                for i, (conv, block) in enumerate(zip(self.convs, batch.blocks)):
                    h = conv(block, h)
                    h = torch.dropout(h.relu(), 0.2, self.training) if i == 0 else h
                return h, batch.seed_nodes

        return Sage()


class PyG:
    """Rows of in-edges as memory-mapped arrays in a `SparseTensor`, features as a mapped tensor, `NeighborLoader`."""

    def __init__(self, args):
        self.args, self.dir = args, Path(args.dir) / "pyg"

    def prepare(self):
        self.dir.mkdir(exist_ok=True)

    def build(self):
        import numpy as np
        import torch
        from torch_geometric.data import Data
        from torch_geometric.sampler.utils import to_csc

        ids = [torch.from_numpy(np.load(Path(self.args.dir) / name, mmap_mode="r").astype(np.int64)) for name in ["src.npy", "dst.npy"]]
        data = Data(edge_index=torch.stack(ids), num_nodes=self.args.nodes)
        del ids
        colptr, row, _ = to_csc(data)
        np.save(self.dir / "colptr.npy", colptr.numpy())
        np.save(self.dir / "row.npy", row.numpy())

    def load(self):
        import numpy as np
        import torch
        from torch_geometric.data import Data
        from torch_sparse import SparseTensor

        array = lambda name: torch.from_numpy(np.load(self.dir / name, mmap_mode="r+"))
        n = self.args.nodes
        adj = SparseTensor(rowptr=array("colptr.npy"), col=array("row.npy"), sparse_sizes=(n, n), is_sorted=True, trust_data=True)
        self.data = Data(x=torch.from_numpy(self.args.rows()), adj_t=adj, num_nodes=n)

    def batches(self, ids, with_features):
        import torch
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader

        data = self.data if with_features else Data(adj_t=self.data.adj_t, num_nodes=self.args.nodes)
        return NeighborLoader(data, FANOUTS, input_nodes=torch.from_numpy(ids), batch_size=BATCH, num_workers=self.args.workers)

    def edges_of(self, batch):
        return batch.num_edges

    def network(self, width, hidden):
        import torch
        from torch_geometric.nn import SAGEConv

        class Sage(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.convs = torch.nn.ModuleList([SAGEConv(width, hidden), SAGEConv(hidden, CLASSES)])

            def forward(self, batch):
                h, edges = batch.x.float(), batch.adj_t if "adj_t" in batch else batch.edge_index
                h = torch.dropout(self.convs[0](h, edges).relu(), 0.2, self.training)
                return self.convs[1](h, edges)[: batch.batch_size], batch.n_id[: batch.batch_size]

        return Sage()


SYSTEMS = {"graphbolt": GraphBolt, "pyg": PyG}


def train(system, args, ids):
    import torch

    torch.manual_seed(0)
    net = system.network(args.width, args.hidden)
    optimizer, losses = torch.optim.Adam(net.parameters(), 0.003), []
    for batch in system.batches(ids, True):
        out, seeds = net(batch)
        loss = torch.nn.functional.cross_entropy(out, labels_of(seeds.long(), args.nodes))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def child(args):
    """One phase of one system, under the limit."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import torch

    torch.set_num_threads(2)
    system, line = SYSTEMS[args.system](args), {}
    group = Group(os.getpid())
    group.enter(int(args.memory * 2**30))
    if args.phase != "build":
        began = time.perf_counter()
        system.load()
        line["load_s"] = round(time.perf_counter() - began, 3)
    wall, cpu = time.perf_counter(), sum(os.times()[:4])
    if args.phase == "build":
        system.build()
    elif args.phase == "sample":
        ids = spread(args.nodes, args.sample, 1)
        edges = sum(system.edges_of(batch) for batch in system.batches(ids, False))
        line |= dict(seeds_per_s=round(len(ids) / (time.perf_counter() - wall)), edges_per_seed=round(edges / len(ids), 1))
    else:
        ids = spread(args.nodes, args.train, 2)
        losses = train(system, args, ids)
        line |= dict(seeds=len(ids), seeds_per_s=round(len(ids) / (time.perf_counter() - wall)), losses=[losses[0], losses[-1]])
    line |= dict(wall_s=round(time.perf_counter() - wall, 2), cpu_s=round(sum(os.times()[:4]) - cpu, 2))
    line |= dict(resident_peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, peak_bytes=group.peak())
    print("\n" + json.dumps(line))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir")
    parser.add_argument("systems", nargs="*", choices=[[], *SYSTEMS], default=[])
    parser.add_argument("--memory", type=float, default=4, help="GiB")
    parser.add_argument("--sample", type=int, default=200_000, help="seeds that are sampled without features")
    parser.add_argument("--train", type=int, help="training nodes, by default 1.08 %% of the nodes")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--workers", type=int, default=2, help="processes of PyG's loader; GraphBolt samples on threads")
    parser.add_argument("--phase", choices=PHASES)
    parser.add_argument("--system", choices=list(SYSTEMS))
    args = parser.parse_args()
    # The description that `billion --keep` prints of its files.
    made = json.loads((Path(args.dir) / "generated.json").read_text())
    args.edges, args.width = made["edges"], made["width"]
    args.nodes = made["nodes"] or min(max(args.edges // 15, 16), 2**32 - 3)
    args.train = args.train or max(args.nodes * 108 // 10_000, min(args.nodes, 16_384))

    def rows():
        import numpy as np

        # After the page of the header, in the order of ids.
        return np.memmap(Path(args.dir) / "rows", np.float16, "c", 4096, (args.nodes, args.width))

    args.rows = rows
    if args.phase:
        return child(args)
    for name in args.systems or SYSTEMS:
        SYSTEMS[name](args).prepare()
        for phase in PHASES:
            command = [sys.executable, __file__, *sys.argv[1:], "--phase", phase, "--system", name]
            forget(args.dir)
            done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            out, err = done.communicate()
            Group(done.pid).remove()
            line = dict(system=name, edges=args.edges, nodes=args.nodes, limit_gib=args.memory, name=phase)
            if done.returncode:
                last = (err.strip().splitlines() or ["nothing on stderr"])[-1]
                line["error"] = "killed" if done.returncode == -9 else f"exit {done.returncode}: {last[:200]}"
            else:
                line |= json.loads(out.strip().splitlines()[-1])
            print(json.dumps(line), flush=True)
            if "error" in line and phase == "build":
                break


if __name__ == "__main__":
    main()
