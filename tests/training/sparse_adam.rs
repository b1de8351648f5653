//! Sparse Adam gives the same results for tables of a feature encoder and for embeddings that ranks
//! own.

use burn::tensor::Device;
use burn_gnn::data::{AttrType, Builder, Decoder};
use burn_gnn::dist::{
    DistEmbedding, DistError, DistGraph, PartitionConfig, SparseOptimizer, partition_graph,
    run_ranks,
};
use burn_gnn::graph::Graph;
use burn_gnn::models::{FeatureEncoderConfig, SparseAdamConfig, seeded};
use burn_gnn_testutil::{assert_close, values};

/// Rows that are updated in the first step, in later steps, once and several times: `t` counts the
/// steps of the optimizer, not of a row.
#[test]
fn an_encoder_and_a_distributed_embedding_learn_the_same() {
    const ROWS: usize = 12;
    const DIM: usize = 3;
    let device = Device::flex();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("users");
    let names: String = (0..8).map(|i| format!("{i}\tcity {i}\n")).collect();
    std::fs::write(&path, format!("id:int64\tcity:string\n{names}")).unwrap();
    let decoder = Decoder::new()
        .with_attributes([AttrType::string_buckets(ROWS as u32)])
        .with_dims([Some(DIM)]);
    let g = Builder::new().node(&path, "user", decoder.clone()).build(&device).unwrap();
    let config = FeatureEncoderConfig::new(decoder).with_sparse_from(Some(1));
    let mut encoder = seeded(0, || config.init(&device.clone().autodiff()));
    let first = values(&encoder.tables[0].val());
    let mut optimizer = SparseAdamConfig::new().init(&encoder, &device);
    let mut steps = vec![];
    for ids in [vec![0u32, 1, 2], vec![3], vec![1, 4, 1], vec![0, 5], vec![6, 7, 1], vec![2]] {
        let input = encoder.input_rows(g.nodes("user").unwrap(), &ids).unwrap();
        let (y, rows) = encoder.forward_rows(&input);
        let grads = (y.clone() * y).sum().backward();
        let (_, named, table) = rows.iter().next().unwrap();
        let gradient: Vec<f32> =
            values(&table.grad(&grads).unwrap()).into_iter().map(|g| g as f32).collect();
        steps.push((named.iter().map(|&row| u64::from(row)).collect::<Vec<u64>>(), gradient));
        encoder = optimizer.step(0.05, encoder, &rows, &grads);
    }
    let want = values(&encoder.tables[0].val());

    let nodes = Graph::homogeneous(ROWS, vec![], vec![]).unwrap();
    let parts = partition_graph(&nodes, &PartitionConfig::new("rows", 1)).unwrap();
    let got = run_ranks(1, |comm| {
        let g = DistGraph::from_partition(parts.part(0)?, comm)?;
        let start = |id: u64, c: usize| first[id as usize * DIM + c] as f32;
        let policy = g.policy("node~_N")?;
        let adam = SparseOptimizer::adam(0.05);
        let mut embedding = DistEmbedding::<f32>::new(&g, "table", DIM, policy, adam, start)?;
        for (ids, gradient) in &steps {
            embedding.step_with(ids, gradient)?;
        }
        let table = embedding.tensor().get(&(0..ROWS as u64).collect::<Vec<_>>())?;
        Ok::<_, DistError>(table)
    });
    let got: Vec<f64> = got.unwrap()[0].iter().map(|&x| f64::from(x)).collect();
    // `SparseAdam` computes powers of β in f32, like Burn's Adam.
    assert_close("after six steps", &got, &want, 2e-5);
    let moved = want.iter().zip(&first).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(moved > 0.1, "steps of {moved}");
}
