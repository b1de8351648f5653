"""Full-graph epochs, inference, the memory of three epochs, and GraphSAGE by mini-batches."""
import dgl
import dgl.function as fn
import torch
import torch.nn.functional as F
from dgl.nn.pytorch import GATConv, GraphConv, HeteroGraphConv, RelGraphConv, SAGEConv
from torch import nn

from timing import Times, bench, emit, memory_mb, once, wanted

KINDS = ["gcn", "sage", "gat"]


class TwoLayers(nn.Module):
    """Two layers with dropout between."""

    def __init__(self, kind, size, hidden, classes):
        super().__init__()
        layers = {
            "gcn": lambda i, o, last: GraphConv(i, o, allow_zero_in_degree=True),
            "sage": lambda i, o, last: SAGEConv(i, o, "mean"),
            # 8 heads of 8 features, then one.
            "gat": lambda i, o, last: GATConv(i, o, 1, allow_zero_in_degree=True) if last else GATConv(i, 8, 8, allow_zero_in_degree=True),
        }
        layer = layers[kind]
        self.first, self.second = layer(size, hidden, False), layer(hidden, classes, True)
        self.activation = F.elu if kind == "gat" else F.relu

    def forward(self, blocks, x):
        h = self.activation(self.first(blocks[0], x).flatten(1))
        return self.second(blocks[1], F.dropout(h, 0.5, self.training)).flatten(1)


def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def prepared(inputs, kind):
    """One epoch, one inference, the hidden size."""
    g = inputs.graph()
    if kind != "sage":
        g = dgl.add_self_loop(g)
    g.create_formats_()
    hidden = 64 if kind == "gat" else 16 if inputs.name == "cora-like" else 256
    torch.manual_seed(0)
    net = TwoLayers(kind, inputs.features.shape[1], hidden, inputs.classes)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    rows, labels = inputs.train, inputs.labels[inputs.train]

    def epoch():
        net.train()
        return step(optimizer, F.cross_entropy(net([g, g], inputs.features)[rows], labels))

    def infer():
        net.eval()
        with torch.no_grad():
            net([g, g], inputs.features)

    return epoch, infer, hidden


def run(inputs):
    if inputs.typed:
        return {"am-slice": homogeneous, "mag-slice": by_relation}[inputs.name](inputs)
    for kind in KINDS:
        if wanted(f"{kind}.epoch") or wanted(f"{kind}.infer"):
            epoch, infer, hidden = prepared(inputs, kind)
            bench("train", inputs.name, f"{kind}.epoch", epoch, hidden=hidden)
            bench("train", inputs.name, f"{kind}.infer", infer, hidden=hidden)


def memory(inputs, kind, before):
    epoch, _, hidden = prepared(inputs, kind)
    loaded, _ = memory_mb()
    for _ in range(3):
        epoch()
    emit("memory", inputs.name, f"{kind}.epoch", imports_mb=before, loaded_mb=loaded, peak_mb=memory_mb()[1], hidden=hidden)


def homogeneous(inputs):
    """R-GCN with bases on the homogeneous graph of all types, with learned features."""
    name, size, bases = inputs.name, 16, 30

    def build():
        typed = inputs.graph()
        return typed, dgl.to_homogeneous(typed)

    typed, g = once("build", name, "heterograph+to_homogeneous", build)
    relations = len(typed.canonical_etypes)
    types = g.edata[dgl.ETYPE]
    norm = (1.0 / g.in_degrees().clamp(min=1).float())[g.edges()[1]].unsqueeze(1)
    of_target = (g.ndata[dgl.NTYPE] == typed.ntypes.index(inputs.target)).nonzero().flatten()
    rows, labels = of_target[inputs.train], inputs.labels[inputs.train]
    for presorted in [False, True]:
        if presorted:
            order = types.argsort(stable=True)
            src, dst = g.edges()
            g, types, norm = dgl.graph((src[order], dst[order]), num_nodes=g.num_nodes()), types[order], norm[order]
        g.create_formats_()
        torch.manual_seed(0)
        features = nn.Embedding(g.num_nodes(), size)
        first = RelGraphConv(size, size, relations, "basis", bases, self_loop=False)
        second = RelGraphConv(size, inputs.classes, relations, "basis", bases, self_loop=False)
        optimizer = torch.optim.Adam(nn.ModuleList([features, first, second]).parameters(), lr=0.01)

        def epoch():
            h = F.relu(first(g, features.weight, types, norm, presorted=presorted))
            step(optimizer, F.cross_entropy(second(g, h, types, norm, presorted=presorted)[rows], labels))

        op = "rgcn.homogeneous.presorted.epoch" if presorted else "rgcn.homogeneous.epoch"
        bench("train", name, op, epoch, hidden=size, bases=bases)
    now, peak = memory_mb()
    emit("memory", name, "rgcn", rss_mb=now, peak_mb=peak)


def by_relation(inputs):
    """A graph convolution for every relation, learned features; and messages over all relations."""
    name, size = inputs.name, 64

    def build():
        g = inputs.graph()
        g.create_formats_()
        return g

    g = once("build", name, "heterograph+formats", build)
    torch.manual_seed(0)
    features = nn.ParameterDict({t: nn.Parameter(torch.randn(g.num_nodes(t), size)) for t in g.ntypes})

    def layer(outputs):
        return HeteroGraphConv({r: GraphConv(size, outputs, norm="right", allow_zero_in_degree=True) for r in g.etypes})

    first, second = layer(size), layer(inputs.classes)
    optimizer = torch.optim.Adam([*features.parameters(), *first.parameters(), *second.parameters()], lr=0.01)
    rows, labels = inputs.train, inputs.labels[inputs.train]

    def epoch():
        h = {t: F.relu(x) for t, x in first(g, dict(features)).items()}
        step(optimizer, F.cross_entropy(second(g, h)[inputs.target][rows], labels))

    bench("train", name, "rgcn.heterograph.epoch", epoch, hidden=size)
    g.ndata["x"] = {t: features[t].detach() for t in g.ntypes}
    functions = {etype: (fn.copy_u("x", "m"), fn.sum("m", "y")) for etype in g.canonical_etypes}
    for cross in ["sum", "max"]:
        bench("hetero", name, f"multi_update_all.copy_u.sum/{cross}", lambda: g.multi_update_all(functions, cross), dim=size)


def minibatch(inputs):
    """GraphSAGE: one pass over the training nodes, three times."""
    name, hops, batch, hidden = inputs.name, [15, 10], 1024, 256
    if not wanted("sage.minibatch.epoch"):
        return
    g = inputs.graph().formats(["csc"])
    g.ndata["x"], g.ndata["y"] = inputs.features, inputs.labels
    # Fanouts from the input layer on; features and labels are gathered by the loader.
    sampler = dgl.dataloading.NeighborSampler(hops[::-1], prefetch_node_feats=["x"], prefetch_labels=["y"])
    loader = dgl.dataloading.DataLoader(g, inputs.train, sampler, batch_size=batch, shuffle=True, num_workers=0)
    torch.manual_seed(0)
    net = TwoLayers("sage", inputs.features.shape[1], hidden, inputs.classes)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)

    def epoch():
        for _, _, blocks in loader:
            logits = net(blocks, blocks[0].srcdata["x"])
            step(optimizer, F.cross_entropy(logits, blocks[-1].dstdata["y"]))

    times = Times()
    for _ in range(3):
        times.add(epoch)
    emit("train", name, "sage.minibatch.epoch", times, hidden=hidden, batch=batch, fanout=hops)
