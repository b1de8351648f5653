//! Attention and its gradients.

use burn_gnn_cube::{AttentionGradMask, AttentionKept, AttentionScores, attention, attention_grad};
use burn_gnn_graph::{Relation, Stream};
use burn_gnn_plan::{AttentionPlan, GatOptions, KeyedDropout};

use crate::support::*;
use burn_gnn_testutil::graphs::{relation, star, with_hub};

const SLOPE: f64 = 0.2;
const ALL: AttentionGradMask = AttentionGradMask { z: true, first: true, second: true };

/// A plan with scores per edge if `slope` is `None`.
pub(crate) fn attention_plan(
    relation: &Relation,
    heads: usize,
    dim: usize,
    slope: Option<f64>,
    dropout: Option<KeyedDropout>,
) -> AttentionPlan {
    match slope {
        Some(slope) => {
            AttentionPlan::gat("attention", relation, heads, dim, &GatOptions { slope, dropout })
        }
        None => AttentionPlan::edges("attention", relation, heads, dim, dropout.as_ref()),
    }
    .unwrap()
}

/// Sizes, edges and dropout of a test case.
struct Case<'a> {
    relation: &'a Relation,
    heads: usize,
    dim: usize,
    /// Scores per edge instead of per endpoint.
    given: bool,
    prob: f64,
    ids: Option<&'a [u64]>,
}

/// The result, the statistics, and the gradients of `z` and of the first and second operand of the scores.
struct Want {
    out: Vec<f64>,
    stats: Vec<f64>,
    z: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Case<'_> {
    fn loops(
        &self,
        z: &[f64],
        first: &[f64],
        second: &[f64],
        grad: &[f64],
        stream: &Stream,
    ) -> Want {
        let Case { relation, heads, dim, .. } = *self;
        let (n, edges) = (relation.num_dst(), relation.num_edges());
        let endpoints = |e: usize| (relation.src()[e] as usize, relation.dst()[e] as usize);
        let leaky = |x: f64| if x > 0.0 { x } else { SLOPE * x };
        let pre = |e: usize, h: usize| {
            let (u, v) = endpoints(e);
            if self.given {
                first[e * heads + h]
            } else {
                first[u * heads + h] + second[v * heads + h]
            }
        };
        let score = |e, h| if self.given { pre(e, h) } else { leaky(pre(e, h)) };
        let factor = |e: usize, h: usize| {
            let id = self.ids.map_or(e as u64, |ids| ids[e]);
            if stream.uniform(id, h as u64) >= self.prob { 1.0 / (1.0 - self.prob) } else { 0.0 }
        };
        let mut largest = vec![f64::NEG_INFINITY; n * heads];
        let mut sums = vec![0.0; n * heads];
        let all = || (0..edges).flat_map(|e| (0..heads).map(move |h| (e, h)));
        for (e, h) in all() {
            let m = &mut largest[endpoints(e).1 * heads + h];
            *m = m.max(score(e, h));
        }
        largest.iter_mut().for_each(|m| *m = if *m == f64::NEG_INFINITY { 0.0 } else { *m });
        for (e, h) in all() {
            let at = endpoints(e).1 * heads + h;
            sums[at] += (score(e, h) - largest[at]).exp();
        }
        let inverse: Vec<f64> =
            sums.iter().map(|&s| if s == 0.0 { 0.0 } else { 1.0 / s }).collect();
        let alpha = |e: usize, h: usize| {
            let at = endpoints(e).1 * heads + h;
            (score(e, h) - largest[at]).exp() * inverse[at]
        };
        let mut want = Want {
            out: vec![0.0; n * heads * dim],
            stats: (0..n * 2 * heads)
                .map(|i| {
                    let at = i / (2 * heads) * heads + i % heads;
                    if i % (2 * heads) < heads { largest[at] } else { inverse[at] }
                })
                .collect(),
            z: vec![0.0; z.len()],
            first: vec![0.0; first.len()],
            second: vec![0.0; second.len()],
        };
        let mut totals = vec![0.0; n * heads];
        for (e, h) in all() {
            let ((u, v), w) = (endpoints(e), alpha(e, h) * factor(e, h));
            for d in 0..dim {
                let (from, to) = ((u * heads + h) * dim + d, (v * heads + h) * dim + d);
                want.out[to] += w * z[from];
                want.z[from] += w * grad[to];
                totals[v * heads + h] += w * z[from] * grad[to];
            }
        }
        for (e, h) in all() {
            let (u, v) = endpoints(e);
            let dot: f64 = (0..dim)
                .map(|d| z[(u * heads + h) * dim + d] * grad[(v * heads + h) * dim + d])
                .sum();
            let a = alpha(e, h);
            let ds = a * factor(e, h) * dot - a * totals[v * heads + h];
            if self.given {
                want.first[e * heads + h] += ds;
            } else {
                let ds = if pre(e, h) > 0.0 { ds } else { SLOPE * ds };
                want.first[u * heads + h] += ds;
                want.second[v * heads + h] += ds;
            }
        }
        want
    }

    fn check(&self, what: &str, tolerance: f64) {
        let Case { relation, heads, dim, given, prob, ids } = *self;
        let mut numbers = Numbers::new(31);
        let (src, dst, edges) = (relation.num_src(), relation.num_dst(), relation.num_edges());
        let z = numbers.numbers(src * heads * dim);
        let rows = if given { [edges, 0] } else { [src, dst] };
        let [first, second] =
            rows.map(|n| numbers.numbers(n * heads).iter().map(|x| 3.0 * x).collect::<Vec<_>>());
        let grad = numbers.numbers(dst * heads * dim);
        let stream = Stream::new(3, "attention", 4);
        let want = self.loops(&z, &first, &second, &grad, &stream);
        let dropout = (prob > 0.0).then(|| KeyedDropout { prob, stream, ids: ids.map(Into::into) });
        let plan = attention_plan(relation, heads, dim, (!given).then_some(SLOPE), dropout);
        let [a, b] = [(&first, rows[0]), (&second, rows[1])].map(|(x, n)| tensor(x, &[n, heads]));
        let scores = if given { AttentionScores::Edges(a) } else { AttentionScores::Nodes(a, b) };
        let z = tensor(&z, &[src, heads, dim]);
        let what = format!("{what}, {heads} heads of {dim}, given {given}, dropout {prob}");
        let (out, stats) = attention(&plan, z.clone(), scores.clone());
        assert_eq!(
            (shape(&out), shape(&stats)),
            (vec![dst, heads, dim], vec![dst, 2, heads]),
            "{what}"
        );
        close(&format!("{what}: out"), &out, &want.out, tolerance);
        close(&format!("{what}: statistics"), &stats, &want.stats, tolerance);
        let kept = AttentionKept { out, stats, z, scores };
        let grad = tensor(&grad, &[dst, heads, dim]);
        let (dz, d_first, d_second) = attention_grad(&plan, grad.clone(), kept.clone(), ALL);
        assert_eq!(
            (shape(&dz), shape(&d_first)),
            (vec![src, heads, dim], vec![rows[0], heads]),
            "{what}"
        );
        close(&format!("{what}: d z"), &dz, &want.z, tolerance);
        close(&format!("{what}: d first"), &d_first, &want.first, tolerance);
        if given {
            assert_eq!(shape(&d_second), [0], "{what}");
        } else {
            assert_eq!(shape(&d_second), [dst, heads], "{what}");
            close(&format!("{what}: d second"), &d_second, &want.second, tolerance);
        }
        let (only, none, nothing) = attention_grad(
            &plan,
            grad,
            kept,
            AttentionGradMask { z: true, first: false, second: false },
        );
        assert_eq!(
            (bytes(&only), shape(&none), shape(&nothing)),
            (bytes(&dz), vec![0], vec![0]),
            "{what}"
        );
    }
}

#[test]
fn named_graphs() {
    let Some(()) = adapter() else { return };
    for (name, relation) in named() {
        for given in [false, true] {
            for prob in [0.0, 0.6] {
                Case { relation: &relation, heads: 2, dim: 4, given, prob, ids: None }
                    .check(name, 1e-4);
            }
        }
    }
}

#[test]
fn sizes() {
    let Some(()) = adapter() else { return };
    let relation = with_hub(20, 15, 90, 6);
    let ids: Vec<u64> = (0..90).map(|e| e * 0x1_0000_0007).collect();
    for (heads, dim) in [(1, 1), (8, 8), (1, 40), (3, 5), (5, 1), (2, 128), (2, 0), (0, 3)] {
        for given in [false, true] {
            Case { relation: &relation, heads, dim, given, prob: 0.4, ids: Some(&ids) }
                .check("sizes", 1e-4);
        }
    }
}

#[test]
fn star_of_many_leaves() {
    let Some(()) = adapter() else { return };
    let relation = star(100_000);
    Case { relation: &relation, heads: 2, dim: 2, given: false, prob: 0.0, ids: None }
        .check("star", 1e-3);
}

#[test]
fn destinations_with_masked_edges_only_get_zero() {
    let Some(()) = adapter() else { return };
    let relation = relation(2, 2, &[(0, 0), (1, 0), (0, 1), (1, 1)]);
    let plan = attention_plan(&relation, 1, 2, None, None);
    let z = tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 1, 2]);
    let masks = tensor(&[f64::NEG_INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY, 1.0], &[4, 1]);
    let scores = AttentionScores::Edges(masks);
    let (out, stats) = attention(&plan, z.clone(), scores.clone());
    assert_eq!(read(&out), [0.0, 0.0, 3.0, 4.0]);
    assert_eq!(read(&stats), [0.0, 0.0, 1.0, 1.0]);
    let kept = AttentionKept { out, stats, z, scores };
    let (dz, d, _) = attention_grad(&plan, tensor(&[1.0; 4], &[2, 1, 2]), kept, ALL);
    assert_eq!((read(&dz), read(&d)), (vec![0.0, 0.0, 1.0, 1.0], vec![0.0; 4]));
}

#[test]
fn results_repeat_bit_for_bit() {
    let Some(()) = adapter() else { return };
    let relation = with_hub(60, 50, 5000, 9);
    let mut numbers = Numbers::new(10);
    let z = tensor(&numbers.numbers(60 * 32), &[60, 4, 8]);
    let endpoints =
        (tensor(&numbers.numbers(240), &[60, 4]), tensor(&numbers.numbers(200), &[50, 4]));
    let grad = tensor(&numbers.numbers(50 * 32), &[50, 4, 8]);
    let dropout = Some(KeyedDropout { prob: 0.5, stream: Stream::new(1, "x", 2), ids: None });
    let plan = attention_plan(&relation, 4, 8, Some(SLOPE), dropout);
    let run = || {
        let scores = AttentionScores::Nodes(endpoints.0.clone(), endpoints.1.clone());
        let (out, stats) = attention(&plan, z.clone(), scores.clone());
        let kept = AttentionKept { out: out.clone(), stats: stats.clone(), z: z.clone(), scores };
        let (a, b, c) = attention_grad(&plan, grad.clone(), kept, ALL);
        [out, stats, a, b, c].map(|x| bytes(&x))
    };
    assert_eq!(run(), run());
}
