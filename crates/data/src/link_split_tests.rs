//! Tests that link splits leak no edge, on random graphs.

use std::collections::{BTreeMap, BTreeSet};

use burn::tensor::{Device, Int, Tensor};
use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::{EdgeType, Graph, Relation};
use proptest::prelude::*;

use crate::{LinkPart, LinkSplit, RandomLinkSplit, Share};

type Pairs = Vec<(u32, u32)>;

fn pairs(r: &Relation) -> Pairs {
    let mut all: Pairs = r.src().iter().copied().zip(r.dst().iter().copied()).collect();
    all.sort_unstable();
    all
}

fn predicted(part: &LinkPart, i: usize) -> Pairs {
    part.links[i].src.iter().copied().zip(part.links[i].dst.iter().copied()).collect()
}

fn negatives(part: &LinkPart, i: usize) -> Pairs {
    part.links[i]
        .negative_src
        .iter()
        .copied()
        .zip(part.links[i].negative_dst.iter().copied())
        .collect()
}

fn parts(s: &LinkSplit) -> [&LinkPart; 3] {
    [&s.train, &s.val, &s.test]
}

/// Edge ids as a column, so that it shows which edge's features an edge has.
fn with_ids(mut g: Graph) -> Graph {
    for t in 0..g.relations().len() {
        let ids: Vec<i64> = (0..g.relations()[t].num_edges() as i64).collect();
        let n = ids.len();
        let ids =
            Tensor::<1, Int>::from_data(burn::tensor::TensorData::new(ids, [n]), &Device::flex());
        g.edges_mut(t).unwrap().insert("id", ids).unwrap();
    }
    g
}

fn ids(g: &Graph, t: usize) -> Vec<i64> {
    g.edge_frames()[t].column("id").unwrap().to_data().iter::<i64>().collect()
}

fn counts(pairs: &[(u32, u32)]) -> BTreeMap<(u32, u32), usize> {
    pairs.iter().fold(BTreeMap::new(), |mut m, &p| {
        *m.entry(p).or_default() += 1;
        m
    })
}

proptest! {
    /// Directed, parallel edges and self loops among them.
    #[test]
    fn directed(n in 3u32..9, raw in prop::collection::vec((0u32..9, 0u32..9), 4..40), disjoint: bool, seed: u64) {
        let (src, dst): (Vec<u32>, Vec<u32>) = raw.iter().map(|&(u, v)| (u % n, v % n)).unzip();
        let g = with_ids(Graph::homogeneous(n as usize, src, dst).unwrap());
        let all = pairs(&g.relations()[0]);
        let m = all.len();
        let how = RandomLinkSplit::new().with_val(Share::Count(1)).with_test(Share::Count(2)).with_neg_sampling_ratio(0.0);
        let how = if disjoint && m > 4 { how.with_disjoint_train(Share::Count(1)) } else { how };
        let s = how.split(&g, seed).unwrap();
        // Every edge is predicted once (with a disjoint share the rest of training carries messages only).
        let [train, val, test] = parts(&s).map(|p| p.links[0].edge_ids.clone());
        prop_assert_eq!((val.len(), test.len()), (1, 2));
        let kept: Vec<Vec<i64>> = parts(&s).iter().map(|p| ids(&p.graph, 0)).collect();
        let as_ids = |v: &[u32]| v.iter().map(|&e| i64::from(e)).collect::<BTreeSet<_>>();
        let set = |v: &[i64]| v.iter().copied().collect::<BTreeSet<_>>();
        prop_assert!(as_ids(&train).is_disjoint(&as_ids(&val)) && as_ids(&train).is_disjoint(&as_ids(&test)) && as_ids(&val).is_disjoint(&as_ids(&test)));
        // Messages: training edges; the same with the disjoint ones; and with validation edges.
        let train_all: BTreeSet<i64> = set(&kept[1]);
        prop_assert_eq!(train_all.len(), m - 3);
        prop_assert!(train_all.is_disjoint(&as_ids(&val)) && train_all.is_disjoint(&as_ids(&test)));
        prop_assert_eq!(set(&kept[2]), train_all.union(&as_ids(&val)).copied().collect::<BTreeSet<_>>());
        if how.disjoint_train == Share::Count(1) {
            prop_assert_eq!(train.len(), 1);
            prop_assert!(set(&kept[0]).is_disjoint(&as_ids(&train)) && kept[0].len() == m - 4);
        } else {
            prop_assert_eq!(set(&kept[0]), as_ids(&train));
        }
        // Features go with their edges, and order is kept.
        for (p, kept) in parts(&s).iter().zip(&kept) {
            let r = &p.graph.relations()[0];
            prop_assert!(kept.is_sorted());
            for (i, &e) in kept.iter().enumerate() {
                prop_assert_eq!((r.src()[i], r.dst()[i]), (g.relations()[0].src()[e as usize], g.relations()[0].dst()[e as usize]));
            }
        }
        let again = how.split(&g, seed).unwrap();
        prop_assert_eq!(&again.test.links, &s.test.links);
    }

    /// Undirected: an edge and its reverse go together, in messages and in what is predicted.
    #[test]
    fn undirected(n in 3u32..9, raw in prop::collection::vec((0u32..9, 0u32..9), 5..30), seed: u64) {
        let (mut src, mut dst) = (vec![], vec![]);
        for &(u, v) in &raw {
            let (u, v) = (u % n, v % n);
            src.push(u);
            dst.push(v);
            if u != v {
                src.push(v);
                dst.push(u);
            }
        }
        let g = with_ids(Graph::homogeneous(n as usize, src, dst).unwrap());
        let how = RandomLinkSplit::new().undirected().with_val(Share::Count(1)).with_test(Share::Count(1)).with_neg_sampling_ratio(0.0);
        let s = how.split(&g, seed).unwrap();
        let mut said: Pairs = parts(&s).iter().flat_map(|p| predicted(p, 0)).collect();
        prop_assert!(said.iter().all(|(u, v)| u <= v));
        prop_assert_eq!(said.len(), raw.len());
        said.extend(said.clone().into_iter().filter(|(u, v)| u != v).map(|(u, v)| (v, u)));
        said.sort_unstable();
        prop_assert_eq!(&said, &pairs(&g.relations()[0]));
        for p in parts(&s) {
            let found = pairs(&p.graph.relations()[0]);
            let reversed = { let mut t: Pairs = found.iter().map(|&(u, v)| (v, u)).collect(); t.sort_unstable(); t };
            prop_assert_eq!(&found, &reversed, "messages go both ways");
        }
        // Parallel edges may fall into several parts; beyond them no pair leaks.
        let total = counts(&pairs(&g.relations()[0]));
        let (train, test) = (counts(&pairs(&s.test.graph.relations()[0])), predicted(&s.test, 0));
        for (u, v) in test {
            prop_assert_eq!(train.get(&(u, v)).copied().unwrap_or(0) + 1, total[&(u, v)]);
        }
    }

    /// Two types and a reverse type: reverses follow, other types stay whole.
    #[test]
    fn reverse_types(raw in prop::collection::vec((0u32..5, 0u32..4), 6..30), seed: u64) {
        let (src, dst): (Vec<u32>, Vec<u32>) = raw.iter().copied().unzip();
        // The reverses stand in another order.
        let (back_src, back_dst): (Vec<u32>, Vec<u32>) = raw.iter().rev().map(|&(u, v)| (v, u)).unzip();
        let b = Graph::builder().nodes("a", 5).nodes("b", 4).edges(("a", "r", "b"), src, dst).edges(("b", "s", "a"), back_src, back_dst);
        let g = with_ids(b.edges(("a", "t", "a"), vec![0, 1], vec![1, 2]).build().unwrap());
        let how = RandomLinkSplit::new().with_val(Share::Ratio(0.25)).with_test(Share::Count(2)).with_neg_sampling_ratio(0.0);
        let s = how.with_edges(("a", "r", "b")).with_reverse(("b", "s", "a")).split(&g, seed).unwrap();
        for p in parts(&s) {
            let (r, back) = (p.graph.relation("r").unwrap(), p.graph.relation("s").unwrap());
            prop_assert_eq!((back.src(), back.dst()), (r.dst(), r.src()));
            let t = |name: &str| p.graph.schema().etype(name).unwrap();
            prop_assert_eq!(ids(&p.graph, t("s")), ids(&p.graph, t("r")));
            prop_assert_eq!(p.graph.relation("t").unwrap(), g.relation("t").unwrap());
            prop_assert_eq!(&p.links[0].etype, &EdgeType::new("a", "r", "b"));
        }
    }

    /// Negatives: none is an edge of the whole graph, none a self loop, all differ, as many as asked for.
    #[test]
    fn negatives_are_no_edges(raw in prop::collection::vec((0u32..12, 0u32..12), 5..30), train: bool, seed: u64) {
        let (src, dst): (Vec<u32>, Vec<u32>) = raw.iter().copied().unzip();
        let g = Graph::homogeneous(12, src, dst).unwrap();
        let how = RandomLinkSplit::new().with_val(Share::Count(2)).with_test(Share::Count(1)).with_neg_sampling_ratio(1.5);
        let how = if train { how } else { how.without_negative_train_samples() };
        let s = how.split(&g, seed).unwrap();
        let edges: BTreeSet<(u32, u32)> = pairs(&g.relations()[0]).into_iter().collect();
        let all: Pairs = parts(&s).iter().flat_map(|p| negatives(p, 0)).collect();
        prop_assert!(all.iter().all(|p| !edges.contains(p) && p.0 != p.1));
        prop_assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        let of_train = if train { (raw.len() - 3) * 3 / 2 } else { 0 };
        prop_assert_eq!(parts(&s).map(|p| negatives(p, 0).len()), [of_train, 3, 1]);
        let (u, v, labels) = s.val.links[0].labelled();
        prop_assert_eq!((u.len(), v.len(), labels), (5, 5, vec![1., 1., 0., 0., 0.]));
    }
}

#[test]
fn shares_are_even() {
    // 1,000 seeds draw each of 10 edges for the test some 200 times; five deviations are 63.
    let g = Graph::homogeneous(20, (0..10).collect(), (10..20).collect()).unwrap();
    let mut drawn = [0i32; 10];
    for seed in 0..1000 {
        let s = RandomLinkSplit::new().with_neg_sampling_ratio(0.0).split(&g, seed).unwrap();
        assert_eq!(parts(&s).map(|p| p.links[0].src.len()), [7, 1, 2]);
        s.test.links[0].edge_ids.iter().for_each(|&e| drawn[e as usize] += 1);
    }
    assert!(drawn.iter().all(|d| (d - 200).abs() < 63), "{drawn:?}");
}

#[test]
fn refusals() {
    let ring = |n: u32| {
        Graph::homogeneous(n as usize, (0..n).collect(), (0..n).map(|v| (v + 1) % n).collect())
            .unwrap()
    };
    let refused = |how: RandomLinkSplit, g: &Graph, end: &str| {
        let e = how.split(g, 1).unwrap_err();
        assert!(
            matches!(e, DataError::Split { .. }) && e.to_string().ends_with(end),
            "expected {end:?} at the end of {e}"
        );
    };
    let new = RandomLinkSplit::new;
    refused(
        new().with_test(Share::Ratio(0.9)),
        &ring(10),
        "fewer than the 10 edges of `_N:_E:_N` together, got 10",
    );
    refused(
        new(),
        &Graph::homogeneous(3, vec![], vec![]).unwrap(),
        "fewer than the 0 edges of `_N:_E:_N` together, got 0",
    );
    refused(
        new().with_disjoint_train(Share::Ratio(1.0)),
        &ring(10),
        "fewer than the 7 training edges of `_N:_E:_N`, got 7",
    );
    refused(new().with_val(Share::Count(11)), &ring(10), "`val`: expected at most 10, got 11");
    refused(
        new().with_neg_sampling_ratio(-1.0),
        &ring(10),
        "a number that is not negative, got -1",
    );
    refused(new().undirected(), &ring(10), "got one between 0 and 1 in one direction only");
    refused(
        new().with_neg_sampling_ratio(4.0),
        &ring(4),
        "at most 8 pairs without an edge of `_N:_E:_N`, got 16",
    );
    let two = Graph::builder().edges(("a", "r", "b"), vec![0, 1, 2], vec![0, 1, 2]).edges(
        ("b", "s", "a"),
        vec![0, 1, 1],
        vec![0, 1, 2],
    );
    let two = two.edges(("b", "t", "b"), vec![0], vec![0]).build().unwrap();
    refused(new(), &two, "expected the types to split, as the graph has 3, got none");
    let r = || new().with_edges(("a", "r", "b"));
    refused(
        r().undirected(),
        &two,
        "the reverse type of `a:r:b`, which joins two node types, got none",
    );
    refused(
        r().with_reverse(("b", "t", "b")),
        &two,
        "from its destinations to its sources, got `b:t:b`",
    );
    refused(
        r().with_reverse(("b", "s", "a")),
        &two,
        "the reverse of every edge of `a:r:b` and no others, got other edges",
    );
    assert!(matches!(
        r().with_edges(("a", "r", "b")).split(&two, 1),
        Err(DataError::Graph(GraphError::Duplicate { .. }))
    ));
    assert!(matches!(
        new().with_edges(("a", "x", "b")).split(&two, 1),
        Err(DataError::Graph(GraphError::UnknownEdgeType { .. }))
    ));
}
