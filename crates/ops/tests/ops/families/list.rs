//! Lists the operators, one constructor per kind.

use std::sync::Arc;

use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};
use burn_gnn_ops::*;

use super::{Family, On, TYPES, Typed};
use burn_gnn_testutil::graphs;

/// Reshapes operands: only a row for the whole graph may have another width.
fn rows(x: &Tensor<2>, width: usize) -> Tensor<2> {
    let [n, actual] = x.dims();
    if width == actual { x.clone() } else { x.clone().reshape([n * actual / width, width]) }
}

fn heads(x: &Tensor<2>, heads: usize, width: usize) -> Tensor<3> {
    let [n, _] = x.dims();
    x.clone().reshape([n, heads, width])
}

fn ints(values: &[u32], device: &Device) -> Tensor<1, Int> {
    let values: Vec<i32> = values.iter().map(|&v| v as i32).collect();
    let n = values.len();
    Tensor::from_data(TensorData::new(values, [n]), device)
}

fn flat<const D: usize>(x: Tensor<D>) -> Tensor<1> {
    let n = x.shape().num_elements();
    x.reshape([n])
}

/// GSpMM of rows of equal widths, under every reducer.
fn gspmm_of(ops: &[BinaryOp], w: usize) -> Vec<Family> {
    let mut all = Vec::new();
    for (&op, reduce) in ops.iter().flat_map(|op| Reduce::ALL.map(|r| (op, r))) {
        let operands: &[_] = match op {
            BinaryOp::CopyLhs => &[(On::Src, w)],
            BinaryOp::CopyRhs => &[(On::Edge, w)],
            _ => &[(On::Src, w), (On::Edge, w)],
        };
        let family = Family::new(
            format!("gspmm {op:?} {reduce:?}"),
            operands,
            (On::Dst, w),
            move |g, x, reference| {
                let f = if reference { gspmm_reference::<2, 2, 2> } else { gspmm::<2, 2, 2> };
                let (lhs, rhs) = (rows(&x[0], w), rows(x.last().unwrap(), w));
                flat(f(&g.relation, op, reduce, lhs, rhs))
            },
        );
        all.push(family.selecting(reduce.selects()));
    }
    for reduce in Reduce::ALL {
        let operands = [(On::Src, 2 * w), (On::Edge, 2)];
        let family = Family::new(
            format!("gspmm of heads {reduce:?}"),
            &operands,
            (On::Dst, 2 * w),
            move |g, x, reference| {
                let f = if reference { gspmm_reference::<3, 3, 3> } else { gspmm::<3, 3, 3> };
                flat(f(&g.relation, BinaryOp::Mul, reduce, heads(&x[0], 2, w), heads(&x[1], 2, 1)))
            },
        );
        all.push(family.selecting(reduce.selects()));
    }
    all
}

fn on(target: Target) -> On {
    match target {
        Target::Src => On::Src,
        Target::Dst => On::Dst,
        Target::Edge => On::Edge,
    }
}

fn gsddmm_of(ops: &[SddmmOp], pairs: &[[Target; 2]], w: usize) -> Vec<Family> {
    let mut all = Vec::new();
    for (&op, &[l, r]) in ops.iter().flat_map(|op| pairs.iter().map(move |pair| (op, pair))) {
        let operands: &[_] = match op {
            SddmmOp::CopyLhs => &[(on(l), w)],
            SddmmOp::CopyRhs => &[(on(r), w)],
            _ => &[(on(l), w), (on(r), w)],
        };
        let out = if op == SddmmOp::Dot { 1 } else { w };
        all.push(Family::new(
            format!("gsddmm {op:?} {l:?} {r:?}"),
            operands,
            (On::Edge, out),
            move |g, x, reference| {
                let f = if reference { gsddmm_reference::<2, 2, 2> } else { gsddmm::<2, 2, 2> };
                flat(f(&g.relation, op, l, r, rows(&x[0], w), rows(x.last().unwrap(), w)))
            },
        ));
    }
    all
}

fn softmaxes(w: usize) -> Vec<Family> {
    let edges = [(On::Edge, w)];
    let mut all: Vec<_> = [NormBy::Dst, NormBy::Src]
        .into_iter()
        .map(|by| {
            Family::new(format!("edge_softmax {by:?}"), &edges, edges[0], move |g, x, reference| {
                let f = if reference { edge_softmax_reference } else { edge_softmax };
                flat(f(&g.relation, rows(&x[0], w), by))
            })
        })
        .collect();
    all.push(Family::new(
        "edge_softmax_across".into(),
        &edges,
        edges[0],
        move |g, x, reference| {
            let present = || (0..TYPES).filter(|&ty| g.edges_of(ty).next().is_some());
            let (stack, (order, place), device) = (g.stack(present()), g.sorted(), x[0].device());
            let sorted = rows(&x[0], w).select(0, ints(&order, &device));
            let y = if reference {
                edge_softmax_reference(stack.concatenated(), sorted, NormBy::Dst)
            } else {
                let parts =
                    (0..stack.len()).map(|r| sorted.clone().slice_dim(0, stack.edge_range(r)));
                let y = edge_softmax_across(&stack, parts.collect());
                // Without edges the stack has no relation.
                if y.is_empty() { sorted } else { Tensor::cat(y, 0) }
            };
            flat(y.select(0, ints(&place, &device)))
        },
    ));
    // Softmax over the edges of one type; the remaining edges are 0.
    all.extend([NormBy::Dst, NormBy::Src].into_iter().map(|by| {
        Family::new(format!("edge_softmax_on {by:?}"), &edges, edges[0], move |g, x, reference| {
            let (eids, all): (Vec<u32>, _) =
                (g.edges_of(0).map(|e| e as u32).collect(), rows(&x[0], w));
            let index = ints(&eids, &x[0].device());
            let some = all.clone().select(0, index.clone());
            let y = if reference {
                let endpoints: Vec<_> = eids
                    .iter()
                    .map(|&e| (g.relation.src()[e as usize], g.relation.dst()[e as usize]))
                    .collect();
                edge_softmax_reference(
                    &graphs::relation(g.rows(On::Src), g.rows(On::Dst), &endpoints),
                    some,
                    by,
                )
            } else {
                edge_softmax_on(&g.relation, &eids, some, by)
            };
            flat((all * 0.0).select_assign(0, index, y, IndexingUpdateOp::Add))
        })
    }));
    all
}

fn attentions(w: usize) -> Vec<Family> {
    const HEADS: usize = 2;
    let (z, out) = ((On::Src, HEADS * w), (On::Dst, HEADS * w));
    let dropout = |prob: f64, g: &Typed| EdgeDropout {
        prob,
        stream: Stream::new(2, "attention", 1),
        ids: Some(g.ids.clone()),
    };
    let mut all = Vec::new();
    for prob in [0.0, 0.3] {
        let scores = [z, (On::Src, HEADS), (On::Dst, HEADS)];
        all.push(Family::new(
            format!("gat_attention {prob}"),
            &scores,
            out,
            move |g, x, reference| {
                let options = GatOptions { slope: 0.2, dropout: Some(dropout(prob, g)) };
                let f = if reference { gat_attention_reference } else { gat_attention };
                flat(f(
                    &g.relation,
                    heads(&x[0], HEADS, w),
                    rows(&x[1], HEADS),
                    rows(&x[2], HEADS),
                    &options,
                ))
            },
        ));
        all.push(Family::new(
            format!("attention {prob}"),
            &[z, (On::Edge, HEADS)],
            out,
            move |g, x, reference| {
                let f = if reference { attention_reference } else { attention };
                flat(f(
                    &g.relation,
                    rows(&x[1], HEADS),
                    heads(&x[0], HEADS, w),
                    Some(&dropout(prob, g)),
                ))
            },
        ));
    }
    all
}

fn aggregates(w: usize) -> Vec<Family> {
    let mut all = Vec::new();
    for (weighted, norm, activation) in [
        (false, (0.0, 0.0), Activation::None),
        (true, (-0.5, -0.5), Activation::Relu),
        (false, (-0.5, -0.5), Activation::Elu(1.1)),
        (true, (0.0, -1.0), Activation::LeakyRelu(0.1)),
    ] {
        let mut operands = vec![(On::Src, w), (On::Whole, w)];
        if weighted {
            operands.push((On::Edge, 1));
        }
        let name = format!("weighted_aggregate {norm:?} {activation:?}");
        all.push(Family::new(name, &operands, (On::Dst, w), move |g, x, reference| {
            let scale = |power: f64, degrees: Vec<u32>| {
                (power != 0.0).then(|| DegreeScale::new(&degrees, power))
            };
            let options = AggregateOptions {
                source: scale(norm.0, g.relation.out_degrees().collect()),
                destination: scale(norm.1, g.relation.in_degrees().collect()),
                activation,
            };
            let f = if reference { weighted_aggregate_reference } else { weighted_aggregate };
            flat(f(
                &g.relation,
                rows(&x[0], w),
                x.get(2).cloned().map(flat),
                Some(flat(x[1].clone())),
                &options,
            ))
        }));
    }
    all
}

/// Products with at most 32 × 32 entries; larger ones are computed by `gemm`.
fn relationals(w: usize) -> Vec<Family> {
    const O: usize = 6;
    let mut all = Vec::new();
    for mean in [false, true] {
        let index = move |g: &Typed| {
            let index = RelationalIndex::new(&g.relation, &g.types, TYPES);
            if mean { index.mean() } else { index }
        };
        let f = |reference| {
            if reference { relational_aggregate_reference } else { relational_aggregate }
        };
        let operands = [(On::Src, w), (On::Whole, TYPES * w * O), (On::Edge, 1)];
        all.push(Family::new(
            format!("relational Full, mean {mean}"),
            &operands,
            (On::Dst, O),
            move |g, x, reference| {
                let weight = RelationalWeight::Full(x[1].clone().reshape([TYPES, w, O]));
                flat(f(reference)(&index(g), rows(&x[0], w), weight, Some(flat(x[2].clone()))))
            },
        ));
        let operands = [(On::Src, 2 * w), (On::Whole, TYPES * w * O)];
        all.push(Family::new(
            format!("relational Blocks, mean {mean}"),
            &operands,
            (On::Dst, O),
            move |g, x, reference| {
                let weight =
                    RelationalWeight::BlockDiagonal(x[1].clone().reshape([TYPES, 2, w, O / 2]));
                flat(f(reference)(&index(g), rows(&x[0], 2 * w), weight, None))
            },
        ));
        let operands = [(On::Src, w), (On::Whole, 2 * w * O), (On::Whole, 2 * TYPES)];
        let basis = Family::new(
            format!("relational Basis, mean {mean}"),
            &operands,
            (On::Dst, O),
            move |g, x, reference| {
                let weight = RelationalWeight::Basis {
                    bases: x[1].clone().reshape([2, w, O]),
                    coeff: rows(&x[2], 2),
                };
                flat(f(reference)(&index(g), rows(&x[0], w), weight, None))
            },
        );
        all.push(Family { by_gemm: true, ..basis });
    }
    all
}

fn multis(crosses: &[CrossReduce], w: usize) -> Vec<Family> {
    let tables = [(On::Src, w), (On::Src, w)];
    let joint = move |g: &Typed, x: &[Tensor<2>], reduce| {
        let (stack, both) =
            (g.stack(0..TYPES), Tensor::cat(vec![rows(&x[0], w), rows(&x[1], w)], 0));
        gspmm_reference::<2, 2, 2>(
            stack.concatenated(),
            BinaryOp::CopyLhs,
            reduce,
            both.clone(),
            both,
        )
    };
    let mut all = Vec::new();
    for reduce in Reduce::ALL {
        let family = Family::new(
            format!("multi_gspmm {reduce:?}"),
            &tables,
            (On::Dst, w),
            move |g, x, reference| {
                if reference {
                    return flat(joint(g, x, reduce));
                }
                flat(multi_gspmm(&g.stack(0..TYPES), vec![rows(&x[0], w), rows(&x[1], w)], reduce))
            },
        );
        all.push(family.selecting(reduce.selects()));
        for &cross in crosses {
            let together = matches!(
                (reduce, cross),
                (Reduce::Max, CrossReduce::Max) | (Reduce::Min, CrossReduce::Min)
            );
            let selects = reduce.selects() && matches!(cross, CrossReduce::Max | CrossReduce::Min);
            let name = format!("multi_gspmm_cross {reduce:?} {cross:?}");
            let family = Family::new(name, &tables, (On::Dst, w), move |g, x, reference| {
                let (stack, sources) = (g.stack(0..TYPES), vec![rows(&x[0], w), rows(&x[1], w)]);
                if !reference {
                    return flat(multi_gspmm_cross(&stack, sources, reduce, cross));
                }
                if together {
                    return flat(joint(g, x, reduce));
                }
                let each = stack.relations().iter().map(|(table, relation)| {
                    let x = sources[*table].clone();
                    gspmm_reference::<2, 2, 2>(relation, BinaryOp::CopyLhs, reduce, x.clone(), x)
                });
                let combined = each.reduce(|x, y| match cross {
                    CrossReduce::Sum | CrossReduce::Mean => x + y,
                    CrossReduce::Max => x.max_pair(y),
                    CrossReduce::Min => x.min_pair(y),
                });
                let y = combined.unwrap();
                flat(if cross == CrossReduce::Mean { y * (TYPES as f64).recip() } else { y })
            });
            all.push(family.selecting(selects));
        }
    }
    all
}

/// Segments are the edges of a type, concatenated.
fn segments(w: usize) -> Vec<Family> {
    const O: usize = 7;
    let edges = [(On::Edge, w)];
    let index = |g: &Typed| TypeIndex::new(&g.types, TYPES);
    let sorted =
        move |g: &Typed, x: &Tensor<2>| rows(x, w).select(0, ints(&g.sorted().0, &x.device()));
    let back = |g: &Typed, y: Tensor<2>| {
        let place = ints(&g.sorted().1, &y.device());
        flat(y.select(0, place))
    };
    let mut all = Vec::new();
    for reduce in SegmentReduce::ALL {
        let out = (On::Whole, TYPES * w);
        let family = Family::new(
            format!("segment_reduce {reduce:?}"),
            &edges,
            out,
            move |g, x, reference| {
                let f = if reference { segment_reduce_reference } else { segment_reduce };
                flat(f(sorted(g, &x[0]), index(g).segments(), reduce))
            },
        );
        all.push(family.selecting(matches!(reduce, SegmentReduce::Max | SegmentReduce::Min)));
    }
    all.push(Family::new("segment_softmax".into(), &edges, edges[0], move |g, x, reference| {
        let f = if reference { segment_softmax_reference } else { segment_softmax };
        back(g, f(sorted(g, &x[0]), index(g).segments()))
    }));
    let out = (On::Whole, TYPES * w);
    all.push(Family::new("segment_logsumexp".into(), &edges, out, move |g, x, reference| {
        let f = if reference { segment_logsumexp_reference } else { segment_logsumexp };
        flat(f(sorted(g, &x[0]), index(g).segments()))
    }));
    let operands = [(On::Edge, w), (On::Whole, TYPES * w * O)];
    all.push(Family::new("segment_mm".into(), &operands, (On::Edge, O), move |g, x, reference| {
        let f = if reference { segment_mm_reference } else { segment_mm };
        back(g, f(sorted(g, &x[0]), x[1].clone().reshape([TYPES, w, O]), index(g).segments()))
    }));
    all.push(Family::new("gather_mm".into(), &operands, (On::Edge, O), move |g, x, reference| {
        let f = if reference { gather_mm_reference } else { gather_mm };
        flat(f(rows(&x[0], w), x[1].clone().reshape([TYPES, w, O]), &index(g)))
    }));
    all
}

/// Dense operators; their rows are edges here.
fn rowwise(w: usize) -> Vec<Family> {
    let edges = (On::Edge, w);
    let mut all = Vec::new();
    let kinds =
        [Activation::None, Activation::Relu, Activation::Elu(0.9), Activation::LeakyRelu(0.2)];
    for (activation, prob) in kinds.into_iter().flat_map(|a| [(a, 0.0), (a, 0.4)]) {
        let name = format!("bias_activation {activation:?} {prob}");
        all.push(Family::new(name, &[edges, (On::Whole, w)], edges, move |g, x, reference| {
            let dropout =
                RowDropout { prob, stream: Stream::new(4, "rows", 2), ids: Some(g.ids.clone()) };
            let f = if reference { bias_activation_reference } else { bias_activation };
            flat(f(rows(&x[0], w), Some(flat(x[1].clone())), activation, Some(&dropout)))
        }));
    }
    all.push(Family::new(
        "bias_activation without bias".into(),
        &[edges],
        edges,
        move |_, x, reference| {
            let f = if reference { bias_activation_reference } else { bias_activation };
            flat(f(rows(&x[0], w), None, Activation::Relu, None))
        },
    ));
    all.push(Family::new("dropout".into(), &[edges], edges, move |g, x, reference| {
        let stream = Stream::new(5, "rows", 3);
        if !reference {
            return flat(dropout(rows(&x[0], w), 0.4, stream, Some(g.ids.clone())));
        }
        let kept = |(e, c): (u64, u64)| if stream.uniform(e, c) >= 0.4 { 1.0 / 0.6 } else { 0.0 };
        let mask: Vec<f64> =
            g.ids.iter().flat_map(|&e| (0..w as u64).map(move |c| (e, c))).map(kept).collect();
        let mask = TensorData::new(mask, x[0].dims());
        flat(
            x[0].clone()
                * Tensor::<2>::from_data(mask, (&x[0].device().without_autodiff(), x[0].dtype())),
        )
    }));
    const O: usize = 5;
    for onto in [false, true] {
        let operands = [edges, (On::Whole, w * O), (On::Edge, O)];
        let operands = if onto { &operands[..] } else { &operands[..2] };
        let name = if onto { "matmul_rows_onto" } else { "matmul_rows" };
        let product = Family::new(name.into(), operands, (On::Edge, O), move |_, x, reference| {
            let (rows, weight) = (rows(&x[0], w), x[1].clone().reshape([w, O]));
            let sum = x.get(2).cloned();
            flat(match (sum, reference) {
                (None, false) => matmul_rows(rows, weight),
                (None, true) => rows.matmul(weight),
                (Some(sum), false) => matmul_rows_onto(rows, weight, sum),
                (Some(sum), true) => rows.matmul(weight) + sum,
            })
        });
        all.push(Family { by_gemm: true, ..product });
    }
    // There must be a class.
    if w == 0 {
        return all;
    }
    all.push(Family::new(
        "cross_entropy_rows".into(),
        &[edges],
        (On::Whole, 1),
        move |g, x, reference| {
            let chosen: Arc<[u32]> = (0..g.relation.num_edges() as u32).collect();
            let targets = g.types.iter().map(|&t| u32::from(t) % w as u32).collect();
            let f = if reference { cross_entropy_rows_reference } else { cross_entropy_rows };
            f(rows(&x[0], w), &chosen, &targets, LossReduction::Sum)
        },
    ));
    all
}

fn fused(w: usize) -> Vec<Family> {
    [softmaxes(w), attentions(w), aggregates(w), relationals(w), segments(w), rowwise(w)]
        .into_iter()
        .flatten()
        .collect()
}

/// Every operator at a feature size.
pub(crate) fn all(w: usize) -> Vec<Family> {
    let pairs: Vec<_> = Target::ALL.into_iter().flat_map(|l| Target::ALL.map(|r| [l, r])).collect();
    let multis = multis(&CrossReduce::ALL, w);
    [gspmm_of(&BinaryOp::ALL, w), gsddmm_of(&SddmmOp::ALL, &pairs, w), multis, fused(w)]
        .into_iter()
        .flatten()
        .collect()
}

/// One operator of each kind, for large graphs.
pub(crate) fn few(w: usize) -> Vec<Family> {
    let ops = [BinaryOp::CopyLhs, BinaryOp::CopyRhs, BinaryOp::Mul];
    let pairs = [[Target::Src, Target::Dst], [Target::Edge, Target::Dst]];
    let multis = multis(&[CrossReduce::Max], w);
    [gspmm_of(&ops, w), gsddmm_of(&[SddmmOp::Mul, SddmmOp::Dot], &pairs, w), multis, fused(w)]
        .into_iter()
        .flatten()
        .collect()
}
