//! Induced subgraphs, ShaDow, Cluster-GCN and renumbered graphs.

use burn_gnn_graph::{EdgeOrder, Graph, GraphError, NodeOrder};
use burn_gnn_sampling::{ClusterSampler, Fanouts, NeighborSampler, SampleKey};

use crate::common::{content, skewed, typed};

const NO_EDGES: [(&str, [u32; 0]); 0] = [];

#[test]
fn induced_around_seeds_equals_the_neighbourhood() {
    let g = typed(150, 60, 6);
    let s = NeighborSampler::new(&g, Fanouts::all(2)).unwrap();
    let seeds = [("paper", vec![9, 3, 9]), ("author", vec![0])];
    let found = s.induced(seeds.clone(), NO_EDGES, SampleKey::new(1)).unwrap();
    let whole = g.khop_in_subgraph(seeds.clone(), 2).unwrap();
    for t in 0..2 {
        let mut nodes = found.subgraph.node_ids[t].to_vec();
        let at: Vec<u32> = found.seeds[t].iter().map(|&row| nodes[row as usize]).collect();
        assert_eq!(at, if t == 0 { vec![0] } else { vec![9, 3, 9] }, "positions of seeds");
        nodes.sort_unstable();
        assert_eq!(nodes, whole.subgraph.node_ids[t].to_vec());
    }
    for t in 0..3 {
        assert_eq!(found.subgraph.edge_ids[t].to_vec(), whole.subgraph.edge_ids[t].to_vec());
    }
    let writes = g.schema().etype("writes").unwrap();
    let dropped = found.subgraph.edge_ids[writes].to_vec()[..3].to_vec();
    let without = s.induced(seeds, [("writes", &dropped)], SampleKey::new(1)).unwrap();
    let left = without.subgraph.edge_ids[writes].to_vec();
    assert!(dropped.iter().all(|e| !left.contains(e)) && !left.is_empty());
}

#[test]
fn shadow_gives_every_seed_its_own_subgraph() {
    let g = skewed(80, 300, 2);
    let s = NeighborSampler::new(&g, [3, 2]).unwrap();
    let seeds = vec![4, 70, 4, 11];
    let all = s.shadow([("_N", &seeds)], SampleKey::new(1)).unwrap();
    let (nodes, edges) = (all.subgraph.node_ids[0].to_vec(), all.subgraph.edge_ids[0].to_vec());
    let rows = &all.seeds[0];
    assert!(rows[0] == 0 && rows.is_sorted(), "each seed is the first of its tree");
    let (r, whole) = (all.subgraph.graph.relation("_E").unwrap(), g.relation("_E").unwrap());
    for (i, &e) in edges.iter().enumerate() {
        let (u, v) = (r.src()[i] as usize, r.dst()[i] as usize);
        assert_eq!((nodes[u], nodes[v]), (whole.src()[e as usize], whole.dst()[e as usize]));
        assert_eq!(
            rows.partition_point(|&s| s as usize <= u),
            rows.partition_point(|&s| s as usize <= v),
            "an edge joins two trees"
        );
    }
    for (i, &seed) in seeds.iter().enumerate() {
        let tree = rows[i] as usize..rows.get(i + 1).map_or(nodes.len(), |&s| s as usize);
        assert_eq!(nodes[tree.start], seed);
        let mut mine = nodes[tree.clone()].to_vec();
        // All edges between the nodes of a tree are in it.
        let inside = (0..whole.num_edges())
            .filter(|&e| mine.contains(&whole.src()[e]) && mine.contains(&whole.dst()[e]))
            .count();
        assert_eq!(r.src().iter().filter(|&&u| tree.contains(&(u as usize))).count(), inside);
        mine.sort_unstable();
        mine.dedup();
        assert_eq!(mine.len(), tree.len());
    }
}

#[test]
fn shadow_without_hops_has_the_seeds_alone() {
    let g = skewed(80, 300, 2);
    let s = NeighborSampler::new(&g, [0i64; 0]).unwrap();
    let all = s.shadow([("_N", &[4, 70, 4])], SampleKey::new(1)).unwrap();
    assert_eq!(all.subgraph.node_ids[0].to_vec(), [4, 70, 4]);
    assert_eq!(all.seeds[0], [0, 1, 2]);
    let r = all.subgraph.graph.relation("_E").unwrap();
    assert_eq!(r.src(), r.dst());
}

#[test]
fn clusters_cover_the_graph_once_an_epoch() {
    let g = typed(90, 40, 3);
    let parts = [
        ("paper", (0..90).map(|v| v % 7).collect::<Vec<u32>>()),
        ("author", (0..40).map(|v| v % 5).collect()),
    ];
    let clusters = ClusterSampler::new(&g, parts).unwrap();
    assert_eq!(clusters.num_parts(), 7);
    let epoch = clusters.epoch(2, SampleKey::new(1));
    let mut all = epoch.concat();
    all.sort_unstable();
    assert_eq!((all, epoch.len()), ((0..7).collect(), 4));
    assert_ne!(epoch, clusters.epoch(2, SampleKey::new(1).at(1, 0)));
    let mut met = vec![0; 90];
    for parts in &epoch {
        let sub = clusters.subgraph(parts).unwrap();
        sub.original_nodes("paper").unwrap().to_vec().iter().for_each(|&v| met[v as usize] += 1);
        let r = g.relation("cites").unwrap();
        let inside = |v: u32| parts.contains(&(v % 7));
        let expected =
            (0..r.num_edges()).filter(|&e| inside(r.src()[e]) && inside(r.dst()[e])).count();
        assert_eq!(sub.graph.num_edges("cites").unwrap(), expected);
    }
    assert_eq!(met, [1; 90]);
    assert!(matches!(clusters.subgraph(&[7]), Err(GraphError::IdOutOfRange { .. })));
    assert!(clusters.subgraph(&[1, 1]).is_err());
    assert!(matches!(
        ClusterSampler::new(&g, [("paper", vec![0; 90])]),
        Err(GraphError::Setting { .. })
    ));
    assert!(matches!(
        ClusterSampler::new(&g, [("paper", vec![0; 9])]),
        Err(GraphError::Length { .. })
    ));
    let far = [("paper", vec![1_000_000; 90]), ("author", vec![0; 40])];
    assert!(matches!(ClusterSampler::new(&g, far), Err(GraphError::Setting { .. })));
}

#[test]
fn renumbered_graphs_are_the_same_and_give_the_same_samples() {
    let g = typed(300, 120, 7);
    let parts: Vec<Vec<u32>> =
        vec![(0..120).map(|v| v % 4).collect(), (0..300).map(|v| v % 4).collect()];
    let seeds: Vec<u32> = vec![5, 120, 299, 44];
    let key = SampleKey::new(6).at(1, 3);
    let before =
        NeighborSampler::new(&g, [4, 3]).unwrap().sample([("paper", &seeds)], key).unwrap();
    for nodes in [
        NodeOrder::Kept,
        NodeOrder::InDegree,
        NodeOrder::ReverseCuthillMcKee,
        NodeOrder::Parts(&parts),
    ] {
        for edges in [EdgeOrder::Kept, EdgeOrder::ByDst] {
            let new = g.reorder(nodes, edges).unwrap();
            for (t, r) in new.graph.relations().iter().enumerate() {
                let (s, d) = g.schema().endpoints(t);
                assert_eq!(
                    edges == EdgeOrder::ByDst,
                    r.csc().edge_ids().is_none() || r.dst().is_sorted(),
                    "{nodes:?}"
                );
                for e in 0..r.num_edges() {
                    let old = new.edge_ids[t].get(e) as usize;
                    let endpoints = (
                        new.node_ids[s].get(r.src()[e] as usize),
                        new.node_ids[d].get(r.dst()[e] as usize),
                    );
                    assert_eq!(
                        endpoints,
                        (g.relations()[t].src()[old], g.relations()[t].dst()[old])
                    );
                }
            }
            let ids = new.original_nodes("paper").unwrap().to_vec();
            let at: Vec<u32> =
                seeds.iter().map(|s| ids.iter().position(|v| v == s).unwrap() as u32).collect();
            let sampler =
                NeighborSampler::new(&new.graph, [4, 3]).unwrap().with_original_ids(&new).unwrap();
            let after = sampler.sample([("paper", &at)], key).unwrap();
            assert_eq!(content(&before), content(&after), "{nodes:?} {edges:?}");
        }
    }
    assert!(matches!(
        g.reorder(NodeOrder::Parts(&parts[..1]), EdgeOrder::Kept),
        Err(GraphError::Length { .. })
    ));
}

#[test]
fn orders_do_what_their_names_say() {
    let g = skewed(200, 2_000, 4);
    let degrees = g.reorder(NodeOrder::InDegree, EdgeOrder::Kept).unwrap();
    assert!(degrees.graph.relation("_E").unwrap().in_degrees().is_sorted_by(|a, b| a >= b));
    // A path under shuffled numbers: Cuthill–McKee finds the path again, neighbours get neighbouring numbers.
    let name = |v: u32| v * 37 % 101;
    let path = Graph::homogeneous(101, (0..100).map(name).collect(), (1..101).map(name).collect())
        .unwrap();
    let new = path.reorder(NodeOrder::ReverseCuthillMcKee, EdgeOrder::Kept).unwrap();
    let r = new.graph.relation("_E").unwrap();
    assert!(r.src().iter().zip(r.dst()).all(|(u, v)| u.abs_diff(*v) == 1));
}
