"""Reads the benchmark graphs that `peers write` wrote (layout: benches/peers/write.rs)."""
import json
import os

import dgl
import numpy as np
import torch


def checksum(src, dst):
    """Sum of (i + 1) * (src ^ dst << 32) over edges i, modulo 2^64."""
    src, dst = src.astype(np.uint64), dst.astype(np.uint64)
    position = np.arange(1, len(src) + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        return int((position * (src ^ (dst << np.uint64(32)))).sum(dtype=np.uint64))


class Inputs:
    """A graph, and the features, labels and training nodes of its only type or of `target`."""

    def __init__(self, folder, name):
        self.name, self.folder = name, os.path.join(folder, name)
        with open(os.path.join(self.folder, "meta.json")) as file:
            self.meta = json.load(file)
        self.typed = self.meta["kind"] == "hetero"
        self.target = self.meta["target"] if self.typed else "_N"
        suffix = f".{self.target}" if self.typed else ""
        tensors = [torch.from_numpy(self._array(part + suffix)) for part in ("feat", "label", "train")]
        self.features, self.labels, self.train = tensors
        self.classes = self.meta["classes"]

    def _array(self, stem):
        return np.load(os.path.join(self.folder, stem + ".npy"))

    def _checked(self, edges, want):
        if checksum(*edges) != want:
            raise SystemExit(f"{self.folder}: the edges are not those of meta.json; write the graph again")
        return tuple(torch.from_numpy(ids) for ids in edges)

    def graph(self):
        """A new DGL graph with int64 ids and no features."""
        meta = self.meta
        if not self.typed:
            edges = self._checked((self._array("src"), self._array("dst")), meta["checksum"])
            return dgl.graph(edges, num_nodes=meta["nodes"])
        edges = {tuple(r["rel"]): self._checked(self._array(".".join(r["rel"])), r["checksum"]) for r in meta["rels"]}
        return dgl.heterograph(edges, num_nodes_dict=meta["ntypes"])
