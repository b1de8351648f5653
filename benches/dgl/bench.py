"""Measures DGL: the entries of `cargo bench --bench peers` under the same names, one JSON line for each.

    python bench.py DATA ops|train|sample|minibatch GRAPH...
    python bench.py DATA memory GRAPH gcn|sage|gat
    python bench.py DATA partition GRAPH PARTS metis|random

DATA: the graphs, written by `peers write DATA GRAPH...`. setup.sh creates the environment; timing.py lists the settings.
"""
import os
import sys

os.environ.setdefault("DGLBACKEND", "pytorch")
import timing  # before torch starts its threads
import operators
import partitioning
import sampling
import training
from inputs import Inputs


def main(data, section, *rest):
    before, _ = timing.memory_mb()
    each = {"ops": operators.run, "train": training.run, "sample": sampling.run, "minibatch": training.minibatch}
    if section in each and rest:
        for name in rest:
            each[section](Inputs(data, name))
    elif section == "memory" and len(rest) == 2 and rest[1] in training.KINDS:
        training.memory(Inputs(data, rest[0]), rest[1], before)
    elif section == "partition" and len(rest) == 3:
        partitioning.run(Inputs(data, rest[0]), int(rest[1]), rest[2])
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
