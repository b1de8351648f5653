"""Trains PyTorch Geometric's TGN example on the events of `peers -- events tgn SCALE TENTHS [EVENTS]`.

    python tgn.py SCALE TENTHS [EVENTS]

Prints one JSON line. Classes and sizes are those of `examples/tgn.py` of PyTorch Geometric; one thread.
"""

import json
import sys
import time

import numpy as np
import torch
from torch.nn import Linear
from torch_geometric.nn import TGNMemory, TransformerConv
from torch_geometric.nn.models.tgn import IdentityMessage, LastAggregator, LastNeighborLoader

torch.set_num_threads(1)
torch.manual_seed(0)
USERS, ITEMS, EVENTS, FEATURES, STEP, BATCH = 8_227, 1_000, 157_474, 172, 17, 200


def draw(rows, column, n):
    """SplitMix64 of the row, in a stream per column, as in `benches/peers/links/mod.rs`."""
    x = (rows + np.uint64(column << 40)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) % np.uint64(n)


def stream(scale):
    users, items, events = USERS * scale, ITEMS * scale, EVENTS * scale
    rows = np.arange(events, dtype=np.uint64)
    skewed = lambda column, n: np.minimum(draw(rows, column, n), draw(rows, column + 1, n)).astype(np.int64)
    features = np.empty((events, FEATURES), dtype=np.float32)
    for start in range(0, events, 10_000):
        end = min(events, start + 10_000)
        of = np.arange(start * FEATURES, end * FEATURES, dtype=np.uint64)
        features[start:end] = (draw(of, 4, 2048).astype(np.float32) / 1024 - 1).reshape(-1, FEATURES)
    src, dst = skewed(0, users), users + skewed(2, items)
    return users + items, *map(torch.from_numpy, (src, dst, np.arange(events) * STEP, features))


class GraphAttentionEmbedding(torch.nn.Module):
    def __init__(self, in_channels, out_channels, msg_dim, time_enc):
        super().__init__()
        self.time_enc = time_enc
        edge_dim = msg_dim + time_enc.out_channels
        self.conv = TransformerConv(in_channels, out_channels // 2, heads=2, dropout=0.1, edge_dim=edge_dim)

    def forward(self, x, last_update, edge_index, t, msg):
        rel_t = last_update[edge_index[0]] - t
        rel_t_enc = self.time_enc(rel_t.to(x.dtype))
        return self.conv(x, edge_index, torch.cat([rel_t_enc, msg], dim=-1))


class LinkPredictor(torch.nn.Module):
    def __init__(self, in_channels):
        super().__init__()
        self.lin_src, self.lin_dst = Linear(in_channels, in_channels), Linear(in_channels, in_channels)
        self.lin_final = Linear(in_channels, 1)

    def forward(self, z_src, z_dst):
        return self.lin_final((self.lin_src(z_src) + self.lin_dst(z_dst)).relu())


scale, tenths = int(sys.argv[1]), int(sys.argv[2])
nodes, src, dst, t, msg = stream(scale)
end = len(src) * tenths // 10
start = max(0, end - int(sys.argv[3])) if len(sys.argv) > 3 else 0
dim = 100
neighbor_loader = LastNeighborLoader(nodes, size=10)
memory = TGNMemory(nodes, FEATURES, dim, dim, message_module=IdentityMessage(FEATURES, dim, dim),
                   aggregator_module=LastAggregator())
gnn = GraphAttentionEmbedding(dim, dim, FEATURES, memory.time_enc)
link_pred = LinkPredictor(dim)
parameters = set(memory.parameters()) | set(gnn.parameters()) | set(link_pred.parameters())
optimizer = torch.optim.Adam(parameters, lr=0.0001)
criterion = torch.nn.BCEWithLogitsLoss()
assoc = torch.empty(nodes, dtype=torch.long)
low, high = int(dst.min()), int(dst.max()) + 1
# The latest neighbours before the first measured event, as the other program has them.
for at in range(0, start, 10_000):
    neighbor_loader.insert(src[at:min(start, at + 10_000)], dst[at:min(start, at + 10_000)])

memory.train(), gnn.train(), link_pred.train()
memory.reset_state()
total, wall, cpu = 0.0, time.perf_counter(), time.process_time()
for at in range(start, end, BATCH):
    to = min(end, at + BATCH)
    s, d, times, m = src[at:to], dst[at:to], t[at:to], msg[at:to]
    optimizer.zero_grad()
    neg = torch.randint(low, high, (to - at,), dtype=torch.long)
    n_id, edge_index, e_id = neighbor_loader(torch.cat([s, d, neg]).unique())
    assoc[n_id] = torch.arange(n_id.size(0))
    z, last_update = memory(n_id)
    z = gnn(z, last_update, edge_index, t[e_id], msg[e_id])
    pos_out, neg_out = link_pred(z[assoc[s]], z[assoc[d]]), link_pred(z[assoc[s]], z[assoc[neg]])
    loss = criterion(pos_out, torch.ones_like(pos_out)) + criterion(neg_out, torch.zeros_like(neg_out))
    memory.update_state(s, d, times, m)
    neighbor_loader.insert(s, d)
    loss.backward()
    optimizer.step()
    memory.detach()
    total += float(loss) * (to - at) / 2
seconds, count = time.perf_counter() - wall, end - start
print(json.dumps({
    "system": f"PyG {__import__('torch_geometric').__version__}", "group": "events",
    "graph": f"wikipedia-like x{scale}", "op": "tgn", "median_ms": round(seconds * 1e3, 3),
    "cpu_ms": round((time.process_time() - cpu) * 1e3, 3), "events": count,
    "us_per_event": round(seconds * 1e6 / count), "loss": total / count,
}))
