//! Device copies of edges are accounted for, freed, and uploaded again.

use burn::backend::DispatchDevice;
use burn::tensor::Device;
use burn_gnn_cube::{edges_to_device, gspmm};
use burn_gnn_graph::{Bytes, Graph};
use burn_gnn_plan::{BinaryOp, GspmmPlan, Reduce};

use crate::support::*;
use burn_gnn_testutil::graphs::with_hub;

/// Sums of messages over both directions, as bytes.
fn sums(g: &Graph) -> Vec<Vec<u8>> {
    let relation = &g.relations()[0];
    let x = tensor(&Numbers::new(7).numbers(relation.num_src() * 3), &[relation.num_src(), 3]);
    [relation.clone(), relation.reverse()]
        .into_iter()
        .map(|r| {
            bytes(&gspmm(
                &GspmmPlan::new(&r, BinaryOp::CopyLhs, Reduce::Sum, &[3], &[]).unwrap(),
                Some(x.clone()),
                None,
            ))
        })
        .collect()
}

#[test]
fn copies_of_edges_are_counted_and_freed() {
    let Some(()) = adapter() else { return };
    let edges = with_hub(50, 50, 3000, 5);
    let mut g = Graph::homogeneous(50, edges.src().to_vec(), edges.dst().to_vec()).unwrap();
    let cube = Device::new(DispatchDevice::Cube(device()));
    let first = sums(&g);
    let copied = edges_to_device(&g, &cube).unwrap() as usize;
    assert!(g.derived_bytes().device >= copied, "{:?}", g.derived_bytes());
    let clone = g.clone();
    g.clear_derived();
    assert_eq!((g.derived_bytes(), clone.derived_bytes().device), (Bytes::default(), 0));
    assert_eq!(sums(&g), first);
    assert_eq!(sums(&clone), first);
    assert_eq!(edges_to_device(&g, &cube).unwrap() as usize, copied);
}
