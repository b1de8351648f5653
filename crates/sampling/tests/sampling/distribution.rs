//! Chi-square tests of what samplers draw.

use burn_gnn_sampling::{NeighborSampler, SampleKey, Strategy};
use burn_gnn_testutil::apply_if;

use crate::common::{chi_square, limit, star};

/// How often each leaf of a star is drawn in `batches` batches.
fn counts(sampler: &NeighborSampler, leaves: usize, batches: u64) -> Vec<f64> {
    let mut counts = vec![0.0; leaves];
    for step in 0..batches {
        let batch = sampler.sample([("_N", [0])], SampleKey::new(17).at(0, step)).unwrap();
        batch.blocks[0].edge_ids(0).iter().for_each(|&e| counts[e as usize] += 1.0);
    }
    counts
}

fn sampler(leaves: usize, k: i64) -> NeighborSampler {
    NeighborSampler::new(&star(leaves), [k]).unwrap()
}

#[test]
fn uniform_without_replacement() {
    for (leaves, k) in [(5, 2), (40, 10), (200, 10), (200, 90)] {
        let batches = 20_000.0;
        let (share, mean) = (k as f64 / leaves as f64, batches * k as f64 / leaves as f64);
        let observed = counts(&sampler(leaves, k), leaves, batches as u64);
        // Counts without replacement vary by 1 - k / n less.
        let chi = chi_square(&observed, &vec![mean; leaves]) / (1.0 - share) * (leaves - 1) as f64
            / leaves as f64;
        assert!(chi < limit(leaves - 1), "{k} of {leaves}: {chi} >= {}", limit(leaves - 1));
    }
}

#[test]
fn uniform_with_replacement() {
    let s = sampler(50, 20).with_replacement().unwrap();
    let chi = chi_square(&counts(&s, 50, 5_000), &[2_000.0; 50]);
    assert!(chi < limit(49), "{chi}");
}

#[test]
fn a_star_of_a_million_leaves() {
    let leaves = 1_000_000;
    for replace in [false, true] {
        let s = apply_if(replace, sampler(leaves, 1_000), |s| s.with_replacement().unwrap());
        // In 100 ranges of leaves: the ends of the row as often as the middle.
        let ranges: Vec<f64> =
            counts(&s, leaves, 200).chunks(leaves / 100).map(|c| c.iter().sum()).collect();
        let chi = chi_square(&ranges, &[2_000.0; 100]);
        assert!(chi < limit(99), "replace {replace}: {chi}");
    }
    // Weights 1 and 3 alternate: a quarter of the draws goes to even leaves.
    let weights: Vec<f32> = (0..leaves).map(|i| [1.0, 3.0][i % 2]).collect();
    for replace in [false, true] {
        let s = sampler(leaves, 1_000).with_weights("_E", &weights).unwrap();
        let s = s.with_strategy(Strategy::Weighted).unwrap();
        let s = apply_if(replace, s, |s| s.with_replacement().unwrap());
        let all = counts(&s, leaves, 20);
        let even: f64 = all.iter().step_by(2).sum();
        let chi = chi_square(&[even, 20_000.0 - even], &[5_000.0, 15_000.0]);
        assert!(chi < limit(1), "replace {replace}: {even} of 20000 even");
        let ranges: Vec<f64> = all.chunks(leaves / 100).map(|c| c.iter().sum()).collect();
        assert!(chi_square(&ranges, &[200.0; 100]) < limit(99));
    }
}

const WEIGHTS: [f32; 6] = [1.0, 2.0, 0.0, 4.0, 0.5, 8.0];

#[test]
fn weighted_with_replacement() {
    let s = sampler(6, 10)
        .with_weights("_E", &WEIGHTS)
        .unwrap()
        .with_strategy(Strategy::Weighted)
        .unwrap()
        .with_replacement()
        .unwrap();
    let expected = |weights: &[f32]| -> Vec<f64> {
        let total: f32 = weights.iter().sum();
        weights.iter().filter(|w| **w > 0.0).map(|w| 1e5 * f64::from(w / total)).collect()
    };
    let drawn =
        |observed: Vec<f64>| -> Vec<f64> { observed.into_iter().filter(|o| *o > 0.0).collect() };
    let observed = counts(&s, 6, 10_000);
    assert_eq!(observed[2], 0.0, "weight 0 is never drawn");
    assert!(chi_square(&drawn(observed), &expected(&WEIGHTS)) < limit(4));
    // Without edge 5, by running sums instead of the table.
    let masked = s.with_mask("_E", &[true, true, true, true, true, false]).unwrap();
    let observed = counts(&masked, 6, 10_000);
    assert_eq!((observed[2], observed[5]), (0.0, 0.0));
    assert!(chi_square(&drawn(observed), &expected(&WEIGHTS[..5])) < limit(3));
}

/// Probability that a set of two is drawn one after the other from what is left.
fn successive(weights: &[f32], a: usize, b: usize) -> f64 {
    let (total, w): (f64, Vec<f64>) = (
        weights.iter().map(|&w| f64::from(w)).sum(),
        weights.iter().map(|&w| f64::from(w)).collect(),
    );
    w[a] / total * w[b] / (total - w[a]) + w[b] / total * w[a] / (total - w[b])
}

#[test]
fn weighted_without_replacement_and_labor_draw_sets_exactly() {
    for strategy in [Strategy::Weighted, Strategy::Labor { layer_dependent: true }] {
        let s =
            sampler(6, 2).with_weights("_E", &WEIGHTS).unwrap().with_strategy(strategy).unwrap();
        let (mut observed, mut expected, n) = (vec![0.0; 36], vec![0.0; 36], 40_000);
        for step in 0..n {
            let batch = s.sample([("_N", [0])], SampleKey::new(3).at(0, step)).unwrap();
            let ids = batch.blocks[0].edge_ids(0);
            observed[(ids[0] * 6 + ids[1]) as usize] += 1.0;
        }
        let mut used = 0;
        for a in 0..6 {
            for b in a + 1..6 {
                expected[a * 6 + b] = n as f64 * successive(&WEIGHTS, a, b);
            }
        }
        let (mut o, mut e) = (vec![], vec![]);
        for (&observed, &expected) in observed.iter().zip(&expected) {
            if expected > 0.0 {
                o.push(observed);
                e.push(expected);
                used += 1;
            } else {
                assert_eq!(observed, 0.0);
            }
        }
        assert_eq!(used, 10);
        assert!(chi_square(&o, &e) < limit(9), "{strategy:?}: {o:?} {e:?}");
    }
}

#[test]
fn in_degree_follows_how_many_choose_the_neighbour() {
    // Nodes 1, 2, 3 are chosen by node 0 once each, and by others 0, 1 and 4 times more.
    let (src, dst) = (vec![1, 2, 3, 2, 3, 3, 3, 3], vec![0, 0, 0, 4, 4, 5, 6, 7]);
    let g = burn_gnn_graph::Graph::homogeneous(8, src, dst).unwrap();
    let s = NeighborSampler::new(&g, [5])
        .unwrap()
        .with_strategy(Strategy::InDegree)
        .unwrap()
        .with_replacement()
        .unwrap();
    let observed = counts(&s, 8, 8_000);
    assert!(chi_square(&observed[..3], &[5_000.0, 10_000.0, 25_000.0]) < limit(2), "{observed:?}");
}

#[test]
fn zero_weights_give_an_empty_neighbourhood() {
    for (replace, k) in [(false, 2), (true, 2), (false, -1)] {
        let s = sampler(3, k)
            .with_weights("_E", &[0.0; 3])
            .unwrap()
            .with_strategy(Strategy::Weighted)
            .unwrap();
        let batch = apply_if(replace, s, |s| s.with_replacement().unwrap())
            .sample([("_N", [0])], SampleKey::new(1))
            .unwrap();
        assert_eq!((batch.total_edges(), batch.output_nodes(0)), (0, &[0][..]));
    }
}
