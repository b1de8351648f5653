//! Every layer on sampled blocks: with all neighbours the results equal those on the graph.

use burn::module::{Module, Param};
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn_graph::{EdgeOrder, Graph, NodeOrder, Stream};
use burn_gnn_models::{
    Conv, DegreeNorm, GatConvConfig, GcnConv, GcnConvConfig, HeteroLayer, HgtConvConfig,
    NodeTensors, RelGraphConv, RelGraphConvConfig, RgcnConfig, Sage, SageConfig, SageConvConfig,
    TypeInput, seeded, to_dtype,
};
use burn_gnn_ops::GraphView;
use burn_gnn_sampling::{
    Block, Fanouts, FeatureSource, MemoryRows, NeighborSampler, SampleKey, SampleNeighbors, ToBlock,
};
use burn_gnn_testutil::{matrix, values};

/// Key of the dropout of a pass in which a model trains, which blocks have from their sample.
const STEP: (u64, u64) = (5, 3);

fn key() -> SampleKey {
    SampleKey::new(STEP.0).at(0, STEP.1)
}

/// A model and its inputs as they train, on an autodiff device, or as `valid`.
fn in_pass<M: Module>(model: &M, x: &[Tensor<2>], trains: bool) -> (M, Vec<Tensor<2>>) {
    if trains {
        (model.clone(), x.iter().cloned().map(Tensor::from_inner).collect())
    } else {
        (model.valid(), x.to_vec())
    }
}

fn typed() -> Graph {
    let s = Stream::new(1, "typed", 0);
    let ids = |n: usize, column: u64, below: f64| {
        (0..n as u64).map(|e| (s.uniform(e, column).powi(2) * below) as u32).collect::<Vec<_>>()
    };
    Graph::builder()
        .nodes("a", 30)
        .nodes("b", 50)
        .edges(("a", "r", "b"), ids(150, 0, 30.0), ids(150, 1, 50.0))
        .edges(("b", "s", "a"), ids(100, 2, 50.0), ids(100, 3, 30.0))
        .edges(("b", "t", "b"), ids(200, 4, 50.0), ids(200, 5, 50.0))
        .build()
        .unwrap()
}

fn homogeneous() -> Graph {
    let s = Stream::new(2, "homogeneous", 0);
    let ids =
        |column: u64| (0..600u64).map(|e| (s.uniform(e, column).powi(2) * 120.0) as u32).collect();
    Graph::homogeneous(120, ids(0), ids(1)).unwrap()
}

#[track_caller]
fn close(what: &str, got: Tensor<2>, want: &Tensor<2>, rows: &[u32]) {
    let columns = want.dims()[1];
    assert_eq!(got.dims(), [rows.len(), columns], "{what}");
    let (got, want) = (values(&got), values(want));
    for (i, &row) in rows.iter().enumerate() {
        for c in 0..columns {
            let (a, b) = (got[i * columns + c], want[row as usize * columns + c]);
            // Written so that a NaN fails.
            let near = (a - b).abs() <= 1e-10 * (1.0 + b.abs());
            assert!(near, "{what}: node {row}, column {c} is {a}, expected {b}");
        }
    }
}

fn at(x: &Tensor<2>, ids: &[u32]) -> Tensor<2> {
    let rows = MemoryRows::from_tensor(x.clone().cast(DType::F32)).gather(ids).unwrap();
    // Through f32, so the caller's rows are f32 values as well.
    Tensor::from_data(TensorData::new(rows, [ids.len(), x.dims()[1]]), (&x.device(), DType::F64))
}

/// Numbers that f32 holds exactly.
fn exact(purpose: &str, rows: usize, cols: usize) -> Tensor<2> {
    matrix(&Device::flex(), purpose, rows, cols).cast(DType::F32).cast(DType::F64)
}

/// Of the types `a` and `b`.
fn typed_x(x: &[Tensor<2>]) -> NodeTensors {
    NodeTensors::from([("a", x[0].clone()), ("b", x[1].clone())])
}

fn f64_layer<M: Module>(m: M) -> M {
    to_dtype(m, FloatDType::F64)
}

#[test]
fn full_fanout_gives_what_the_graph_gives() {
    let (g, d) = (homogeneous(), Device::flex().autodiff());
    let x = exact("x", 120, 4);
    let seeds: Vec<u32> = vec![7, 0, 119, 64];
    let batch =
        NeighborSampler::new(&g, Fanouts::all(1)).unwrap().sample([("_N", &seeds)], key()).unwrap();
    let block = &batch.blocks[0];
    let inputs = at(&x, block.src_nodes(0));
    for trains in [false, true] {
        fn same<C: Conv>(
            name: &str,
            conv: C,
            (g, x): (&Graph, &Tensor<2>),
            (block, inputs): (&Block, &Tensor<2>),
            seeds: &[u32],
            trains: bool,
        ) {
            let (conv, x) = in_pass(&f64_layer(conv), &[x.clone(), inputs.clone()], trains);
            let want = conv.forward(&g.at_step(STEP.0, STEP.1), x[0].clone());
            close(name, conv.forward(block, x[1].clone()), &want, seeds);
        }
        let (whole, part) = ((&g, &x), (block, &inputs));
        same(
            "gcn_conv",
            seeded(0, || GcnConvConfig::new(4, 3).init(&d)),
            whole,
            part,
            &seeds,
            trains,
        );
        same(
            "sage_conv",
            seeded(0, || SageConvConfig::new(4, 3).init(&d)),
            whole,
            part,
            &seeds,
            trains,
        );
        let gat = seeded(0, || {
            GatConvConfig::new(4, 3, 2).with_dropout(0.4).with_residual(true).init(&d)
        });
        same("gat_conv", gat, whole, part, &seeds, trains);
    }
    let g = typed();
    let seeds = [vec![3u32, 29], vec![0u32, 44, 7]];
    let x = [exact("a", 30, 4), exact("b", 50, 4)];
    let sampler = NeighborSampler::new(&g, Fanouts::all(1)).unwrap();
    let batch = sampler.sample([("a", &seeds[0]), ("b", &seeds[1])], key()).unwrap();
    let block = &batch.blocks[0];
    let inputs: Vec<Tensor<2>> = (0..2).map(|t| at(&x[t], block.src_nodes(t))).collect();
    let keyed = &g.at_step(STEP.0, STEP.1);
    for trains in [false, true] {
        let conv = f64_layer(seeded(0, || RelGraphConvConfig::new(4, 3, 3).init(&d)));
        let ((conv, x), (_, inputs)) =
            (in_pass(&conv, &x, trains), in_pass(&conv, &inputs, trains));
        let (x, inputs) = (typed_x(&x), typed_x(&inputs));
        let (got, want) = (conv.forward(block, &inputs), conv.forward(keyed, &x));
        let hgt = f64_layer(seeded(0, || {
            HgtConvConfig::from_graph(&g, 4, 3, 2).with_dropout(0.3).init(&d)
        }));
        let (hgt, _) = in_pass(&hgt, &[], trains);
        let (got_hgt, want_hgt) = (hgt.forward(block, inputs), hgt.forward(keyed, x));
        for (t, seeds) in ["a", "b"].into_iter().zip(&seeds) {
            close("rel_graph_conv", got[t].clone(), &want[t], seeds);
            close("hgt_conv", got_hgt[t].clone(), &want_hgt[t], seeds);
        }
    }
}

/// However a block is made, and whichever layer averages.
#[test]
fn right_norm_is_the_mean_of_the_messages_of_a_block() {
    let (g, d) = (homogeneous(), Device::flex());
    let (seeds, key) = ((0..120).collect::<Vec<u32>>(), SampleKey::new(3));
    let dst = [("_N", &seeds)];
    let blocks = [
        NeighborSampler::new(&g, [3]).unwrap().sample(dst, key).unwrap().blocks.remove(0),
        g.sample_neighbors(dst, [3], key).unwrap().to_block(&g, dst).unwrap(),
    ];
    let conv: GcnConv =
        f64_layer(GcnConvConfig::new(4, 3).with_norm(DegreeNorm::Right).with_bias(false).init(&d));
    let mut rel: RelGraphConv =
        f64_layer(RelGraphConvConfig::new(4, 3, 1).with_self_loop(false).with_bias(false).init(&d));
    let weight = conv.weight.as_ref().unwrap().val();
    rel.weight = Param::from_tensor(weight.clone().unsqueeze::<3>());
    let both = GcnConvConfig::new(4, 3).init(&d);
    let rows = |x: &Tensor<2>| (0..x.dims()[0] as u32).collect::<Vec<_>>();
    for (i, block) in blocks.iter().enumerate() {
        let sampled: Vec<u32> = block.relation("_E").unwrap().in_degrees().collect();
        assert!(
            sampled.iter().zip(block.in_degrees(0)).any(|(&n, degree)| n == 3 && degree > 3),
            "block {i}: degrees are those of the graph"
        );
        let x = at(&exact("x", 120, 4), block.src_nodes(0));
        let got = conv.forward(block, x.clone());
        close(
            &format!("block {i}"),
            got.clone(),
            &rel.forward(block, x.clone())["_N"],
            &rows(&got),
        );
        // The mean of ones is one, where there are messages.
        let has = TensorData::new(
            sampled.iter().map(|&n| f64::from(u8::from(n > 0))).collect::<Vec<_>>(),
            [120, 1],
        );
        let want = Tensor::<2>::from_data(has, (&d, DType::F64)) * weight.clone().sum_dim(0);
        close(
            &format!("ones on block {i}"),
            conv.forward(block, x.clone() * 0.0 + 1.0),
            &want,
            &rows(&want),
        );
        // Both layers normalise alike on the two blocks.
        let of_first = both
            .forward(&blocks[0], at(&exact("x", 120, 4), blocks[0].src_nodes(0)).cast(DType::F32));
        close(
            &format!("norm `Both` on block {i}"),
            both.forward(block, x.cast(DType::F32)),
            &of_first,
            &rows(&of_first),
        );
    }
}

#[test]
fn models_on_blocks_equal_models_on_the_graph() {
    let (g, d) = (homogeneous(), Device::flex().autodiff());
    let x = exact("x", 120, 4);
    let seeds: Vec<u32> = vec![99, 4, 49];
    let sage: Sage =
        f64_layer(seeded(0, || SageConfig::new(4, 3).with_hidden(6).with_num_layers(3).init(&d)));
    // On the graph, and on the graph under other numbers: dropout follows original ids.
    let new = g.reorder(NodeOrder::ReverseCuthillMcKee, EdgeOrder::ByDst).unwrap();
    let ids = new.original_nodes("_N").unwrap().to_vec();
    let renamed: Vec<u32> =
        seeds.iter().map(|s| ids.iter().position(|v| v == s).unwrap() as u32).collect();
    let samplers = [
        (NeighborSampler::new(&g, Fanouts::all(3)).unwrap(), seeds.clone()),
        (
            NeighborSampler::new(&new.graph, Fanouts::all(3))
                .unwrap()
                .with_original_ids(&new)
                .unwrap(),
            renamed,
        ),
    ];
    for trains in [false, true] {
        for (sampler, at_seeds) in &samplers {
            let batch = sampler.sample([("_N", at_seeds)], key()).unwrap();
            let original: Vec<u32> =
                batch.blocks[0].original_ids(0).iter().map(|&v| v as u32).collect();
            let (sage, x) = in_pass(&sage, &[x.clone(), at(&x, &original)], trains);
            let want = sage.forward(&g.at_step(STEP.0, STEP.1), x[0].clone());
            close("sage", sage.forward_blocks(&batch.blocks, x[1].clone()), &want, &seeds);
        }
    }
    let g = typed();
    let x = exact("b", 50, 4);
    let inputs = [("b", TypeInput::Features(4))];
    let rgcn = f64_layer(
        seeded(0, || RgcnConfig::new(3).with_hidden(5).with_dropout(0.2).try_init(&g, inputs, &d))
            .unwrap(),
    );
    let batch = NeighborSampler::new(&g, Fanouts::all(2))
        .unwrap()
        .sample([("b", &seeds[1..])], key())
        .unwrap();
    let of_batch = at(&x, batch.input_nodes(1));
    for trains in [false, true] {
        // Features stay on the plain device: the weights tell that the model trains.
        let (rgcn, _) = in_pass(&rgcn, &[], trains);
        let got = rgcn.forward_blocks(&batch.blocks, [("b", of_batch.clone())])["b"].clone();
        close(
            "rgcn",
            got,
            &rgcn.forward(&g.at_step(STEP.0, STEP.1), [("b", x.clone())])["b"],
            &seeds[1..],
        );
    }
}

#[test]
#[should_panic(expected = "sage: expected one block per layer or hop, 2, got 1; sample 2 hops")]
fn a_model_wants_a_block_per_layer() {
    let sage = SageConfig::new(4, 3).init(&Device::flex());
    let batch = NeighborSampler::new(&homogeneous(), [1])
        .unwrap()
        .sample([("_N", [0])], SampleKey::new(0))
        .unwrap();
    let _ = sage.forward_blocks(
        &batch.blocks,
        Tensor::zeros([batch.input_nodes(0).len(), 4], &Device::flex()),
    );
}
