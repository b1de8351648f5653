//! Layers compute data derived from a relation in the first forward pass and reuse it in the next ones.

use burn::tensor::{Device, Tensor};
use burn_gnn_graph::{CacheUses, Graph};
use burn_gnn_models::*;

#[test]
fn degree_scales_are_found_by_later_forwards() {
    let device = Device::flex();
    let mut g = Graph::homogeneous(3, vec![0, 1, 2, 0], vec![1, 1, 0, 2]).unwrap();
    let conv = GcnConvConfig::new(2, 2).init(&device);
    let forward = |g: &Graph| conv.forward(g, Tensor::<2>::ones([3, 2], &device)).into_data();
    let uses = |g: &Graph| g.relations()[0].csc().attached().uses();
    let first = forward(&g);
    let CacheUses { hits, misses } = uses(&g);
    assert!(misses > 0, "scales of both endpoints are kept with the relation");
    for round in 1..4 {
        assert_eq!(forward(&g), first);
        assert_eq!(uses(&g), CacheUses { hits: round * (hits + misses) + hits, misses });
    }
    g.clear_derived();
    assert_eq!((forward(&g), uses(&g)), (first, CacheUses { hits, misses }));
}
