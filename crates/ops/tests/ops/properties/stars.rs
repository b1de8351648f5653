//! Nodes with 10⁵ edges: results and gradients against plain operations in f64, and the same bits for any number of
//! threads.
//!
//! The references of max, min and softmax take as many rounds as the largest degree, so loops replace them here.

use burn::tensor::{DType, Device};
use burn_gnn_graph::Relation;

use crate::families::{self, Family, Typed, devices};
use burn_gnn_testutil::graphs;

const LEAVES: usize = 100_000;

/// Edges from all leaves to one node, and from every tenth leaf to another, so that leaves have several edges; and the
/// reversed graph. Edges are not sorted by node.
fn stars() -> [(&'static str, Relation); 2] {
    let leaf = |e: usize| (e * 7919 % LEAVES) as u32;
    let endpoints: Vec<_> = (0..LEAVES)
        .map(|e| (leaf(e), 0))
        .chain((0..LEAVES / 10).map(|e| (leaf(10 * e), 1)))
        .collect();
    let star = graphs::relation(LEAVES, 2, &endpoints);
    [("in", star.clone()), ("out", star.reverse())]
}

/// Almost all edges have type 0: one large segment, one large type, one large relation.
fn typed(relation: &Relation) -> Typed {
    let mut g = Typed::new(relation);
    g.types = (0..relation.num_edges())
        .map(|e| if e % 1000 == 7 { 1 + u8::from(e % 3 == 0) } else { 0 })
        .collect();
    g
}

/// Rounds `values` to f32, so that all element types have the same operands.
fn exact(values: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    values.into_iter().map(|v| v.into_iter().map(|x| f64::from(x as f32)).collect()).collect()
}

/// Compares relative to the largest entry, since sums of terms of both signs may cancel.
#[track_caller]
fn close_by_size(what: &str, got: &[Vec<f64>], want: &[Vec<f64>], tolerance: f64) {
    let results = want.len();
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let size = want.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        // A gradient may be zeros only, if no message of a table is the largest; a result may not.
        assert!(size > 0.0 || i + 1 < results, "{what}, {i}: zeros prove nothing");
        assert_eq!(got.len(), want.len(), "{what}, {i}");
        let worst = got.iter().zip(want).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(worst <= tolerance * size, "{what}, {i}: off by {worst:e} at a size of {size:e}");
    }
}

/// Argmax (argmin) edge of every group and column; the first of equal ones in `order`.
fn argmax(
    groups: &[usize],
    num: usize,
    width: usize,
    order: &[usize],
    max: bool,
    message: impl Fn(usize, usize) -> f64,
) -> Vec<Option<usize>> {
    let mut best: Vec<Option<(usize, f64)>> = vec![None; num * width];
    for &e in order {
        for j in 0..width {
            let (place, x) = (&mut best[groups[e] * width + j], message(e, j));
            if place.is_none_or(|(_, y)| if max { x > y } else { x < y }) {
                *place = Some((e, x));
            }
        }
    }
    best.into_iter().map(|b| b.map(|(e, _)| e)).collect()
}

/// Softmax inside groups, and its gradient from the cotangent.
fn softmax(groups: &[usize], num: usize, width: usize, x: &[f64]) -> Vec<f64> {
    let at = |i: usize| groups[i / width] * width + i % width;
    let (mut max, mut sum) = (vec![f64::NEG_INFINITY; num * width], vec![0.0; num * width]);
    (0..x.len()).for_each(|i| max[at(i)] = x[i].max(max[at(i)]));
    let e: Vec<f64> = (0..x.len()).map(|i| (x[i] - max[at(i)]).exp()).collect();
    (0..x.len()).for_each(|i| sum[at(i)] += e[i]);
    (0..x.len()).map(|i| e[i] / sum[at(i)]).collect()
}

fn softmax_grad(groups: &[usize], num: usize, width: usize, y: &[f64], c: &[f64]) -> Vec<f64> {
    let at = |i: usize| groups[i / width] * width + i % width;
    let mut sum = vec![0.0; num * width];
    (0..y.len()).for_each(|i| sum[at(i)] += y[i] * c[i]);
    (0..y.len()).map(|i| y[i] * (c[i] - sum[at(i)])).collect()
}

/// Feature size of the families.
const W: usize = 3;

/// Gradients and result as [`Family::run`] returns them, computed by loops, for families whose reference would take 10⁵
/// rounds.
fn by_loops(name: &str, g: &Typed, values: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let endpoints = |x: &[u32]| -> Vec<usize> { x.iter().map(|&v| v as usize).collect() };
    let (src, dst) = (endpoints(g.relation.src()), endpoints(g.relation.dst()));
    let types: Vec<usize> = g.types.iter().map(|&t| t.into()).collect();
    let (n, edges, nodes) = (g.relation.num_src(), src.len(), g.relation.num_dst());
    let (c, in_order) = (values.last().unwrap(), (0..edges).collect::<Vec<_>>());
    let mut results: Vec<Vec<f64>> = values.iter().map(|v| vec![0.0; v.len()]).collect();
    let out = results.len() - 1;
    let max = !name.contains("Min");
    match name.split(' ').collect::<Vec<_>>()[..] {
        ["gspmm", op, .., "Max" | "Min"] => {
            // One weight per head multiplies all columns of the head.
            let (has_x, has_w) = (op != "CopyRhs", op != "CopyLhs");
            let width = c.len() / nodes;
            let (x, w) = (&values[0], &values[out - 1]);
            let per = if has_w { width * edges / w.len() } else { 1 };
            let (at_x, at_w) = (
                |e: usize, j: usize| src[e] * width + j,
                |e: usize, j: usize| (e * width + j) / per,
            );
            let factor = |has: bool, x: f64| if has { x } else { 1.0 };
            let both = |e, j| {
                (factor(has_x, x[at_x(e, j) % x.len()]), factor(has_w, w[at_w(e, j) % w.len()]))
            };
            let edges_of_max =
                argmax(&dst, nodes, width, &in_order, max, |e, j| both(e, j).0 * both(e, j).1);
            for (i, e) in edges_of_max.into_iter().enumerate().filter_map(|(i, e)| Some((i, e?))) {
                let (a, b) = both(e, i % width);
                results[out][i] = a * b;
                if has_x {
                    results[0][at_x(e, i % width)] += c[i] * b;
                }
                if has_w {
                    results[out - 1][at_w(e, i % width)] += c[i] * a;
                }
            }
        }
        ["multi_gspmm", "Max" | "Min"] | ["multi_gspmm_cross", "Max", "Max"] => {
            let mut order = in_order;
            order.sort_by_key(|&e| types[e]);
            let edges_of_max =
                argmax(&dst, nodes, W, &order, max, |e, j| values[types[e] % 2][src[e] * W + j]);
            for (i, e) in edges_of_max.into_iter().enumerate().filter_map(|(i, e)| Some((i, e?))) {
                let (table, at) = (types[e] % 2, src[e] * W + i % W);
                results[out][i] = values[table][at];
                results[table][at] += c[i];
            }
        }
        ["segment_reduce", "Max" | "Min"] => {
            let edges_of_max =
                argmax(&types, c.len() / W, W, &in_order, max, |e, j| values[0][e * W + j]);
            for (i, e) in edges_of_max.into_iter().enumerate().filter_map(|(i, e)| Some((i, e?))) {
                results[out][i] = values[0][e * W + i % W];
                results[0][e * W + i % W] += c[i];
            }
        }
        ["edge_softmax", ..] | ["edge_softmax_across"] | ["segment_softmax"] => {
            let (groups, num) = match name {
                "edge_softmax Src" => (&src, n),
                "segment_softmax" => (&types, 3),
                _ => (&dst, nodes),
            };
            results[1] = softmax(groups, num, W, &values[0]);
            results[0] = softmax_grad(groups, num, W, &results[1], c);
        }
        ["attention" | "gat_attention", "0"] => {
            const H: usize = 2;
            let gat = name.starts_with("gat");
            let sums = |e: usize, h: usize| values[1][src[e] * H + h] + values[2][dst[e] * H + h];
            let leaky = |x: f64| if x > 0.0 { x } else { 0.2 * x };
            let logits = match gat {
                true => (0..edges * H).map(|i| leaky(sums(i / H, i % H))).collect(),
                false => values[1].clone(),
            };
            let alpha = softmax(&dst, nodes, H, &logits);
            let mut d_alpha = vec![0.0; edges * H];
            for (i, e, h) in (0..edges * H * W).map(|i| (i % (H * W), i / (H * W), i / W % H)) {
                let (z, y) = (src[e] * H * W + i, dst[e] * H * W + i);
                results[out][y] += alpha[e * H + h] * values[0][z];
                results[0][z] += alpha[e * H + h] * c[y];
                d_alpha[e * H + h] += c[y] * values[0][z];
            }
            let d = softmax_grad(&dst, nodes, H, &alpha, &d_alpha);
            for (i, d) in d.into_iter().enumerate() {
                let (e, h) = (i / H, i % H);
                if gat {
                    let d = if sums(e, h) > 0.0 { d } else { 0.2 * d };
                    results[1][src[e] * H + h] += d;
                    results[2][dst[e] * H + h] += d;
                } else {
                    results[1][i] = d;
                }
            }
        }
        _ => return None,
    }
    Some(results)
}

/// Families that are not tested here: dropout masks and a maximum of maxima, for which large nodes are no special case.
fn cases() -> impl Iterator<Item = Family> {
    families::few(W)
        .into_iter()
        .filter(|f| !f.name.ends_with("attention 0.3") && f.name != "multi_gspmm_cross Min Max")
}

/// Operands, and results of plain operations in f64.
fn oracle(family: &Family, g: &Typed, device: &Device) -> [Vec<Vec<f64>>; 2] {
    // With this seed every ReLU lets some entries through.
    let values = exact(family.values(g, 27));
    let want = by_loops(&family.name, g, &values);
    let want = want.unwrap_or_else(|| family.run(g, &values, (device, DType::F64), true));
    [values, want]
}

/// Tolerance for sums of 10⁵ terms: each step rounds a sum of size √10⁵ by half a unit in the last place.
const SINGLE: f64 = 1e-4;

#[test]
fn on_flex() {
    let device = Device::flex();
    for (name, relation) in stars() {
        let g = typed(&relation);
        for family in cases() {
            let what = format!("{}, {name}", family.name);
            let [values, want] = oracle(&family, &g, &device);
            close_by_size(
                &what,
                &family.run(&g, &values, (&device, DType::F64), false),
                &want,
                1e-10,
            );
            let threads = |n| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
                pool.install(|| family.run(&g, &values, (&device, DType::F32), false))
            };
            let one = threads(1);
            close_by_size(&format!("{what}, f32"), &one, &want, SINGLE);
            let bits = |x: &[Vec<f64>]| x.iter().flatten().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert!(bits(&threads(3)) == bits(&one), "{what}, 3 threads");
        }
    }
}

/// All element types use the same kernels, so one is enough.
#[test]
fn on_other_cpu_backends() {
    for (name, relation) in stars() {
        let g = typed(&relation);
        for family in cases() {
            let [values, want] = oracle(&family, &g, &Device::flex());
            for (backend, device) in devices().into_iter().skip(1) {
                let got = family.run(&g, &values, (&device, DType::F32), false);
                close_by_size(&format!("{}, {name}, {backend}", family.name), &got, &want, SINGLE);
            }
        }
    }
}
