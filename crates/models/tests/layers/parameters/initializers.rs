//! Initializers of configs, in seeded scopes.

use burn::nn::Initializer;
use burn::tensor::Device;
use burn_gnn_models::*;

use crate::values;

fn drawn(initializer: Initializer, [rows, cols]: [usize; 2]) -> Vec<f64> {
    let config = GcnConvConfig::new(rows, cols).with_initializer(initializer);
    let weight = || values(&seeded(3, || config.init(&Device::flex())).weight.unwrap().val());
    let first = weight();
    assert_eq!(weight(), first, "the same scope");
    first
}

#[test]
fn weights_follow_the_initializer() {
    let shape = [60, 40];
    let near = |what: &str, initializer, want: f64| {
        let v = drawn(initializer, shape);
        let got = (v.iter().map(|x| x * x).sum::<f64>() / v.len() as f64).sqrt();
        assert!((got - want).abs() < 0.05 * want, "{what}: deviation {got} instead of {want}");
    };
    near("Xavier uniform", Initializer::XavierUniform { gain: 1.0 }, 0.02f64.sqrt());
    near("Xavier uniform, gain", Initializer::XavierUniform { gain: 3.0 }, 3.0 * 0.02f64.sqrt());
    near("Xavier normal", Initializer::XavierNormal { gain: 1.0 }, 0.02f64.sqrt());
    near(
        "Kaiming normal",
        Initializer::KaimingNormal { gain: 1.0, fan_out_only: false },
        (1f64 / 60.0).sqrt(),
    );
    near(
        "Kaiming uniform",
        Initializer::KaimingUniform { gain: 1.0, fan_out_only: true },
        (1f64 / 40.0).sqrt(),
    );
    near("normal", Initializer::Normal { mean: 0.0, std: 0.3 }, 0.3);
    let uniform = drawn(Initializer::Uniform { min: 1.0, max: 2.0 }, shape);
    assert!(uniform.iter().all(|x| (1.0..2.0).contains(x)) && uniform[0] != uniform[1]);
    assert!(drawn(Initializer::Constant { value: 0.5 }, shape).iter().all(|x| *x == 0.5));
    // The default is Glorot's rule.
    let default = seeded(3, || GcnConvConfig::new(60, 40).init(&Device::flex())).weight.unwrap();
    assert_eq!(values(&default.val()), drawn(Initializer::XavierUniform { gain: 1.0 }, shape));
    for shape in [[4, 7], [7, 4]] {
        let w = drawn(Initializer::Orthogonal { gain: 2.0 }, shape);
        let at = |i: usize, k: usize| {
            if shape[0] < shape[1] { w[i * shape[1] + k] } else { w[k * shape[1] + i] }
        };
        for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
            let dot: f64 = (0..7).map(|k| at(i, k) * at(j, k)).sum();
            assert!(
                (dot - if i == j { 4.0 } else { 0.0 }).abs() < 1e-5,
                "{shape:?}, {i} and {j}: {dot}"
            );
        }
    }
}

/// Names of types are looked up once, and errors name what there is.
#[test]
fn values_by_type_are_found_and_sorted() {
    let schema =
        burn_gnn_graph::Schema::new(vec!["b".into(), "a".into(), "c".into()], vec![]).unwrap();
    let mut map = TypeMap::from([("c", 3), ("a", 1)]);
    assert_eq!((map["a"], map.get("b"), map.len()), (1, None, 2));
    assert_eq!(map.clone().into_list(&schema).unwrap(), [Some(1), None, Some(3)]);
    assert_eq!(TypeMap::from_list(&schema, [Some(1), None, Some(3)]), map);
    assert_eq!((map.insert("a", 5), map.remove("c"), map.remove("c")), (Some(1), Some(3), None));
    assert_eq!(map.clone().map(|name, v| format!("{name}{v}")).into_values(), ["a5"]);
    assert_eq!(
        burn_gnn_testutil::panic_text(|| map["b"]),
        "no entry for node type `b`; there are [\"a\"]"
    );
    assert!(
        TypeMap::from([("d", 1)])
            .into_list(&schema)
            .unwrap_err()
            .to_string()
            .contains("unknown node type")
    );
}

/// `labels` has a class for each row, of which the seeds are learned from.
#[test]
fn the_loss_of_seeds_is_that_of_their_rows() {
    let logits = crate::matrix(&Device::flex(), "logits", 4, 3);
    let (labels, seeds) = ([2, -1, 0, 1], [3, 0]);
    let v = values(&logits);
    let term = |r: usize, c: usize| {
        v[3 * r..][..3].iter().map(|x| x.exp()).sum::<f64>().ln() - v[3 * r + c]
    };
    crate::assert_close(
        "loss",
        &values(&cross_entropy(logits.clone(), &labels, seeds)),
        &[(term(3, 1) + term(0, 2)) / 2.0],
        1e-12,
    );
    let refused = |labels: &[i64], seeds: &[u32]| {
        burn_gnn_testutil::panic_text(|| cross_entropy(logits.clone(), labels, seeds))
    };
    assert_eq!(
        refused(&labels[..3], &seeds),
        "cross_entropy: `labels`: expected 4 (one per row of the logits), got 3"
    );
    assert_eq!(refused(&labels, &[]), "cross_entropy: `seeds` is empty; give at least one node");
    assert_eq!(refused(&labels, &[1]), "cross_entropy: `label of node 1` must lie in 0..3, got -1");
}
