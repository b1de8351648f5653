//! Arguments of graph transforms that took gigabytes, or did not end.

use std::sync::PoisonError;

use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_graph::GraphError;
use burn_gnn_graph::{Graph, PointOptions, knn_graph, radius_graph};

use super::{ALONE, counting_allocator, watchdog};

/// Most bytes of memory that `f` used at a time; it must end.
fn used<T>(what: &str, f: impl FnOnce() -> T) -> (T, usize) {
    let _watch = watchdog::watch(what.to_owned(), 0);
    counting_allocator::reset();
    let result = f();
    let used = counting_allocator::above_reset();
    println!("{what}: {used} bytes of memory");
    (result, used)
}

/// Distances to all other points are in memory for one point per thread, and not for thousands.
#[test]
fn neighbours_of_many_points() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let n = 8_000;
    let x = || {
        Tensor::<2>::from_data(
            TensorData::new((0..n).map(|i| i as f32).collect(), [n, 1]),
            &Device::flex(),
        )
    };
    rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap().install(|| {
        let points = x();
        let (g, bytes) =
            used("nearest neighbours", || knn_graph(points, 2, &PointOptions::new()).unwrap());
        assert_eq!(g.total_edges(), 2 * n);
        assert!(bytes < 8 << 20, "{bytes} bytes");
        let points = x();
        let (g, bytes) = used("points within a radius", || {
            radius_graph(points, 1.0, &PointOptions::new()).unwrap()
        });
        assert_eq!(g.total_edges(), 2 * (n - 1));
        assert!(bytes < 8 << 20, "{bytes} bytes");
    });
}

/// Walks in a graph without cycles end, however long they are to be; those of a star are counted before any is made.
#[test]
fn walks_that_are_too_many_or_none() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Graph::homogeneous(5, vec![0, 1, 2, 3], vec![1, 2, 3, 4]).unwrap();
    let (g, _) = used("a path", || path.khop_graph("_E", usize::MAX).unwrap());
    assert_eq!(g.total_edges(), 0);
    let n = 100_000u32;
    let (src, dst): (Vec<u32>, Vec<u32>) = (1..=n).flat_map(|i| [(i, 0), (0, i)]).unzip();
    let star = Graph::homogeneous(n as usize + 1, src, dst).unwrap();
    let (e, bytes) = used("walks through a star", || star.khop_graph("_E", 2).unwrap_err());
    assert!(matches!(e, GraphError::TooLarge { what: "edges", count: 10_000_100_000, .. }), "{e}");
    assert!(bytes < 16 << 20, "{bytes} bytes");
    // A column that is not there is found before the product is made.
    let e = star.adj_product_graph("_E", &star, "_E", "w").unwrap_err();
    assert!(matches!(e, GraphError::UnknownColumn { .. }), "{e}");
}
