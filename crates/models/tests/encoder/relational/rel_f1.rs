//! Short runs on rel-f1.

use burn_gnn_data::{Database, Part, Protocol};
use burn_gnn_models::*;
use burn_gnn_testutil::data;

/// Rows up to each seed's time: a short run is above the share of top-3 places in the last ten qualifyings (0.864), which
/// is the best of the single aggregates.
#[test]
fn top3_of_rel_f1() {
    let Some(folder) = data("rel_f1") else { return };
    let db = Database::open(folder).unwrap();
    let model = RelationalConfig::new()
        .with_kind(RelationalKind::RowSets)
        .with_hidden(32)
        .with_rows(16)
        .with_far_rows(8)
        .with_dropout(0.2);
    let options = RelationalOptions {
        protocol: Protocol::SeedTime,
        model,
        encoder: EncoderOptions {
            min_count: 10,
            max_classes: 300,
            texts: TextEncoding::Categories,
            ..EncoderOptions::default()
        },
        fanouts: vec![16, 8],
        latest: true,
        epochs: 4,
        progress: false,
        ..RelationalOptions::default()
    };
    let trained = train_database(&db, "driver-top3", &options).unwrap();
    let val = trained.spec.val.clone();
    assert_eq!(trained.evaluate(&db, "driver-top3", Part::Val).unwrap(), val);
    let val = val.unwrap();
    assert!(val.metric == "roc_auc" && val.value > 0.864, "{val}");
}
