//! Renumbered files: the same graph and features by other ids.

use std::sync::Arc;

use burn_gnn_graph::{Graph, OriginalIds, Subgraph};
use burn_gnn_sampling::{FeatureSource, MiniBatch, NeighborSampler, SampleKey, Strategy};
use burn_gnn_store::*;
use burn_gnn_structure::GraphError;
use proptest::prelude::{
    ProptestConfig, TestCaseError, any, prop_assert, prop_assert_eq, proptest,
};
use proptest::strategy::{Just, Strategy as Strategy_};

const CITES: (&str, &str, &str) = ("paper", "cites", "paper");
const WRITES: (&str, &str, &str) = ("author", "writes", "paper");
const PAPERS: usize = 50;
const AUTHORS: usize = 20;

type Edges = Vec<(u32, u32)>;

fn weight(i: usize) -> f32 {
    (i % 5) as f32 * 0.5
}

/// Files of the edges in new or original ids.
fn files(
    dir: &std::path::Path,
    cites: &Edges,
    writes: &Edges,
    papers: Option<&Arc<Renumbering>>,
) -> StoredGraph {
    std::fs::create_dir_all(dir).unwrap();
    let weighted = cites.iter().enumerate().map(|(i, &(u, v))| Ok((u, v, Some(weight(i)))));
    let edges = RenumberedEdges::new(EdgeResults::new(weighted), papers.cloned(), papers.cloned());
    CscBuild::new(dir.join("cites"), PAPERS, PAPERS)
        .with_edge_ids()
        .with_weights()
        .run(edges)
        .unwrap();
    let edges = RenumberedEdges::new(EdgeIter::new(writes.clone()), None, papers.cloned());
    CscBuild::new(dir.join("writes"), AUTHORS, PAPERS).with_edge_ids().run(edges).unwrap();
    StoredGraph::create(
        dir,
        [("paper", PAPERS), ("author", AUTHORS)],
        [(WRITES, "writes"), (CITES, "cites")],
    )
    .unwrap()
}

/// All of a batch; `ids` are the original ids of the papers of `b`.
fn same(a: &MiniBatch, b: &MiniBatch, ids: Option<&[u32]>) -> Result<(), TestCaseError> {
    prop_assert_eq!((&a.seeds, a.blocks.len()), (&b.seeds, b.blocks.len()));
    for (a, b) in a.blocks.iter().zip(&b.blocks) {
        for t in 0..2 {
            let original = |v: &u32| ids.filter(|_| t == 1).map_or(*v, |ids| ids[*v as usize]);
            prop_assert_eq!(
                a.src_nodes(t),
                b.src_nodes(t).iter().map(original).collect::<Vec<_>>()
            );
            prop_assert_eq!(
                (&a.relations()[t], a.in_degrees(t)),
                (&b.relations()[t], b.in_degrees(t))
            );
            prop_assert_eq!(a.original_ids(t), b.original_ids(t));
            prop_assert_eq!(
                (a.edge_ids(t), a.original_edge_ids(t)),
                (b.edge_ids(t), b.original_edge_ids(t))
            );
        }
        prop_assert_eq!(a.src_in_degrees(0), b.src_in_degrees(0));
    }
    Ok(())
}

fn edges(src: usize) -> impl Strategy_<Value = Edges> {
    proptest::collection::vec((0..src as u32, 0..PAPERS as u32), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any permutation: batches by original ids do not change; by new ids, with sampling keyed by original ids,
    /// they are the same up to ids.
    #[test]
    fn batches_of_before(
        cites in edges(PAPERS), writes in edges(AUTHORS),
        order in Just((0..PAPERS as u32).collect::<Vec<_>>()).prop_shuffle(), replace in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let of = Arc::new(Renumbering::new(order).unwrap());
        let before = files(&dir.path().join("before"), &cites, &writes, None);
        let stored = files(&dir.path().join("after"), &cites, &writes, Some(&of));
        stored.verify().unwrap();
        let by_original = stored.by_original_ids([("paper", of.clone())]).unwrap();
        let seeds: Vec<u32> = (0..PAPERS as u32).step_by(3).chain([0, 25, 25]).collect();
        let batch = |s: &NeighborSampler, seeds: &[u32], step| s.sample([("paper", seeds)], SampleKey::new(5).at(1, step)).unwrap();
        let sampler = |g: &Graph| NeighborSampler::new(g, [3, 2]).unwrap();
        let edge_ids: Vec<OriginalIds> = stored.graph().relations().iter().map(|r| OriginalIds::unchanged(r.num_edges())).collect();
        let node_ids = vec![OriginalIds::unchanged(AUTHORS), OriginalIds::from_vec(of.original_ids().to_vec())];
        let relabelled = Subgraph { graph: stored.graph().clone(), node_ids, edge_ids };
        let (a, b) = (sampler(before.graph()), sampler(&by_original));
        let c = sampler(stored.graph()).with_original_ids(&relabelled).unwrap();
        let strategies = [Strategy::Uniform, Strategy::Labor { layer_dependent: false }, Strategy::Labor { layer_dependent: true }];
        for strategy in strategies {
            for weighted in [false, true] {
                let with = |s: &NeighborSampler| {
                    let s = if weighted { s.clone().with_stored_weights(CITES).unwrap() } else { s.clone() };
                    let s = s.with_strategy(strategy).unwrap();
                    if replace && strategy == Strategy::Uniform { s.with_replacement().unwrap() } else { s }
                };
                for step in 0..2 {
                    let expected = batch(&with(&a), &seeds, step);
                    same(&expected, &batch(&with(&b), &seeds, step), None)?;
                    same(&expected, &batch(&with(&c), &of.to_new(&seeds).unwrap(), step), Some(of.original_ids()))?;
                }
            }
        }
        prop_assert!(by_original.relations().iter().all(|r| r.derived_bytes().host == 0), "nothing has read the edges as a whole");
    }

    /// Orders equal their definitions, also after writing and reading.
    #[test]
    fn orders(cites in edges(PAPERS), part_of in proptest::collection::vec(0u32..4, PAPERS)) {
        let dir = tempfile::tempdir().unwrap();
        let of = Renumbering::by_degree(PAPERS, EdgeIter::new(cites.clone())).unwrap();
        let degree = |v: u32| cites.iter().filter(|e| e.0 == v).count();
        let mut expected: Vec<u32> = (0..PAPERS as u32).collect();
        expected.sort_by_key(|&v| std::cmp::Reverse(degree(v)));
        prop_assert_eq!(of.original_ids(), &expected);
        let by_part = Renumbering::by_part(&Assignment::new(part_of.clone(), 4).unwrap(), ..);
        expected.sort_by_key(|&v| (part_of[v as usize], v));
        prop_assert_eq!(by_part.original_ids(), expected);
        for of in [of, by_part] {
            of.write(dir.path().join("of")).unwrap();
            prop_assert_eq!(&Renumbering::open(dir.path().join("of")).unwrap(), &of);
            let all: Vec<u32> = (0..PAPERS as u32).collect();
            prop_assert_eq!(of.to_original(&of.to_new(&all).unwrap()).unwrap(), all);
        }
        prop_assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
    }
}

fn row(v: u32, width: usize) -> Vec<f32> {
    (0..width as u32).map(|c| ((v * 31 + c * 7) % 257) as f32 - 128.0).collect()
}

/// Renumbered rows equal the original ones, in every format and for any memory.
#[test]
fn rows_in_new_order() {
    let dir = tempfile::tempdir().unwrap();
    for format in [RowFormat::F32, RowFormat::F16, RowFormat::Int8, RowFormat::Int4] {
        for (nodes, width) in [(5000u32, 7), (1, 3), (0, 4), (30, 0)] {
            let mut out =
                RowWriter::create(dir.path().join("rows"), nodes as usize, width, format).unwrap();
            (0..nodes).for_each(|v| out.put(&row(v, width)).unwrap());
            out.finish().unwrap();
            let before = StoredRows::open(dir.path().join("rows")).unwrap();
            let of = Arc::new(Renumbering::new((0..nodes).rev().collect()).unwrap());
            let new = of.write_rows(&before, dir.path().join("new"), 1).unwrap();
            new.verify().unwrap();
            let ids: Vec<u32> = (0..nodes).step_by(3).chain((0..nodes).rev().step_by(7)).collect();
            let expected = before.gather(&ids).unwrap();
            assert_eq!(new.gather(&of.to_new(&ids).unwrap()).unwrap(), expected);
            assert_eq!(RenumberedRows::new(new, of).unwrap().gather(&ids).unwrap(), expected);
        }
    }
}

/// Frequent rows are adjacent: with hubs first, a request for hubs reads few sectors.
#[test]
fn hubs_share_sectors() {
    let dir = tempfile::tempdir().unwrap();
    let (n, width) = (50_000u32, 16);
    let mut out =
        RowWriter::create(dir.path().join("rows"), n as usize, width, RowFormat::F32).unwrap();
    (0..n).for_each(|v| out.put(&row(v, width)).unwrap());
    out.finish().unwrap();
    let before = Arc::new(StoredRows::open(dir.path().join("rows")).unwrap());
    // Every 250th node is the source of many edges.
    let edges = (0..n).map(|i| (i % 200 * 250, i)).chain((0..n).map(|v| (v, 0)));
    let of = Renumbering::by_degree(n as usize, EdgeIter::new(edges)).unwrap();
    let new = Arc::new(of.write_rows(&before, dir.path().join("new"), 1 << 20).unwrap());
    let hubs: Vec<u32> = (0..200).map(|i| i * 250).collect();
    let read = |rows: &Arc<StoredRows>, ids: Vec<u32>| {
        let mut planned = PlannedRows::new(rows.clone(), 0, 1, [Ok(((), ids))]);
        (planned.next().unwrap().unwrap().rows, planned.stats().bytes_read)
    };
    let ((a, far), (b, near)) =
        (read(&before, hubs.clone()), read(&new, of.to_new(&hubs).unwrap()));
    assert!(a == b && near <= 4 * 4096, "{near}");
    // Without direct reads, both only read the rows themselves.
    assert!(far == 200 * 64 || 5 * near < far, "{near} bytes against {far}");
    assert_eq!(of.to_new(&hubs).unwrap(), (0..200).collect::<Vec<_>>());
}

#[test]
fn errors() {
    let dir = tempfile::tempdir().unwrap();
    let of = |ids: Vec<u32>| Renumbering::new(ids).map_err(|e| e.to_string());
    assert!(
        of(vec![0, 0]).unwrap_err().contains("node 0 at 0 and at 1")
            && of(vec![0, 2]).unwrap_err().contains('2')
    );
    let e = Renumbering::by_degree(2, EdgeIter::new([(0, 1), (2, 0)])).unwrap_err();
    assert!(
        matches!(e, StoreError::NodeOutOfRange { edge: 1, arg: "src", bound: 2, value: 2 }),
        "{e}"
    );
    let swap = Arc::new(Renumbering::new(vec![1, 0]).unwrap());
    let mut edges = RenumberedEdges::new(EdgeIter::new([(0, 1), (0, 2)]), None, swap.clone());
    edges.skip(1).unwrap();
    let e = edges.read(5, &mut EdgeChunk::default()).unwrap_err();
    assert!(
        matches!(e, StoreError::NodeOutOfRange { edge: 1, arg: "dst", bound: 2, value: 2 }),
        "{e}"
    );
    let stored = files(dir.path(), &vec![(1, 2)], &vec![(3, 4)], None);
    let by = |of: Vec<(&'static str, Arc<Renumbering>)>| {
        stored.by_original_ids(of).unwrap_err().to_string()
    };
    assert!(
        by(vec![("paper", swap.clone())]).contains("one id per node")
            && by(vec![("book", swap.clone())]).contains("book")
    );
    // All edges at once: the rows of the file are in another order.
    let order = Arc::new(Renumbering::new((0..PAPERS as u32).rev().collect()).unwrap());
    assert!(stored.by_original_ids([("paper", order.clone()), ("paper", order.clone())]).is_err());
    let moved =
        files(&dir.path().join("moved"), &vec![(1, 2), (1, 40), (3, 7)], &vec![], Some(&order));
    let g = moved.by_original_ids([("paper", order.clone())]).unwrap();
    assert!(matches!(g.relation(CITES).unwrap().read_stored(), Err(GraphError::Layout { .. })));
    let rows =
        RowWriter::create(dir.path().join("rows"), 3, 1, RowFormat::F32).and_then(|mut out| {
            out.put(&[0.0; 3])?;
            out.finish()
        });
    rows.unwrap();
    let rows = StoredRows::open(dir.path().join("rows")).unwrap();
    assert!(
        swap.write_rows(&rows, dir.path().join("new"), 1).is_err()
            && RenumberedRows::new(rows, swap.clone()).is_err()
    );
    swap.write(dir.path().join("swap")).unwrap();
    let mut bytes = std::fs::read(dir.path().join("swap")).unwrap();
    bytes[4096] = 0;
    std::fs::write(dir.path().join("swap"), bytes).unwrap();
    assert!(matches!(Renumbering::open(dir.path().join("swap")), Err(StoreError::Damaged { .. })));
}
