//! What every batch must be, whatever was drawn.

use std::sync::Arc;

use burn_gnn_graph::{Graph, GraphError, OriginalIds, Relabel, Relation, Subgraph};
use burn_gnn_sampling::{
    BatchGraphInfo, Block, Fanouts, HeteroLinkSampler, MiniBatch, NeighborSampler, SampleKey,
    SampleNeighbors, Strategy, ToBlock,
};
use burn_gnn_testutil::apply_if;
use proptest::prelude::*;

use crate::common::{skewed, typed};

/// Edges exist, degrees respect fan-outs, draws without replacement differ, blocks chain, ids line up.
fn check(g: &Graph, batch: &MiniBatch, fanouts: &[i64], replace: bool, seeds: &[Vec<u32>]) {
    let hops = fanouts.len();
    assert_eq!(batch.blocks.len(), hops);
    for (t, ids) in seeds.iter().enumerate() {
        let rows: Vec<u32> =
            batch.seeds[t].iter().map(|&r| batch.output_nodes(t)[r as usize]).collect();
        assert_eq!(&rows, ids, "seeds of type {t}");
    }
    for (i, block) in batch.blocks.iter().enumerate() {
        let fanout = fanouts[hops - 1 - i];
        for t in 0..g.node_counts().len() {
            let (src, dst) = (block.src_nodes(t), block.dst_nodes(t));
            assert_eq!(&src[..dst.len()], dst, "destinations come first");
            if batch.roots.is_none() {
                let mut once = src.to_vec();
                once.sort_unstable();
                once.dedup();
                assert_eq!(once.len(), src.len(), "a node has one row");
            }
            if let Some(next) = batch.blocks.get(i + 1) {
                assert_eq!(dst, next.src_nodes(t), "blocks chain");
            }
        }
        for (t, r) in block.relations().iter().enumerate() {
            let ((s, d), whole) = (g.schema().endpoints(t), &g.relations()[t]);
            assert_eq!(
                (r.num_src(), r.num_dst()),
                (block.src_nodes(s).len(), block.dst_nodes(d).len())
            );
            assert_eq!(block.edge_ids(t).len(), r.num_edges());
            assert!(r.dst().is_sorted());
            for (e, &id) in block.edge_ids(t).iter().enumerate() {
                assert_eq!(whole.src()[id as usize], block.src_nodes(s)[r.src()[e] as usize]);
                assert_eq!(whole.dst()[id as usize], block.dst_nodes(d)[r.dst()[e] as usize]);
            }
            for (v, found) in r.in_degrees().enumerate() {
                let degree = whole.csc().row(block.dst_nodes(d)[v] as usize).len() as i64;
                let expected = match (fanout, replace) {
                    (-1, _) => degree,
                    (k, true) => {
                        if degree == 0 {
                            0
                        } else {
                            k
                        }
                    }
                    (k, false) => k.min(degree),
                };
                assert_eq!(i64::from(found), expected, "edges of destination {v}");
                let ids = &block.edge_ids(t)[r.csc().row(v)];
                assert!(
                    ids.is_sorted() && (replace || ids.windows(2).all(|w| w[0] < w[1])),
                    "{ids:?}"
                );
            }
            // The layout that kernels read is the one that edges make.
            let again = burn_gnn_graph::Relation::from_coo(
                r.num_src(),
                r.num_dst(),
                r.src().to_vec(),
                r.dst().to_vec(),
            )
            .unwrap();
            assert_eq!(again.csc(), r.csc());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn batches_are_what_they_promise(seed in any::<u64>(), hops in proptest::collection::vec(-1i64..7, 1..4), replace: bool, many: bool) {
        let fanouts = hops;
        let g = typed(60, 25, seed);
        let seeds = vec![if many { vec![3, 0, 3, 24] } else { vec![] }, vec![5, 59, 0, 5]];
        let named = || [("author", &seeds[0]), ("paper", &seeds[1])];
        let sampler = apply_if(replace, NeighborSampler::new(&g, &fanouts[..]).unwrap(), |s| s.with_replacement().unwrap());
        // The second batch comes out of used memory.
        for step in 0..2 {
            let batch = sampler.sample(named(), SampleKey::new(seed).at(0, step)).unwrap();
            check(&g, &batch, &fanouts, replace, &seeds);
        }
        let labor = NeighborSampler::new(&g, &fanouts[..]).unwrap().with_strategy(Strategy::Labor { layer_dependent: many }).unwrap();
        check(&g, &labor.sample(named(), SampleKey::new(seed)).unwrap(), &fanouts, false, &seeds);
        let disjoint = sampler.clone().with_disjoint();
        let batch = disjoint.sample(named(), SampleKey::new(seed)).unwrap();
        check(&g, &batch, &fanouts, replace, &seeds);
        let roots = batch.roots.unwrap();
        for b in &batch.blocks {
            for (t, r) in b.relations().iter().enumerate() {
                let (s, d) = g.schema().endpoints(t);
                let alike = r.src().iter().zip(r.dst()).all(|(&u, &v)| roots[s][u as usize] == roots[d][v as usize]);
                prop_assert!(alike, "an edge joins two trees");
            }
        }
    }
}

#[test]
fn isolated_seeds_and_no_seeds_stay() {
    let g = Graph::homogeneous(4, vec![1], vec![2]).unwrap();
    let sampler = NeighborSampler::new(&g, [3, 3]).unwrap();
    let batch = sampler.sample([("_N", [3, 0])], SampleKey::new(0)).unwrap();
    assert_eq!(
        (batch.input_nodes(0), batch.output_nodes(0), batch.total_edges()),
        (&[3, 0][..], &[3, 0][..], 0)
    );
    let none = sampler.sample([("_N", [])], SampleKey::new(0)).unwrap();
    assert_eq!((none.input_nodes(0).len(), none.blocks.len()), (0, 2));
    let whole = NeighborSampler::new(&g, Fanouts::all(0))
        .unwrap()
        .sample([("_N", [3])], SampleKey::new(0))
        .unwrap();
    assert!(whole.blocks.is_empty());
}

#[test]
fn the_frontier_and_its_block_equal_the_fused_pass() {
    let g = typed(200, 80, 3);
    let seeds = [("paper", vec![7, 199, 0, 31]), ("author", vec![2, 79])];
    for fanout in [-1, 0, 2, 5] {
        let key = SampleKey::new(4);
        let fused = NeighborSampler::new(&g, [fanout]).unwrap().sample(seeds.clone(), key).unwrap();
        let frontier = g.sample_neighbors(seeds.clone(), [fanout], key).unwrap();
        assert_eq!(frontier.graph.node_counts(), g.node_counts());
        let block = frontier.to_block(&g, seeds.clone()).unwrap();
        for t in 0..2 {
            assert_eq!(
                (block.src_nodes(t), block.dst_nodes(t)),
                (fused.blocks[0].src_nodes(t), fused.blocks[0].dst_nodes(t))
            );
        }
        assert_eq!(block.relations(), fused.blocks[0].relations());
        for t in 0..3 {
            assert_eq!(block.original_edge_ids(t), fused.blocks[0].original_edge_ids(t));
            assert_eq!(block.in_degrees(t), fused.blocks[0].in_degrees(t));
            assert_eq!(block.out_degrees(t), fused.blocks[0].out_degrees(t));
            assert_eq!(block.total_edges_of(t), g.relations()[t].num_edges() as u64);
        }
        if fanout == -1 {
            let all = g.in_subgraph(seeds.clone(), Relabel::No).unwrap();
            assert_eq!(all.graph.relations(), frontier.graph.relations());
        }
    }
    // What another library gives for 1 -> 2, 2 -> 3 and destinations [3, 2].
    let path = Graph::homogeneous(4, vec![1, 2], vec![2, 3]).unwrap();
    let sub = path.edge_subgraph([("_E", [0, 1])], Relabel::No).unwrap();
    assert_eq!(sub.to_block(&path, [("_N", [3, 2])]).unwrap().src_nodes(0), [3, 2, 1]);
    let e = sub.to_block(&path, [("_N", [3])]).unwrap_err().to_string();
    assert_eq!(
        e,
        "`dst`: expected the destinations of all edges of `_N:_E:_N`, got no 2, where edge 0 ends"
    );
    assert!(sub.to_block(&path, [("_N", [3, 2, 3])]).is_err());
}

#[test]
fn degrees_of_a_block_are_those_of_the_whole_graph_however_it_was_made() {
    let g = skewed(60, 900, 4);
    let r = g.relation("_E").unwrap();
    let (into, out): (Vec<u32>, Vec<u32>) = (r.in_degrees().collect(), r.out_degrees().collect());
    let dst = [("_N", [5, 40, 8])];
    let (key, nodes) = (SampleKey::new(2), (0..50).collect::<Vec<u32>>());
    // Nodes of a subgraph have other numbers.
    let part = g
        .node_subgraph([("_N", nodes.into_iter().rev().collect::<Vec<u32>>())], Relabel::Yes)
        .unwrap();
    let inner = part.graph.in_subgraph([("_N", [5, 40, 8])], Relabel::No).unwrap();
    let of_part = Subgraph {
        edge_ids: vec![of(&inner.edge_ids[0], &part.edge_ids[0])],
        node_ids: part.node_ids.clone(),
        graph: inner.graph,
    };
    let blocks = [
        NeighborSampler::new(&g, [3]).unwrap().sample(dst, key).unwrap().blocks.remove(0),
        g.sample_neighbors(dst, [3], key).unwrap().to_block(&g, dst).unwrap(),
        g.in_subgraph(dst, Relabel::No).unwrap().to_block(&g, dst).unwrap(),
        of_part.to_block(&g, dst).unwrap(),
    ];
    for (i, b) in blocks.iter().enumerate() {
        let degrees = |of: &[u32], rows: usize| {
            b.original_ids(0)[..rows].iter().map(|&v| of[v as usize]).collect::<Vec<_>>()
        };
        assert_eq!(b.in_degrees(0), degrees(&into, 3), "block {i}");
        assert_eq!(b.out_degrees(0), degrees(&out, b.src_nodes(0).len()), "block {i}");
        assert_eq!(b.src_in_degrees(0), Some(degrees(&into, b.src_nodes(0).len())), "block {i}");
        assert_eq!((b.total_nodes(0), b.total_edges_of(0)), (60, 900), "block {i}");
    }
    assert!(
        blocks[1].relation("_E").unwrap().in_degrees().ne(blocks[1].in_degrees(0)),
        "more edges than were sampled"
    );
    // Another graph than the one that the subgraph is of.
    let frontier = g.sample_neighbors(dst, [3], key).unwrap();
    for other in [skewed(60, 900, 5), skewed(60, 9, 4), skewed(40, 900, 4), typed(10, 5, 1)] {
        let e = frontier.to_block(&other, dst).unwrap_err();
        assert!(matches!(e, GraphError::Setting { arg: "whole", .. }), "{e}");
    }
}

/// Original ids of original ids.
fn of(ids: &OriginalIds, before: &OriginalIds) -> OriginalIds {
    OriginalIds::from_vec(ids.to_vec().into_iter().map(|e| before.get(e as usize)).collect())
}

#[test]
fn excluded_and_masked_edges_are_never_drawn_and_leave_the_fanout() {
    let g = skewed(300, 6000, 1);
    let r = g.relation("_E").unwrap();
    let seeds: Vec<u32> = (0..300).collect();
    let excluded: Vec<u32> = (0..6000).filter(|e| e % 3 == 0).collect();
    let mask: Vec<bool> = (0..6000).map(|e| e % 3 != 0).collect();
    for replace in [false, true] {
        for strategy in [Strategy::Uniform, Strategy::InDegree] {
            let plain = NeighborSampler::new(&g, [4, 3]).unwrap();
            let plain = apply_if(replace, plain, |s| s.with_replacement().unwrap())
                .with_strategy(strategy)
                .unwrap();
            let a = plain
                .sample_excluding([("_N", &seeds)], [("_E", &excluded)], SampleKey::new(2))
                .unwrap();
            let b = plain
                .clone()
                .with_mask("_E", &mask)
                .unwrap()
                .sample([("_N", &seeds)], SampleKey::new(2))
                .unwrap();
            for (a, b) in a.blocks.iter().zip(&b.blocks) {
                assert_eq!((a.edge_ids(0), a.src_nodes(0)), (b.edge_ids(0), b.src_nodes(0)));
                assert!(a.edge_ids(0).iter().all(|e| e % 3 != 0));
            }
            for (v, found) in a.blocks[1].relations()[0].in_degrees().enumerate() {
                let left =
                    r.csc().row(v).filter(|&p| !r.csc().edge_id(p).is_multiple_of(3)).count();
                let expected = if replace && left > 0 { 4 } else { left.min(4) };
                assert_eq!(found as usize, expected, "destination {v}");
            }
        }
    }
}

#[test]
fn top_latest_and_times() {
    // Edges 0..6 into node 0 from 1..=6; weights and times tell them apart.
    let g = Graph::homogeneous(7, vec![1, 2, 3, 4, 5, 6], vec![0; 6]).unwrap();
    let (weights, times) =
        ([2.0, 0.0, 5.0, 2.0, 1.0, 2.0], [30, 10, i64::MIN, 20, 20, i64::MAX - 1]);
    let plain = |k| NeighborSampler::new(&g, [k]).unwrap();
    let with = |k| plain(k).with_times("_E", &times).unwrap();
    let top = |k| {
        let s = plain(k).with_weights("_E", &weights).unwrap();
        let s = s.with_strategy(Strategy::TopK).unwrap();
        s.sample([("_N", [0])], SampleKey::new(1)).unwrap().blocks[0].edge_ids(0).to_vec()
    };
    assert_eq!(
        (top(1), top(3), top(-1)),
        (vec![2], vec![0, 2, 3], vec![0, 2, 3, 4, 5]),
        "weight 0 is never taken, ties by edge id"
    );
    let before = |s: NeighborSampler, t: i64| {
        s.sample_before([("_N", [0], [t])], SampleKey::new(1)).unwrap().blocks[0]
            .edge_ids(0)
            .to_vec()
    };
    let latest = |k| before(with(k).with_strategy(Strategy::Latest).unwrap(), i64::MAX);
    assert_eq!((latest(1), latest(2)), (vec![5], vec![0, 5]));
    assert_eq!((latest(3), latest(4)), (vec![0, 4, 5], vec![0, 3, 4, 5]), "ties by later edge id");
    assert_eq!(before(with(-1), 20), [1, 2], "strictly before");
    assert_eq!(before(with(2).with_strategy(Strategy::Latest).unwrap(), 30), [3, 4]);
    assert_eq!(before(with(-1), i64::MIN), [0; 0]);
    // Every hop is bound by the time of the seed, so one node has other neighbours in another tree.
    let path = Graph::homogeneous(3, vec![2, 1], vec![1, 0]).unwrap();
    let s = NeighborSampler::new(&path, [-1, -1]).unwrap().with_times("_E", &[5, 1]).unwrap();
    let batch = s.sample_before([("_N", [0, 0], [3, 9])], SampleKey::new(1)).unwrap();
    assert_eq!((batch.output_nodes(0), batch.input_nodes(0)), (&[0, 0][..], &[0, 0, 1, 1, 2][..]));
    assert_eq!(batch.roots.unwrap()[0], [0, 1, 0, 1, 1]);
}

#[test]
fn labor_meets_fewer_nodes() {
    let g = skewed(2_000, 60_000, 5);
    let seeds: Vec<u32> = (0..500).collect();
    let met = |s| {
        let s = NeighborSampler::new(&g, [8, 8]).unwrap().with_strategy(s).unwrap();
        let batch = s.sample([("_N", &seeds)], SampleKey::new(1)).unwrap();
        (batch.input_nodes(0).len(), batch.blocks[1].src_nodes(0).len())
    };
    let (uniform, labor) =
        (met(Strategy::Uniform), met(Strategy::Labor { layer_dependent: false }));
    let dependent = met(Strategy::Labor { layer_dependent: true });
    assert!(labor.1 * 10 < uniform.1 * 9, "{uniform:?} {labor:?}");
    assert!(dependent.0 < labor.0, "{labor:?} {dependent:?}");
}

/// Sizes, relations and original edge ids of a block.
type Parts = (Vec<usize>, Vec<usize>, Vec<Relation>, Vec<Arc<[u64]>>);

/// Hops one by one are the batch, and a block of a batch's parts is the block.
#[test]
fn hops_and_blocks_can_be_put_together() {
    let g = typed(300, 90, 5);
    let sampler = NeighborSampler::new(&g, [4, -1, 2]).unwrap().with_replacement().unwrap();
    let key = SampleKey::new(3).at(1, 8);
    let batch = sampler.sample([("paper", (0..40).collect::<Vec<u32>>())], key).unwrap();
    let types = 0..g.node_counts().len();
    let all = |t: usize| batch.input_nodes(t);
    let originals = types.clone().map(|t| all(t).iter().map(|&v| u64::from(v)).collect()).collect();
    let totals = (
        g.node_counts().iter().map(|&n| n as u64).collect::<Vec<_>>(),
        g.relations().iter().map(|r| r.num_edges() as u64).collect::<Vec<_>>(),
    );
    let degrees = |of: fn(&Graph, usize, &[u32]) -> Vec<u32>,
                   side: fn((usize, usize)) -> usize|
     -> Vec<Vec<u32>> {
        (0..g.relations().len()).map(|e| of(&g, e, all(side(g.schema().endpoints(e))))).collect()
    };
    let in_degrees = degrees(|g, e, ids| g.in_degrees(e, ids).unwrap(), |endpoints| endpoints.1);
    let out_degrees = degrees(|g, e, ids| g.out_degrees(e, ids).unwrap(), |endpoints| endpoints.0);
    let facts =
        BatchGraphInfo::new(g.schema(), totals.clone(), originals, (in_degrees, out_degrees))
            .unwrap();
    for (i, block) in batch.blocks.iter().enumerate() {
        let one = sampler.only_hop(2 - i).unwrap();
        assert_eq!(one.hops(), 1);
        let seeds = types.clone().map(|t| (g.schema().ntypes()[t].as_str(), block.dst_nodes(t)));
        let again = one.sample(seeds, key).unwrap().blocks.remove(0);
        let parts = || -> Parts {
            let count = |f: fn(&Block, usize) -> usize| {
                types.clone().map(|t| f(block, t)).collect::<Vec<_>>()
            };
            let edges = (0..g.relations().len())
                .map(|e| block.original_edge_ids(e).clone())
                .collect::<Vec<_>>();
            (
                count(|b, t| b.src_nodes(t).len()),
                count(|b, t| b.dst_nodes(t).len()),
                block.relations().to_vec(),
                edges,
            )
        };
        let (src, dst, relations, edges) = parts();
        let built = Block::from_parts(&facts, src, dst, relations, edges).unwrap();
        assert!(
            (0..g.relations().len()).all(|e| built.src_in_degrees(e) == block.src_in_degrees(e))
        );
        for b in [&again, &built] {
            for e in 0..g.relations().len() {
                assert_eq!(b.original_edge_ids(e), block.original_edge_ids(e));
                assert_eq!(b.relations()[e].src(), block.relations()[e].src());
                assert_eq!(
                    (b.in_degrees(e), b.out_degrees(e)),
                    (block.in_degrees(e), block.out_degrees(e))
                );
                assert_eq!(b.total_edges_of(e), g.relations()[e].num_edges() as u64);
            }
            for t in types.clone() {
                assert_eq!(b.original_ids(t), block.original_ids(t));
                assert_eq!(b.total_nodes(t), g.node_counts()[t] as u64);
            }
        }
        // Ids of a built block are those of its own graph.
        let own = built.graph();
        for (e, r) in own.relations().iter().enumerate() {
            assert_eq!(
                (r.src(), r.dst()),
                (built.relations()[e].src(), built.relations()[e].dst())
            );
            assert!(built.edge_ids(e).iter().copied().eq(0..r.num_edges() as u32));
        }
        assert_eq!(built.to_frontier().unwrap().graph.total_edges(), built.total_edges());

        let refused = |f: &dyn Fn(&mut Parts)| {
            let mut p = parts();
            f(&mut p);
            Block::from_parts(&facts, p.0, p.1, p.2, p.3).map(drop).unwrap_err().to_string()
        };
        assert!(refused(&|p| p.0.truncate(1)).contains("`num_src`: expected length 2"));
        assert!(refused(&|p| p.0[1] += 100_000).contains("`num_src`: expected at most"));
        assert!(refused(&|p| p.1[1] = p.0[1] + 1).contains("the destinations among them"));
        assert!(refused(&|p| p.2.truncate(1)).contains("`relations`"));
        assert!(refused(&|p| p.3[0] = Arc::new([])).contains("one per edge"));
        assert!(
            refused(&|p| p.2[0] =
                Relation::from_coo(1, 1, vec![0; p.3[0].len()], vec![0; p.3[0].len()]).unwrap())
            .contains("to join")
        );
    }
    assert!(sampler.only_hop(3).is_err() && sampler.only_hop(1).unwrap().only_hop(1).is_err());
    let none = || (vec![vec![]; 3], vec![vec![]; 3]);
    assert!(BatchGraphInfo::new(g.schema(), totals.clone(), vec![vec![]; 1], none()).is_err());
    assert!(
        BatchGraphInfo::new(g.schema(), totals.clone(), vec![vec![0]; 2], none()).is_err(),
        "no out-degrees"
    );
    assert!(BatchGraphInfo::new(g.schema(), (totals.0, vec![]), vec![vec![]; 2], none()).is_err());
}

/// Settings and samples of very many edge types take time in proportion to their number.
#[test]
fn twenty_thousand_edge_types() {
    let n = 20_000;
    let builder = (0..n).fold(Graph::builder().nodes("hub", 1), |b, i| {
        b.edges((&*format!("n{i}"), &*format!("r{i}"), "hub"), vec![0], vec![0])
    });
    let g = builder.build().unwrap();
    let names: Vec<String> = (0..n).map(|i| format!("r{i}")).collect();
    let fanouts = Fanouts::per_relation(names.iter().map(|name| (name.as_str(), [1])));
    let mut sampler = NeighborSampler::new(&g, fanouts).unwrap();
    for name in &names {
        sampler = sampler.with_weights(name.as_str(), &[1.0]).unwrap();
    }
    let batch = sampler.sample([("hub", [0])], SampleKey::new(0)).unwrap();
    assert_eq!(batch.total_edges(), n);
    assert!((0..n).all(|i| batch.input_nodes(&*format!("n{i}")) == [0]));
    let links = names[..2000].iter().fold(HeteroLinkSampler::new(sampler), |links, name| {
        links.with_type(name.as_str(), Ok).unwrap()
    });
    let batch = links.sample([("r7", [0])], SampleKey::new(0)).unwrap();
    assert_eq!(batch.batch.total_edges(), n - 1);
}
