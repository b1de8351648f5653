"""Epochs of PyKEEN on the triples of `peers -- knowledge FOLDER DECODER DIM BATCH`.

    python kge.py FOLDER DECODER DIM BATCH

All answers of a query against all entities (LCWA), with inverse triples, binary cross entropy and Adam; one thread. DIM is
the number of reals per entity. Prints one JSON line.
"""

import json
import logging
import sys
import time

import numpy as np
import torch
from pykeen.losses import BCEWithLogitsLoss
from pykeen.models import ComplEx, DistMult
from pykeen.training import LCWATrainingLoop
from pykeen.training.callbacks import TrainingCallback
from pykeen.triples import TriplesFactory

logging.disable(logging.WARNING)
torch.set_num_threads(1)
folder, decoder, dim, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
meta = json.load(open(f"{folder}/metadata.json"))
triples = torch.from_numpy(np.load(f"{folder}/triples/train.npy").T.astype(np.int64).copy())
entities, relations = meta["num_nodes"], meta["num_relations"]
factory = TriplesFactory(
    triples, {str(i): i for i in range(entities)}, {str(i): i for i in range(relations)},
    create_inverse_triples=True,
)
model = {"complex": ComplEx, "distmult": DistMult}[decoder](
    triples_factory=factory, embedding_dim=dim // 2 if decoder == "complex" else dim,
    loss=BCEWithLogitsLoss(), random_seed=0,
    **({"regularizer": None} if decoder == "distmult" else {}),
)
times = []


class Clock(TrainingCallback):
    def post_epoch(self, epoch, epoch_loss, **kwargs):
        times.append((time.perf_counter(), time.process_time()))


loop = LCWATrainingLoop(model=model, triples_factory=factory, optimizer=torch.optim.Adam(model.parameters(), lr=1e-3))
loop.train(factory, num_epochs=4, batch_size=batch, use_tqdm=False, use_tqdm_batch=False, callbacks=Clock())
steps = np.diff(np.array(times), axis=0) * 1e3
print(json.dumps({
    "system": f"PyKEEN {__import__('pykeen').version.get_version()}", "group": "knowledge", "graph": meta["name"],
    "op": decoder, "dim": dim, "batch": batch, "triples": len(triples),
    "median_ms": round(float(np.median(steps[:, 0])), 3), "cpu_ms": round(float(np.median(steps[:, 1])), 3),
}))
