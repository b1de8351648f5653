//! Short runs on rel-f1.

use burn_gnn_data::{Database, Protocol};
use burn_gnn_models::*;
use burn_gnn_testutil::data;

/// Rows up to each seed's time, options by the rule of the library: above the share of top-3 places in the last ten
/// qualifyings (0.864 on validation), which is the best of the single aggregates, and not far below the figure of
/// BENCHMARKS.md on test.
#[test]
fn top3_of_rel_f1() {
    let Some(folder) = data("rel_f1") else { return };
    let db = Database::open(folder).unwrap();
    let options = RelationalOptions::for_task(&db, "driver-top3", Protocol::SeedTime).unwrap();
    let options = RelationalOptions { progress: false, ..options };
    let trained = train_database(&db, "driver-top3", &options).unwrap();
    let (val, test) = (trained.spec.val.unwrap(), trained.spec.test.unwrap());
    assert!(val.metric == "roc_auc" && val.value > 0.864, "{val}");
    assert!(test.value > 0.905, "{test}");
}
