//! Errors returned by `main` or unwrapped are printed by `Debug`, so `Debug` must be readable.

use burn::tensor::{Device, Tensor};
use burn_gnn::data::load_dataset;
use burn_gnn::dist::{PartitionConfig, partition_graph, run_ranks};
use burn_gnn::graph::Graph;
use burn_gnn::models::GatConvConfig;
use burn_gnn::ops::{Reduce, Side, try_gspmm_copy};
use burn_gnn::store::StoredCsc;

#[test]
fn debug_is_the_message() {
    let g = Graph::homogeneous(3, vec![0, 1], vec![1, 2]).unwrap();
    let x = Tensor::<2>::ones([5, 4], &Device::flex());
    let e = Graph::homogeneous(3, vec![0, 9], vec![1, 2]).unwrap_err();
    assert_eq!(
        format!("{e:?}"),
        "relation `_N:_E:_N`, position 1: `src` must lie in 0..3, got 9; number nodes from 0, or give the graph more nodes"
    );
    let errors: [Box<dyn std::error::Error>; 7] = [
        Box::new(e),
        Box::new(
            try_gspmm_copy::<2>(g.relation("_E").unwrap(), Side::Lhs, Reduce::Sum, x).unwrap_err(),
        ),
        Box::new(GatConvConfig::new(4, 2, 0).try_init(&Device::flex()).unwrap_err()),
        Box::new(load_dataset("no such folder").unwrap_err()),
        Box::new(partition_graph(&g, &PartitionConfig::new("g", 0)).unwrap_err()),
        Box::new(StoredCsc::open("no such file").unwrap_err()),
        Box::new(run_ranks(1, |_| Err::<(), _>("no data")).unwrap_err()),
    ];
    for e in errors {
        assert_eq!(format!("{e:?}"), e.to_string());
    }
}
