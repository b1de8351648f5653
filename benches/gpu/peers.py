"""PyTorch's sparse CSR product (cuSPARSE on CUDA) and PyG on the benchmark graphs, one JSON line per entry.

    python peers.py DATA DEVICE ops|train|sample GRAPH...

DATA: graphs as folders of .npy files with a meta.json (`peers write DATA GRAPH...`). DEVICE: cuda or cpu. Needs torch, numpy,
torch_geometric (benches/dgl/setup.sh). BENCH_SECONDS and BENCH_LEAST as for our benchmark; times end after the queue of the device is finished.
"""
import json, os, statistics, sys, time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

BUDGET, LEAST, MOST = float(os.environ.get("BENCH_SECONDS", "4")), int(os.environ.get("BENCH_LEAST", "3")), 25
ONLY = os.environ.get("BENCH_ONLY", "")
DATA, DEVICE = sys.argv[1], torch.device(sys.argv[2])


def settle():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def bench(group, graph, op, via, fn, parts=1, **more):
    """`fn` does the entry's work `parts` times."""
    if ONLY not in f"{op}  D{more.get('dim', '')}.":
        return
    line = dict(system=via, group=group, graph=graph, op=op, **more)
    try:
        fn()
        settle()
        wall, begin = [], time.perf_counter()
        while len(wall) < LEAST or (len(wall) < MOST and time.perf_counter() - begin < BUDGET):
            start = time.perf_counter()
            fn()
            settle()
            wall.append((time.perf_counter() - start) * 1e3 / parts)
        line.update(median_ms=round(statistics.median(wall), 3), min_ms=round(min(wall), 3), max_ms=round(max(wall), 3), n=len(wall))
    except Exception as e:  # a peer that cannot do an entry leaves the others alone
        line.update(error=f"{type(e).__name__}: {str(e)[:160]}")
    print(json.dumps(line), flush=True)


def load(name):
    folder = os.path.join(DATA, name)
    meta = json.load(open(f"{folder}/meta.json"))
    array = lambda f: torch.from_numpy(np.load(f"{folder}/{f}.npy"))
    if meta["kind"] == "homo":
        return meta, dict(src=array("src"), dst=array("dst"), feat=array("feat"), label=array("label"), train=array("train"))
    target = meta["target"]
    edges = {tuple(r["rel"]): array(".".join(r["rel"])) for r in meta["rels"]}
    return meta, dict(edges=edges, label=array(f"label.{target}"), train=array(f"train.{target}"))


def csr(src, dst, n, weight=None):
    """In-edges by destination, as a sparse tensor for products with source features."""
    order = torch.argsort(dst, stable=True)
    counts = torch.bincount(dst, minlength=n)
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    values = torch.ones(len(src)) if weight is None else weight[order]
    return torch.sparse_csr_tensor(indptr, src[order], values, (n, n)).to(DEVICE)


def fwd_bwd(make, *leaves):
    hold = {}

    def run():
        for x in leaves:
            x.grad = None
        y = make()
        if "g" not in hold:
            hold["g"] = torch.ones_like(y)
        y.backward(hold["g"])
    return run


def ops(name):
    from torch_geometric.utils import scatter, softmax
    meta, d = load(name)
    n, e = meta["nodes"], len(d["src"])
    a = csr(d["src"], d["dst"], n)
    src, dst = d["src"].long().to(DEVICE), d["dst"].long().to(DEVICE)
    for width in [16, 100] if name == "products-slice" else [16, 128]:
        x = d["feat"][:, :width].contiguous().to(DEVICE)
        xg = x.clone().requires_grad_()
        bench("gspmm", name, "copy_u_sum.fwd", "torch.sparse", lambda: a @ x, dim=width)
        bench("gspmm", name, "copy_u_sum.fwd", "pyg", lambda: scatter(x[src], dst, 0, n, "sum"), dim=width)
        bench("gspmm", name, "copy_u_sum.fwd+bwd", "pyg", fwd_bwd(lambda: scatter(xg[src], dst, 0, n, "sum"), xg), dim=width)
        bench("gspmm", name, "copy_u_max.fwd", "pyg", lambda: scatter(x[src], dst, 0, n, "max"), dim=width)
        w = torch.rand(e, 1, device=DEVICE) + 0.5
        aw = csr(d["src"], d["dst"], n, w.flatten().cpu())
        bench("gspmm", name, "u_mul_e_sum.scalar.fwd", "torch.sparse", lambda: aw @ x, dim=width)
        wg = w.clone().requires_grad_()
        bench("gspmm", name, "u_mul_e_sum.scalar.fwd", "pyg", lambda: scatter(x[src] * w, dst, 0, n, "sum"), dim=width)
        bench("gspmm", name, "u_mul_e_sum.scalar.fwd+bwd", "pyg", fwd_bwd(lambda: scatter(xg[src] * wg, dst, 0, n, "sum"), xg, wg), dim=width)
        y = torch.rand(n, width, device=DEVICE)
        bench("gsddmm", name, "u_dot_v.fwd", "pyg", lambda: (x[src] * y[dst]).sum(-1, keepdim=True), dim=width)
    scores = torch.randn(e, 8, device=DEVICE)
    bench("softmax", name, "edge_softmax.8heads.fwd", "pyg", lambda: softmax(scores, dst, num_nodes=n), dim=8)


class Net(nn.Module):
    def __init__(self, kind, i, h, c):
        super().__init__()
        from torch_geometric.nn import GATConv, GCNConv, SAGEConv
        self.kind = kind
        if kind == "gcn":
            self.a, self.b = GCNConv(i, h, cached=True), GCNConv(h, c, cached=True)
        elif kind == "sage":
            self.a, self.b = SAGEConv(i, h), SAGEConv(h, c)
        else:
            self.a, self.b = GATConv(i, 8, 8), GATConv(64, c, 1)

    def forward(self, x, edges):
        x = self.a(x, edges)
        x = F.dropout(F.elu(x) if self.kind == "gat" else F.relu(x), 0.5, self.training)
        return self.b(x, edges)


def epoch_of(net, forward, rows, labels):
    opt = torch.optim.Adam(net.parameters(), lr=0.01)

    def epoch():
        net.train()
        loss = F.cross_entropy(forward()[rows], labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()
    return epoch


def train(name):
    meta, d = load(name)
    if meta["kind"] != "homo":
        return typed(name, meta, d)
    edges = torch.stack([d["src"].long(), d["dst"].long()]).to(DEVICE)
    x, rows = d["feat"].to(DEVICE), d["train"].long().to(DEVICE)
    labels = d["label"].long().to(DEVICE)[rows]
    for kind in ["gcn", "sage", "gat"]:
        hidden = 64 if kind == "gat" else 16 if name == "cora-like" else 256
        torch.manual_seed(0)
        net = Net(kind, x.shape[1], hidden, meta["classes"]).to(DEVICE)
        bench("train", name, f"{kind}.epoch", "pyg", epoch_of(net, lambda: net(x, edges), rows, labels), hidden=hidden)


def typed(name, meta, d):
    """R-GCN with bases on the homogeneous graph, as our entry `rgcn.homogeneous.epoch` (am-slice)."""
    if name != "am-slice":
        return
    from torch_geometric.nn import RGCNConv
    first, total = {}, 0
    for ntype, count in meta["ntypes"].items():
        first[ntype], total = total, total + count
    src, dst, types = [], [], []
    for number, ((s, _, t), (u, v)) in enumerate(d["edges"].items()):
        src.append(u.long() + first[s])
        dst.append(v.long() + first[t])
        types.append(torch.full((len(u),), number))
    edges, types = torch.stack([torch.cat(src), torch.cat(dst)]).to(DEVICE), torch.cat(types).to(DEVICE)
    rows = (d["train"].long() + first[meta["target"]]).to(DEVICE)
    labels = d["label"].long()[d["train"].long()].to(DEVICE)

    class Rgcn(nn.Module):
        def __init__(self):
            super().__init__()
            conv = lambda o: RGCNConv(16, o, len(d["edges"]), num_bases=30, root_weight=False, bias=False)
            self.rows, self.a, self.b = nn.Embedding(total, 16), conv(16), conv(meta["classes"])

        def forward(self):
            return self.b(F.relu(self.a(self.rows.weight, edges, types)), edges, types)
    net = Rgcn().to(DEVICE)
    bench("train", name, "rgcn.homogeneous.epoch", "pyg", epoch_of(net, net, rows, labels), hidden=16)


def sample(name):
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    meta, d = load(name)
    if meta["kind"] != "homo":
        return
    data = Data(edge_index=torch.stack([d["src"].long(), d["dst"].long()]), num_nodes=meta["nodes"])
    for hops in [[15, 10], [25, 10]]:
        def run():
            loader = NeighborLoader(data, hops, input_nodes=d["train"].long()[:10 * 1024], batch_size=1024)
            for batch in loader:
                batch.to(DEVICE)
        bench("sample", name, f"sample_blocks.({hops[0]}, {hops[1]})", "pyg", run, parts=10)


for graph in sys.argv[4:]:
    {"ops": ops, "train": train, "sample": sample}[sys.argv[3]](graph)
