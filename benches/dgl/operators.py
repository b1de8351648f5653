"""Operators: forward, and forward with the backward of a cotangent of ones for all inputs."""
import dgl.ops
import torch

from timing import bench, once


def backward(f, *inputs):
    """Returns a function that runs `f` and its backward; the cotangent is created once."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    kept = []

    def run():
        for x in leaves:
            x.grad = None
        y = f(*leaves)
        if not kept:
            kept.append(torch.ones_like(y))
        y.backward(kept[0])

    return run


def both(group, graph, op, f, *inputs, dim):
    def forward():
        with torch.no_grad():
            f(*inputs)

    bench(group, graph, f"{op}.fwd", forward, dim=dim)
    bench(group, graph, f"{op}.fwd+bwd", backward(f, *inputs), dim=dim)


def run(inputs):
    name, g = inputs.name, inputs.graph()
    once("build", name, "coo+csr+csc", g.create_formats_)
    nodes, edges = g.num_nodes(), g.num_edges()
    ops = dgl.ops
    for dim in [16, 100] if name == "products-slice" else [16, 128]:
        x = inputs.features[:, :dim].contiguous()
        for reduce in ["sum", "mean", "max"]:
            copy_u = getattr(ops, f"copy_u_{reduce}")
            both("gspmm", name, f"copy_u_{reduce}", lambda x: copy_u(g, x), x, dim=dim)
        weighted = lambda x, w: ops.u_mul_e_sum(g, x, w)
        both("gspmm", name, "u_mul_e_sum.scalar", weighted, x, torch.rand(edges, 1) + 0.5, dim=dim)
        if edges <= 5_000_000:
            both("gspmm", name, "u_mul_e_sum.full", weighted, x, torch.rand(edges, dim), dim=dim)
        both("gsddmm", name, "u_dot_v", lambda x, y: ops.u_dot_v(g, x, y), x, torch.rand(nodes, dim), dim=dim)
    # Shapes of an attention layer: 8 heads of 8 features.
    left, right = torch.rand(nodes, 8, 1), torch.rand(nodes, 8, 1)
    both("gsddmm", name, "u_add_v.8heads", lambda a, b: ops.u_add_v(g, a, b), left, right, dim=8)
    scores = torch.randn(edges, 8, 1)
    both("softmax", name, "edge_softmax.8heads", lambda s: ops.edge_softmax(g, s), scores, dim=8)
    weighted = lambda z, s: ops.u_mul_e_sum(g, z, s)
    for heads, size in [(8, 8), (4, 32)]:
        z, scores = torch.rand(nodes, heads, size), torch.randn(edges, heads, 1)
        both("gspmm", name, f"u_mul_e_sum.{heads}x{size}heads", weighted, z, scores, dim=heads * size)
