"""Writes tgn_memory.json: states of PyTorch Geometric's TGNMemory with random weights, for the tests of TgnMemory.

Run in this folder with torch and torch_geometric: python tgn_memory.py
"""

import json

import torch
from torch_geometric.nn import TGNMemory
from torch_geometric.nn.models.tgn import IdentityMessage, LastAggregator, MeanAggregator

NODES, RAW, MEMORY, TIME, BATCH = 6, 2, 4, 3, 3
EVENTS = 12


def case(aggregator, training, seed):
    torch.manual_seed(seed)
    message = IdentityMessage(RAW, MEMORY, TIME)
    model = TGNMemory(NODES, RAW, MEMORY, TIME, message, aggregator)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * 0.4)
    model.train(training)
    model.reset_state()  # `eval` applies the updater once
    # Sources 0..3 and destinations 3..6, so that a node has one role.
    src = torch.randint(0, 3, (EVENTS,))
    dst = torch.randint(3, 6, (EVENTS,))
    # Every node has messages from the second batch on: `LastAggregator` may give a node without messages another node's.
    src[:3], dst[:3] = torch.arange(3), torch.arange(3, 6)
    time = torch.cumsum(torch.randint(1, 5, (EVENTS,)), 0)
    raw = torch.randn(EVENTS, RAW)
    states = []
    for start in range(0, EVENTS, BATCH):
        batch = slice(start, start + BATCH)
        model.update_state(src[batch], dst[batch], time[batch], raw[batch])
        memory, last_update = model(torch.arange(NODES))
        states.append({"memory": memory.flatten().tolist(), "last_update": last_update.tolist()})
        model.detach()
    weights = {name: p.detach().flatten().tolist() for name, p in model.named_parameters()}
    return {
        "mean": isinstance(aggregator, MeanAggregator),
        "training": training,
        "weights": weights,
        "src": src.tolist(),
        "dst": dst.tolist(),
        "time": time.tolist(),
        "features": raw.flatten().tolist(),
        "states": states,
    }


cases = [
    case(aggregator(), training, seed)
    for seed, (aggregator, training) in enumerate(
        (a, t) for a in (LastAggregator, MeanAggregator) for t in (True, False)
    )
]
sizes = {"nodes": NODES, "raw": RAW, "memory": MEMORY, "time": TIME, "batch": BATCH}
with open("tgn_memory.json", "w") as file:
    json.dump({"sizes": sizes, "cases": cases}, file)
    file.write("\n")
