//! Measures how node order affects sampling, gathering features and GSpMM.

use anyhow::Result;
use burn::tensor::{Tensor, TensorData};
use burn_gnn::dist::{PartitionConfig, PartitionMethod, partition_graph};
use burn_gnn::graph::{EdgeOrder, Graph, NodeOrder};
use burn_gnn::ops::copy_u_sum;
use burn_gnn::sampling::RowType;
use burn_gnn::sampling::{FeatureSource, MemoryRows, NeighborSampler, SampleKey};
use serde_json::json;

use crate::measure::{Entry, Times, bench, device, emit};

const BATCH: usize = 1024;
const PARTS: usize = 128;

/// A homogeneous graph as it is, then by in-degree, by reverse Cuthill–McKee and by METIS parts, edges by destination.
pub(crate) fn run(
    name: &str,
    nodes: usize,
    src: Vec<u32>,
    dst: Vec<u32>,
    features: &[f32],
    train: &[u32],
) -> Result<()> {
    let g = Graph::homogeneous(nodes, src, dst)?;
    let width = features.len() / nodes;
    let mut parts = vec![];
    let took = Times::one(|| {
        let config =
            PartitionConfig::new(name, PARTS).with_method(PartitionMethod::Metis).with_num_hops(0);
        parts.push(partition_graph(&g, &config).map(|p| vec![p.assignment(0).to_vec()]));
    });
    emit(
        Entry { group: "reorder", graph: name, op: "metis parts" },
        Some(&took),
        &[("parts", json!(PARTS))],
    );
    let parts = parts.swap_remove(0)?;
    let orders = [
        ("kept", NodeOrder::Kept, EdgeOrder::Kept),
        ("by destination", NodeOrder::Kept, EdgeOrder::ByDst),
        ("in-degree", NodeOrder::InDegree, EdgeOrder::ByDst),
        ("cuthill-mckee", NodeOrder::ReverseCuthillMcKee, EdgeOrder::ByDst),
        ("metis", NodeOrder::Parts(&parts), EdgeOrder::ByDst),
    ];
    for (order, by_node, by_edge) in orders {
        let mut new = vec![];
        let took = Times::one(|| new.push(g.reorder(by_node, by_edge)));
        let new = new.swap_remove(0)?;
        emit(
            Entry { group: "reorder", graph: name, op: &format!("{order}: reorder") },
            Some(&took),
            &[],
        );
        let ids = new.original_nodes("_N")?.to_vec();
        let mut of_old = vec![0u32; nodes];
        ids.iter().zip(0..).for_each(|(&old, id)| of_old[old as usize] = id);
        // With the same seeds and random numbers, the batch is the same under different ids.
        let seeds: Vec<u32> = train[..BATCH].iter().map(|&v| of_old[v as usize]).collect();
        let sampler = NeighborSampler::new(&new.graph, [15, 10])?.with_original_ids(&new)?;
        let key = SampleKey::new(1);
        let batch = sampler.sample([("_N", &seeds)], key)?;
        let edges = [("edges", json!(batch.total_edges()))];
        bench(
            Entry { group: "reorder", graph: name, op: &format!("{order}: sample (15, 10)") },
            &edges,
            || {
                drop(sampler.sample([("_N", &seeds)], key).expect("done once before"));
            },
        );
        let rows: Vec<f32> = ids
            .iter()
            .flat_map(|&old| features[old as usize * width..][..width].iter().copied())
            .collect();
        let source = MemoryRows::new(&rows, width, RowType::F32)?;
        let input = batch.input_nodes(0);
        bench(
            Entry { group: "reorder", graph: name, op: &format!("{order}: gather") },
            &[("rows", json!(input.len()))],
            || {
                drop(source.gather(input).expect("ids are in range"));
            },
        );
        let x = Tensor::<2>::from_data(TensorData::new(rows, [nodes, width]), &device());
        let relation = &new.graph.relations()[0];
        relation.csc();
        bench(
            Entry { group: "reorder", graph: name, op: &format!("{order}: copy_u_sum.fwd") },
            &[("dim", json!(width))],
            || {
                drop(copy_u_sum(relation, x.clone()));
            },
        );
    }
    Ok(())
}
