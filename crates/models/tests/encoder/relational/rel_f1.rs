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
    let number = |name: &str, default: f64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let task = std::env::var("REL_TASK").unwrap_or_else(|_| "driver-top3".into());
    let is = |name: &str| number(name, 0.0) > 0.0;
    let kind = if is("REL_SAGE") { RelationalKind::Sage } else { RelationalKind::RowSets };
    let model = RelationalConfig::new()
        .with_kind(kind)
        .with_hidden(number("REL_HIDDEN", 32.0) as usize)
        .with_rows(16)
        .with_far_rows(number("REL_FAR", 8.0) as usize)
        .with_dropout(0.2);
    let options = RelationalOptions {
        protocol: if is("REL_FROZEN") { Protocol::Frozen } else { Protocol::SeedTime },
        seed: number("REL_SEED", 0.0) as u64,
        model,
        encoder: EncoderOptions {
            min_count: number("REL_MIN", 10.0) as usize,
            max_classes: 300,
            texts: TextEncoding::Categories,
            ..EncoderOptions::default()
        },
        fanouts: vec![16, 8],
        latest: true,
        label_history: is("REL_LABELS"),
        epochs: number("REL_EPOCHS", 4.0) as usize,
        lr: number("REL_LR", 0.003),
        progress: false,
        ..RelationalOptions::default()
    };
    let begin = std::time::Instant::now();
    let trained = train_database(&db, &task, &options).unwrap();
    for epoch in &trained.history {
        println!("epoch {} {epoch}", epoch.epoch);
    }
    println!("{task} {:?} {:?}: {:?}", trained.spec.val, trained.spec.test, begin.elapsed());
    assert_eq!(trained.evaluate(&db, &task, Part::Val).unwrap(), trained.spec.val);
    if task == "driver-top3" {
        assert!(trained.spec.val.unwrap() > 0.864, "{:?}", trained.spec.val);
    }
}
