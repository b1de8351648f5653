//! The JSON line of the examples.

use burn::tensor::{Device, FloatDType};
use burn_gnn::data::karate_club;
use burn_gnn::models::{FitConfig, GcnConfig, fit};

use crate::common::data::load;
use crate::common::report::Outcome;

#[test]
fn json_has_what_was_promised() {
    let data = load(karate_club(), None, &Device::flex(), FloatDType::F32).unwrap();
    let d = data.width().unwrap();
    let task = data.task(&data.graph);
    let config = FitConfig::new().with_epochs(4).with_progress(false);
    let trained = fit(
        GcnConfig::new(d, 2).init(&Device::flex().autodiff()),
        &task,
        &task.train,
        &task.val,
        &config,
    )
    .unwrap();
    let json = Outcome::new(&trained.model, &trained, &data, 0.25).unwrap().json();
    for key in ["test_accuracy", "majority_accuracy", "no_graph_accuracy", "seconds_per_epoch"] {
        assert!(json[key].is_f64(), "{key}: {json}");
    }
    assert!(json["parts"].is_u64() && json["edge_cut"].is_u64(), "{json}");
    assert_eq!(json["losses"].as_array().unwrap().len(), 4);
    assert!(json["val_accuracy"].is_null(), "the club has no validation members");
    assert_eq!(
        (json["majority_accuracy"].as_f64(), json["no_graph_accuracy"].as_f64()),
        (Some(0.5), Some(0.25))
    );
}
