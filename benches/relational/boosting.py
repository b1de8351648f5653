"""Gradient boosting of scikit-learn on the output of `burn-gnn featurize`, next to the models of BENCHMARKS.md.

    burn-gnn featurize rel_f1 --task driver-dnf --protocol frozen --out features.csv
    python boosting.py features.csv         # needs pandas and scikit-learn; prints AUROC of five seeds
"""
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier as Boosting
from sklearn.metrics import roc_auc_score

for path in sys.argv[1:]:
    frame = pd.read_csv(path, low_memory=False)
    part, y = frame["part"], frame["target"]
    train = part == "train"
    columns = {}
    for name in frame.columns.drop(["part", "target", "entity", "time"]):
        values = frame[name]
        if values.dtype == object or values.dtype.name.startswith("str"):
            # Categories of training rows, the most frequent first.
            number = {text: i for i, text in enumerate(values[train].value_counts().index[:250])}
            values = values.map(number)
        values = pd.to_numeric(values, errors="coerce").astype(float)
        if values[train].nunique() > 1:
            columns[name] = values
    x = pd.DataFrame(columns)
    scores = {"val": [], "test": []}
    for seed in range(5):
        model = Boosting(
            learning_rate=0.05, max_iter=150, max_leaf_nodes=15, l2_regularization=1.0, max_features=0.3,
            early_stopping=False, random_state=seed)
        model.fit(x[train], y[train])
        for name, of in scores.items():
            of.append(roc_auc_score(y[part == name], model.predict_proba(x[part == name])[:, 1]))
    print(path, x.shape, {name: f"{np.mean(of):.4f} ± {np.std(of, ddof=1):.4f}" for name, of in scores.items()})
