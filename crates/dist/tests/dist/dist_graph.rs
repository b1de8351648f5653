//! Features, structure and ids of a partitioned graph from any rank.

use burn::tensor::{DType, Tensor};
use burn_gnn_dist::{
    Communicator, DistError, DistGraph, DistTensor, Failure, Metered, PartitionedGraph, SplitBy,
    SplitOf, run_ranks,
};
use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_ops::Stream;
use proptest::prelude::*;

use crate::graphs::{Sizes, devices, kept, random, rows, scattered, sizes};
use crate::ranks::{self, Wire};

const SOME: Sizes = Sizes { nodes: [20, 12, 5], edges: [60, 40, 30, 10, 8] };

/// Runs `f` on a rank per part.
pub(crate) fn on_ranks<R: Wire + Send>(
    parts: &PartitionedGraph,
    f: impl Fn(&DistGraph) -> Result<R, DistError> + Sync,
) -> Vec<R> {
    ranks::run(parts.book().num_parts(), |comm| {
        f(&DistGraph::from_partition(parts.part(comm.rank())?, comm)?)
    })
}

/// Random ids in `0..n` with repeats, different ones on each rank, and none on every third rank.
fn picks(rank: usize, n: u64, seed: u64) -> Vec<u64> {
    let s = Stream::new(seed, "picks", rank as u64);
    if n == 0 || rank % 3 == 2 {
        vec![]
    } else {
        (0..25).map(|i| (s.uniform(i, 0) * n as f64) as u64).collect()
    }
}

/// Compares what ranks read by type-wise id with the input graph, for all nodes and edges.
pub(crate) fn agrees(g: &Graph, parts: &PartitionedGraph, ranks: usize, seed: u64) {
    for (name, device) in devices() {
        ranks::run(ranks, |comm| {
            // Several ranks per part if it has several trainers.
            let part = parts.part(comm.rank() * parts.book().num_parts() / ranks)?;
            let d = DistGraph::from_partition(part, comm)?.with_device(&device);
            let rank = d.comm().rank();
            assert_eq!((d.name(), d.ntypes().len(), d.etypes()), ("g", 3, g.schema().etypes()));
            for (t, ntype) in g.schema().ntypes().iter().enumerate() {
                let n = g.node_counts()[t] as u64;
                assert_eq!(d.num_nodes(ntype)?, n);
                let ids = picks(rank, n, seed);
                let old: Vec<u32> =
                    ids.iter().map(|&i| parts.original_nids(t)[i as usize]).collect();
                let wide: Vec<u64> = old.iter().map(|&i| u64::from(i)).collect();
                assert_eq!(d.original_nodes(ntype, &ids)?, wide);
                assert_eq!(d.find_nodes(ntype, &wide)?, ids);
                let feat = d.nodes(ntype).data("feat").gather::<2>(&ids)?;
                assert_eq!(feat.dims(), [ids.len(), 3]);
                let expected = g.node_frames()[t].column("feat").unwrap().select(&old).to_data();
                assert_eq!(
                    feat.into_data().iter::<f32>().collect::<Vec<_>>(),
                    expected.iter::<f32>().collect::<Vec<_>>(),
                    "{name}"
                );
                let label = d.nodes(ntype).data("label").gather_int::<1>(&ids)?.into_data();
                assert_eq!(
                    label.iter::<i64>().collect::<Vec<_>>(),
                    wide.iter().map(|i| (i * 7 % 5) as i64).collect::<Vec<_>>()
                );
            }
            for (e, etype) in g.schema().etypes().iter().enumerate() {
                let (r, (s, t)) = (&g.relations()[e], g.schema().endpoints(e));
                assert_eq!(d.num_edges(etype.clone())?, r.num_edges() as u64);
                let ids = picks(rank, r.num_edges() as u64, seed + 1);
                let old: Vec<u32> =
                    ids.iter().map(|&i| parts.original_eids(e)[i as usize]).collect();
                let (u, v) = d.find_edges(e, &ids)?;
                let endpoints = |new: &[u64], t: usize| {
                    new.iter().map(|&i| parts.original_nids(t)[i as usize]).collect::<Vec<_>>()
                };
                assert_eq!(
                    endpoints(&u, s),
                    old.iter().map(|&i| r.src()[i as usize]).collect::<Vec<_>>()
                );
                assert_eq!(
                    endpoints(&v, t),
                    old.iter().map(|&i| r.dst()[i as usize]).collect::<Vec<_>>()
                );
                let w = d.edges(etype.clone()).data("w").gather::<1>(&ids)?.into_data();
                let expected = g.edge_frames()[e].column("w").unwrap().select(&old).to_data();
                assert_eq!(
                    w.iter::<f32>().collect::<Vec<_>>(),
                    expected.iter::<f32>().collect::<Vec<_>>()
                );
                // The first of parallel edges.
                let found = d.edge_ids(e, &u, &v)?;
                let first = g.edge_ids(e, &endpoints(&u, s), &endpoints(&v, t)).unwrap();
                assert_eq!(
                    found.iter().map(|&i| parts.original_eids(e)[i as usize]).collect::<Vec<_>>(),
                    first
                );
                let nodes = picks(rank, r.num_dst() as u64, seed + 2);
                assert_eq!(
                    d.in_degrees(e, &nodes)?,
                    g.in_degrees(e, &endpoints(&nodes, t)).unwrap()
                );
                let nodes = picks(rank, r.num_src() as u64, seed + 2);
                assert_eq!(
                    d.out_degrees(e, &nodes)?,
                    g.out_degrees(e, &endpoints(&nodes, s)).unwrap()
                );
            }
            let nodes: Vec<Vec<u64>> =
                (0..3).map(|t| picks(rank, g.node_counts()[t] as u64, seed + 3)).collect();
            let into = d.in_subgraph(g.schema().ntypes().iter().zip(&nodes))?;
            for (e, found) in into.iter().enumerate() {
                let (s, t) = g.schema().endpoints(e);
                let old = |ids: &[u64], t: usize| {
                    ids.iter().map(|&i| parts.original_nids(t)[i as usize]).collect::<Vec<_>>()
                };
                let expected = g.in_edges(e, &old(&nodes[t], t)).unwrap();
                assert_eq!(old(&found.src, s), expected.src);
                assert_eq!(old(&found.dst, t), expected.dst);
                assert_eq!(
                    found
                        .ids
                        .iter()
                        .map(|&i| parts.original_eids(e)[i as usize])
                        .collect::<Vec<_>>(),
                    expected.ids
                );
            }
            Ok::<_, DistError>(())
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_rank_reads_the_graph(sizes in sizes(), parts in 1usize..5, seed in 0u64..1000, reshuffle: bool) {
        let g = random(seed, sizes);
        agrees(&g, &if reshuffle { scattered(&g, parts, seed) } else { kept(&g, parts, seed) }, parts, seed);
    }
}

/// The property above for two graphs, with and without reshuffling.
pub(crate) fn every_rank_reads_two_graphs(n: usize) {
    for seed in [3, 4] {
        let g = random(seed, SOME);
        agrees(&g, &scattered(&g, n, seed), n, seed);
        agrees(&g, &kept(&g, n, seed), n, seed);
    }
}

/// A graph opens only under its name, with and without reshuffling.
pub(crate) fn from_files_under_its_name(n: usize) {
    let g = random(3, SOME);
    for parts in [scattered(&g, n, 3), kept(&g, n, 3)] {
        let dir = ranks::shared_dir();
        let json = ranks::written(&parts, &dir);
        let feats = ranks::run(n, |comm| {
            let wrong =
                DistGraph::open("h", &json, comm.clone()).map(drop).unwrap_err().to_string();
            assert!(
                wrong.contains("`name`: expected the name of the graph in")
                    && wrong.ends_with("got `h`"),
                "{wrong}"
            );
            let d = DistGraph::open("g", &json, comm)?;
            let all: Vec<u64> = (0..d.num_nodes("a")?).collect();
            Ok::<_, DistError>(
                d.nodes("a")
                    .data("feat")
                    .gather::<2>(&all)?
                    .into_data()
                    .try_to_vec::<f32>()
                    .unwrap(),
            )
        });
        assert!(feats.iter().all(|f| *f == feats[0]));
    }
}

#[test]
fn another_number_of_ranks_than_parts() {
    let g = random(3, SOME);
    let dir = tempfile::tempdir().unwrap();
    let json = scattered(&g, 2, 3).write(dir.path()).unwrap();
    let fewer =
        run_ranks(1, |comm| DistGraph::open("g", &json, comm).map(drop)).unwrap_err().to_string();
    assert!(fewer.contains("rank 0 of 1 cannot take part 0 of 2"), "{fewer}");
    let more =
        run_ranks(3, |comm| DistGraph::open("g", &json, comm).map(drop)).unwrap_err().to_string();
    assert!(more.contains("of 3 cannot take part"), "{more}");
}

/// Own rows are not sent, and a remote row is sent once.
pub(crate) fn sent_rows(n: usize) {
    let g = random(3, SOME);
    let parts = scattered(&g, n, 3);
    ranks::run(n, |comm| {
        let comm = std::sync::Arc::new(Metered::new(comm));
        let d = DistGraph::from_partition(parts.part(comm.rank())?, comm.clone())?;
        let own: Vec<u64> = d.own_nodes("a")?;
        let of_other = if comm.rank() == 0 { own.last().map_or(0, |i| i + 1) } else { 0 };
        let bytes = |ids: &[u64]| {
            let before = comm.traffic();
            d.nodes("a").data("feat").gather::<2>(ids)?;
            let after = comm.traffic();
            Ok::<_, DistError>((
                after.calls - before.calls,
                after.bytes_received - before.bytes_received,
            ))
        };
        let (calls, nothing) = bytes(&[])?;
        assert_eq!(calls, 2);
        assert_eq!(bytes(&own)?.1, nothing);
        // The other rank sends a request of 4 bytes and a reply of 12, even if the row is requested several times.
        assert_eq!(bytes(&[of_other])?.1, nothing + 4 + 12);
        assert_eq!(bytes(&[of_other, own[0], of_other, of_other])?.1, nothing + 4 + 12);
        let counts = d.row_counts();
        assert_eq!(
            (counts.local, counts.remote, counts.remote_bytes),
            (own.len() as u64 + 1, 2, 24)
        );
        Ok::<_, DistError>(())
    });
}

/// `..` is accepted for every type argument if the graph has one node type and one edge type.
pub(crate) fn the_only_type(n: usize) {
    let device = devices()[0].1.clone().inner();
    let mut g = Graph::homogeneous(6, vec![0, 1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5, 0]).unwrap();
    g.nodes_mut(..)
        .unwrap()
        .insert("feat", rows("feat", &[0, 1, 2, 3, 4, 5], 2, DType::F32, &device))
        .unwrap();
    let parts = scattered(&g, n, 3);
    on_ranks(&parts, |d| {
        let (book, all) = (d.book(), [0, 1, 2, 3, 4, 5]);
        assert_eq!((book.num_nodes(..)?, book.num_edges(..)?), (6, 6));
        assert_eq!(book.nid2partid(.., &all)?, book.nid2partid("_N", &all)?);
        assert_eq!(book.map_to_homo_nid(.., 2)?, book.map_to_homo_nid(0, 2)?);
        assert_eq!(
            (d.num_nodes(..)?, d.num_edges(..)?, d.own_nodes(..)?),
            (6, 6, d.own_nodes("_N")?)
        );
        let same = |a: Tensor<2>, b: Tensor<2>| assert_eq!(a.into_data(), b.into_data());
        same(d.nodes(..).data("feat").gather(&all)?, d.nodes("_N").data("feat").gather(&all)?);
        assert_eq!(d.find_nodes(.., &d.original_nodes(.., &all)?)?, all);
        assert_eq!(d.in_subgraph([(.., all)])?, d.in_subgraph([("_N", all)])?);
        assert_eq!(
            d.feature_cache(.., "feat", 2)?.stats().rows,
            d.feature_cache("_N", "feat", 2)?.stats().rows
        );
        assert_eq!(
            d.node_split(.., SplitOf::All, SplitBy::Even)?.ids,
            d.node_split("_N", SplitOf::All, SplitBy::Even)?.ids
        );
        assert_eq!(
            (d.node_policy(..)?, d.edge_policy(..)?),
            (d.policy("node~_N")?, d.policy("edge~_N:_E:_N")?)
        );
        let ones = DistTensor::<f32>::new(d, "ones", &[6], Some(d.node_policy(..)?), |_, _| 1.0)?;
        assert_eq!(ones.get(&all)?, [1.0; 6]);
        Ok(())
    });
    let parts = scattered(&random(3, SOME), n, 3);
    on_ranks(&parts, |d| {
        let ambiguous = |e: DistError| {
            assert!(matches!(&e, DistError::Graph(GraphError::AmbiguousNodeType { .. })), "{e}")
        };
        ambiguous(d.num_nodes(..).unwrap_err());
        ambiguous(d.nodes(..).data("feat").gather::<2>(&[0]).unwrap_err());
        ambiguous(d.book().nid2partid(.., 0).unwrap_err());
        ambiguous(d.node_policy(..).unwrap_err());
        Ok(())
    });
}

/// The error of one rank is an error on all, in the same call, and the next call works.
pub(crate) fn errors_reach_every_rank(n: usize) {
    let g = random(3, SOME);
    let parts = scattered(&g, n, 3);
    on_ranks(&parts, |d| {
        let bad = d.comm().rank() == 1;
        let check = |got: Result<(), DistError>, text: &str, is: &dyn Fn(&DistError) -> bool| {
            let e = got.unwrap_err();
            if bad {
                assert!(is(&e) && e.to_string().contains(text), "{e:?}");
            } else {
                assert!(
                    matches!(&e, DistError::Rank(Failure { rank: 1, message }) if message.contains(text)),
                    "{e:?}"
                );
            }
            // All ranks are still synchronised.
            d.nodes("a").data("feat").gather::<2>(&[0]).map(drop)
        };
        let graph = |e: &DistError| matches!(e, DistError::Graph(_));
        let range = |e: &DistError| matches!(e, DistError::OutOfRange { .. });
        let gather = |ntype: &str, column: &str, id: u64| {
            d.nodes(ntype).data(column).gather::<2>(&[id]).map(drop)
        };
        check(gather(if bad { "x" } else { "a" }, "feat", 0), "unknown node type `x`", &graph)?;
        check(
            gather("a", if bad { "y" } else { "feat" }, 0),
            "nodes of `a`: no column `y`",
            &graph,
        )?;
        let outside = if bad { 20 } else { 0 };
        check(gather("a", "feat", outside), "node id of `a` 20 is out of range 0..20", &range)?;
        check(
            d.in_degrees(if bad { "nope" } else { "self" }, &[0]).map(drop),
            "unknown edge type `nope`",
            &graph,
        )?;
        check(d.in_degrees(if bad { "to" } else { "self" }, &[0]).map(drop), "ambiguous", &graph)?;
        check(d.out_degrees("self", &[outside]).map(drop), "out of range", &range)?;
        check(
            d.find_edges("self", &[if bad { 30 } else { 0 }]).map(drop),
            "edge id of `a:self:a` 30 is out of range 0..30",
            &range,
        )?;
        check(d.find_nodes("a", &[outside]).map(drop), "out of range", &range)?;
        check(d.original_nodes("a", &[outside]).map(drop), "out of range", &range)?;
        check(d.in_subgraph([("a", [outside])]).map(drop), "out of range", &range)?;
        check(
            d.edges(if bad { "none" } else { "self" })
                .data(if bad { "q" } else { "w" })
                .gather::<1>(&[])
                .map(drop),
            "no column `q`",
            &graph,
        )?;
        check(
            d.feature_cache("a", if bad { "q" } else { "feat" }, 3).map(drop),
            "no column `q`",
            &graph,
        )?;
        let (u, v) = d.find_edges("self", &[0])?;
        // No relation of this graph has an edge between the last nodes.
        let pair = if bad { ([19], [19]) } else { ([u[0]], [v[0]]) };
        let missing = d.edge_ids("self", &pair.0, &pair.1);
        if missing.is_err() {
            check(missing.map(drop), "there is no edge 19 -> 19", &|e| {
                matches!(e, DistError::NoSuchEdge { position: 0, .. })
            })?;
        }
        assert!(matches!(
            d.nodes("a").data("feat").gather::<3>(&[0]),
            Err(DistError::Graph(GraphError::ColumnType { .. }))
        ));
        assert!(matches!(
            d.nodes("a").data("feat").gather_int::<2>(&[0]),
            Err(DistError::Graph(GraphError::ColumnType { .. }))
        ));
        Ok(())
    });
}

/// Ranks that read different columns at the same time get an error.
pub(crate) fn different_calls_are_an_error(n: usize) {
    let g = random(3, SOME);
    let parts = scattered(&g, n, 3);
    on_ranks(&parts, |d| {
        let column = if d.comm().rank() == 0 { "label" } else { "trainer" };
        let e = d.nodes("a").data(column).gather_column(&[0, 19]).unwrap_err().to_string();
        assert!(e.contains("all ranks must make the same calls"), "{e}");
        Ok(())
    });
}
