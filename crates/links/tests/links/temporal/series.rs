//! Models of signals: nothing is read from validation or test times, and invalid series are errors.

use burn::tensor::Device;
use burn_gnn_data::NodeSeries;
use burn_gnn_graph::Relation;
use burn_gnn_links::{FittedSeries, GcnGruConfig, fit_series};
use burn_gnn_testutil::assert_same_bits_on_threads;

/// A wave over a ring of four nodes: training times 0 to 59, test times 60 to 79.
fn wave() -> NodeSeries {
    let (steps, nodes) = (80, 4);
    let value = |i: usize| ((i / nodes) as f32 * 0.5 + (i % nodes) as f32).sin() * 3.0 + 10.0;
    NodeSeries {
        name: "wave".into(),
        steps,
        nodes,
        values: (0..steps * nodes).map(value).collect(),
        edges: Relation::from_coo(nodes, nodes, vec![0, 1, 2, 3], vec![1, 2, 3, 0]).unwrap(),
        weights: vec![1.0, 0.5, 0.25, 2.0],
        lags: 4,
        train: 0..60,
        test: 60..80,
    }
}

fn config() -> GcnGruConfig {
    let (hidden, steps, batch, eval_every) = (8, 40, 64, 20);
    GcnGruConfig { hidden, steps, batch, eval_every, lr: 1e-2, ..GcnGruConfig::new(2) }
}

fn fit(series: &NodeSeries) -> FittedSeries {
    fit_series(series, &config(), &Device::flex(), |_, _| ()).unwrap()
}

/// Bits of the predictions of windows that end at the times `ends`.
fn predictions(fitted: &FittedSeries, ends: std::ops::Range<u32>) -> Vec<u32> {
    let windows: Vec<_> = ends.flat_map(|end| (0..4).map(move |node| (end, node))).collect();
    let found = fitted.model.forward(&fitted.signals, &windows).into_data();
    found.iter::<f32>().map(f32::to_bits).collect()
}

#[test]
fn a_series_is_learned_with_the_same_bits_on_any_number_of_threads() {
    let series = wave();
    assert_same_bits_on_threads("validation and test", || {
        let fitted = fit(&series);
        let test = fitted.evaluate(series.test.clone());
        // The deviation of the series is 3 / √2, so that its mean has a squared error of 4.5.
        assert!(test.mse < 2.0, "{test:?}");
        vec![fitted.val.mse, test.mse, test.mae]
    });
}

#[test]
fn test_values_change_no_bit_of_training_and_of_earlier_predictions() {
    let series = wave();
    let mut changed = series.clone();
    changed.values[60 * 4..].iter_mut().for_each(|v| *v = *v * 50.0 - 7.0);
    let (a, b) = (fit(&series), fit(&changed));
    assert_eq!(a.val, b.val);
    assert_eq!(predictions(&a, 3..60), predictions(&b, 3..60));
    assert_ne!(predictions(&a, 60..61), predictions(&b, 60..61));
}

#[test]
fn validation_values_change_no_scale() {
    // A tenth of the training times is validation: times 54 to 59.
    let series = wave();
    let mut changed = series.clone();
    changed.values[54 * 4..60 * 4].iter_mut().for_each(|v| *v *= 50.0);
    // With one validation, at the end, the model does not depend on it.
    let of = |series: &NodeSeries| {
        let config = GcnGruConfig { eval_every: 40, ..config() };
        fit_series(series, &config, &Device::flex(), |_, _| ()).unwrap()
    };
    let (a, b) = (of(&series), of(&changed));
    assert_ne!(a.val, b.val);
    assert_eq!(predictions(&a, 3..54), predictions(&b, 3..54));
}

#[test]
fn times_without_a_window_have_no_figure() {
    let fitted = fit(&wave());
    assert!(fitted.evaluate(60..65).mse.is_nan() && fitted.evaluate(60..65).mae.is_nan());
    assert!(fitted.evaluate(60..66).mse.is_finite());
}

#[test]
fn invalid_series_and_settings_are_errors() {
    let rejected = |edit: &dyn Fn(&mut NodeSeries, &mut GcnGruConfig), part: &str| {
        let (mut series, mut config) = (wave(), config());
        edit(&mut series, &mut config);
        let e = fit_series(&series, &config, &Device::flex(), |_, _| ()).unwrap_err().to_string();
        assert!(e.contains(part), "expected {part:?} in {e}");
    };
    rejected(&|s, _| s.lags = 0, "`series: lags` must lie in 1..");
    rejected(&|s, _| s.lags = 60, "`series: windows of training`");
    rejected(&|s, _| s.train = 0..81, "`series: train` must lie in 0..80 (steps), got 0..81");
    rejected(&|s, _| s.weights.truncate(3), "`series: weights`: expected 4");
    rejected(&|s, _| s.values.truncate(319), "`series: values`: expected 320");
    rejected(&|_, c| c.val = 0.0, "`series: windows of validation`");
    rejected(&|_, c| c.val = f64::NAN, "`val` must lie in 0..1");
    rejected(&|_, c| c.horizon = 0, "`horizon`");
    rejected(&|_, c| c.lr = f64::NAN, "`lr` must lie in finite numbers above 0");
    rejected(&|_, c| c.lr = 1e38, "validation batch 19: the loss is ");
}
