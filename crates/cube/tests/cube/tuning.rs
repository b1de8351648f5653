//! Variants of launches: the same bits, whichever is taken.

use burn_gnn_cube::*;
use burn_gnn_graph::{Relation, Stream};
use burn_gnn_plan::*;

use crate::attention::attention_plan;
use crate::support::*;

/// Enough edges for an order of rows, a long row, rows without edges.
fn large() -> Relation {
    random(3000, 2500, 70_000, 1)
}

/// Bits of `f` with every variant, and as measured, against those of the first.
fn the_same(what: &str, f: impl Fn() -> Vec<Vec<u8>>) {
    let want = with_variant(0, &f);
    assert!(want.iter().all(|bits| bits.iter().any(|&b| b != 0)), "{what}: nothing was computed");
    // Memory of the size of results, which they get next: what a variant does not write is no number.
    let spoil = || {
        want.iter()
            .map(|bits| tensor(&vec![f64::NAN; bits.len() / 4], &[bits.len() / 4]))
            .for_each(|x| drop(read(&x)))
    };
    for variant in 1..NUM_VARIANTS {
        spoil();
        assert!(with_variant(variant, &f) == want, "{what}, variant {variant}");
    }
    for _ in 0..2 {
        spoil();
        assert!(f() == want, "{what}, as measured");
    }
}

/// Wide enough to be measured, an odd width, one that fills vectors, one number a head.
#[test]
fn sums() {
    let Some(()) = adapter() else { return };
    let relation = large();
    let mut numbers = Numbers::new(2);
    let (src, dst, edges) = (relation.num_src(), relation.num_dst(), relation.num_edges());
    for (lhs, rhs) in [(vec![16], vec![]), (vec![3], vec![3]), (vec![2, 8], vec![2, 1])] {
        let [l, r, g] = [(src, &lhs), (edges, &rhs), (dst, &lhs)]
            .map(|(n, f)| tensor(&numbers.divisors(n * size(f)), &dims(n, f)));
        for reduce in [Reduce::Sum, Reduce::Mean] {
            let call = GspmmPlan::new(&relation, BinaryOp::Mul, reduce, &lhs, &rhs).unwrap();
            the_same(&format!("{reduce:?} {lhs:?} {rhs:?}"), || {
                let out = gspmm(&call, Some(l.clone()), Some(r.clone()));
                let dl =
                    gspmm_grad(&call, Side::Lhs, g.clone(), None, Some(l.clone()), Some(r.clone()));
                vec![bytes(&out), bytes(&dl)]
            });
        }
    }
}

#[test]
fn max_and_min() {
    let Some(()) = adapter() else { return };
    let relation = large();
    // Many ties: the first edge is taken in every variant.
    let x: Vec<f64> =
        Numbers::new(3).numbers(3000 * 16).into_iter().map(|x| (4.0 * x).round()).collect();
    let (x, g) =
        (tensor(&x, &[3000, 16]), tensor(&Numbers::new(4).numbers(2500 * 16), &[2500, 16]));
    for reduce in [Reduce::Max, Reduce::Min] {
        let call = GspmmPlan::new(&relation, BinaryOp::CopyLhs, reduce, &[16], &[16]).unwrap();
        the_same(&format!("{reduce:?}"), || {
            let (out, arg) = gspmm_select(&call, Some(x.clone()), None);
            let dx = gspmm_grad(&call, Side::Lhs, g.clone(), Some(arg.clone()), None, None);
            vec![bytes(&out), bytes(&arg), bytes(&dx)]
        });
    }
}

#[test]
fn aggregations() {
    let Some(()) = adapter() else { return };
    let relation = large();
    let mut numbers = Numbers::new(5);
    let [x, weight, bias, g] = [vec![3000, 16], vec![70_000], vec![16], vec![2500, 16]]
        .map(|s| tensor(&numbers.numbers(size(&s)), &s));
    let mut scale = |n: usize| {
        Some(DegreeScale::new(&(0..n).map(|_| numbers.below(50) as u32).collect::<Vec<_>>(), -0.5))
    };
    let options = AggregateOptions {
        source: scale(3000),
        destination: scale(2500),
        activation: Activation::Relu,
    };
    let plan = AggregatePlan::new(&relation, 16, options, true, true).unwrap();
    the_same("aggregate", || {
        let out = aggregate(&plan, x.clone(), Some(weight.clone()), Some(bias.clone()));
        let (dx, _) =
            aggregate_grad(&plan, g.clone(), Some(out.clone()), Some(weight.clone()), true, false);
        vec![bytes(&out), bytes(&dx.unwrap())]
    });
}

#[test]
fn attentions() {
    let Some(()) = adapter() else { return };
    let relation = large();
    let mut numbers = Numbers::new(6);
    let [z, a, b, g] = [vec![3000, 4, 4], vec![3000, 4], vec![2500, 4], vec![2500, 4, 4]]
        .map(|s| tensor(&numbers.numbers(size(&s)), &s));
    let dropout = Some(KeyedDropout { prob: 0.25, stream: Stream::new(7, "tuning", 8), ids: None });
    let plan = attention_plan(&relation, 4, 4, Some(0.2), dropout);
    let wants = AttentionGradMask { z: true, first: true, second: true };
    the_same("attention", || {
        let scores = AttentionScores::Nodes(a.clone(), b.clone());
        let (out, stats) = attention(&plan, z.clone(), scores.clone());
        let kept = AttentionKept { out: out.clone(), stats: stats.clone(), z: z.clone(), scores };
        let (dz, da, db) = attention_grad(&plan, g.clone(), kept, wants);
        [out, stats, dz, da, db].iter().map(bytes).collect()
    });
}
