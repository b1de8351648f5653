use burn::tensor::Tensor;
use burn_gnn_graph::{Batch, Graph, GraphError, batch};
use proptest::prelude::*;

use crate::random::{ENDS, ETYPES, NTYPES, case, check_rows, devices, float};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn batches_come_apart_again(cases in proptest::collection::vec(case(), 1..5)) {
        for device in devices() {
            let graphs: Vec<Graph> = cases.iter().map(|c| c.graph(&device)).collect();
            let all = batch(&graphs).unwrap();
            prop_assert_eq!(all.len(), cases.len());
            for (t, name) in NTYPES.iter().enumerate() {
                prop_assert_eq!(all.num_nodes(name).unwrap(), cases.iter().map(|c| c.nodes[t]).collect::<Vec<_>>());
            }
            // Edges and nodes of a graph follow those of the graphs before it.
            for (t, etype) in ETYPES.iter().enumerate() {
                prop_assert_eq!(all.num_edges(*etype).unwrap(), cases.iter().map(|c| c.edges[t].len()).collect::<Vec<_>>());
                let (mut want, mut at) = (vec![], (0, 0));
                for c in &cases {
                    want.extend(c.edges[t].iter().map(|(u, v)| (u + at.0, v + at.1)));
                    at = (at.0 + c.nodes[ENDS[t].0] as u32, at.1 + c.nodes[ENDS[t].1] as u32);
                }
                let r = &all.graph().relations()[t];
                prop_assert_eq!(r.src().iter().copied().zip(r.dst().iter().copied()).collect::<Vec<_>>(), want);
            }
            let joint: Vec<f32> = graphs.iter().flat_map(|g| float(&g.node_frames()[0], "x")).collect();
            prop_assert_eq!(float(&all.graph().node_frames()[0], "x"), joint);
            let apart = all.unbatch().unwrap();
            prop_assert_eq!(apart.len(), graphs.len());
            for (i, c) in cases.iter().enumerate() {
                for g in [&apart[i], &all.get(i).unwrap()] {
                    prop_assert_eq!((g.schema(), g.node_counts(), g.relations()), (graphs[i].schema(), graphs[i].node_counts(), graphs[i].relations()));
                    for t in 0..3 {
                        check_rows(&g.node_frames()[t], t, &c.all_nodes()[t]);
                    }
                    for t in 0..6 {
                        check_rows(&g.edge_frames()[t], 10 + t, &c.all_edges()[t]);
                    }
                }
            }
            let counts = |names: usize, of: &dyn Fn(usize) -> Vec<usize>| (0..names).map(of).collect::<Vec<_>>();
            let nodes = counts(3, &|t| cases.iter().map(|c| c.nodes[t]).collect());
            let edges = counts(6, &|t| cases.iter().map(|c| c.edges[t].len()).collect());
            let again = Batch::new(all.clone().into_graph(), nodes, edges).unwrap().get(0).unwrap();
            prop_assert_eq!(again.relations(), graphs[0].relations());
        }
    }
}

#[test]
fn frames_must_fit_unless_they_are_empty() {
    let device = &devices()[0];
    let mut a = Graph::homogeneous(2, vec![0], vec![1]).unwrap();
    a.nodes_mut("_N").unwrap().insert("h", Tensor::<1>::from_data([1.0f32, 2.0], device)).unwrap();
    let nothing = Graph::homogeneous(0, vec![], vec![]).unwrap();
    let all = batch([&nothing, &a, &nothing]).unwrap();
    assert_eq!(float(all.graph().nodes("_N").unwrap(), "h"), [1.0, 2.0]);
    assert_eq!(
        (all.num_nodes("_N").unwrap(), all.num_edges("_E").unwrap()),
        (&[0, 2, 0][..], &[0, 1, 0][..])
    );
    let plain = Graph::homogeneous(1, vec![], vec![]).unwrap();
    assert!(matches!(batch([&a, &plain]), Err(GraphError::UnknownColumn { .. })));
    let mut wide = plain.clone();
    wide.nodes_mut("_N").unwrap().insert("h", Tensor::<2>::zeros([1, 3], device)).unwrap();
    assert!(matches!(
        batch([&a, &wide]),
        Err(GraphError::ColumnMismatch { what: "row shape", .. })
    ));
}

#[test]
fn what_is_no_batch() {
    let g = |n| Graph::homogeneous(n, vec![0, 2], vec![1, 2]).unwrap();
    let text = |r: Result<Batch, GraphError>| r.unwrap_err().to_string();
    assert_eq!(
        text(batch([])),
        "`graphs` is empty; a batch needs one graph at least, which gives it its types"
    );
    let other = Graph::builder().nodes("a", 1).build().unwrap();
    let t = text(batch([&g(3), &other]));
    assert_eq!(
        t,
        "graph 1 of the batch has the types [\"a\"], graph 0 has [\"_N\", \"_N:_E:_N\"]; empty types and relations are allowed"
    );
    assert!(
        batch([&g(3)])
            .unwrap()
            .get(1)
            .unwrap_err()
            .to_string()
            .contains("graph of the batch: id 1 is out of range 0..1")
    );
    assert!(Batch::new(g(3), vec![vec![2, 1]], vec![vec![1, 1]]).is_ok());
    let t = text(Batch::new(g(3), vec![vec![1, 2]], vec![vec![1, 1]]));
    assert_eq!(
        t,
        "relation `_N:_E:_N`: edge 0 belongs to graph 0 of the batch, but its endpoints 0 -> 1 are not nodes of that graph; \
         sort nodes and edges by graph, or correct `num_nodes` and `num_edges`"
    );
    assert!(matches!(
        Batch::new(g(3), vec![vec![2, 1]], vec![vec![2]]),
        Err(GraphError::Length { .. })
    ));
    assert!(matches!(
        Batch::new(g(3), vec![vec![2, 2]], vec![vec![1, 1]]),
        Err(GraphError::Length { expected: 3, actual: 4, .. })
    ));
    assert!(matches!(Batch::new(g(3), vec![], vec![vec![1, 1]]), Err(GraphError::Length { .. })));
    let huge = Graph::builder().nodes("a", 3_000_000_000).build().unwrap();
    assert!(matches!(
        batch([&huge, &huge]),
        Err(GraphError::TooLarge { what: "nodes", count: 6_000_000_000, .. })
    ));
}
