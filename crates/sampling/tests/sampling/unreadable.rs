//! Edges in a file that cannot be read are typed errors with the name of the edge type.

use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_sampling::{
    FeatureSource, LinkSampler, MemoryRows, NegativeSampler, NeighborSampler, Node2Vec, PinSage,
    RandomWalk, RowType, SaintMethod, SaintSampler, SampleKey, in_degree_hotness,
    out_degree_hotness, presampled_hotness,
};
use burn_gnn_testutil::graphs::unreadable;
use burn_gnn_testutil::panic_text;

fn graph() -> Graph {
    Graph::builder().relation(("_N", "_E", "_N"), unreadable(4, 5)).build().unwrap()
}

#[test]
fn every_sampler_returns_the_error() {
    let (g, key) = (graph(), SampleKey::new(1));
    let sampler = NeighborSampler::new(&g, [2]).unwrap();
    let walk = RandomWalk::new(&g, &["_E"]).unwrap();
    let visits = PinSage::new(&g, &["_E"], 1, 0.5).unwrap();
    let errors: Vec<(&str, Option<GraphError>)> = vec![
        ("sample", sampler.sample([("_N", [0])], key).err()),
        ("sample_excluding", sampler.sample_excluding([("_N", [0])], [("_E", [1])], key).err()),
        ("induced", sampler.induced([("_N", [0])], [("_E", [1])], key).err()),
        ("shadow", sampler.shadow([("_N", [0])], key).err()),
        ("NegativeSampler::new", NegativeSampler::new(&g, "_E").err()),
        ("NegativeSampler::of_sources", NegativeSampler::of_sources(&g, "_E").err()),
        ("LinkSampler::new", LinkSampler::new(sampler.clone(), "_E").err()),
        ("SaintSampler", SaintSampler::new(&g, SaintMethod::Nodes { budget: 2 }).err()),
        ("SaintSampler", SaintSampler::new(&g, SaintMethod::Edges { budget: 2 }).err()),
        ("SaintSampler", SaintSampler::new(&g, SaintMethod::Walks { roots: 2, length: 1 }).err()),
        ("RandomWalk::walk", walk.walk(&[0], 1, key).err()),
        ("with_weights", walk.with_weights("_E", &[1.0; 5]).err()),
        ("PinSage", visits.neighbors(&[0], 5, 2, key).err()),
        ("Node2Vec", Node2Vec::new(&g, "_E", 1.0, 2.0).err()),
        ("out_degree_hotness", out_degree_hotness(&g, "_N").err()),
        ("in_degree_hotness", in_degree_hotness(&g, "_N").err()),
        ("presampled_hotness", presampled_hotness(&g, [2], [("_N", [0])]).err()),
    ];
    for (name, e) in errors {
        let e = e.unwrap_or_else(|| panic!("{name} must fail")).to_string();
        assert!(e.contains("the disk is broken"), "{name}: {e}");
    }
    let rows = MemoryRows::new(&[0.0; 4], 1, RowType::F32).unwrap();
    let e = rows.gather_mean(&g.relations()[0], &[0, 1, 2, 3]).unwrap_err();
    assert!(e.to_string().contains("the disk is broken"), "{e}");
}

/// A fan-out of 0 reads nothing, so the block is made; its degrees are those of the whole graph.
#[test]
fn degrees_of_a_block_report_the_error() {
    let batch = NeighborSampler::new(&graph(), [0]).unwrap();
    let batch = batch.sample([("_N", [0])], SampleKey::new(1)).unwrap();
    for text in [
        panic_text(|| drop(batch.blocks[0].out_degrees("_E"))),
        panic_text(|| drop(batch.blocks[0].in_degrees("_E"))),
    ] {
        assert!(
            text.contains("degrees of a block") && text.contains("the disk is broken"),
            "{text}"
        );
    }
    let block = &batch.blocks[0];
    for e in [
        block.try_out_degrees("_E").err(),
        block.try_in_degrees("_E").err(),
        block.try_src_in_degrees("_E").err(),
    ] {
        assert!(e.is_some_and(|e| e.to_string().contains("the disk is broken")));
    }
}
