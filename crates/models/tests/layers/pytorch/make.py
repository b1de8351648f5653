"""Writes the checkpoints in the folders next to this file: by framework and kind of layer, and odd files.

PyTorch 2.15, PyTorch Geometric 2.8.1, DGL 1.1.3:
    pip install torch torch_geometric scipy "setuptools<66" packaging pandas pyyaml && pip install --no-deps dgl==1.1.3
    DGLBACKEND=pytorch python make.py

A file holds the state dict of a module under `state`, its inputs and what it computes from them: node features `x` (by node type
`x.a`, ...), edge features `e`, output `y`.
"""

import os
from pathlib import Path

import dgl
import dgl.nn.pytorch as dnn
import torch
import torch_geometric.nn as pnn
from torch.nn import Linear, ReLU, Sequential

HERE = Path(__file__).parent
SRC, DST = torch.tensor([0, 1, 2, 3, 4, 0, 2, 4, 1, 3]), torch.tensor([1, 2, 0, 1, 3, 3, 1, 0, 4, 4])
EDGES = torch.stack([SRC, DST])
GRAPH = dgl.graph((SRC, DST))
# Two edge types of one relation name.
HETERO = {
    ("a", "r", "b"): (torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 0, 1])),
    ("a", "s", "a"): (torch.tensor([0, 1, 2]), torch.tensor([1, 2, 0])),
    ("b", "r", "a"): (torch.tensor([0, 1, 1]), torch.tensor([0, 1, 2])),
}
HETERO_GRAPH = dgl.heterograph(HETERO, {"a": 3, "b": 2})


def drawn(module):
    """Every parameter drawn anew, so that no bias is 0."""
    for p in module.parameters():
        p.data = torch.randn_like(p)
    return module.eval()


def save(name, module, run, **inputs):
    module = drawn(module)
    with torch.no_grad():
        y = run(module)
    file = HERE / f"{name}.pt"
    file.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"state": module.state_dict(), "y": y, **inputs}, file)


def rows(n, d):
    return torch.randn(n, d)


def pyg(name, module, d=3, edge=None):
    x, e = rows(5, d), None if edge is None else rows(10, edge)
    inputs = {"x": x} if e is None else {"x": x, "e": e}
    save(f"pyg/{name}", module, lambda m: m(x, EDGES) if e is None else m(x, EDGES, e), **inputs)


def of_dgl(name, module, d=3, edge=None):
    x, e = rows(5, d), None if edge is None else rows(10, edge)
    inputs = {"x": x} if e is None else {"x": x, "e": e}
    save(f"dgl/{name}", module, lambda m: m(GRAPH, x) if e is None else m(GRAPH, x, e), **inputs)


def layers_of_pyg():
    pyg("convolution/gin_conv", pnn.GINConv(Sequential(Linear(3, 4), ReLU(), Linear(4, 2))))
    pyg("convolution/gin_conv_eps", pnn.GINConv(pnn.MLP([3, 4, 2], norm=None), eps=0.5))
    pyg("convolution/gine_conv", pnn.GINEConv(Sequential(Linear(3, 4), ReLU(), Linear(4, 2)), edge_dim=2), edge=2)
    loops = {"add_self_loops": False}
    pyg("attention/gat_conv_mean", pnn.GATConv(3, 2, heads=2, concat=False, residual=True, **loops))
    pyg("attention/gat_conv_residual", pnn.GATConv(4, 2, heads=2, residual=True, **loops), d=4)
    pyg("attention/gatv2_conv", pnn.GATv2Conv(3, 2, heads=2, **loops))
    pyg("attention/gatv2_conv_mean", pnn.GATv2Conv(3, 2, heads=2, concat=False, share_weights=True, residual=True, **loops))
    pyg("attention/transformer_conv", pnn.TransformerConv(3, 2, heads=2, root_weight=False))
    pyg("attention/transformer_conv_bare", pnn.TransformerConv(3, 2, heads=2, beta=True, edge_dim=2, bias=False), edge=2)
    degrees = torch.bincount(torch.bincount(DST))
    scalers = ["identity", "amplification", "attenuation"]
    pyg("convolution/pna_conv", pnn.PNAConv(3, 2, ["mean", "min", "max", "var"], scalers, degrees, edge_dim=2), edge=2)
    pyg("heterogeneous/gated_graph_conv", pnn.GatedGraphConv(4, 2))
    pyg("sage/sage_conv_sum", pnn.SAGEConv(3, 2, aggr="sum", root_weight=False))
    pyg("sage/sage_conv_max", pnn.SAGEConv(3, 2, aggr="max"))
    pyg("sage/sage_conv_pool", pnn.SAGEConv(3, 2, aggr="max", project=True))
    pyg("sage/sage_conv_projected", pnn.SAGEConv(3, 2, aggr="mean", project=True, bias=False))
    # PyG's LSTM reads zeros after the neighbours of a node, up to the largest degree: two for each node here, sorted.
    x, even = rows(5, 3), torch.tensor([[0, 1, 1, 2, 2, 3, 3, 4, 4, 0], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]])
    save("pyg/sage/sage_conv_lstm", pnn.SAGEConv(3, 2, aggr="lstm"), lambda m: m(x, even), x=x)
    types = torch.tensor([0, 1] * 5)
    x = rows(5, 4)
    save("pyg/heterogeneous/rgcn_conv", pnn.RGCNConv(4, 4, 2, num_blocks=2), lambda m: m(x, EDGES, types), x=x)
    x = {"a": rows(3, 4), "b": rows(2, 4)}
    edges = {t: torch.stack(e) for t, e in HETERO.items()}
    save("pyg/heterogeneous/hgt_conv", pnn.HGTConv(4, 4, (["a", "b"], list(HETERO)), heads=2), lambda m: m(x, edges), x=x)
    conv = pnn.HeteroConv({t: pnn.SAGEConv(4, 2) for t in HETERO})
    save("pyg/heterogeneous/hetero_conv", conv, lambda m: m(x, edges), x=x)


def models_of_pyg():
    # PyG takes in-degrees at both ends: the same numbers on a graph whose edges run both ways.
    x, both = rows(5, 3), torch.cat([EDGES, EDGES.flip(0)], 1)
    save("pyg/networks/gcn", pnn.GCN(3, 4, 2, 2, add_self_loops=False), lambda m: m(x, both), x=x)
    pyg("networks/graph_sage", pnn.GraphSAGE(3, 4, 2, 2))
    pyg("networks/gat", pnn.GAT(3, 4, 2, 2, heads=2, add_self_loops=False))
    pyg("networks/gat_residual", pnn.GAT(3, 4, 3, 2, heads=2, residual=True, add_self_loops=False))
    pyg("networks/gin", pnn.GIN(3, 4, 2, 2))


def layers_of_dgl():
    of_dgl("convolution/edge_conv", dnn.EdgeConv(3, 2))
    of_dgl("convolution/gin_conv", dnn.GINConv())
    of_dgl("convolution/gin_conv_mlp", dnn.GINConv(Sequential(Linear(3, 4), ReLU(), Linear(4, 2)), learn_eps=True))
    of_dgl("convolution/gine_conv", dnn.GINEConv(Linear(3, 2)), edge=3)
    of_dgl("attention/gat_conv", dnn.GATConv(3, 2, 2, residual=True))
    of_dgl("attention/gatv2_conv", dnn.GATv2Conv(3, 2, 2, share_weights=True))
    for kind in ["mean", "gcn", "pool", "lstm"]:
        of_dgl(f"sage/sage_conv_{kind}", dnn.SAGEConv(3, 2, kind))
    of_dgl("heterogeneous/gated_graph_conv", dnn.GatedGraphConv(3, 4, 2, 1))
    x, types = rows(5, 4), torch.tensor([0, 1] * 5)
    save("dgl/heterogeneous/rel_graph_conv", dnn.RelGraphConv(4, 4, 2, "bdd", 2), lambda m: m(GRAPH, x, types), x=x)
    x = {"a": rows(3, 3), "b": rows(2, 3)}
    conv = dnn.HeteroGraphConv({t: dnn.SAGEConv(3, 2, "mean") for t in HETERO})
    save("dgl/heterogeneous/hetero_graph_conv", conv, lambda m: m(HETERO_GRAPH, x), x=x)
    conv = dnn.HeteroGraphConv({r: dnn.SAGEConv(3, 2, "mean") for r in "rs"})
    save("dgl/heterogeneous/hetero_graph_conv_shared", conv, lambda m: m(HETERO_GRAPH, x), x=x)
    # Node types and edge types in the order of the schema.
    homogeneous = dgl.to_homogeneous(HETERO_GRAPH)
    x = rows(5, 4)
    types = homogeneous.ndata[dgl.NTYPE], homogeneous.edata[dgl.ETYPE]
    conv = dnn.HGTConv(4, 2, 2, 2, 3, use_norm=True)
    save("dgl/heterogeneous/hgt_conv", conv, lambda m: m(homogeneous, x, *types), x=x)


def options_of_layers():
    """With seeds of their own: other files stay as they are. `w` holds edge weights, `weight` a weight of the caller."""
    torch.manual_seed(8)
    loops = {"add_self_loops": False}
    pyg("attention/gat_conv_edges", pnn.GATConv(3, 2, heads=2, edge_dim=2, **loops), edge=2)
    pyg("attention/gatv2_conv_edges", pnn.GATv2Conv(3, 2, heads=2, edge_dim=2, **loops), edge=2)
    pyg("sage/sage_conv_normalized", pnn.SAGEConv(3, 2, normalize=True))
    degrees = torch.bincount(torch.bincount(DST))
    aggregators, scalers = ["mean", "min", "max", "var"], ["identity", "amplification", "attenuation"]
    towers = {"towers": 2, "pre_layers": 2, "post_layers": 2}
    pyg("convolution/pna_conv_towers", pnn.PNAConv(3, 4, aggregators, scalers, degrees, **towers))
    divided = pnn.PNAConv(4, 4, aggregators, scalers, degrees, edge_dim=2, divide_input=True, **towers)
    pyg("convolution/pna_conv_divided", divided, d=4, edge=2)
    x, w, weight = rows(5, 3), torch.rand(10) + 0.5, rows(3, 2)
    save("pyg/convolution/gcn_conv_directed", pnn.GCNConv(3, 2, **loops), lambda m: m(x, EDGES), x=x)
    save("pyg/convolution/gcn_conv_weighted", pnn.GCNConv(3, 2, **loops), lambda m: m(x, EDGES, w), x=x, w=w)
    save("pyg/convolution/sg_conv_weighted", pnn.SGConv(3, 2, K=2, **loops), lambda m: m(x, EDGES, w), x=x, w=w)
    save("dgl/convolution/sg_conv", dnn.SGConv(3, 2, k=2), lambda m: m(GRAPH, x), x=x)
    save("dgl/convolution/sg_conv_weighted", dnn.SGConv(3, 2, k=2), lambda m: m(GRAPH, x, edge_weight=w), x=x, w=w)
    save("dgl/convolution/gin_conv_weighted", dnn.GINConv(Linear(3, 2), "max"), lambda m: m(GRAPH, x, edge_weight=w), x=x, w=w)
    outer = dnn.GraphConv(3, 2, weight=False)
    save("dgl/convolution/graph_conv_outer", outer, lambda m: m(GRAPH, x, weight=weight), x=x, weight=weight)


def defaults_of_layers():
    """With seeds of their own: layers as they are without options, and what later versions brought."""
    torch.manual_seed(9)
    pyg("sage/sage_conv_mean", pnn.SAGEConv(3, 2))
    pyg("attention/transformer_conv_root", pnn.TransformerConv(3, 2, heads=2))
    of_dgl("attention/gatv2_conv_two_weights", dnn.GATv2Conv(3, 2, 2))
    aggregators, scalers = ["mean", "max", "min", "std"], ["identity", "amplification", "attenuation"]
    # A node with one in-edge has a variance of 0.
    degrees = torch.bincount(torch.bincount(DST))
    pyg("convolution/pna_conv_std", pnn.PNAConv(3, 2, aggregators, scalers, degrees))
    of_dgl("convolution/pna_conv", dnn.PNAConv(3, 3, aggregators, scalers, 0.9))
    of_dgl("convolution/pna_conv_towers", dnn.PNAConv(4, 2, aggregators, scalers, 0.9, num_towers=2, edge_feat_size=2), d=4, edge=2)
    # Keys of PyG hold no dots.
    types = [(s, r.replace("s", "s.1"), d) for s, r, d in HETERO]
    x = {"a": rows(3, 4), "b": rows(2, 4)}
    edges = {t: torch.stack(e) for t, e in zip(types, HETERO.values())}
    save("pyg/heterogeneous/hgt_conv_dot", pnn.HGTConv(4, 4, (["a", "b"], types), heads=2), lambda m: m(x, edges), x=x)


def gates():
    torch.manual_seed(10)
    pyg("attention/res_gated_graph_conv", pnn.ResGatedGraphConv(3, 2))
    bare = pnn.ResGatedGraphConv(3, 2, edge_dim=2, root_weight=False, bias=False)
    pyg("attention/res_gated_graph_conv_edges", bare, edge=2)


class Command:
    def __reduce__(self):
        return os.system, ("echo run by a checkpoint",)


def files():
    """What a reader must know, or refuse."""
    base = torch.arange(6.0).reshape(2, 3)
    mask = torch.tensor([True, False])
    kinds = {"f16": base.half(), "bf16": base.bfloat16(), "f64": base.double(), "i64": base.long(), "mask": mask}
    views = {"all": base, "again": base, "turned": base.t(), "row": base[1], "parameter": torch.nn.Parameter(base)}
    optimizer = {"state": {0: {"step": 3, "exp_avg": base}}, "param_groups": [{"lr": 0.1, "params": [0]}]}
    torch.save({"epoch": 7, "loss": 0.5, "kinds": kinds, "views": views, "optimizer": optimizer}, HERE / "files/checkpoint.pt")
    torch.save({"weight": base}, HERE / "files/legacy.pt", _use_new_zipfile_serialization=False)
    torch.save({"weight": base, "command": Command()}, HERE / "files/command.pt")
    torch.save(Linear(2, 2), HERE / "files/module.pt")
    torch.save({"weight": base[:1].expand(1000, 3)}, HERE / "files/expanded.pt")


torch.manual_seed(7)
layers_of_pyg()
models_of_pyg()
layers_of_dgl()
files()
options_of_layers()
defaults_of_layers()
gates()
