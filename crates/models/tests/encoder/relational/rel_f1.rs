//! Short runs on rel-f1.

use burn_gnn_data::{Database, Protocol};
use burn_gnn_models::*;
use burn_gnn_testutil::data;

/// Rows up to each seed's time, options by the rule of the library. Validation is above single aggregates of the data set's
/// notes (a share or mean of the driver's last races), and test at least the mean minus one deviation of the figures of
/// BENCHMARKS.md. driver-dnf reaches it without the second training on validation rows, which takes as long as the first.
#[test]
fn figures_of_rel_f1() {
    let Some(folder) = data("rel_f1") else { return };
    let db = Database::open(folder).unwrap();
    for (task, aggregate, figure) in [
        ("driver-top3", 0.864, 0.919),
        ("driver-dnf", 0.775, 0.820),
        ("driver-position", -2.923, -2.64),
    ] {
        let options = RelationalOptions::for_task(&db, task, Protocol::SeedTime).unwrap();
        let refit = task != "driver-dnf";
        let options = RelationalOptions { progress: false, refit, ..options };
        let trained = train_database(&db, task, &options).unwrap();
        let (val, test) = (trained.spec.val.unwrap(), trained.spec.test.unwrap());
        println!("{task}: validation {val}, test {test}");
        // Larger is better.
        let sign = if val.metric == "mae" { -1.0 } else { 1.0 };
        assert!(sign * val.value > aggregate, "{task}: {val}");
        assert!(sign * test.value > figure, "{task}: {test}");
    }
}
