//! Invalid operands panic before a kernel could access memory out of bounds.

use burn::tensor::{DType, Shape};
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_cube::*;
use burn_gnn_graph::Stream;
use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_plan::*;
use burn_gnn_sampling::{NeighborSampler, SampleKey};

use crate::operators::attention::attention_plan;
use crate::operators::dropout::dropout;
use crate::operators::edge_softmax::softmax;
use crate::sampling::neighbors::{ids, on_device};
use crate::support::*;
use burn_gnn_testutil::graphs::with_hub;
use burn_gnn_testutil::panic_text;

/// Asserts that `f` panics with a message that contains `name`.
fn panics_with<R>(name: &str, f: impl FnOnce() -> R) {
    let text = panic_text(f);
    assert!(text.contains(name), "expected a text with {name:?}, got {text:?}");
}

/// Asserts that the error of a plan contains `name`.
fn fails_with<T>(name: &str, plan: Result<T, String>) {
    let text = plan.map(|_| ()).expect_err(name);
    assert!(text.contains(name), "expected a text with {name:?}, got {text:?}");
}

fn zeros(shape: &[usize]) -> CubeTensor {
    tensor(&vec![0.0; size(shape)], shape)
}

fn half(shape: &[usize]) -> CubeTensor {
    tensor_of(&vec![0.0; size(shape)], shape, DType::F16)
}

/// A tensor of this shape in a buffer of one entry.
fn undersized(shape: &[usize]) -> CubeTensor {
    let x = zeros(&[1]);
    CubeTensor::new_contiguous(x.client, x.device, Shape::from(shape.to_vec()), x.handle, x.dtype)
}

/// A transposed view.
fn transposed(mut x: CubeTensor) -> CubeTensor {
    x.meta.swap(0, 1);
    x
}

#[test]
fn gspmm_operands() {
    let r = with_hub(7, 3, 20, 1);
    let call = |op, reduce| GspmmPlan::new(&r, op, reduce, &[4], &[4]).unwrap();
    let (mul, sum) = (call(BinaryOp::Mul, Reduce::Sum), call(BinaryOp::CopyLhs, Reduce::Sum));
    let (x, w, g) = (|| Some(zeros(&[7, 4])), || Some(zeros(&[20, 4])), || zeros(&[3, 4]));
    gspmm(&mul, x(), w());
    panics_with("`lhs` must have 7 rows of 4 entries, got shape [6, 4]", || {
        gspmm(&mul, Some(zeros(&[6, 4])), w())
    });
    panics_with("`lhs` must have 7 rows", || gspmm(&sum, Some(zeros(&[7, 3])), None));
    panics_with("`rhs` must have 20 rows", || gspmm(&mul, x(), Some(zeros(&[7, 4]))));
    panics_with("`rhs` must have element type", || gspmm(&mul, x(), Some(half(&[20, 4]))));
    panics_with("`rhs` is required", || gspmm(&mul, x(), None));
    panics_with("`lhs` has a buffer of", || gspmm(&sum, Some(undersized(&[7, 4])), None));
    // A strided view, which is copied to a contiguous tensor: the copy must not read out of bounds either.
    panics_with("`lhs` has a buffer of", || {
        gspmm(&sum, Some(transposed(undersized(&[4, 7]))), None)
    });
    gspmm(&sum, Some(transposed(zeros(&[4, 7]))), None);
    let max = call(BinaryOp::CopyLhs, Reduce::Max);
    panics_with("`lhs` must have 7 rows", || gspmm_select(&max, Some(zeros(&[8, 4])), None));
    let (_, arg) = gspmm_select(&max, x(), None);
    gspmm_grad(&max, Side::Lhs, g(), Some(arg.clone()), None, None);
    panics_with("`arg` is required", || gspmm_grad(&max, Side::Lhs, g(), None, None, None));
    panics_with("`arg` must have 3 rows", || {
        gspmm_grad(&max, Side::Lhs, g(), Some(undersized(&[2, 4])), None, None)
    });
    panics_with("`arg` must have element type", || {
        gspmm_grad(&max, Side::Lhs, g(), Some(g()), None, None)
    });
    panics_with("`grad` must have 3 rows", || {
        gspmm_grad(&mul, Side::Lhs, zeros(&[7, 4]), None, None, w())
    });
    panics_with("`rhs` is required", || gspmm_grad(&mul, Side::Lhs, g(), None, x(), None));
    panics_with("`lhs` must have 7 rows", || {
        gspmm_grad(&mul, Side::Rhs, g(), None, Some(zeros(&[3, 4])), None)
    });
}

#[test]
fn gsddmm_operands() {
    let r = with_hub(7, 3, 20, 1);
    let call =
        GsddmmPlan::new(&r, SddmmOp::Dot, [Target::Src, Target::Dst], [&[2, 4], &[2, 4]]).unwrap();
    let (x, y, g) = (|| Some(zeros(&[7, 2, 4])), || Some(zeros(&[3, 2, 4])), || zeros(&[20, 2, 1]));
    gsddmm(&call, x(), y());
    gsddmm_grad(&call, Side::Lhs, g(), x(), y());
    panics_with("`lhs` must have 7 rows of 8", || gsddmm(&call, y(), y()));
    panics_with("`rhs` must have 3 rows of 8", || gsddmm(&call, x(), x()));
    panics_with("`rhs` is required", || gsddmm(&call, x(), None));
    panics_with("`grad` must have 20 rows of 2", || {
        gsddmm_grad(&call, Side::Lhs, zeros(&[20, 2, 4]), x(), y())
    });
    panics_with("`rhs` must have 3 rows of 8", || gsddmm_grad(&call, Side::Lhs, g(), x(), x()));
}

#[test]
fn softmax_and_attention_operands() {
    let r = with_hub(7, 3, 20, 1);
    let plan = softmax(&r, &[2]);
    panics_with("`x` must have 20 rows", || edge_softmax(&plan, zeros(&[19, 2])));
    panics_with("`grad` must have 20 rows of 2", || {
        edge_softmax_grad(&plan, zeros(&[20, 2]), zeros(&[20, 1]))
    });
    let call = attention_plan(&r, 2, 4, Some(0.2), None);
    let (z, a, b, g) =
        (|| zeros(&[7, 2, 4]), || zeros(&[7, 2]), || zeros(&[3, 2]), || zeros(&[3, 2, 4]));
    let endpoints = || AttentionScores::Nodes(a(), b());
    let (_, stats) = attention(&call, z(), endpoints());
    panics_with("`z` must have 7 rows of 8", || attention(&call, zeros(&[7, 2, 3]), endpoints()));
    panics_with("`a_src` must have 7 rows", || {
        attention(&call, z(), AttentionScores::Nodes(b(), b()))
    });
    panics_with("`a_dst` must have 3 rows", || {
        attention(&call, z(), AttentionScores::Nodes(a(), a()))
    });
    panics_with("`logits` must have 20 rows", || {
        attention(&call, z(), AttentionScores::Edges(a()))
    });
    let stream = Stream::new(1, "refusals", 2);
    let options = |prob, ids: usize| GatOptions {
        slope: 0.2,
        dropout: Some(KeyedDropout { prob, stream, ids: Some(vec![1; ids].into()) }),
    };
    let plan = |heads, options: &GatOptions| {
        AttentionPlan::gat("attention", &r, heads, 4, options).map_err(|e| e.to_string())
    };
    fails_with("must have at most 134217727 entries", plan(usize::MAX, &GatOptions::default()));
    fails_with(
        "`dropout.ids` must have 20 rows (one per edge of the relation), got 19; give as many rows",
        plan(2, &options(0.5, 19)),
    );
    fails_with(
        "`dropout.prob` must lie in [0, 1), got 1; give 0 for no dropout",
        plan(2, &options(1.0, 20)),
    );
    let kept = |stats: &CubeTensor| AttentionKept {
        out: g(),
        stats: stats.clone(),
        z: z(),
        scores: endpoints(),
    };
    let wants = AttentionGradMask { z: true, first: true, second: true };
    attention_grad(&call, g(), kept(&stats), wants);
    panics_with("`stats` must have 3 rows of 4", || attention_grad(&call, g(), kept(&b()), wants));
    panics_with("`out` must have 3 rows", || {
        attention_grad(&call, g(), AttentionKept { out: z(), ..kept(&stats) }, wants)
    });
    panics_with("`z` must have 7 rows", || {
        attention_grad(&call, g(), AttentionKept { z: g(), ..kept(&stats) }, wants)
    });
    panics_with("`grad` must have 3 rows", || attention_grad(&call, z(), kept(&stats), wants));
    let ids = vec![1; 19];
    panics_with("`dropout.ids` must have 21 entries", || {
        dropout_rows(&dropout(0.5, &stream, Some(&ids), 19), zeros(&[21, 3]))
    });
}

#[test]
fn aggregate_and_epilogue_operands() {
    let r = with_hub(7, 3, 20, 1);
    let options = |sources: usize, destinations: usize| AggregateOptions {
        source: Some(DegreeScale::new(&vec![1; sources], -0.5)),
        destination: Some(DegreeScale::new(&vec![1; destinations], -0.5)),
        activation: Activation::Relu,
    };
    let plan = |options| AggregatePlan::new(&r, 4, options, true, true).map_err(|e| e.to_string());
    let call = plan(options(7, 3)).unwrap();
    let (x, g) = (|| zeros(&[7, 4]), || zeros(&[3, 4]));
    aggregate(&call, x(), Some(zeros(&[20])), Some(zeros(&[4])));
    panics_with("`x` must have 7 rows of 4", || aggregate(&call, zeros(&[7]), None, None));
    panics_with("`x` must have 7 rows", || aggregate(&call, g(), None, None));
    panics_with("`weight` must have 20 rows", || aggregate(&call, x(), Some(zeros(&[19])), None));
    panics_with("`bias` must have 4 rows", || aggregate(&call, x(), None, Some(zeros(&[3]))));
    fails_with("`source degrees` must have 7 rows", plan(options(3, 3)));
    fails_with("`destination degrees` must have 3 rows", plan(options(7, 2)));
    panics_with("`out` is required", || aggregate_grad(&call, g(), None, None, true, true));
    panics_with("`out` must have 3 rows", || {
        aggregate_grad(&call, g(), Some(zeros(&[2, 4])), None, true, true)
    });
    panics_with("`weight` must have 20 rows", || {
        aggregate_grad(&call, g(), Some(g()), Some(zeros(&[3])), true, true)
    });
    panics_with("`x` must have 7 rows", || aggregate_grad_weight(&call, g(), Some(g()), g()));
    let stream = Stream::new(1, "refusals", 2);
    let plan = |activation, ids: usize| {
        let dropout = KeyedDropout { prob: 0.5, stream, ids: Some(vec![1; ids].into()) };
        EpiloguePlan::new([7, 4], activation, Some(&dropout)).map_err(|e| e.to_string())
    };
    let call = plan(Activation::Relu, 7).unwrap();
    let (_, open) = epilogue(&call, x(), Some(zeros(&[4])), true);
    epilogue_grad(&call, x(), EpilogueKept::Open(open.clone()), true);
    panics_with("`x` must have 7 rows of 4", || epilogue(&call, zeros(&[8, 4]), None, true));
    panics_with("`bias` must have 4 rows", || epilogue(&call, x(), Some(zeros(&[5])), true));
    fails_with("`dropout.ids` must have 7 rows", plan(Activation::Relu, 6));
    fails_with(
        "`slope` of LeakyRelu must be a finite number from 0",
        plan(Activation::LeakyRelu(-1.0), 7),
    );
    panics_with("`open` must have 7 rows", || {
        epilogue_grad(&call, x(), EpilogueKept::Open(undersized(&[8])), true)
    });
    panics_with("`out` must have 7 rows", || {
        epilogue_grad(&call, x(), EpilogueKept::Output(g()), true)
    });
    panics_with("`grad` must have 7 rows", || {
        epilogue_grad(&call, zeros(&[8, 4]), EpilogueKept::Nothing, false)
    });
}

#[test]
fn rows_products_and_steps() {
    let index = RowIndex::new(&[0, 6, 6], 7).unwrap();
    panics_with("`table` must have 7 rows", || gather_rows(zeros(&[6, 2]), &index));
    panics_with("`rows` must have 3 rows", || scatter_add_rows(zeros(&[7, 2]), &index));
    let segments =
        |offsets: &[usize]| Segments::try_from_offsets(offsets).map_err(|e| e.to_string());
    fails_with("offsets[0] must be 0", segments(&[1, 3]));
    fails_with("never decrease", segments(&[0, 3, 2]));
    fails_with(
        "`types[1]` must lie in 0..1",
        TypeIndex::try_new(&[0u8, 1], 1).map_err(|e| e.to_string()),
    );
    let plan = TypedPlan::segments(&segments(&[0, 1, 3]).unwrap(), 4, 5).unwrap();
    let (a, b, g) = (|| zeros(&[3, 4]), || zeros(&[2, 4, 5]), || zeros(&[3, 5]));
    typed_mm(&plan, a(), b(), false);
    panics_with("`a` must have 3 rows of 4", || typed_mm(&plan, g(), b(), false));
    panics_with("`a` must have 3 rows of 5", || typed_mm(&plan, a(), b(), true));
    panics_with("`b` must have 2 rows of 20", || typed_mm(&plan, a(), zeros(&[1, 4, 5]), false));
    panics_with("`b` must have element type", || typed_mm(&plan, a(), half(&[2, 4, 5]), false));
    panics_with("`grad` must have 3 rows of 5", || typed_mm_grad_b(&plan, a(), a()));
    panics_with("`a` must have 3 rows of 4", || typed_mm_grad_b(&plan, g(), g()));
    let r = with_hub(7, 3, 20, 1);
    fails_with(
        "`types` must have 20 rows",
        RelationalIndex::try_new(&r, &[0u8; 19], 1).map_err(|e| e.to_string()),
    );
    fails_with(
        "`types[0]` must lie in 0..1",
        RelationalIndex::try_new(&r, &[1u8; 20], 1).map_err(|e| e.to_string()),
    );
    let plan = RelationalPlan::new(&RelationalIndex::new(&r, &[0u8; 20], 1), &[4, 5]).unwrap();
    panics_with("`lhs` must have 7 rows", || {
        relational(&plan, zeros(&[6, 4]), zeros(&[1, 4, 5]), None)
    });
    panics_with("`rhs` must have 20 rows", || {
        relational(&plan, zeros(&[7, 4]), zeros(&[1, 4, 5]), Some(zeros(&[7])))
    });
    panics_with("`b` must have 1 rows of 20", || {
        relational(&plan, zeros(&[7, 4]), zeros(&[1, 3, 5]), None)
    });
    let form = AdamForm::Adam { scale: 1.0, epsilon: 1e-6 };
    let factors = AdamFactors { lr: 0.01, beta: [0.9; 2], rest: [0.1; 2], penalty: None, form };
    let m = |rows| [zeros(&[rows, 4]), zeros(&[rows, 4])];
    panics_with("`grad` must have 7 rows", || {
        adam_step(zeros(&[7, 4]), zeros(&[6, 4]), m(7), &factors)
    });
    panics_with("`moment_1` must have 7 rows", || {
        adam_step(zeros(&[7, 4]), zeros(&[7, 4]), m(6), &factors)
    });
    let step = AdamStep {
        lr: 0.1,
        beta_1: 0.9,
        beta_2: 0.99,
        epsilon: 1e-8,
        time: 1,
        decay: AdamDecay::None,
    };
    let rows = |ids: &[u32], step| AdamRows::new(step, &ids.into(), 7).map_err(|e| e.to_string());
    fails_with("`ids[1]` must lie in 0..7", rows(&[6, 7], step));
    fails_with("`ids[1]` must be above 6", rows(&[6, 6], step));
    fails_with("`step.time` must be at least 1", rows(&[6], AdamStep { time: 0, ..step }));
    let plan = rows(&[5, 6], step).unwrap();
    panics_with("`grad` must have 2 rows of 4", || {
        adam_rows(&plan, zeros(&[7, 4]), zeros(&[3, 4]), m(7))
    });
    panics_with("`param` must have 7 rows", || {
        adam_rows(&plan, zeros(&[6, 4]), zeros(&[2, 4]), m(7))
    });
    let chosen =
        CrossEntropyPlan::new([7, 3], &[0, 6].into(), &[1, 2].into(), LossReduction::Sum).unwrap();
    let (_, stats) = cross_entropy(&chosen, zeros(&[7, 3]));
    panics_with("`logits` must have 7 rows", || cross_entropy(&chosen, zeros(&[6, 3])));
    panics_with("`stats` must have 2 rows of 2", || {
        cross_entropy_grad(&chosen, zeros(&[1]), zeros(&[1, 2]), zeros(&[7, 3]))
    });
    panics_with("`logits` must have 7 rows", || {
        cross_entropy_grad(&chosen, zeros(&[1]), stats, zeros(&[8, 3]))
    });
}

/// Unknown types and blocks of batches and subgraphs.
#[test]
fn types_of_device_batches() {
    let Some(()) = adapter() else { return };
    let g = Graph::homogeneous(3, vec![1, 2], vec![0, 0]).unwrap();
    let sampler = NeighborSampler::new(&g, [1]).unwrap();
    let none = || [] as [(usize, burn::tensor::Tensor<1, burn::tensor::Int>); 0];
    let key = SampleKey::new(0);
    let batch = on_device(&sampler.clone().with_disjoint())
        .sample_tensors([(.., ids(&[0]))], none(), key)
        .unwrap();
    let (node, edge) =
        ("unknown node type `1`; the graph has", "unknown edge type `1`; the graph has");
    panics_with(node, || batch.nodes(1));
    panics_with(node, || batch.seeds(1));
    panics_with(node, || batch.roots(1));
    panics_with(node, || batch.num_src(0, 1));
    panics_with(node, || batch.num_dst(0, 1));
    panics_with(edge, || batch.indptr(0, 1));
    panics_with(edge, || batch.src(0, 1));
    panics_with(edge, || batch.edge_ids(0, 1));
    panics_with("`block` must lie in 0..1", || batch.num_src(1, 0));
    let subgraph = on_device(&sampler).induced_tensors([(.., ids(&[0]))], none(), key).unwrap();
    panics_with(node, || subgraph.nodes(1));
    panics_with(node, || subgraph.seeds(1));
    panics_with(edge, || subgraph.src(1));
    panics_with(edge, || subgraph.dst(1));
    panics_with(edge, || subgraph.edge_ids(1));
}

/// Kernels count edges in 32 bits: with more edges, a batch would write out of bounds.
#[test]
fn batches_beyond_32_bits() {
    // More draws than 32-bit numbers; software Vulkan ends loops after 65,535 iterations.
    let n = 72_000;
    let g = Graph::homogeneous(n, (0..n as u32).collect(), (0..n as u32).collect()).unwrap();
    let sampler = NeighborSampler::new(&g, [60_000]).unwrap().with_replacement().unwrap();
    let cube = burn::tensor::Device::new(burn::backend::DispatchDevice::Cube(device()));
    let sampler = DeviceSampler::new(sampler, &cube).unwrap();
    let seeds: Vec<u32> = (0..n as u32).collect();
    let e = sampler.sample([("_N", &seeds[..])], SampleKey::new(1)).map(|_| ()).unwrap_err();
    assert!(matches!(e, GraphError::TooLarge { count, .. } if count > u64::from(u32::MAX)), "{e}");
    assert_eq!(
        sampler.sample([("_N", &seeds[..3])], SampleKey::new(1)).unwrap().output_nodes(0),
        [0, 1, 2]
    );
}

/// The ids of a mapped file are validated again when they are uploaded.
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
    panics_with("the file was changed while it was mapped", || {
        gspmm(&call(Reduce::Sum), Some(zeros(&[5, 2])), None)
    });
    panics_with("the file was changed while it was mapped", || {
        edge_softmax(&softmax(relation, &[2]), zeros(&[5, 2]))
    });
    std::fs::remove_file(&file).unwrap();
}
