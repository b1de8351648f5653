//! The order of edges against the walk over nodes, bit by bit.

use burn_gnn_structure::Relation;

use super::by_edges::{SLICES, forward, gradient, pays, slices};
use super::{walk, walk_gradient};
use burn_gnn_plan::{NormBy, SoftmaxPlan};

fn numbers(seed: u64, n: usize) -> Vec<f32> {
    let stream = burn_gnn_structure::Stream::new(seed, "by_edges", 0);
    (0..n as u64).map(|i| (8.0 * stream.uniform(i, 0) - 4.0) as f32).collect()
}

/// Skewed ends, some nodes without edges, edges in no order.
fn relation(nodes: u32, edges: usize) -> Relation {
    let stream = burn_gnn_structure::Stream::new(1, "relation", 0);
    let end = |e: usize, side: u64| ((stream.uniform(e as u64, side).powi(3) * f64::from(nodes)) as u32).min(nodes - 1);
    let (src, dst) = (0..edges).map(|e| (end(e, 0), end(e, 1))).unzip();
    Relation::from_coo(nodes as usize, nodes as usize, src, dst).unwrap()
}

fn within<R: Send>(threads: usize, f: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(f)
}

#[test]
fn the_bits_of_the_walk_over_nodes() {
    let relation = relation(200, 5003);
    for (features, norm_by) in
        [&[1usize][..], &[3], &[4], &[8], &[13], &[2, 16]].into_iter().flat_map(|f| [NormBy::Dst, NormBy::Src].map(|n| (f, n)))
    {
        let plan = SoftmaxPlan::edges("edge_softmax", &relation, norm_by, features).unwrap();
        let n = 5003 * plan.width();
        let (mut x, g) = (numbers(1, n), numbers(2, n));
        // Masks, signs of zero and larger numbers of either sign.
        x[0] = f32::NEG_INFINITY;
        x[1] = -0.0;
        x[2] = 3e38;
        x[n - 1] = -3e38;
        let bits = |x: Vec<f32>| x.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        within(3, || {
            assert!(pays::<f32>(&plan) && slices::<f32>(&plan) == SLICES, "{features:?}: the test does not test");
            let y = forward(&plan, &x);
            assert!(bits(y.clone()) == bits(walk(&plan, &x)), "{features:?} {norm_by:?}");
            assert!(bits(gradient(&plan, &y, &g)) == bits(walk_gradient(&plan, &y, &g)), "{features:?} {norm_by:?}, gradient");
        });
        // More threads than slices walk.
        within(5, || assert!(!pays::<f32>(&plan)));
    }
}

#[test]
fn nan_and_rows_of_masks_are_seen() {
    let relation = relation(50, 2000);
    let plan = SoftmaxPlan::edges("edge_softmax", &relation, NormBy::Dst, &[4]).unwrap();
    let mut x = numbers(3, 8000);
    x[40] = f32::NAN;
    x[81] = f32::INFINITY;
    let masked = relation.dst()[7];
    relation.dst().iter().enumerate().filter(|(_, v)| **v == masked).for_each(|(e, _)| x[4 * e + 2] = f32::NEG_INFINITY);
    within(2, || {
        let (a, b) = (forward(&plan, &x), walk(&plan, &x));
        let nan = |y: &[f32]| y.iter().map(|y| y.is_nan()).collect::<Vec<_>>();
        assert_eq!(nan(&a), nan(&b));
        assert!(a[40].is_nan() && a[81].is_nan() && a[7 * 4 + 2] == 0.0 && a[7 * 4 + 3] > 0.0);
        let (y, g) = (a.iter().map(|y| if y.is_nan() { 0.0 } else { *y }).collect::<Vec<_>>(), numbers(4, 8000));
        let (d, e) = (gradient(&plan, &y, &g), walk_gradient(&plan, &y, &g));
        assert!(d == e && d[7 * 4 + 2] == 0.0 && d[7 * 4 + 3] != 0.0);
        assert!(a.iter().zip(&b).all(|(a, b)| a.is_nan() || a == b));
    });
}

#[test]
fn small_sorted_and_half_problems_have_one_sum() {
    let sorted = Relation::from_coo(2, 2000, vec![0; 2000], (0..2000).collect()).unwrap();
    let plan = |r: &Relation, n: usize| SoftmaxPlan::edges("edge_softmax", r, NormBy::Dst, &[n]).unwrap();
    assert_eq!(slices::<f32>(&plan(&sorted, 8)), 1);
    assert_eq!(slices::<half::f16>(&plan(&relation(50, 2000), 8)), 1);
    assert_eq!(slices::<f32>(&plan(&relation(50, 20), 1)), 1);
    assert_eq!(slices::<f64>(&plan(&relation(50, 2000), 8)), SLICES);
}
