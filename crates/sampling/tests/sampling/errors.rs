//! Bad input: typed errors that name what is wrong.

use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_sampling::{
    NeighborSampler, SaintMethod, SaintSampler, SampleKey, SampleNeighbors, Strategy,
};
use burn_gnn_testutil::panic_text;

use crate::common::{star, typed};

fn text<T>(result: Result<T, GraphError>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn seeds_edges_and_weights() {
    let g = typed(10, 5, 1);
    let s = || NeighborSampler::new(&g, [2]).unwrap();
    let key = SampleKey::new(0);
    let far = text(s().sample([("paper", [3, 10])], key));
    assert_eq!(
        far,
        "`seeds` of node type `paper`, position 1: id 10 is out of range 0..10; give ids that are numbered from 0"
    );
    assert!(matches!(s().sample([("person", [0])], key), Err(GraphError::UnknownNodeType { .. })));
    assert!(matches!(
        s().sample([("paper", [0]), ("paper", [1])], key),
        Err(GraphError::Duplicate { .. })
    ));
    let far = text(s().sample_excluding([("paper", [0])], [("writes", [99])], key));
    assert_eq!(
        far,
        "`edges` of edge type `author:writes:paper`, position 0: id 99 is out of range 0..30; give ids that are numbered from 0"
    );
    for (value, shown) in [(-1.0, "-1"), (f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let mut weights = [1.0; 30];
        weights[4] = value;
        let expected = format!(
            "`weights` of edge type `author:writes:paper`, position 4: must be finite and not negative, got {shown}; \
             set 0 for entries that must never be drawn"
        );
        assert_eq!(text(s().with_weights("writes", &weights)), expected);
    }
    let short = text(s().with_weights("writes", &[1.0]));
    assert_eq!(
        short,
        "`weights` of relation `author:writes:paper`: expected length 30 (one per edge), got 1; give 30 entries"
    );
    assert!(matches!(s().with_mask("writes", &[true]), Err(GraphError::Length { .. })));
    assert!(matches!(s().with_times("reads", &[1]), Err(GraphError::UnknownEdgeType { .. })));
    assert!(matches!(s().with_weight_column("w"), Err(GraphError::Setting { .. })));
}

#[test]
fn settings_that_do_not_go_together() {
    let g = star(3);
    let s = || NeighborSampler::new(&g, [2]).unwrap();
    let missing = "`weights` has no entry for relation `_N:_E:_N`; call `with_weights` before `with_strategy`";
    assert_eq!(text(s().with_strategy(Strategy::Weighted)), missing);
    assert!(matches!(
        s().with_strategy(Strategy::Latest),
        Err(GraphError::MissingRelation { arg: "times", .. })
    ));
    let labor = s().with_strategy(Strategy::Labor { layer_dependent: false }).unwrap();
    let e = text(labor.with_replacement());
    assert_eq!(
        e,
        "`strategy`: expected a strategy that can draw with replacement (`Uniform`, `Weighted`, `InDegree`), got Labor { layer_dependent: false }"
    );
    assert!(matches!(
        s().sample_before([("_N", [0], [1])], SampleKey::new(0)),
        Err(GraphError::Setting { arg: "times", .. })
    ));
    let timed = s().with_times("_E", &[1, 2, 3]).unwrap();
    let e = text(timed.sample_before([("_N", vec![0, 1], vec![4])], SampleKey::new(0)));
    assert_eq!(
        e,
        "`times` of node type `_N`: expected length 2 (one per seed), got 1; give 2 entries"
    );
    // Degrees count later edges.
    assert!(matches!(
        timed.clone().with_strategy(Strategy::InDegree),
        Err(GraphError::Setting { arg: "strategy", .. })
    ));
    let by_degree = s().with_strategy(Strategy::InDegree).unwrap();
    assert!(matches!(
        by_degree.with_times("_E", &[1, 2, 3]),
        Err(GraphError::Setting { arg: "strategy", .. })
    ));
    let two = text(g.sample_neighbors([("_N", [0])], [1, 1], SampleKey::new(0)));
    assert_eq!(two, "`fanouts`: expected a fan-out for one hop, got 2 hops");
}

#[test]
fn weights_of_a_column() {
    use burn::tensor::{Device, Tensor};
    let mut g = Graph::homogeneous(3, vec![1, 2], vec![0, 0]).unwrap();
    g.edges_mut("_E")
        .unwrap()
        .insert("w", Tensor::<1>::from_data([0.0f32, 1.0], &Device::flex()))
        .unwrap();
    let s = NeighborSampler::new(&g, [2])
        .unwrap()
        .with_weight_column("w")
        .unwrap()
        .with_strategy(Strategy::Weighted)
        .unwrap();
    assert_eq!(s.sample([("_N", [0])], SampleKey::new(0)).unwrap().blocks[0].edge_ids(0), [1]);
}

#[test]
fn types_of_a_block_out_of_range() {
    let g = typed(10, 5, 1);
    let batch =
        NeighborSampler::new(&g, [2]).unwrap().sample([("paper", [3])], SampleKey::new(0)).unwrap();
    let block = &batch.blocks[0];
    let sampler = NeighborSampler::new(&g, [2]).unwrap();
    let edge: [&dyn Fn(); 5] = [
        &|| _ = block.edge_ids(3),
        &|| drop(block.original_edge_ids(3).clone()),
        &|| drop(block.in_degrees(3)),
        &|| drop(block.out_degrees(3)),
        &|| _ = block.total_edges_of(3),
    ];
    for f in edge {
        let text = panic_text(f);
        assert!(
            text.starts_with("unknown edge type `3`; the graph has [\"author:writes:paper\""),
            "{text}"
        );
    }
    let number: [&dyn Fn(); 2] = [&|| _ = g.schema().endpoints(3), &|| _ = sampler.times_of(3)];
    for f in number {
        let text = panic_text(f);
        assert!(
            text.starts_with("`etype` must lie in 0..3 (edge types") && text.ends_with("got 3"),
            "{text}"
        );
    }
    let node: [&dyn Fn(); 4] = [
        &|| _ = block.src_nodes(2),
        &|| _ = batch.output_nodes(2),
        &|| drop(block.original_ids(2).clone()),
        &|| _ = block.total_nodes(2),
    ];
    for f in node {
        let text = panic_text(f);
        assert!(text.starts_with("unknown node type `2`; the graph has [\"author\""), "{text}");
    }
}

/// With replacement a node gets as many edges as its fan-out: so many are refused before they are drawn.
#[test]
fn more_edges_than_memory_holds() {
    let g = Graph::homogeneous(4, vec![0, 1, 2], vec![1, 2, 3]).unwrap();
    let most = i64::from(u32::MAX) - 1;
    let s = NeighborSampler::new(&g, [most]).unwrap().with_replacement().unwrap();
    let e = s.sample([("_N", [1, 2])], SampleKey::new(0)).unwrap_err();
    assert!(matches!(e, GraphError::TooLarge { count: 8_589_934_588, .. }), "{e}");
    // 64 GiB, unless there are as many.
    match s.sample([("_N", [1])], SampleKey::new(0)) {
        Err(GraphError::OutOfMemory { bytes, remedy, .. }) => {
            assert_eq!(bytes, 16 * 4_294_967_294);
            assert!(remedy.contains("fan-out"));
        }
        other => assert!(other.is_ok(), "{other:?}"),
    }
    assert_eq!(s.sample([("_N", [0u32; 0])], SampleKey::new(0)).unwrap().total_edges(), 0);
    // Without replacement it is no more than the edges.
    let all = NeighborSampler::new(&g, [most]).unwrap();
    assert_eq!(all.sample([("_N", [1, 2])], SampleKey::new(0)).unwrap().total_edges(), 2);
    let saint = SaintSampler::new(&g, SaintMethod::Edges { budget: usize::MAX }).unwrap();
    assert!(matches!(saint.sample(0, SampleKey::new(0)), Err(GraphError::OutOfMemory { .. })));
    let walks = SaintMethod::Walks { roots: usize::MAX, length: usize::MAX };
    let saint = SaintSampler::new(&g, walks).unwrap();
    assert!(matches!(saint.sample(0, SampleKey::new(0)), Err(GraphError::OutOfMemory { .. })));
}
