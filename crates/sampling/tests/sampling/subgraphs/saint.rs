//! Subgraphs of random nodes, edges and walks against their probabilities.

use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_sampling::{SaintMethod, SaintSampler, SampleKey, Sampler, Seeds};

use crate::common::{chi_square, limit, skewed};

const N: usize = 20_000;

fn nodes_of(sampler: &SaintSampler, number: u32) -> Vec<u32> {
    let sub = sampler.sample(number, SampleKey::new(11)).unwrap();
    sub.original_nodes("_N").unwrap().to_vec()
}

/// Out-degrees 3, 1, 0, 1 and a self loop.
fn graph() -> Graph {
    Graph::homogeneous(4, vec![0, 0, 0, 1, 3], vec![1, 2, 3, 0, 3]).unwrap()
}

#[test]
fn nodes_in_proportion_to_out_degrees() {
    let sampler = SaintSampler::new(&graph(), SaintMethod::Nodes { budget: 1 }).unwrap();
    let mut observed = [0.0; 4];
    for number in 0..N as u32 {
        let nodes = nodes_of(&sampler, number);
        assert_eq!(nodes.len(), 1);
        observed[nodes[0] as usize] += 1.0;
    }
    let expected = [3.0, 1.0, 1.0, 1.0].map(|d| d / 6.0 * N as f64);
    let chi = chi_square(&observed, &expected);
    assert!(chi < limit(3), "{observed:?}: {chi}");
}

#[test]
fn edges_in_proportion_to_both_degrees() {
    let sampler = SaintSampler::new(&graph(), SaintMethod::Edges { budget: 1 }).unwrap();
    // 0 -> 1, 0 -> 2, 0 -> 3, 1 -> 0, 3 -> 3: the pairs of nodes, of which {0, 1} is of two edges.
    let third = 1.0 / 3.0;
    let pairs = [
        (vec![0, 1], third + 1.0 + 1.0 + 1.0),
        (vec![0, 2], third + 1.0),
        (vec![0, 3], third + 0.5),
        (vec![3], 1.0 + 0.5),
    ];
    let total: f64 = pairs.iter().map(|p| p.1).sum();
    let mut observed = [0.0; 4];
    for number in 0..N as u32 {
        let nodes = nodes_of(&sampler, number);
        observed[pairs.iter().position(|p| p.0 == nodes).expect("a pair of an edge")] += 1.0;
    }
    let chi = chi_square(&observed, &pairs.map(|p| p.1 / total * N as f64));
    assert!(chi < limit(3), "{observed:?}: {chi}");
}

#[test]
fn walks_follow_edges_from_uniform_roots() {
    let path = Graph::homogeneous(5, vec![0, 1, 2, 3], vec![1, 2, 3, 4]).unwrap();
    let sampler = SaintSampler::new(&path, SaintMethod::Walks { roots: 1, length: 2 }).unwrap();
    let mut roots = [0.0; 5];
    for number in 0..N as u32 {
        let nodes = nodes_of(&sampler, number);
        roots[nodes[0] as usize] += 1.0;
        assert_eq!(nodes, (nodes[0]..5.min(nodes[0] + 3)).collect::<Vec<_>>());
    }
    let chi = chi_square(&roots, &[N as f64 / 5.0; 5]);
    assert!(chi < limit(4), "{roots:?}: {chi}");
}

/// Batches are induced by their nodes, functions of numbers alone, and unions where they are of several.
#[test]
fn subgraphs_are_induced_and_repeatable() {
    let g = skewed(300, 3_000, 4);
    let methods = [
        SaintMethod::Nodes { budget: 40 },
        SaintMethod::Edges { budget: 20 },
        SaintMethod::Walks { roots: 10, length: 4 },
    ];
    for method in methods {
        let sampler = SaintSampler::new(&g, method).unwrap();
        let key = SampleKey::new(11);
        let batch = |numbers: &[u32]| {
            sampler.sample_batch(&Seeds::of(numbers.to_vec()).unwrap(), key.at(0, 9)).unwrap()
        };
        let (first, second) = (nodes_of(&sampler, 0), nodes_of(&sampler, 1));
        assert!(first.is_sorted_by(|a, b| a < b) && first != second && first.len() > 1);
        let both = batch(&[1, 0]);
        let mut union = [first.clone(), second].concat();
        union.sort_unstable();
        union.dedup();
        assert_eq!(both.original_nodes("_N").unwrap().to_vec(), union, "{method:?}");
        let r = g.relation("_E").unwrap();
        let inside = |e: &u32| {
            [r.src(), r.dst()].iter().all(|of| union.binary_search(&of[*e as usize]).is_ok())
        };
        let want: Vec<u32> = (0..3_000).filter(inside).collect();
        let mut edges = both.original_edges("_E").unwrap().to_vec();
        edges.sort_unstable();
        assert_eq!(edges, want, "{method:?}");
        assert_eq!(batch(&[0]).original_nodes("_N").unwrap().to_vec(), first, "of any batch");
    }
}

/// Weights are those of counts; nodes of many subgraphs weigh little.
#[test]
fn coverage_counts_subgraphs() {
    let g = graph();
    let sampler = SaintSampler::new(&g, SaintMethod::Edges { budget: 1 }).unwrap();
    let coverage = sampler.coverage(500, SampleKey::new(11)).unwrap();
    let of: Vec<Vec<u32>> = (0..500).map(|number| nodes_of(&sampler, number)).collect();
    let count = |nodes: &[u32]| of.iter().filter(|o| nodes.iter().all(|v| o.contains(v))).count();
    let nodes: Vec<u32> = (0..4).map(|v| count(&[v]) as u32).collect();
    assert_eq!(coverage.node_counts(), nodes);
    let r = g.relation("_E").unwrap();
    let edges: Vec<u32> =
        r.src().iter().zip(r.dst()).map(|(&u, &v)| count(&[u, v]) as u32).collect();
    assert_eq!(coverage.edge_counts(), edges);
    let weights: Vec<f32> = nodes.iter().map(|&c| (500.0 / f64::from(c)) as f32).collect();
    assert_eq!(coverage.node_weights(), weights);
    let of_dst = |(&v, &e): (&u32, &u32)| (f64::from(nodes[v as usize]) / f64::from(e)) as f32;
    let weights: Vec<f32> = r.dst().iter().zip(&edges).map(of_dst).collect();
    assert_eq!(coverage.edge_weights(), weights);
    // One subgraph: most nodes and edges are in none.
    let one = sampler.coverage(1, SampleKey::new(11)).unwrap();
    for (v, (&count, &weight)) in one.node_counts().iter().zip(&one.node_weights()).enumerate() {
        assert_eq!(weight, if count == 0 { 10.0 } else { 1.0 }, "node {v}");
    }
    assert!(one.edge_weights().contains(&0.1));
}

#[test]
fn what_is_refused() {
    let none = Graph::homogeneous(3, vec![], vec![]).unwrap();
    let new = |g: &Graph, method| SaintSampler::new(g, method).unwrap_err().to_string();
    let text = new(&none, SaintMethod::Edges { budget: 1 });
    assert!(text.contains("`edges`") && text.contains("or `SaintMethod::Nodes`"), "{text}");
    let empty = Graph::homogeneous(0, vec![], vec![]).unwrap();
    assert!(new(&empty, SaintMethod::Nodes { budget: 1 }).contains("`nodes`"));
    assert_eq!(
        new(&graph(), SaintMethod::Walks { roots: 0, length: 1 }),
        "`roots`: expected at least 1, got 0"
    );
    assert_eq!(
        new(&graph(), SaintMethod::Nodes { budget: 0 }),
        "`budget`: expected at least 1, got 0"
    );
    let typed = crate::common::typed(5, 4, 1);
    assert!(matches!(
        SaintSampler::new(&typed, SaintMethod::Nodes { budget: 1 }),
        Err(GraphError::Setting { arg: "graph", .. })
    ));
    // Nodes without edges are sampled.
    let sampler = SaintSampler::new(&none, SaintMethod::Nodes { budget: 50 }).unwrap();
    assert_eq!(nodes_of(&sampler, 0), [0, 1, 2]);
    let walks = SaintSampler::new(&none, SaintMethod::Walks { roots: 1, length: 9 }).unwrap();
    assert_eq!(nodes_of(&walks, 0).len(), 1);
    let nodes = Seeds::nodes(&graph(), [("_N", [0])]).unwrap();
    assert!(sampler.check(&nodes).is_err());
}
