//! Property tests: no edge to predict leaks into the message edges of its part.

use std::collections::{BTreeMap, BTreeSet};

use burn::tensor::{Device, Int, Tensor};
use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::{EdgeType, Graph, Relation};
use proptest::prelude::*;

use crate::{InductiveLinkSplit, LinkOrder, LinkPart, LinkSplit, RandomLinkSplit};

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

/// Adds the edge ids as a feature column, which shows that features stay with their edges.
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

/// Whether no supervision edge (u, v) of a part is a message edge, in direction (u, v) or in both directions.
fn hides_its_pairs(part: &LinkPart, i: usize, undirected: bool) -> bool {
    let messages: BTreeSet<(u32, u32)> = pairs(&part.graph.relations()[0]).into_iter().collect();
    predicted(part, i)
        .iter()
        .all(|&(u, v)| !(messages.contains(&(u, v)) || undirected && messages.contains(&(v, u))))
}

proptest! {
    /// Directed graphs with parallel edges and self loops.
    #[test]
    fn directed(n in 3u32..9, raw in prop::collection::vec((0u32..9, 0u32..9), 4..40), disjoint: bool, seed: u64) {
        let (src, dst): (Vec<u32>, Vec<u32>) = raw.iter().map(|&(u, v)| (u % n, v % n)).unzip();
        let g = with_ids(Graph::homogeneous(n as usize, src, dst).unwrap());
        let all = pairs(&g.relations()[0]);
        let distinct = counts(&all).len();
        prop_assume!(distinct >= 4);
        let how = RandomLinkSplit::new().with_val(1).with_test(2).with_neg_sampling_ratio(0.0);
        let disjoint = disjoint && distinct > 4;
        let how = if disjoint { how.with_disjoint_train(1) } else { how };
        let s = how.split(&g, seed).unwrap();
        // Every edge is a supervision edge of one part, except training edges outside a disjoint share.
        let [train, val, test] = parts(&s).map(|p| p.links[0].edge_ids.clone());
        prop_assert_eq!(parts(&s).map(|p| counts(&predicted(p, 0)).len()), [if disjoint { 1 } else { distinct - 3 }, 1, 2]);
        prop_assert!(hides_its_pairs(&s.val, 0, false) && hides_its_pairs(&s.test, 0, false));
        let kept: Vec<Vec<i64>> = parts(&s).iter().map(|p| ids(&p.graph, 0)).collect();
        let as_ids = |v: &[u32]| v.iter().map(|&e| i64::from(e)).collect::<BTreeSet<_>>();
        let set = |v: &[i64]| v.iter().copied().collect::<BTreeSet<_>>();
        prop_assert!(as_ids(&train).is_disjoint(&as_ids(&val)) && as_ids(&train).is_disjoint(&as_ids(&test)) && as_ids(&val).is_disjoint(&as_ids(&test)));
        // Message edges: training edges without the disjoint share; all training edges; and also validation edges.
        let train_all: BTreeSet<i64> = set(&kept[1]);
        prop_assert_eq!(train_all.len(), all.len() - val.len() - test.len());
        prop_assert!(train_all.is_disjoint(&as_ids(&val)) && train_all.is_disjoint(&as_ids(&test)));
        prop_assert_eq!(set(&kept[2]), train_all.union(&as_ids(&val)).copied().collect::<BTreeSet<_>>());
        if disjoint {
            prop_assert!(hides_its_pairs(&s.train, 0, false));
            prop_assert_eq!(set(&kept[0]), train_all.difference(&as_ids(&train)).copied().collect::<BTreeSet<_>>());
        } else {
            prop_assert_eq!(set(&kept[0]), as_ids(&train));
        }
        // Features stay with their edges, in the original order.
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

    /// Undirected graphs: an edge and its reverse are in the same part.
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
        prop_assume!(counts(&pairs(&g.relations()[0])).keys().filter(|(u, v)| u <= v).count() >= 3);
        let how = RandomLinkSplit::new().undirected().with_val(1).with_test(1).with_neg_sampling_ratio(0.0);
        let s = how.split(&g, seed).unwrap();
        let mut all: Pairs = parts(&s).iter().flat_map(|p| predicted(p, 0)).collect();
        prop_assert!(all.iter().all(|(u, v)| u <= v));
        prop_assert_eq!(all.len(), raw.len());
        all.extend(all.clone().into_iter().filter(|(u, v)| u != v).map(|(u, v)| (v, u)));
        all.sort_unstable();
        prop_assert_eq!(&all, &pairs(&g.relations()[0]));
        for p in parts(&s) {
            let found = pairs(&p.graph.relations()[0]);
            let reversed = { let mut t: Pairs = found.iter().map(|&(u, v)| (v, u)).collect(); t.sort_unstable(); t };
            prop_assert_eq!(&found, &reversed, "messages pass in both directions");
        }
        prop_assert!(hides_its_pairs(&s.val, 0, true) && hides_its_pairs(&s.test, 0, true));
    }

    /// Edges of a reverse type are in the part of their forward edge; other types keep all edges in every part.
    #[test]
    fn reverse_types(raw in prop::collection::vec((0u32..5, 0u32..4), 6..30), seed: u64) {
        let (src, dst): (Vec<u32>, Vec<u32>) = raw.iter().copied().unzip();
        // The reverse type stores its edges in another order.
        let (back_src, back_dst): (Vec<u32>, Vec<u32>) = raw.iter().rev().map(|&(u, v)| (v, u)).unzip();
        let b = Graph::builder().nodes("a", 5).nodes("b", 4).edges(("a", "r", "b"), src, dst).edges(("b", "s", "a"), back_src, back_dst);
        let g = with_ids(b.edges(("a", "t", "a"), vec![0, 1], vec![1, 2]).build().unwrap());
        prop_assume!(counts(&raw).len() >= 4);
        let how = RandomLinkSplit::new().with_val(0.25).with_test(2).with_neg_sampling_ratio(0.0);
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

    /// Negatives are distinct, are not edges of the whole graph or self loops, and have the requested number.
    #[test]
    fn negatives_are_no_edges(raw in prop::collection::vec((0u32..12, 0u32..12), 5..30), train: bool, seed: u64) {
        let (src, dst): (Vec<u32>, Vec<u32>) = raw.iter().copied().unzip();
        let g = Graph::homogeneous(12, src, dst).unwrap();
        prop_assume!(counts(&raw).len() >= 4);
        let how = RandomLinkSplit::new().with_val(2).with_test(1).with_neg_sampling_ratio(1.5);
        let how = if train { how } else { how.without_negative_train_samples() };
        let s = how.split(&g, seed).unwrap();
        let edges: BTreeSet<(u32, u32)> = pairs(&g.relations()[0]).into_iter().collect();
        let all: Pairs = parts(&s).iter().flat_map(|p| negatives(p, 0)).collect();
        prop_assert!(all.iter().all(|p| !edges.contains(p) && p.0 != p.1));
        prop_assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        let [of_train, val, test] = parts(&s).map(|p| predicted(p, 0).len());
        let of_train = if train { of_train * 3 / 2 } else { 0 };
        prop_assert_eq!(parts(&s).map(|p| negatives(p, 0).len()), [of_train, val * 3 / 2, test * 3 / 2]);
        let (u, v, labels) = s.val.links[0].labelled();
        prop_assert_eq!((u.len(), v.len()), (labels.len(), labels.len()));
        prop_assert_eq!(labels, [vec![1.; val], vec![0.; val * 3 / 2]].concat());
    }

    /// Negatives of an undirected graph are distinct unordered pairs without an edge in either direction.
    #[test]
    fn undirected_negatives_are_pairs(raw in prop::collection::vec((0u32..12, 0u32..12), 5..30), seed: u64) {
        let both = || raw.iter().flat_map(|&(u, v)| [(u, v), (v, u)]).filter(|(u, v)| u != v);
        let (src, dst): (Vec<u32>, Vec<u32>) = both().unzip();
        let edges: BTreeSet<(u32, u32)> = both().collect();
        prop_assume!(edges.len() >= 6);
        let g = Graph::homogeneous(12, src, dst).unwrap();
        let s = RandomLinkSplit::new().undirected().with_val(1).with_test(1).split(&g, seed).unwrap();
        let all: Pairs = parts(&s).iter().flat_map(|p| negatives(p, 0)).collect();
        prop_assert!(all.iter().all(|p| p.0 < p.1 && !edges.contains(p)));
        prop_assert_eq!(counts(&all).len(), all.len());
        prop_assert!(parts(&s).iter().all(|p| negatives(p, 0).len() == predicted(p, 0).len()));
    }
}

/// A path of four nodes has three pairs without an edge: with any seed, each part gets one, and a fourth is an error.
#[test]
fn all_undirected_pairs_without_an_edge() {
    let g = Graph::homogeneous(4, vec![0, 1, 1, 2, 2, 3], vec![1, 0, 2, 1, 3, 2]).unwrap();
    let how = RandomLinkSplit::new().undirected().with_val(1).with_test(1);
    for seed in 0..200 {
        let s = how.split(&g, seed).unwrap();
        let mut all: Pairs = parts(&s).iter().flat_map(|p| negatives(p, 0)).collect();
        all.sort_unstable();
        assert_eq!(all, [(0, 2), (0, 3), (1, 3)]);
        assert_eq!(parts(&s).map(|p| negatives(p, 0).len()), [1, 1, 1]);
    }
    let e = how.with_neg_sampling_ratio(2.0).split(&g, 0).unwrap_err().to_string();
    assert!(e.ends_with("at most 3 pairs without an edge of `_N:_E:_N`, got 6"), "{e}");
}

/// Counts are numbers of pairs, and parallel edges are in the same part.
#[test]
fn parallel_edges_stay_together() {
    let g = Graph::homogeneous(8, vec![0, 2, 0, 4, 0, 6], vec![1, 3, 1, 5, 1, 7]).unwrap();
    let mut in_test = 0;
    for seed in 0..40 {
        let s = RandomLinkSplit::new().with_val(1).with_test(1).split(&g, seed).unwrap();
        for p in parts(&s) {
            let ids = &p.links[0].edge_ids;
            assert!([0, 2, 4].iter().filter(|e| ids.contains(e)).count() % 3 == 0, "{ids:?}");
        }
        assert!(hides_its_pairs(&s.test, 0, false));
        in_test += usize::from(s.test.links[0].edge_ids == [0, 2, 4]);
    }
    assert!(in_test > 0);
}

#[test]
fn all_edges_are_equally_likely() {
    // Over 1,000 seeds, each of 10 edges is a test edge about 200 times. The bound is five standard deviations.
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
fn errors_name_argument_and_bound() {
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
        new().with_test(0.9),
        &ring(10),
        "fewer than the 10 pairs with an edge of `_N:_E:_N` together, got 10",
    );
    refused(
        new(),
        &Graph::homogeneous(3, vec![], vec![]).unwrap(),
        "fewer than the 0 pairs with an edge of `_N:_E:_N` together, got 0",
    );
    refused(
        new().with_disjoint_train(1.0),
        &ring(10),
        "fewer than the 7 training pairs of `_N:_E:_N`, got 7",
    );
    refused(new().with_val(11), &ring(10), "`val`: expected at most 10, got 11");
    refused(
        new().with_val(usize::MAX).with_test(usize::MAX),
        &ring(10),
        "`val`: expected at most 10, got 18446744073709551615",
    );
    refused(new().with_neg_sampling_ratio(-1.0), &ring(10), "a number in 0.0..=1e9, got -1");
    refused(new().undirected(), &ring(10), "got an edge between 0 and 1 in one direction only");
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
    refused(new(), &two, "expected the edge types to split, since the graph has 3, got none");
    let r = || new().with_edges(("a", "r", "b"));
    refused(
        r().undirected(),
        &two,
        "the reverse type of `a:r:b`, which connects two node types, got none",
    );
    refused(
        r().with_reverse(("b", "t", "b")),
        &two,
        "from its destinations to its sources, got `b:t:b`",
    );
    refused(
        r().with_reverse(("b", "s", "a")),
        &two,
        "`b:s:a` to contain exactly the reversed edges of `a:r:b`, got other edges",
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

#[test]
fn later_pairs_are_predicted_from_earlier_ones() {
    let n = 30u32;
    let g =
        Graph::homogeneous(30, (0..n).collect(), (0..n).map(|v| (v + 1) % n).collect()).unwrap();
    let times: Vec<i64> = (0..30).map(|e| (e * 7) % 30 / 3).collect();
    let how = RandomLinkSplit::new().with_val(4).with_test(6).with_disjoint_train(3);
    let split = how.with_order(LinkOrder::Time(times.clone())).split(&g, 0).unwrap();
    let of = |part: &LinkPart| -> Vec<i64> {
        part.links[0].edge_ids.iter().map(|&e| times[e as usize]).collect()
    };
    let (train, val, test) = (of(&split.train), of(&split.val), of(&split.test));
    let range = |t: &[i64]| (*t.iter().min().unwrap(), *t.iter().max().unwrap());
    // Three pairs per time: 20 pairs of training end within time 6, whose pairs all go there.
    assert_eq!((range(&train), range(&val), range(&test)), ((6, 6), (7, 7), (8, 9)));
    assert_eq!(split.train.graph.total_edges() + train.len(), 21);
    let e = RandomLinkSplit::new().with_order(LinkOrder::Time(vec![1])).split(&g, 0).unwrap_err();
    assert!(e.to_string().contains("30 times, one per edge of `_N:_E:_N`, got 1"), "{e}");
}

#[test]
fn pairs_of_low_degree_are_predicted() {
    // A clique of four, and a path.
    let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (4, 5), (5, 6)];
    let (src, dst) = pairs.iter().copied().unzip();
    let g = Graph::homogeneous(7, src, dst).unwrap();
    let how = RandomLinkSplit::new().with_val(0).with_test(2).with_order(LinkOrder::Degree);
    assert_eq!(how.split(&g, 3).unwrap().test.links[0].edge_ids, [6, 7]);
    // One of the path is predicted; the disjoint pair is the other one.
    let split = how.with_test(1).with_disjoint_train(1).split(&g, 3).unwrap();
    let mut of_path = [&split.train, &split.test].map(|part| part.links[0].edge_ids[0]);
    of_path.sort_unstable();
    assert_eq!((of_path, split.train.links[0].edge_ids.len()), ([6, 7], 1));
}

#[test]
fn unseen_nodes_have_a_context() {
    let n = 40u32;
    let (mut src, mut dst) = (vec![], vec![]);
    for e in 0..3 * n {
        let (u, v) = (e % n, (e % n + 1 + 4 * (e / n)) % n);
        src.extend([u, v]);
        dst.extend([v, u]);
    }
    let g = Graph::homogeneous(40, src, dst).unwrap();
    let how = InductiveLinkSplit::new().with_val(4).with_test(6).with_context(0.5).undirected();
    let split = how.split(&g, 5).unwrap();
    let nodes = |part: &LinkPart| -> std::collections::BTreeSet<u32> {
        let r = &part.graph.relations()[0];
        r.src().iter().chain(r.dst()).copied().collect()
    };
    let seen = nodes(&split.train);
    assert!(seen.len() <= 30);
    for part in [&split.val, &split.test] {
        let links = &part.links[0];
        assert!(!links.src.is_empty() && links.negative_src.len() == links.src.len());
        for (u, v) in links.src.iter().zip(&links.dst) {
            assert!(u < v && (!seen.contains(u) || !seen.contains(v)));
        }
        // No predicted edge carries messages, in neither direction.
        let r = &part.graph.relations()[0];
        let messages: Vec<(u32, u32)> =
            r.src().iter().copied().zip(r.dst().iter().copied()).collect();
        assert!(
            links
                .src
                .iter()
                .zip(&links.dst)
                .all(|(u, v)| !messages.contains(&(*u, *v)) && !messages.contains(&(*v, *u)))
        );
        assert!(nodes(part).len() > seen.len(), "unseen nodes have a context");
    }
    assert!(InductiveLinkSplit::new().with_val(40).split(&g, 0).is_err());
}

#[test]
fn parallel_edges_of_unseen_nodes_stay_together() {
    let n = 30u32;
    // Every pair three times.
    let pairs = (0..3 * 90u32).map(|e| (e % 90 % n, (e % 90 % n + 1 + e % 90 / n) % n));
    let (src, dst) = pairs.unzip();
    let g = Graph::homogeneous(30, src, dst).unwrap();
    for seed in 0..5 {
        let split = InductiveLinkSplit::new().with_context(0.5).split(&g, seed).unwrap();
        for part in [&split.val, &split.test] {
            let (r, links) = (&part.graph.relations()[0], &part.links[0]);
            let messages: Vec<(u32, u32)> =
                r.src().iter().copied().zip(r.dst().iter().copied()).collect();
            assert!(!links.src.is_empty() && links.src.len().is_multiple_of(3));
            let predicted = links.src.iter().copied().zip(links.dst.iter().copied());
            assert!(predicted.into_iter().all(|pair| !messages.contains(&pair)), "seed {seed}");
        }
    }
}
