use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};
use burn_gnn_dist::{
    DistError, LocalPartition, PartitionConfig, PartitionMethod, PartitionedGraph, load_partition,
    partition_graph, run_ranks, verify_partition,
};
use burn_gnn_graph::{Frame, GlobalIds, Graph, HomoId, Ids, NodeIds, Ragged, Texts};
use burn_gnn_ops::GraphView;
use proptest::prelude::*;

use crate::errors::{rewrite, sign};
use crate::graphs::{rows, typed};

pub(crate) fn config(parts: usize, method: PartitionMethod) -> PartitionConfig {
    PartitionConfig::new("g", parts).with_method(method).with_seed(3)
}

/// A typed graph with features of several kinds.
pub(crate) fn with_features() -> Graph {
    let (mut g, device) = (typed(1, true), Device::flex());
    let ids: Vec<u64> = (0..60).collect();
    g.nodes_mut("a").unwrap().insert("h", rows("h", &ids, 3, DType::F64, &device)).unwrap();
    let label = Tensor::<1, Int>::from_data(
        TensorData::new((0..60i64).collect(), [60]),
        (&device, DType::I64),
    );
    g.nodes_mut("a").unwrap().insert("label", label).unwrap();
    let mask: Vec<bool> = (0..60).map(|i| i % 3 == 0).collect();
    g.nodes_mut("a")
        .unwrap()
        .insert("mask", Tensor::<1, Bool>::from_data(TensorData::new(mask, [60]), &device))
        .unwrap();
    g.nodes_mut("empty").unwrap().insert("h", Tensor::<3>::zeros([0, 2, 2], &device)).unwrap();
    let m = g.num_edges("self").unwrap();
    let ids: Vec<u64> = (0..m as u64).collect();
    g.edges_mut("self").unwrap().insert("w", rows("w", &ids, 1, DType::F32, &device)).unwrap();
    g
}

/// [`with_features`] and lists, texts and ids of nodes and edges.
pub(crate) fn with_extras() -> Graph {
    let mut g = with_features();
    let a = g.nodes_mut("a").unwrap();
    a.insert_text("name", (0..60).map(|i| "ä".repeat(i % 4)).collect()).unwrap();
    a.insert_list(
        "l/i",
        Ragged::new((0..=60).map(|i| i * (i - i % 2) / 2).collect(), (0..1800).collect()).unwrap(),
    )
    .unwrap();
    a.set_ids(NodeIds::new(Ids::Text((0..60).map(|i| format!("a{i}")).collect()))).unwrap();
    a.set_global_ids(GlobalIds::new((0..60).map(|i| u64::MAX - i * i).collect()).unwrap()).unwrap();
    let empty = g.nodes_mut("empty").unwrap();
    empty.insert_text("name", Texts::new()).unwrap();
    empty.set_ids(NodeIds::new(Ids::Int(vec![]))).unwrap();
    let m = g.num_edges("self").unwrap() as u64;
    let edges = g.edges_mut("self").unwrap();
    edges.set_ids(NodeIds::new(Ids::Int((0..m as i64).map(|i| -i).collect()))).unwrap();
    edges.set_global_ids(GlobalIds::new((0..m).map(|i| i << 33).collect()).unwrap()).unwrap();
    edges.insert_text("why", (0..m).map(|i| format!("edge {i}")).collect()).unwrap();
    g
}

/// Lists, texts and ids of local rows equal those of the corresponding rows of the input.
fn check_extras(local: &Frame, whole: &Frame, old: &[i64]) {
    let rows: Vec<u32> = old.iter().map(|&i| i as u32).collect();
    let names = |f: &Frame| {
        f.lists()
            .map(|l| l.0.to_owned())
            .chain(f.texts().map(|t| t.0.to_owned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(local), names(whole));
    whole
        .lists()
        .for_each(|(name, list)| assert_eq!(*local.list(name).unwrap(), list.select(&rows)));
    whole.texts().for_each(|(name, t)| {
        assert_eq!(*local.text(name).unwrap(), t.select(rows.iter().map(|&r| r as usize)))
    });
    assert_eq!(
        local.ids().map(|ids| ids.ids().clone()),
        whole.ids().map(|ids| ids.ids().select(&rows))
    );
    let global = whole
        .global_ids()
        .map(|ids| rows.iter().map(|&r| ids.as_slice()[r as usize]).collect::<Vec<_>>());
    assert_eq!(local.global_ids().map(|ids| ids.as_slice().to_vec()), global);
}

/// Checks the invariants of any partitioning.
pub(crate) fn check(graph: &Graph, parts: &PartitionedGraph) {
    let (book, schema) = (parts.book(), graph.schema());
    let mut seen_nodes: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); schema.ntypes().len()];
    let mut seen_edges: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); schema.etypes().len()];
    let mut cut = 0;
    for p in 0..book.num_parts() {
        let part = parts.part(p).unwrap();
        let node = |i: u32| book.global_to_node(HomoId(part.global_nids()[i as usize])).unwrap();
        for (i, (&global, &old)) in part.global_nids().iter().zip(part.original_nids()).enumerate()
        {
            let id = book.global_to_node(HomoId(global)).unwrap();
            let owner = book.nid2partid(id.ty, id.id).unwrap();
            assert_eq!(owner == p, i < part.num_inner_nodes());
            assert_eq!(owner as u32, parts.assignment(id.ty)[old as usize]);
            assert_eq!(u64::from(parts.original_nids(id.ty)[id.id as usize]), old);
            if owner == p {
                assert!(seen_nodes[id.ty].insert(old), "a node owned twice");
            }
        }
        for (j, (&global, &old)) in part.global_eids().iter().zip(part.original_eids()).enumerate()
        {
            let id = book.global_to_edge(HomoId(global)).unwrap();
            let r = &graph.relations()[id.ty];
            // The local edge matches its input edge.
            assert_eq!(
                part.original_nids()[part.src()[j] as usize],
                u64::from(r.src()[old as usize])
            );
            assert_eq!(
                part.original_nids()[part.dst()[j] as usize],
                u64::from(r.dst()[old as usize])
            );
            assert_eq!((node(part.src()[j]).ty, node(part.dst()[j]).ty), schema.endpoints(id.ty));
            let owner = book.eid2partid(id.ty, id.id).unwrap();
            assert_eq!(owner == p, j < part.num_inner_edges());
            assert_eq!(u64::from(parts.original_eids(id.ty)[id.id as usize]), old);
            if owner == p {
                assert!((part.dst()[j] as usize) < part.num_inner_nodes());
                assert!(seen_edges[id.ty].insert(old), "an edge owned twice");
                cut += u64::from(part.src()[j] as usize >= part.num_inner_nodes());
            }
        }
    }
    assert_eq!(seen_nodes.iter().map(BTreeSet::len).collect::<Vec<_>>(), graph.node_counts());
    assert_eq!(seen_edges.iter().map(BTreeSet::len).sum::<usize>(), graph.total_edges());
    assert_eq!(cut, parts.edge_cut());
    assert_eq!(parts.table().unwrap().parts.iter().map(|p| p.cut).sum::<u64>(), cut);
}

/// All methods except custom assignments.
pub(crate) fn methods() -> [PartitionMethod; 4] {
    [
        PartitionMethod::Metis,
        PartitionMethod::Random,
        PartitionMethod::Ldg { passes: 3 },
        PartitionMethod::Fennel { passes: 3 },
    ]
}

#[test]
fn every_node_and_edge_has_one_owner() {
    let g = typed(1, true);
    for n in [1, 2, 3, 7] {
        for method in methods() {
            for (hops, reshuffle) in
                [(0, true), (0, false), (1, true), (1, false), (2, true), (3, false)]
            {
                let config =
                    config(n, method.clone()).with_num_hops(hops).with_reshuffle(reshuffle);
                check(&g, &partition_graph(&g, &config).unwrap());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_assignment_gives_valid_parts(
        edges in proptest::collection::vec((0u32..9, 0u32..9), 0..40),
        across in proptest::collection::vec((0u32..9, 0u32..4), 0..20),
        owner in (proptest::collection::vec(0u32..3, 9), proptest::collection::vec(0u32..3, 4)),
        hops in 0usize..4,
        reshuffle: bool,
    ) {
        let (s, d) = edges.into_iter().unzip();
        let (s2, d2) = across.into_iter().unzip();
        let g = Graph::builder().nodes("u", 9).nodes("v", 4).edges(("u", "r", "u"), s, d).edges(("u", "q", "v"), s2, d2).build().unwrap();
        let method = PartitionMethod::custom([("u", owner.0), ("v", owner.1)]);
        let parts = partition_graph(&g, &config(3, method).with_num_hops(hops).with_reshuffle(reshuffle)).unwrap();
        check(&g, &parts);
        // Verifies the same invariants from the files, by separate code.
        let dir = tempfile::tempdir().unwrap();
        let json = parts.write(dir.path()).unwrap();
        let report = verify_partition(&json, Some(&g)).unwrap();
        prop_assert!(report.is_ok(), "{report}");
        for p in 0..3 {
            prop_assert_eq!(load_partition(&json, p).unwrap(), parts.part(p).unwrap());
        }
    }
}

pub(crate) fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut out = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(files(&path));
        } else {
            out.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    out
}

#[test]
fn written_and_read_back() {
    let g = with_features();
    let dir = tempfile::tempdir().unwrap();
    for method in [PartitionMethod::Metis, PartitionMethod::Random] {
        let parts = partition_graph(&g, &config(3, method)).unwrap();
        let json = parts.write(dir.path()).unwrap();
        assert!(files(dir.path()).keys().all(|p| p.extension().is_some_and(|e| e != "tmp")));
        for p in 0..3 {
            let read = load_partition(&json, p).unwrap();
            assert_eq!(read, parts.part(p).unwrap());
            assert_eq!(read.node_columns(0).collect::<Vec<_>>(), ["h", "label", "mask"]);
            let own: Vec<i64> =
                read.original_nids()[..read.num_inner_nodes()].iter().map(|&i| i as i64).collect();
            let count = parts.book().partid2nids(p, 0).unwrap().count();
            assert_eq!(
                read.node_feature(0, "label").unwrap().iter::<i64>().collect::<Vec<_>>(),
                own[..count]
            );
            let mask: Vec<bool> = read.node_feature(0, "mask").unwrap().iter::<bool>().collect();
            assert_eq!(mask, own[..count].iter().map(|i| i % 3 == 0).collect::<Vec<_>>());
        }
    }
}

#[test]
fn equal_seeds_give_equal_bytes_for_any_number_of_threads() {
    let g = with_features();
    let written = |threads: usize, seed: u64| {
        let dir = tempfile::tempdir().unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            partition_graph(&g, &config(3, PartitionMethod::Metis).with_seed(seed))
                .unwrap()
                .write(dir.path())
                .unwrap()
        });
        let strip =
            |(p, b): (PathBuf, Vec<u8>)| (p.strip_prefix(dir.path()).unwrap().to_owned(), b);
        files(dir.path()).into_iter().map(strip).collect::<BTreeMap<_, _>>()
    };
    let first = written(1, 7);
    assert_eq!(first.len(), 10);
    assert!(first == written(4, 7));
    let random = |seed| {
        partition_graph(&g, &config(3, PartitionMethod::Random).with_seed(seed))
            .unwrap()
            .assignment(0)
            .to_vec()
    };
    assert_eq!(random(7), random(7));
    assert_ne!(random(7), random(8));
}

#[test]
fn metis_balances_and_cuts_little() {
    // Two cliques joined by an edge: the cut is that edge.
    let clique = |at: u32| {
        (0..8).flat_map(move |i| (0..8).filter(move |&j| j != i).map(move |j| (at + i, at + j)))
    };
    let (s, d) = clique(0).chain(clique(8)).chain([(3, 12)]).unzip();
    let g = Graph::homogeneous(16, s, d).unwrap();
    let parts = partition_graph(&g, &config(2, PartitionMethod::Metis)).unwrap();
    assert_eq!(parts.edge_cut(), 1);
    let t = parts.table().unwrap();
    assert_eq!(t.parts.iter().map(|p| p.nodes).collect::<Vec<_>>(), [8, 8]);
    let text = t.to_string();
    assert!(text.contains("2 parts by metis") && text.lines().count() == 6, "{text}");

    // Every node type is spread.
    let g = typed(4, true);
    let parts = partition_graph(&g, &config(2, PartitionMethod::Metis)).unwrap();
    let random = partition_graph(&g, &config(2, PartitionMethod::Random)).unwrap();
    assert!(parts.edge_cut() < random.edge_cut());
    for (t, &n) in g.node_counts().iter().enumerate() {
        let first = parts.assignment(t).iter().filter(|&&p| p == 0).count();
        assert!(first.abs_diff(n - first) <= n / 6 + 1, "type {t}: {first} of {n}");
    }
    // In-edges too, if requested.
    let parts =
        partition_graph(&g, &config(2, PartitionMethod::Metis).with_balance_edges(true)).unwrap();
    let edges: Vec<u64> = parts.table().unwrap().parts.iter().map(|p| p.edges).collect();
    assert!(edges[0].abs_diff(edges[1]) * 6 <= edges[0] + edges[1], "{edges:?}");
}

/// Maximal number of nodes of a class of `n` in one of `pieces`.
fn most(n: usize, pieces: usize) -> usize {
    ((n as f64 * 1.05 / pieces as f64) as usize).max(n.div_ceil(pieces))
}

/// No piece is empty, and none exceeds the bound of a class.
fn check_bounds(what: &str, parts: &PartitionedGraph, classes: &[Vec<u32>]) {
    let config = parts.config();
    let pieces = config.num_parts * config.num_trainers_per_machine;
    let mut sizes = vec![0; pieces];
    let mut of_class: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for (t, classes) in classes.iter().enumerate() {
        for (&p, &class) in parts.trainer_ids(t).iter().zip(classes) {
            sizes[p as usize] += 1;
            *of_class.entry((class, p)).or_default() += 1;
        }
    }
    assert!(!sizes.contains(&0), "{what}: an empty part of {sizes:?}");
    for (&(class, p), &n) in &of_class {
        let total = classes.iter().flatten().filter(|&&c| c == class).count();
        let most = most(total, pieces);
        assert!(n <= most, "{what}: {n} nodes of class {class} in part {p}, {most} are allowed");
    }
}

/// Graphs on which bisection performs badly: `kind` is star, path, clique, ring of cliques, or few edges.
fn shaped(kind: usize, n: u32) -> Vec<(u32, u32)> {
    match kind {
        0 => (1..n).map(|v| (0, v)).collect(),
        1 => (1..n).map(|v| (v - 1, v)).collect(),
        2 => (0..n).flat_map(|u| (0..u).map(move |v| (u, v))).collect(),
        3 => (0..n)
            .flat_map(|u| (0..u).filter(move |v| u / 4 == v / 4).map(move |v| (u, v)))
            .chain((1..n).map(|v| (v - 1, v)))
            .collect(),
        _ => (0..n / 3).map(|v| (v, v * v % n)).collect(),
    }
}

#[test]
fn no_part_is_empty_or_beyond_its_bound() {
    let (ldg, fennel) = (PartitionMethod::Ldg { passes: 2 }, PartitionMethod::Fennel { passes: 1 });
    for (kind, n, pieces) in
        [(0, 5, 4), (2, 16, 5), (1, 10, 9), (0, 100, 40), (3, 60, 7), (4, 400, 128), (1, 400, 128)]
    {
        let (s, d) = shaped(kind, n).into_iter().unzip();
        let g = Graph::homogeneous(n as usize, s, d).unwrap();
        for method in [PartitionMethod::Metis, ldg.clone(), fennel.clone()] {
            let what = format!("graph {kind} of {n} nodes, {pieces} parts, {method:?}");
            let parts = partition_graph(&g, &config(pieces, method)).unwrap();
            check(&g, &parts);
            check_bounds(&what, &parts, &[vec![0; n as usize]]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Random graphs of two types, any number of parts up to that of nodes, all methods and their balance options.
    #[test]
    fn every_method_keeps_its_bounds(
        kind in 0usize..5,
        n in 1u32..60,
        more in 0u32..20,
        across in proptest::collection::vec((0u32..60, 0u32..20), 0..30),
        share in 0.0f64..1.0,
        trainers in 1usize..3,
        balance: (bool, bool, bool),
        seed in 0u64..1000,
    ) {
        let nodes = (n + more) as usize;
        let pieces = 1 + (share * (nodes - 1) as f64) as usize;
        let parts = (pieces / trainers).max(1);
        prop_assume!(parts * trainers <= nodes);
        let (s, d) = shaped(kind, n).into_iter().unzip();
        let (s2, d2) = across.into_iter().filter(|&(u, v)| u < n && v < more).unzip();
        let g = Graph::builder()
            .nodes("u", n as usize)
            .nodes("v", more as usize)
            .edges(("u", "r", "u"), s, d)
            .edges(("u", "q", "v"), s2, d2)
            .build()
            .unwrap();
        let (by_type, by_class, by_edges) = balance;
        let marked: Vec<bool> = (0..n).map(|v| v % 5 == 0).collect();
        let class = |t: u32, v: usize| match (t, by_class, by_type) {
            (0, true, _) => u32::from(marked[v]),
            (_, _, false) => 2,
            (t, _, true) => 2 + t,
        };
        let classes = [
            (0..n as usize).map(|v| class(0, v)).collect::<Vec<_>>(),
            (0..more as usize).map(|v| class(1, v)).collect(),
        ];
        for method in [
            PartitionMethod::Metis,
            PartitionMethod::Ldg { passes: 1 },
            PartitionMethod::Fennel { passes: 2 },
            PartitionMethod::Random,
        ] {
            let random = method == PartitionMethod::Random;
            let mut config = config(parts, method)
                .with_seed(seed)
                .with_balance_ntypes(by_type)
                .with_num_trainers_per_machine(trainers)
                .with_balance_edges(by_edges && !random);
            if by_class {
                config = config.with_balance_mask("u", &marked);
            }
            let cut = partition_graph(&g, &config).unwrap();
            check(&g, &cut);
            // Random assignment: no part is empty, and sizes are not bounded.
            let free = random && !by_type && !by_class;
            let of = if free { [(0..n).collect(), (n..n + more).collect()] } else { classes.clone() };
            check_bounds(&format!("{config:?}"), &cut, &of);
        }
    }
}

const CHILD: &str = "BURN_GNN_DIST_METIS_CHILD";

/// Runs only in the process that the test below starts.
#[test]
fn graphs_of_which_metis_complains() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    for (kind, n) in (0..5).flat_map(|kind| [5, 10, 16, 100].map(|n| (kind, n))) {
        let (s, d) = shaped(kind, n).into_iter().unzip();
        let g = Graph::homogeneous(n as usize, s, d).unwrap();
        for pieces in [2, 3, 4, 5, 9, 14, 40, 90].into_iter().filter(|&p| p <= n as usize) {
            let config = config(pieces, PartitionMethod::Metis);
            for config in [
                config.clone(),
                config.clone().with_balance_edges(true),
                config.clone().with_objective(burn_gnn_dist::Objective::Volume),
                config.with_effort(burn_gnn_dist::MetisEffort::Fast),
            ] {
                partition_graph(&g, &config).unwrap();
            }
        }
    }
}

/// METIS does not print warnings to standard output.
#[test]
fn metis_prints_nothing() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "partitioning::partition::graphs_of_which_metis_complains",
            "--nocapture",
        ])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert!(!text.contains("***") && !text.contains("vertices"), "{text}");
}

#[test]
fn graphs_that_metis_rejects() {
    let none = Graph::homogeneous(5, vec![], vec![]).unwrap();
    let parts = partition_graph(&none, &config(2, PartitionMethod::Metis)).unwrap();
    assert_eq!(parts.assignment(0), [0, 0, 0, 1, 1]);
    check(&none, &parts);
    let loops = Graph::homogeneous(4, vec![0, 1, 1], vec![0, 1, 1]).unwrap();
    check(&loops, &partition_graph(&loops, &config(4, PartitionMethod::Metis)).unwrap());
    let empty = Graph::homogeneous(0, vec![], vec![]).unwrap();
    check(&empty, &partition_graph(&empty, &config(1, PartitionMethod::Metis)).unwrap());
    let pair = Graph::homogeneous(2, vec![0], vec![1]).unwrap();
    check(&pair, &partition_graph(&pair, &config(2, PartitionMethod::Metis)).unwrap());
    let unlinked = Graph::builder().nodes("x", 3).build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let json = partition_graph(&unlinked, &config(2, PartitionMethod::Random))
        .unwrap()
        .write(dir.path())
        .unwrap();
    assert_eq!(load_partition(json, 1).unwrap().num_inner_edges(), 0);
}

/// Rows, degrees and ids of the view of a part are those of the whole graph.
#[test]
fn a_local_partition_has_global_degrees_and_ids() {
    let g = with_features();
    let (schema, device) = (g.schema().clone(), Device::flex().autodiff());
    let (random, metis) = (PartitionMethod::Random, PartitionMethod::Metis);
    let cases = [
        (3, random.clone(), 2, true),
        (4, metis.clone(), 0, true),
        (1, metis.clone(), 2, true),
        (3, random, 0, false),
        (3, metis, 2, false),
    ];
    for (n, method, hops, reshuffle) in cases {
        let parts =
            partition_graph(&g, &config(n, method).with_num_hops(hops).with_reshuffle(reshuffle))
                .unwrap();
        run_ranks(n, |comm| -> Result<(), DistError> {
            let part = LocalPartition::new(&parts.part(comm.rank())?, comm.clone(), &device)?;
            for e in 0..schema.etypes().len() {
                let (s, d) = schema.endpoints(e);
                let (local, whole) = (part.relation(e), &g.relations()[e]);
                assert_eq!((local.num_src(), local.num_dst()), (part.num_src(s), part.num_dst(d)));
                assert_eq!(part.total_edges(e), whole.num_edges() as u64);
                let sources: Vec<u64> =
                    part.inner_nodes(s).iter().chain(part.halo_nodes(s)).copied().collect();
                let (ins, outs): (Vec<u32>, Vec<u32>) =
                    (whole.in_degrees().collect(), whole.out_degrees().collect());
                assert!(
                    part.in_degrees(e)
                        .iter()
                        .zip(part.inner_nodes(d))
                        .all(|(&x, &v)| x == ins[v as usize])
                );
                assert!(
                    part.out_degrees(e).iter().zip(&sources).all(|(&x, &u)| x == outs[u as usize])
                );
                let ids = part.edge_original_ids(e);
                assert!(ids.is_sorted());
                for (j, &id) in ids.iter().enumerate() {
                    assert_eq!(
                        sources[local.src()[j] as usize],
                        u64::from(whole.src()[id as usize])
                    );
                    assert_eq!(
                        part.inner_nodes(d)[local.dst()[j] as usize],
                        u64::from(whole.dst()[id as usize])
                    );
                }
            }
            for t in 0..schema.ntypes().len() {
                // Halo rows are sources of edges, belong to other parts, and have the values of their owners.
                let used: BTreeSet<u32> =
                    schema.etypes_from(t).flat_map(|e| part.relation(e).src().to_vec()).collect();
                assert!((part.num_inner(t)..part.num_src(t)).all(|r| used.contains(&(r as u32))));
                assert!(
                    part.halo_nodes(t)
                        .iter()
                        .all(|&i| parts.assignment(t)[i as usize] as usize != comm.rank())
                );
                assert_eq!(part.inner_rows(t, part.halo_nodes(t)), [0u32; 0]);
                let order: Vec<(u32, u64)> = part
                    .halo_nodes(t)
                    .iter()
                    .map(|&i| (parts.assignment(t)[i as usize], i))
                    .collect();
                assert!(order.is_sorted());
            }
            let x = (0..schema.ntypes().len())
                .map(|t| rows("v", part.inner_nodes(t), 2, DType::F32, &device))
                .collect();
            for (t, out) in part.src_rows("x", x).into_iter().enumerate() {
                let all: Vec<u64> =
                    part.inner_nodes(t).iter().chain(part.halo_nodes(t)).copied().collect();
                assert_eq!(out.into_data(), rows("v", &all, 2, DType::F32, &device).into_data());
            }
            let labels = part
                .nodes(0)
                .get_int::<1>("label")?
                .into_data()
                .iter::<i64>()
                .map(|i| i as u64)
                .collect::<Vec<_>>();
            assert_eq!(labels, part.inner_nodes(0));
            let e = schema.etype("self")?;
            let weights = part.edges(e).get::<2>("w")?;
            assert_eq!(
                weights.into_data(),
                rows("w", part.edge_original_ids(e), 1, DType::F32, &device).into_data()
            );
            Ok(())
        })
        .unwrap();
    }
}

/// A part as a graph: ids, flags, features, lists and texts of every local node and edge are those of the input graph.
#[test]
fn a_part_is_a_graph() {
    let g = with_extras();
    let device = Device::flex();
    for (hops, reshuffle) in [(0, true), (1, true), (2, true), (1, false)] {
        let parts = partition_graph(
            &g,
            &config(3, PartitionMethod::Random).with_num_hops(hops).with_reshuffle(reshuffle),
        )
        .unwrap();
        let (book, schema) = (parts.book(), g.schema());
        let dir = tempfile::tempdir().unwrap();
        let json = parts.write(dir.path()).unwrap();
        let report = verify_partition(&json, Some(&g)).unwrap();
        assert!(report.is_ok(), "{report}");
        for p in 0..3 {
            let part = load_partition(&json, p).unwrap();
            assert_eq!(part, parts.part(p).unwrap());
            let local = part.to_graph(&device).unwrap();
            assert_eq!(local.schema(), schema);
            assert_eq!(
                (local.total_nodes(), local.total_edges()),
                (part.global_nids().len(), part.src().len())
            );
            let ints = |f: &Frame, name: &str| {
                f.get_int::<1>(name).unwrap().into_data().iter::<i64>().collect::<Vec<_>>()
            };
            let flags = |f: &Frame, name: &str| {
                f.get_as::<1, Bool>(name).unwrap().into_data().iter::<bool>().collect::<Vec<_>>()
            };
            let mut originals = vec![];
            for (t, name) in schema.ntypes().iter().enumerate() {
                let frame = local.nodes(name).unwrap();
                let (ids, old) = (ints(frame, "_ID"), ints(frame, "orig_id"));
                check_extras(frame, &g.node_frames()[t], &old);
                let inner = flags(frame, "inner_node");
                let count = inner.iter().filter(|i| **i).count();
                assert_eq!(
                    ids[..count].iter().map(|&i| i as u64).collect::<Vec<_>>(),
                    book.nids_of_part(p, name).unwrap()
                );
                for (i, &id) in ids.iter().enumerate() {
                    let owner = book.nid2partid(name, id as u64).unwrap();
                    assert_eq!((inner[i], ints(frame, "part_id")[i]), (owner == p, owner as i64));
                    assert_eq!(i64::from(parts.original_nids(t)[id as usize]), old[i]);
                }
                if name == "a" {
                    let label = ints(frame, "label");
                    assert!(
                        label
                            .iter()
                            .zip(&old)
                            .zip(&inner)
                            .all(|((&l, &o), &inner)| l == if inner { o } else { 0 })
                    );
                    let h: Vec<f64> =
                        frame.get::<2>("h").unwrap().into_data().iter::<f64>().collect();
                    let own: Vec<u64> = old[..count].iter().map(|&i| i as u64).collect();
                    assert_eq!(
                        h[..3 * count],
                        rows("h", &own, 3, DType::F64, &device)
                            .into_data()
                            .iter::<f64>()
                            .collect::<Vec<_>>()
                    );
                    assert!(h[3 * count..].iter().all(|x| *x == 0.0));
                    assert!(!flags(frame, "mask")[count..].contains(&true));
                }
                originals.push(old);
            }
            for (e, r) in local.relations().iter().enumerate() {
                let ((s, d), whole, frame) =
                    (schema.endpoints(e), &g.relations()[e], local.edges(e).unwrap());
                let (ids, old, inner) =
                    (ints(frame, "_ID"), ints(frame, "orig_id"), flags(frame, "inner_edge"));
                check_extras(frame, &g.edge_frames()[e], &old);
                for i in 0..r.num_edges() {
                    assert_eq!(
                        originals[s][r.src()[i] as usize],
                        i64::from(whole.src()[old[i] as usize])
                    );
                    assert_eq!(
                        originals[d][r.dst()[i] as usize],
                        i64::from(whole.dst()[old[i] as usize])
                    );
                    assert_eq!(i64::from(parts.original_eids(e)[ids[i] as usize]), old[i]);
                    assert_eq!(inner[i], book.eid2partid(e, ids[i] as u64).unwrap() == p);
                }
            }
        }
    }
    let mut taken = Graph::homogeneous(2, vec![0], vec![1]).unwrap();
    taken.nodes_mut("_N").unwrap().insert("_ID", Tensor::<1>::zeros([2], &device)).unwrap();
    let part =
        partition_graph(&taken, &config(1, PartitionMethod::Random)).unwrap().part(0).unwrap();
    let e = part.to_graph(&device).unwrap_err();
    assert!(
        matches!(e, DistError::Config { arg: "features", .. })
            && e.to_string().contains("column `_ID`"),
        "{e}"
    );
}

/// Invalid files of lists, texts and ids are errors that name the file; a partitioning without any removes them.
#[test]
fn lists_texts_and_ids_that_lie() {
    let g = with_extras();
    let dir = tempfile::tempdir().unwrap();
    let parts = partition_graph(&g, &config(2, PartitionMethod::Random)).unwrap();
    let json = parts.write(dir.path()).unwrap();
    let file = dir.path().join("part1/extras.safetensors");
    let good = [fs::read(&json).unwrap(), fs::read(&file).unwrap()];
    let error_of = |f: &dyn Fn(&mut serde_json::Value, &mut Vec<u8>)| {
        rewrite(&file, f);
        sign(dir.path());
        let e = load_partition(&json, 1).unwrap_err();
        fs::write(&json, &good[0]).unwrap();
        fs::write(&file, &good[1]).unwrap();
        assert!(matches!(&e, DistError::Format { path, .. } if *path == file), "{e}");
        e.to_string()
    };
    // The first number of a list becomes `value`.
    let set = |name: &'static str, value: u64| {
        error_of(&move |h, body| {
            let at = h[name]["data_offsets"][0].as_u64().unwrap() as usize;
            body[at..at + 8].copy_from_slice(&value.to_le_bytes());
        })
    };
    for (name, value, text) in [
        ("list/node/a/l/i/indptr", 1, "`list/node/a/l/i/indptr`: "),
        (
            "text/node/a/name/ends",
            1 << 40,
            "position 0: expected the end of a text that begins at byte 0, got 1099511627776",
        ),
        ("ids/node/a/ends", 99_999, "`ids/node/a/ends`: position 0"),
    ] {
        let e = set(name, value);
        assert!(e.contains(text), "{name}: {e}");
    }
    let twice = error_of(&|h, body| {
        let at = h["global_ids/node/a"]["data_offsets"][0].as_u64().unwrap() as usize;
        body.copy_within(at..at + 8, at + 8);
    });
    assert!(twice.contains("`global_ids/node/a`: ") && twice.contains("given twice"), "{twice}");
    for (from, to, text) in [
        ("ids/edge/a:self:a", "ids/edge/a:x:a", "expected a name of"),
        ("text/node/a/name/bytes", "text/node/a/other/bytes", "no tensor `text/node/a/name/bytes`"),
        ("global_ids/node/a", "global_ids/node/b", "expected a list of"),
        (
            "list/node/a/l/i/indptr",
            "list/node/a/l/i/odd",
            "expected 12 tensors of lists, texts and ids, found 14",
        ),
    ] {
        let e = error_of(&|h, _| {
            let entry = h.as_object_mut().unwrap().remove(from).unwrap();
            h.as_object_mut().unwrap().insert(to.into(), entry);
        });
        assert!(e.contains(text), "{from}: {e}");
    }
    assert_eq!(load_partition(&json, 1).unwrap(), parts.part(1).unwrap());
    let mut other = with_extras();
    other
        .edges_mut("self")
        .unwrap()
        .insert_text(
            "why",
            (0..g.num_edges("self").unwrap()).map(|i| format!("Edge {i}")).collect(),
        )
        .unwrap();
    let report = verify_partition(&json, Some(&other)).unwrap();
    assert!(
        report.to_string().contains(
            "part 0: lists, texts or ids are not those of the edges of `a:self:a` of the input"
        ),
        "{report}"
    );
    partition_graph(&with_features(), &config(2, PartitionMethod::Random))
        .unwrap()
        .write(dir.path())
        .unwrap();
    assert!(files(dir.path()).keys().all(|f| !f.ends_with("extras.safetensors")));
}
