"""Makes the database `shop` in RelBench's layout, with pandas, pyarrow and relbench 3.0.2."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
from relbench import load_dataset
from relbench.manifest import DatasetManifest, TableSpec, TaskManifest

out = Path(__file__).parent / "shop"
shutil.rmtree(out, ignore_errors=True)
(out / "db").mkdir(parents=True)


def iso(texts):
    return pd.to_datetime(texts, format="ISO8601")


n = 6
customers = pd.DataFrame({
    "customer": np.arange(n),
    "name": ["Ada", "Bo", None, "Cy", "Dee", "Ädä"],
    "age": [31.5, np.nan, 40.0, 22.0, np.nan, 60.25],
    "city": pd.Categorical(["Bonn", "Köln", "Bonn", None, "Bonn", "Köln"]),
    "vip": pd.array([True, None, False, False, True, True], dtype="boolean"),
    "embedding": [list(map(float, row)) for row in np.arange(n * 3).reshape(n, 3) / 4],
    "tags": [["new", "x"], [], ["x"], None, [], ["y", "x", "new"]],
    "born": pd.Series(pd.to_datetime(["1990-01-31", None, "1969-12-31", "2000-02-29", "1980-06-01", "1950-05-05"])).dt.date,
    "referrer": pd.array([None, 0, 0, 1, None, 4], dtype="Int64"),
    "joined": iso(["2019-01-01", "2019-02-01", "2019-03-01 12:30:00.123456789", "2020-04-01", "2021-01-02", "2022-05-01"]),
})
orders = pd.DataFrame({
    "order": np.arange(8),
    # A missing value makes these floats.
    "customer": [0, 1, 1, np.nan, 2, 3, 4, 5],
    "product": [0, 1, 2, 0, 0, 1, 2, 2],
    "amount": [1, 2, 3, 4, 5, 6, 7, 8],
    "code": np.array([200, 404, 500, 200, 200, 404, 200, 500], dtype="int32"),
    "paid": iso(["2019-05-01 10:00", "2019-06-01", "2019-07-01", "2020-02-01", "2020-06-01", "2021-02-01", "2021-03-01", None]).tz_localize("Europe/Berlin"),
    "ordered": pd.to_datetime(["2019-05-01", "2019-06-01", "2019-07-01", "2020-02-01", "2020-06-01", "2021-02-01", "2021-03-01", "2022-06-01"]).astype("datetime64[ms]"),
})
products = pd.DataFrame({"product": np.arange(3), "price": np.array([1.5, 2.5, 3.5], dtype="float32"), "same": ["z"] * 3})
visits = pd.DataFrame({"customer": [0, 0, 5], "seconds": [1, 2, 3]}, index=[5, 6, 7])
returns = pd.DataFrame({"order": pd.Series([], dtype="int64"), "why": pd.Series([], dtype="str")})
tables = {"customers": customers, "orders": orders, "products": products, "visits": visits, "returns": returns}
for name, df in tables.items():
    df.to_parquet(out / "db" / f"{name}.parquet")

DatasetManifest(
    name="shop",
    description="Customers and orders: the cases of a reader.",
    val_timestamp="2020-01-01",
    test_timestamp="2021-01-01 00:00:00",
    tables={
        "customers": TableSpec("customer", "joined", {"referrer": "customers"}),
        "orders": TableSpec("order", "ordered", {"customer": "customers", "product": "products"}),
        "products": TableSpec("product", None, {}),
        "visits": TableSpec(None, None, {"customer": "customers"}),
        "returns": TableSpec(None, None, {"order": "orders"}),
    },
).save(out / "manifest.yaml")


def task(name, frames, **entries):
    TaskManifest(name=name, **entries).save(out / "tasks" / name / "manifest.yaml")
    for part, df in frames.items():
        df.to_parquet(out / "tasks" / name / f"{part}.parquet", index=False)


times = {"train": "2019-10-01", "val": "2020-01-01", "test": "2021-01-01"}


def frames(entity, ids, column, targets):
    made = {}
    for part, time in times.items():
        made[part] = pd.DataFrame({"timestamp": pd.Timestamp(time), entity: ids, column: targets})
    return made


sql = """
    SELECT t.timestamp, c.customer,
           COUNT(o."order") = 0 AS churn
    FROM timestamps t, customers c
    LEFT JOIN orders o ON o.customer = c.customer
    GROUP BY t.timestamp, c.customer
"""
entity = dict(entity_table="customers", entity_col="customer", time_col="timestamp")
task("churn", frames("customer", [0, 1, 99], "churn", [1, 0, 1]), kind="forecast",
     task_type="binary_classification", description="No order: \"churned\"", target_col="churn",
     timedelta="90 days", num_eval_timestamps=2, sql=sql, **entity)
task("spend", frames("customer", [2, 3], "spend", [1.5, np.nan]), kind="external",
     task_type="regression", target_col="spend", remove_columns=[["orders", "amount"], ["orders", "gone"]], **entity)
task("labels", frames("customer", [4, 5], "labels", [[1, 0, 1], [0, 0, 0]]), kind="external",
     task_type="multilabel_classification", target_col="labels", **entity)
task("next", frames("customer", [1, 2], "product", [[2, 0, 77], [88]]), kind="external",
     task_type="recommendation", src_entity_table="customers", src_entity_col="customer",
     dst_entity_table="products", dst_entity_col="product", time_col="timestamp", eval_k=2)
task("code", {p: pd.DataFrame({"ordered": pd.Timestamp(t), "order": [1, 2], "code": [404, 500]}) for p, t in times.items()},
     kind="autocomplete", task_type="multiclass_classification", entity_table="orders", target_col="code")

# RelBench reads what it wrote.
dataset = load_dataset(out)
db = dataset.get_db()
print(db, dataset.get_task_names(), dataset.load_task("churn").get_table("train").df)
