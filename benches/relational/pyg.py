"""An epoch of heterogeneous GraphSAGE of PyTorch Geometric on a database, next to `peers -- database epoch FOLDER TASK`.

    python3 -m venv pyg
    pyg/bin/pip install 'torch==2.2.1' 'numpy<2' scipy pandas wheel 'setuptools<70' psutil
    pyg/bin/pip install --no-build-isolation 'torch-scatter==2.1.2' 'torch-sparse==0.6.18' 'torch_geometric==2.1.0'
    OMP_NUM_THREADS=1 pyg/bin/python pyg.py FOLDER TASK

Version 2.1.0 is the one whose loader samples with times by torch-sparse; later ones need pyg-lib, which has no package
for this torch. Its seeds have the times of their nodes, so each seed is a node with an edge to its entity.

The same tables, foreign keys in both directions, seeds per batch, fan-outs, hidden size and layers. Columns are floats:
numbers are standardised, times are days, categories and texts are numbers of their values, missing values are flags.
Prints a JSON line with seconds per epoch, sampled rows and those later than their seed.
"""
import json
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np
import pandas as pd
import torch
from torch_geometric.data import HeteroData
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import HeteroConv, SAGEConv

HIDDEN, FANOUTS, BATCH, EPOCHS = 128, [16, 16], 256, 3


def columns(table, frame):
    """Columns of a table as floats, without keys."""
    out = []
    for name, column in table["columns"].items():
        if column["kind"] in ("id", "foreign_key"):
            continue
        values = frame[name]
        if column["kind"] in ("datetime", "date"):
            values = pd.to_datetime(values).astype("int64") / 86400e9
        elif column["kind"] not in ("int", "float"):
            values = pd.Series(pd.factorize(values)[0], dtype="float64").replace(-1, np.nan)
        values = values.astype("float64")
        missing = values.isna()
        scaled = (values - values.mean()) / (values.std() + 1e-9)
        out += [scaled.fillna(0.0), missing.astype("float64")]
    return np.stack(out, 1) if out else np.ones((len(frame), 1))


def read(folder):
    schema = json.load(open(f"{folder}/schema.json"))["tables"]
    frames = {name: pd.read_csv(f"{folder}/{of['file']}") for name, of in schema.items()}
    data = HeteroData()
    for name, of in schema.items():
        frame = frames[name]
        data[name].x = torch.tensor(columns(of, frame), dtype=torch.float32)
        if of["time_column"]:
            times = pd.to_datetime(frame[of["time_column"]]).astype("int64") // 10**9
            data[name].time = torch.tensor(times.to_numpy())
        else:
            data[name].time = torch.full((len(frame),), -(2**62), dtype=torch.int64)
        for column, parent in of["foreign_keys"].items():
            key = frames[parent][schema[parent]["primary_key"]]
            row = pd.Series(np.arange(len(key)), index=key)
            to = frame[column].map(row)
            child = np.nonzero(to.notna().to_numpy())[0]
            edges = torch.tensor(np.stack([child, to.dropna().astype("int64").to_numpy()]))
            data[name, column, parent].edge_index = edges
            data[parent, f"rev_{column}", name].edge_index = edges.flip(0)
    return data, frames, schema


class Sage(torch.nn.Module):
    def __init__(self, data, types, edges):
        super().__init__()
        self.encoders = torch.nn.ModuleDict({t: torch.nn.Linear(data[t].x.shape[1], HIDDEN) for t in types})

        def conv():
            return HeteroConv({e: SAGEConv((HIDDEN, HIDDEN), HIDDEN) for e in edges}, aggr="mean")

        self.layers = torch.nn.ModuleList([conv() for _ in FANOUTS])
        self.norms = torch.nn.ModuleList(
            [torch.nn.ModuleDict({t: torch.nn.LayerNorm(HIDDEN) for t in types}) for _ in FANOUTS])
        self.head = torch.nn.Sequential(
            torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1))

    def forward(self, batch, entity):
        x = {t: encode(batch[t].x) for t, encode in self.encoders.items() if batch[t].x.shape[0]}
        of_seed = batch[entity, "of", "seed"].edge_index
        edges = {e: i for e, i in batch.edge_index_dict.items() if e[2] != "seed" and e[0] in x and e[2] in x}
        for conv, norm in zip(self.layers, self.norms):
            y = conv(x, edges)
            x = {t: h + torch.relu(norm[t](y[t])) if y.get(t) is not None else h for t, h in x.items()}
        order = torch.empty(batch["seed"].batch_size, dtype=torch.int64)
        order[of_seed[1]] = of_seed[0]
        return self.head(x[entity][order]).squeeze(1)


def roots(batch):
    """Seed of each sampled node by type: a sampled tree belongs to one seed."""
    root = {t: torch.full((batch[t].time.shape[0],), -1) for t in batch.node_types}
    n = batch["seed"].batch_size
    root["seed"][:n] = torch.arange(n)
    for _ in range(len(FANOUTS) + 1):
        for (src, _, dst), edges in batch.edge_index_dict.items():
            known = root[dst][edges[1]] >= 0
            root[src][edges[0][known]] = root[dst][edges[1][known]]
    return root


def main(folder, task, entity="drivers"):
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)
    data, frames, schema = read(folder)
    types, edges = list(data.node_types), list(data.edge_types)
    labels = pd.read_csv(f"{folder}/tasks/{task}/train.csv")
    at, key, target = labels.columns[0], labels.columns[1], labels.columns[2]
    row = pd.Series(np.arange(len(frames[entity])), index=frames[entity][schema[entity]["primary_key"]])
    count = len(labels)
    y = torch.tensor(labels[target].to_numpy(), dtype=torch.float32)
    data["seed"].x = torch.arange(count, dtype=torch.float32).unsqueeze(1)
    data["seed"].time = torch.tensor((pd.to_datetime(labels[at]).astype("int64") // 10**9).to_numpy())
    data[entity, "of", "seed"].edge_index = torch.stack(
        [torch.tensor(labels[key].map(row).to_numpy()), torch.arange(count)])
    fanouts = {e: [0] + FANOUTS for e in edges}
    fanouts[entity, "of", "seed"] = [1] + [0] * len(FANOUTS)
    loader = NeighborLoader(
        data, num_neighbors=fanouts, time_attr="time", input_nodes=("seed", torch.arange(count)),
        batch_size=BATCH, shuffle=True)
    rows = late = 0
    for batch in loader:
        times = batch["seed"].time[:batch["seed"].batch_size]
        for t, root in roots(batch).items():
            if t != "seed":
                rows += len(root)
                late += int((batch[t].time > times[root]).sum())
                assert (root >= 0).all()
    model = Sage(data, types, edges)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(EPOCHS):
        total = seen = 0
        for batch in loader:
            n = batch["seed"].batch_size
            label = y[batch["seed"].x[:n, 0].long()]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(batch, entity), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, seen = total + loss.item() * n, seen + n
    seconds, cpu = (time.perf_counter() - start) / EPOCHS, (time.process_time() - cpu) / EPOCHS
    print(json.dumps({
        "system": "pyg", "group": "database", "graph": task, "op": "epoch-sage",
        "median_ms": round(seconds * 1e3, 1), "cpu_ms": round(cpu * 1e3, 1), "seeds": count, "batch": BATCH, "fanouts": FANOUTS,
        "rows": rows, "rows_after_seed": late, "loss": total / seen}))


if __name__ == "__main__":
    main(*sys.argv[1:3])
