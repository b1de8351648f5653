//! What functions refuse, before a kernel reads or writes where nothing is.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::{DType, Shape};
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_cube::*;
use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_plan::*;
use burn_gnn_sampling::{NeighborSampler, SampleKey};

use crate::sampling::{ids, on_device};
use crate::support::*;

/// The text of the panic names what is wrong.
fn refused<R>(name: &str, f: impl FnOnce() -> R) {
    let caught = catch_unwind(AssertUnwindSafe(f)).map(|_| ()).expect_err(name);
    let text = caught.downcast_ref::<String>().cloned().or_else(|| caught.downcast_ref::<&str>().map(|t| t.to_string())).unwrap();
    assert!(text.contains(name), "expected a text with {name:?}, got {text:?}");
}

fn zeros(shape: &[usize]) -> CubeTensor {
    tensor(&vec![0.0; size(shape)], shape)
}

fn half(shape: &[usize]) -> CubeTensor {
    tensor_of(&vec![0.0; size(shape)], shape, DType::F16)
}

/// As `shape` says, in a buffer of one entry.
fn lying(shape: &[usize]) -> CubeTensor {
    let x = zeros(&[1]);
    CubeTensor::new_contiguous(x.client, x.device, Shape::from(shape.to_vec()), x.handle, x.dtype)
}

/// Seen with its two axes exchanged.
fn turned(mut x: CubeTensor) -> CubeTensor {
    x.meta.swap(0, 1);
    x
}

#[test]
fn gspmm_operands() {
    let r = random(7, 3, 20, 1);
    let call = |op, reduce| GspmmPlan::new(&r, op, reduce, &[4], &[4]).unwrap();
    let (mul, sum) = (call(BinaryOp::Mul, Reduce::Sum), call(BinaryOp::CopyLhs, Reduce::Sum));
    let (x, w, g) = (|| Some(zeros(&[7, 4])), || Some(zeros(&[20, 4])), || zeros(&[3, 4]));
    gspmm(&mul, x(), w());
    refused("`lhs` must have 7 rows of 4 entries, got shape [6, 4]", || gspmm(&mul, Some(zeros(&[6, 4])), w()));
    refused("`lhs` must have 7 rows", || gspmm(&sum, Some(zeros(&[7, 3])), None));
    refused("`rhs` must have 20 rows", || gspmm(&mul, x(), Some(zeros(&[7, 4]))));
    refused("`rhs` must have element type", || gspmm(&mul, x(), Some(half(&[20, 4]))));
    refused("`rhs` is missing", || gspmm(&mul, x(), None));
    refused("`lhs` has a buffer of", || gspmm(&sum, Some(lying(&[7, 4])), None));
    // Columns apart, which a copy would bring together: it must not read behind the end either.
    refused("`lhs` has a buffer of", || gspmm(&sum, Some(turned(lying(&[4, 7]))), None));
    gspmm(&sum, Some(turned(zeros(&[4, 7]))), None);
    let max = call(BinaryOp::CopyLhs, Reduce::Max);
    refused("`lhs` must have 7 rows", || gspmm_select(&max, Some(zeros(&[8, 4])), None));
    let (_, arg) = gspmm_select(&max, x(), None);
    gspmm_grad(&max, Side::Lhs, g(), Some(arg.clone()), None, None);
    refused("`arg` is missing", || gspmm_grad(&max, Side::Lhs, g(), None, None, None));
    refused("`arg` must have 3 rows", || gspmm_grad(&max, Side::Lhs, g(), Some(lying(&[2, 4])), None, None));
    refused("`arg` must have element type", || gspmm_grad(&max, Side::Lhs, g(), Some(g()), None, None));
    refused("`grad` must have 3 rows", || gspmm_grad(&mul, Side::Lhs, zeros(&[7, 4]), None, None, w()));
    refused("`rhs` is missing", || gspmm_grad(&mul, Side::Lhs, g(), None, x(), None));
    refused("`lhs` must have 7 rows", || gspmm_grad(&mul, Side::Rhs, g(), None, Some(zeros(&[3, 4])), None));
}

#[test]
fn gsddmm_operands() {
    let r = random(7, 3, 20, 1);
    let call = GsddmmPlan::new(&r, SddmmOp::Dot, [Target::Src, Target::Dst], [&[2, 4], &[2, 4]]).unwrap();
    let (x, y, g) = (|| Some(zeros(&[7, 2, 4])), || Some(zeros(&[3, 2, 4])), || zeros(&[20, 2, 1]));
    gsddmm(&call, x(), y());
    gsddmm_grad(&call, Side::Lhs, g(), x(), y());
    refused("`lhs` must have 7 rows of 8", || gsddmm(&call, y(), y()));
    refused("`rhs` must have 3 rows of 8", || gsddmm(&call, x(), x()));
    refused("`rhs` is missing", || gsddmm(&call, x(), None));
    refused("`grad` must have 20 rows of 2", || gsddmm_grad(&call, Side::Lhs, zeros(&[20, 2, 4]), x(), y()));
    refused("`rhs` must have 3 rows of 8", || gsddmm_grad(&call, Side::Lhs, g(), x(), x()));
}

#[test]
fn softmax_and_attention_operands() {
    let r = random(7, 3, 20, 1);
    refused("`x` must have 20 rows", || edge_softmax(&r, zeros(&[19, 2])));
    refused("`grad` must have 20 rows of 2", || edge_softmax_grad(&r, zeros(&[20, 2]), zeros(&[20, 1])));
    let call = Attention { relation: &r, heads: 2, dim: 4, slope: Some(0.2), dropout: None };
    let (z, a, b, g) = (|| zeros(&[7, 2, 4]), || zeros(&[7, 2]), || zeros(&[3, 2]), || zeros(&[3, 2, 4]));
    let ends = || AttentionScores::Ends(a(), b());
    let (_, stats) = attention(&call, z(), ends());
    refused("`z` must have 7 rows of 8", || attention(&call, zeros(&[7, 2, 3]), ends()));
    refused("`a_src` must have 7 rows", || attention(&call, z(), AttentionScores::Ends(b(), b())));
    refused("`a_dst` must have 3 rows", || attention(&call, z(), AttentionScores::Ends(a(), a())));
    refused("`logits` must have 20 rows", || attention(&call, z(), AttentionScores::Edges(a())));
    refused("too many", || attention(&Attention { heads: usize::MAX, ..call.clone() }, z(), ends()));
    let ids = RowIds::upload(&[1; 19], &device());
    let dropout = Some(Dropout { key: [1, 2], threshold: 1 << 31, scale: 2.0, ids: Some(ids.clone()) });
    refused("`dropout.ids` must have 20 entries, got 19", || {
        attention(&Attention { dropout: dropout.clone(), ..call.clone() }, z(), ends())
    });
    let kept = |stats: &CubeTensor| AttentionKept { out: g(), stats: stats.clone(), z: z(), scores: ends() };
    let wants = AttentionWants { z: true, first: true, second: true };
    attention_grad(&call, g(), kept(&stats), wants);
    refused("`stats` must have 3 rows of 4", || attention_grad(&call, g(), kept(&b()), wants));
    refused("`out` must have 3 rows", || attention_grad(&call, g(), AttentionKept { out: z(), ..kept(&stats) }, wants));
    refused("`z` must have 7 rows", || attention_grad(&call, g(), AttentionKept { z: g(), ..kept(&stats) }, wants));
    refused("`grad` must have 3 rows", || attention_grad(&call, z(), kept(&stats), wants));
    refused("`dropout.ids` must have 21 entries", || dropout_rows(zeros(&[21, 3]), &dropout.clone().unwrap()));
}

#[test]
fn aggregate_and_epilogue_operands() {
    let r = random(7, 3, 20, 1);
    let call = Aggregate { relation: &r, scale: Some(zeros(&[7])), after: Some(zeros(&[3])), activation: Activation::Relu };
    let (x, g) = (|| zeros(&[7, 4]), || zeros(&[3, 4]));
    aggregate(&call, x(), Some(zeros(&[20])), Some(zeros(&[4])));
    refused("`x` must have two axes", || aggregate(&call, zeros(&[7]), None, None));
    refused("`x` must have 7 rows", || aggregate(&call, g(), None, None));
    refused("`weight` must have 20 rows", || aggregate(&call, x(), Some(zeros(&[19])), None));
    refused("`bias` must have 4 rows", || aggregate(&call, x(), None, Some(zeros(&[3]))));
    refused("`scale` must have 7 rows", || aggregate(&Aggregate { scale: Some(zeros(&[3])), ..call.clone() }, x(), None, None));
    refused("`after` must have 3 rows", || aggregate(&Aggregate { after: Some(zeros(&[2])), ..call.clone() }, x(), None, None));
    refused("`out` is missing", || aggregate_grad(&call, g(), None, None, true, true));
    refused("`out` must have 3 rows", || aggregate_grad(&call, g(), Some(zeros(&[2, 4])), None, true, true));
    refused("`weight` must have 20 rows", || aggregate_grad(&call, g(), Some(g()), Some(zeros(&[3])), true, true));
    refused("`x` must have 7 rows", || aggregate_grad_weight(&call, g(), Some(g()), g()));
    let drop = |n: usize| Some(Dropout { key: [1, 2], threshold: 9, scale: 2.0, ids: Some(RowIds::upload(&vec![1; n], &device())) });
    let call = Epilogue { activation: Activation::Relu, dropout: drop(7) };
    let (_, open) = epilogue(&call, x(), Some(zeros(&[4])), true);
    epilogue_grad(&call, x(), EpilogueKept::Open(open.clone()), true);
    refused("`bias` must have 4 rows", || epilogue(&call, x(), Some(zeros(&[5])), true));
    refused("`dropout.ids` must have 7 entries", || epilogue(&Epilogue { dropout: drop(6), ..call.clone() }, x(), None, false));
    refused("`open` must have 14 rows", || epilogue_grad(&call, zeros(&[7, 8]), EpilogueKept::Open(open.clone()), true));
    refused("`out` must have 7 rows", || epilogue_grad(&call, x(), EpilogueKept::Output(g()), true));
    refused("`dropout.ids` must have 8 entries", || epilogue_grad(&call, zeros(&[8, 4]), EpilogueKept::Nothing, false));
}

#[test]
fn rows_products_and_steps() {
    let index = RowIndex::new(&[0, 6, 6], 7).unwrap();
    refused("`table` must have 7 rows", || gather_rows(zeros(&[6, 2]), &index));
    refused("`rows` must have 3 rows", || scatter_add_rows(zeros(&[7, 2]), &index));
    refused("`offsets[0]` must be 0", || TypedRows::upload(&[1, 3], None, &device()));
    refused("never decrease", || TypedRows::upload(&[0, 3, 2], None, &device()));
    refused("one entry per row", || TypedRows::upload(&[0, 3], Some(&[0, 1]), &device()));
    refused("every row below 3 once, `order[2]` is 0", || TypedRows::upload(&[0, 3], Some(&[0, 1, 0]), &device()));
    refused("every row below 3 once, `order[1]` is 3", || TypedRows::upload(&[0, 3], Some(&[0, 3, 1]), &device()));
    let rows = TypedRows::upload(&[0, 1, 3], None, &device());
    let (a, b, g) = (|| zeros(&[3, 4]), || zeros(&[2, 4, 5]), || zeros(&[3, 5]));
    typed_mm(a(), b(), &rows, false);
    refused("`a` must have 3 rows of 4", || typed_mm(g(), b(), &rows, false));
    refused("`a` must have 3 rows of 5", || typed_mm(a(), b(), &rows, true));
    refused("a matrix for each type", || typed_mm(a(), zeros(&[1, 4, 5]), &rows, false));
    refused("`b` must have element type", || typed_mm(a(), half(&[2, 4, 5]), &rows, false));
    refused("`grad` must have 3 rows of 5", || typed_mm_grad_b(a(), a(), &rows, Shape::from([2, 4, 5])));
    refused("`a` must have 3 rows of 4", || typed_mm_grad_b(g(), g(), &rows, Shape::from([2, 4, 5])));
    refused("a matrix for each type", || typed_mm_grad_b(g(), a(), &rows, Shape::from([3, 4, 5])));
    let r = random(7, 3, 20, 1);
    refused("one type for every edge", || RelationalRows::new(&r, &[0; 19], 1, false));
    refused("types must lie below 1", || RelationalRows::new(&r, &[1; 20], 1, false));
    let index = RelationalRows::new(&r, &[0; 20], 1, false);
    refused("`lhs` must have 7 rows", || relational(zeros(&[6, 4]), zeros(&[1, 4, 5]), None, &index));
    refused("`rhs` must have 20 rows", || relational(zeros(&[7, 4]), zeros(&[1, 4, 5]), Some(zeros(&[7])), &index));
    refused("`a` must have", || relational(zeros(&[7, 4]), zeros(&[1, 3, 5]), None, &index));
    let form = AdamForm::Adam { scale: 1.0, epsilon: 1e-6 };
    let factors = AdamFactors { lr: 0.01, beta: [0.9; 2], rest: [0.1; 2], penalty: None, form };
    let m = |rows| [zeros(&[rows, 4]), zeros(&[rows, 4])];
    refused("`grad` must have 7 rows", || adam_step(zeros(&[7, 4]), zeros(&[6, 4]), m(7), &factors));
    refused("`moment_1` must have 7 rows", || adam_step(zeros(&[7, 4]), zeros(&[7, 4]), m(6), &factors));
    refused("`ids[1]` must be below 7", || adam_rows(zeros(&[7, 4]), zeros(&[2, 4]), m(7), &[6, 7], &factors));
    refused("`grad` must have 2 rows of 4", || adam_rows(zeros(&[7, 4]), zeros(&[3, 4]), m(7), &[6, 5], &factors));
    let chosen = LossRows::new(&[0, 6], &[1, 2], 7).unwrap();
    let (_, stats) = cross_entropy(zeros(&[7, 3]), &chosen, 1.0);
    refused("`logits` must have 7 rows", || cross_entropy(zeros(&[6, 3]), &chosen, 1.0));
    refused("`stats` must have 2 rows of 2", || cross_entropy_grad(zeros(&[1]), zeros(&[1, 2]), zeros(&[7, 3]), &chosen, 1.0));
    refused("`logits` must have 7 rows", || cross_entropy_grad(zeros(&[1]), stats, zeros(&[8, 3]), &chosen, 1.0));
}

/// Types and blocks that batches and subgraphs of a device do not have.
#[test]
fn types_of_device_batches() {
    let Some(()) = adapter() else { return };
    let g = Graph::homogeneous(3, vec![1, 2], vec![0, 0]).unwrap();
    let sampler = NeighborSampler::new(&g, [1]).unwrap();
    let none = || [] as [(usize, burn::tensor::Tensor<1, burn::tensor::Int>); 0];
    let key = SampleKey::new(0);
    let batch = on_device(&sampler.clone().with_disjoint(true)).sample_tensors([(.., ids(&[0]))], none(), key).unwrap();
    let (node, edge) = ("`ntype` must lie in 0..1 (node types", "`etype` must lie in 0..1 (edge types");
    refused(node, || batch.nodes(1));
    refused(node, || batch.seeds(1));
    refused(node, || batch.roots(1));
    refused(node, || batch.num_src(0, 1));
    refused(node, || batch.num_dst(0, 1));
    refused(edge, || batch.indptr(0, 1));
    refused(edge, || batch.src(0, 1));
    refused(edge, || batch.edge_ids(0, 1));
    refused("`block` must lie in 0..1", || batch.num_src(1, 0));
    let subgraph = on_device(&sampler).induced_tensors([(.., ids(&[0]))], none(), key).unwrap();
    refused(node, || subgraph.nodes(1));
    refused(node, || subgraph.seeds(1));
    refused(edge, || subgraph.src(1));
    refused(edge, || subgraph.dst(1));
    refused(edge, || subgraph.edge_ids(1));
}

/// Kernels count edges in 32 bits: a batch of more would write behind the end of its arrays.
#[test]
fn batches_beyond_32_bits() {
    // More draws than 32 bits count; software Vulkan ends loops after 65,535 rounds.
    let n = 72_000;
    let g = Graph::homogeneous(n, (0..n as u32).collect(), (0..n as u32).collect()).unwrap();
    let sampler = NeighborSampler::new(&g, [60_000]).unwrap().with_replacement(true).unwrap();
    let cube = burn::tensor::Device::new(burn::backend::DispatchDevice::Cube(device()));
    let sampler = DeviceSampler::new(sampler, &cube).unwrap();
    let seeds: Vec<u32> = (0..n as u32).collect();
    let e = sampler.sample([("_N", &seeds[..])], SampleKey::new(1)).map(|_| ()).unwrap_err();
    assert!(matches!(e, GraphError::TooLarge { count, .. } if count > u64::from(u32::MAX)), "{e}");
    assert_eq!(sampler.sample([("_N", &seeds[..3])], SampleKey::new(1)).unwrap().output_nodes(0), [0, 1, 2]);
}

/// Ids of a mapped file are checked again when they are copied to a device.
#[cfg(unix)]
#[test]
fn a_mapped_file_that_was_changed() {
    use burn_gnn_data::Topology;
    use burn_gnn_sampling::Placement;
    let file = std::env::temp_dir().join(format!("burn-gnn-cube-{}.topology", std::process::id()));
    let g = Graph::homogeneous(5, vec![1, 2, 3, 4, 0], vec![0, 0, 3, 1, 4]).unwrap();
    Topology::write(&g, &file).unwrap();
    let mapped = Topology::open(&file, Placement::Mapped).unwrap();
    let words = std::fs::metadata(&file).unwrap().len() as usize / 4;
    let changed = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    std::io::Write::write_all(&mut &changed, &vec![0xff; 4 * words]).unwrap();
    let relation = &mapped.graph().relations()[0];
    let call = |reduce| GspmmPlan::new(relation, BinaryOp::CopyLhs, reduce, &[2], &[2]).unwrap();
    refused("its file was changed while it was mapped", || gspmm(&call(Reduce::Sum), Some(zeros(&[5, 2])), None));
    refused("its file was changed while it was mapped", || edge_softmax(relation, zeros(&[5, 2])));
    std::fs::remove_file(&file).unwrap();
}
