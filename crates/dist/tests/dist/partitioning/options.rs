//! Settings of `partition_graph`, one by one.

use std::fs;

use burn_gnn_dist::{
    DistError, MetisEffort, Objective, PartitionConfig, PartitionMethod, PartitionedGraph,
    load_partition, load_partition_book, partition_graph, verify_partition,
};
use burn_gnn_graph::{Graph, HomoId, TypedId};
use burn_gnn_ops::Stream;

use crate::graphs::{owners, typed};
use crate::partition::{check, config, methods, with_features};

const LDG: PartitionMethod = PartitionMethod::Ldg { passes: 10 };
const FENNEL: PartitionMethod = PartitionMethod::Fennel { passes: 10 };

/// Writes and verifies the parts, and compares each part with its files.
fn written(g: &Graph, parts: &PartitionedGraph) {
    let dir = tempfile::tempdir().unwrap();
    let json = parts.write(dir.path()).unwrap();
    let report = verify_partition(&json, Some(g)).unwrap();
    assert!(report.is_ok(), "{report}");
    for p in 0..parts.book().num_parts() {
        assert_eq!(load_partition(&json, p).unwrap(), parts.part(p).unwrap());
    }
}

/// Communities of 50 nodes, of which 9 of 10 edges stay inside.
fn communities(seed: u64, count: usize) -> Graph {
    let (s, n) = (Stream::new(seed, "communities", 0), count as u32 * 50);
    // Ids are interleaved, so their order does not reveal communities.
    let end = |e: u64, c: u64| (s.uniform(e, c) * 50.0) as u32 * count as u32;
    let edge = |e: u64| {
        let own = (s.uniform(e, 2) * count as f64) as u32;
        let other =
            if s.uniform(e, 3) < 0.9 { own } else { (s.uniform(e, 4) * count as f64) as u32 };
        (end(e, 0) + own, end(e, 1) + other)
    };
    let (src, dst) = (0..u64::from(n) * 10).map(edge).unzip();
    Graph::homogeneous(n as usize, src, dst).unwrap()
}

#[test]
fn zero_hops_hold_what_a_part_owns() {
    let g = with_features();
    let parts = partition_graph(&g, &config(3, PartitionMethod::Random).with_num_hops(0)).unwrap();
    let deeper = partition_graph(&g, &config(3, PartitionMethod::Random)).unwrap();
    for p in 0..3 {
        let (part, more) = (parts.part(p).unwrap(), deeper.part(p).unwrap());
        assert_eq!(part.src().len(), part.num_inner_edges());
        assert_eq!(part.global_eids(), &more.global_eids()[..more.num_inner_edges()]);
        assert!(more.src().len() > more.num_inner_edges());
    }
    written(&g, &parts);
}

/// Graphs on which DGL fails.
#[test]
fn empty_graphs_types_and_parts() {
    let tiny = Graph::builder()
        .nodes("a", 2)
        .nodes("b", 1)
        .nodes("nothing", 0)
        .edges(("a", "to", "b"), vec![0], vec![0])
        .edges(("b", "never", "a"), vec![], vec![])
        .edges(("nothing", "to", "a"), vec![], vec![])
        .build()
        .unwrap();
    let unlinked = Graph::builder().nodes("x", 5).nodes("y", 3).build().unwrap();
    let apart = Graph::homogeneous(8, vec![0, 1, 2, 4, 5, 6], vec![1, 2, 0, 5, 6, 4]).unwrap();
    for g in [&tiny, &unlinked, &apart] {
        for method in methods() {
            for (parts, reshuffle) in [(1, true), (2, true), (3, false), (11, true), (11, false)] {
                let config = config(parts, method.clone()).with_reshuffle(reshuffle);
                if parts > g.total_nodes() {
                    assert!(matches!(
                        partition_graph(g, &config),
                        Err(DistError::TooManyParts { parts: 11, .. })
                    ));
                }
                let cut = partition_graph(g, &config.with_empty_parts(true)).unwrap();
                check(g, &cut);
                written(g, &cut);
                if parts == 11 && method == PartitionMethod::Metis {
                    // One node per part, while there are nodes.
                    let sizes: Vec<u64> =
                        cut.book().metadata().iter().map(|m| m.num_nodes).collect();
                    let n = g.total_nodes();
                    assert_eq!(
                        (sizes[..n].iter().all(|&s| s == 1), sizes[n..].iter().sum::<u64>()),
                        (true, 0),
                        "{sizes:?}"
                    );
                }
            }
        }
    }
    // All nodes of a type are on one part; the other part has none, and no edge.
    let one_side = owners(&tiny, [vec![0, 0], vec![0], vec![]]);
    let cut = partition_graph(&tiny, &config(2, one_side)).unwrap();
    assert_eq!(cut.part(1).unwrap().num_inner_nodes(), 0);
    written(&tiny, &cut);
}

#[test]
fn kept_ids() {
    let g = with_features();
    let parts =
        partition_graph(&g, &config(3, PartitionMethod::Metis).with_reshuffle(false)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let json = parts.write(dir.path()).unwrap();
    let meta: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(
        (meta["node_map"].as_str(), meta["edge_map"].as_str()),
        (Some("node_map.npy"), Some("edge_map.npy"))
    );
    // Owners by global id, type by type, as 32-bit numbers after a header of NumPy.
    let owners: Vec<u32> =
        (0..g.node_counts().len()).flat_map(|t| parts.assignment(t).to_vec()).collect();
    let file = fs::read(dir.path().join("node_map.npy")).unwrap();
    let body: Vec<u32> =
        file[128..].chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(body, owners);

    let book = load_partition_book(&json).unwrap();
    assert_eq!(&book, parts.book());
    let (nodes, edges) = (g.node_id_map().unwrap(), g.edge_id_map().unwrap());
    for global in 0..nodes.total() {
        let typed = nodes.to_typed(HomoId(global)).unwrap();
        assert_eq!(book.map_to_per_ntype(HomoId(global)).unwrap(), typed);
        assert_eq!(book.map_to_homo_nid(typed.ty, typed.id).unwrap(), HomoId(global));
        assert_eq!(book.nid2partid(typed.ty, typed.id).unwrap() as u32, owners[global as usize]);
    }
    for global in 0..edges.total() {
        let TypedId { ty, id } = edges.to_typed(HomoId(global)).unwrap();
        assert_eq!(book.map_to_homo_eid(ty, id).unwrap(), HomoId(global));
        let dst = g.relations()[ty].dst()[id as usize];
        let owner = book.eid2partid(ty, id).unwrap();
        assert_eq!(owner as u32, parts.assignment(g.schema().endpoints(ty).1)[dst as usize]);
        let local = book.eid2localeid(ty, id, owner).unwrap();
        assert_eq!(book.localeid2eid(ty, local, owner).unwrap(), id);
        assert_eq!(book.eids_of_part(owner, ty).unwrap()[local as usize], id);
    }
    assert!(parts.original_nids(0).iter().copied().eq(0..60));
    // The owner file is validated like all others.
    let mut spoiled = file.clone();
    spoiled[130] ^= 1;
    fs::write(dir.path().join("node_map.npy"), spoiled).unwrap();
    assert!(matches!(load_partition_book(&json), Err(DistError::Checksum { .. })));
    fs::remove_file(dir.path().join("node_map.npy")).unwrap();
    assert!(matches!(load_partition(&json, 0), Err(DistError::Io { .. })));
}

#[test]
fn trainers_share_a_part() {
    let g = with_features();
    for method in methods() {
        let config = config(2, method.clone()).with_num_trainers_per_machine(3);
        let parts = partition_graph(&g, &config).unwrap();
        check(&g, &parts);
        written(&g, &parts);
        for t in 0..g.node_counts().len() {
            let trainers = parts.trainer_ids(t);
            assert!(
                trainers
                    .iter()
                    .zip(parts.assignment(t))
                    .all(|(&trainer, &p)| trainer / 3 == p && trainer < 6)
            );
        }
        for p in 0..2 {
            let part = parts.part(p).unwrap();
            let trainers = part.trainer_ids().unwrap();
            assert_eq!(trainers.len(), part.num_inner_nodes());
            for (i, &trainer) in trainers.iter().enumerate() {
                let ty = parts.book().global_to_node(HomoId(part.global_nids()[i])).unwrap().ty;
                assert_eq!(trainer, parts.trainer_ids(ty)[part.original_nids()[i] as usize]);
            }
            // METIS gives every trainer its share of the training nodes' type.
            let of = |t: u32| parts.trainer_ids(0).iter().filter(|&&x| x == t).count();
            assert!(
                method != PartitionMethod::Metis || (0..6).all(|t| of(t).abs_diff(10) <= 3),
                "{:?}",
                (0..6).map(of).collect::<Vec<_>>()
            );
        }
    }
    // Equals a partitioning into as many pieces, combined into parts.
    let pieces = partition_graph(&g, &config(6, PartitionMethod::Metis)).unwrap();
    let parts =
        partition_graph(&g, &config(2, PartitionMethod::Metis).with_num_trainers_per_machine(3))
            .unwrap();
    assert_eq!(pieces.assignment(0), parts.trainer_ids(0));
    assert_eq!(pieces.trainer_ids(0), pieces.assignment(0));
    assert_eq!(pieces.part(0).unwrap().trainer_ids(), None);
}

/// Balance of the nodes with `chosen`: the largest part relative to the mean.
fn balance(parts: &PartitionedGraph, t: usize, chosen: impl Fn(usize) -> bool) -> f64 {
    let n = parts.book().num_parts();
    let mut count = vec![0; n];
    parts
        .assignment(t)
        .iter()
        .enumerate()
        .filter(|(i, _)| chosen(*i))
        .for_each(|(_, &p)| count[p as usize] += 1);
    *count.iter().max().unwrap() as f64 * n as f64 / count.iter().sum::<usize>() as f64
}

#[test]
fn types_and_training_nodes_are_spread() {
    // Types of one size, so that 5 % of it are whole nodes.
    let (c, n) = (communities(5, 16), 800u32);
    let (src, dst) = (c.relations()[0].src().to_vec(), c.relations()[0].dst().to_vec());
    let g = Graph::builder()
        .nodes("a", n as usize)
        .nodes("b", n as usize)
        .edges(("a", "to", "b"), src.clone(), dst.clone())
        .edges(("b", "back", "a"), dst, src)
        .build()
        .unwrap();
    let mask: Vec<bool> = (0..n).map(|i| i % 16 < 3).collect();
    for method in [PartitionMethod::Metis, LDG, FENNEL] {
        let config = config(4, method.clone());
        let parts = partition_graph(&g, &config).unwrap();
        for t in 0..2 {
            let b = balance(&parts, t, |_| true);
            assert!(b <= 1.05, "{method:?}, type {t}: {b}");
        }
        let uneven = partition_graph(&g, &config.clone().with_balance_ntypes(false)).unwrap();
        let parts = partition_graph(&g, &config.with_balance_mask("a", &mask)).unwrap();
        let (train, rest) = (balance(&parts, 0, |i| mask[i]), balance(&parts, 0, |i| !mask[i]));
        println!(
            "{method:?}: training nodes {train:.3}, others {rest:.3}, without: {:.3}, {:.3}",
            balance(&uneven, 0, |i| mask[i]),
            balance(&uneven, 0, |_| true)
        );
        assert!(train <= 1.06 && rest <= 1.06, "{method:?}: {train} {rest}");
    }
}

#[test]
fn edges_are_spread() {
    // In-degrees fall like 1 / rank: the first nodes have most edges.
    let s = Stream::new(3, "skewed", 0);
    let n = 2_000.0f64;
    let dst: Vec<u32> = (0..20_000).map(|e| (n.powf(s.uniform(e, 0)) - 1.0) as u32).collect();
    let src = (0..20_000).map(|e| (s.uniform(e, 1) * n) as u32).collect();
    let g = Graph::homogeneous(2_000, src, dst).unwrap();
    for method in [PartitionMethod::Metis, LDG, FENNEL] {
        for parts in [2, 5] {
            let config = config(parts, method.clone());
            let (plain, even) = (
                partition_graph(&g, &config).unwrap(),
                partition_graph(&g, &config.with_balance_edges(true)).unwrap(),
            );
            let (plain, even) = (plain.table().unwrap(), even.table().unwrap());
            println!(
                "{method:?}, {parts}: {:.3} to {:.3}, cut {:.3} to {:.3}",
                plain.edge_balance(),
                even.edge_balance(),
                plain.cut_share(),
                even.cut_share()
            );
            assert!(even.edge_balance() <= 1.05, "{even}");
            assert!(even.node_balance() <= 1.12, "{even}");
        }
    }
}

#[test]
fn streaming_finds_communities() {
    let g = communities(1, 24);
    let cut = |method: PartitionMethod| {
        let parts = partition_graph(&g, &config(4, method)).unwrap();
        check(&g, &parts);
        assert!(parts.table().unwrap().node_balance() <= 1.06);
        parts.table().unwrap().cut_share()
    };
    let (random, metis) = (cut(PartitionMethod::Random), cut(PartitionMethod::Metis));
    for (once, often) in
        [(PartitionMethod::Ldg { passes: 1 }, LDG), (PartitionMethod::Fennel { passes: 1 }, FENNEL)]
    {
        let name = format!("{often:?}");
        let (once, often) = (cut(once), cut(often));
        println!(
            "{name}: one pass {once:.3}, ten {often:.3}; random {random:.3}, metis {metis:.3}"
        );
        assert!(often < once && once < random, "{name}: {often} {once} {random}");
        assert!(often < 0.6 * random, "{name}: {often} {random}");
    }
}

#[test]
fn every_method_repeats_for_any_number_of_threads() {
    let g = communities(2, 10);
    let more = |method: &PartitionMethod, seed: u64, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let config = config(5, method.clone())
            .with_seed(seed)
            .with_balance_edges(*method != PartitionMethod::Random);
        pool.install(|| partition_graph(&g, &config).unwrap().assignment(0).to_vec())
    };
    for method in methods() {
        let first = more(&method, 1, 1);
        assert_eq!(first, more(&method, 1, 3), "{method:?}");
        assert_ne!(first, more(&method, 2, 1), "{method:?}");
    }
}

/// Each objective of METIS minimises its quantity on several graphs: cut edges by default, copies of nodes under
/// `Volume`; `Fast` cuts more edges.
#[test]
fn objective_and_effort() {
    // No communities, and hubs with most edges: a further edge of a hub to a part adds no copy of it.
    let hubs = |seed: u64| {
        let (s, n) = (Stream::new(seed, "hubs", 0), 600.0);
        let edge = |e: u64| ((s.uniform(e, 0).powi(4) * n) as u32, (s.uniform(e, 1) * n) as u32);
        let (src, dst) = (0..3000).map(edge).unzip();
        Graph::homogeneous(600, src, dst).unwrap()
    };
    let (mut plain, mut volume, mut fast, mut random) = ((0, 0), (0, 0), (0, 0), 0);
    for seed in 0..6 {
        let g = hubs(seed);
        let cut = |sum: &mut (u64, u64), f: &dyn Fn(PartitionConfig) -> PartitionConfig| {
            let parts = partition_graph(&g, &f(config(6, PartitionMethod::Metis))).unwrap();
            check(&g, &parts);
            let table = parts.table().unwrap();
            assert!(table.node_balance() <= 1.05, "{table}");
            sum.0 += parts.edge_cut();
            sum.1 += table.total().halo;
        };
        cut(&mut plain, &|c| c);
        cut(&mut volume, &|c| c.with_objective(Objective::Volume));
        cut(&mut fast, &|c| c.with_effort(MetisEffort::Fast));
        random += partition_graph(&g, &config(6, PartitionMethod::Random)).unwrap().edge_cut();
    }
    let found = format!(
        "cut and halo: plain {plain:?}, volume {volume:?}, fast {fast:?}, random cut {random}"
    );
    println!("{found}");
    assert!(plain.0 < volume.0 && plain.0 < fast.0, "{found}");
    assert!(volume.1 < plain.1, "{found}");
    assert!(plain.0.max(volume.0).max(fast.0) < random, "{found}");
}

#[test]
fn types_in_tables() {
    let g = typed(1, true);
    let table = partition_graph(&g, &config(3, PartitionMethod::Metis)).unwrap().table().unwrap();
    for (t, stats) in table.node_types.iter().enumerate() {
        assert_eq!(
            (stats.name.as_str(), stats.parts.iter().sum::<u64>() as usize),
            (&*g.schema().ntypes()[t], g.node_counts()[t])
        );
    }
    for (t, stats) in table.edge_types.iter().enumerate() {
        assert_eq!(stats.name, g.schema().etypes()[t].to_string());
        assert_eq!(stats.parts.iter().sum::<u64>() as usize, g.relations()[t].num_edges());
    }
    let text = table.to_string();
    assert!(
        text.contains("\nempty") && text.contains("\na:self:a") && text.contains("\nbalance"),
        "{text}"
    );
}

/// Errors of options that a method would ignore name the option, the method and the remedy.
#[test]
fn options_that_a_method_does_not_support_are_errors() {
    let g = typed(1, true);
    let custom = owners(&g, g.node_counts().iter().map(|&n| vec![0; n]));
    let (ldg, fennel, random) = (LDG, FENNEL, PartitionMethod::Random);
    let classes = vec![0; g.node_counts()[0]];
    type Change<'a> = Box<dyn Fn(PartitionConfig) -> PartitionConfig + 'a>;
    let cases: [(&str, &[&PartitionMethod], &str, Change<'_>); 5] = [
        ("balance_ntypes", &[&custom], "`random`", Box::new(|c| c.with_balance_ntypes(true))),
        (
            "balance_classes",
            &[&custom],
            "`random`",
            Box::new(|c| c.with_balance_classes("a", classes.clone())),
        ),
        (
            "balance_edges",
            &[&custom, &random],
            "`fennel`",
            Box::new(|c| c.with_balance_edges(true)),
        ),
        (
            "objective",
            &[&custom, &random, &ldg, &fennel],
            "`metis`",
            Box::new(|c| c.with_objective(Objective::Volume)),
        ),
        (
            "effort",
            &[&custom, &random, &ldg, &fennel],
            "`metis`",
            Box::new(|c| c.with_effort(MetisEffort::Fast)),
        ),
    ];
    for (option, unsupported, remedy, change) in &cases {
        for method in [&PartitionMethod::Metis, &ldg, &fennel, &random, &custom] {
            let cut = partition_graph(&g, &change(config(2, method.clone())));
            if !unsupported.contains(&method) {
                cut.unwrap();
                continue;
            }
            let name = format!("{method:?}").to_lowercase();
            let e = cut.unwrap_err();
            assert!(matches!(&e, DistError::Config { arg, .. } if arg == option), "{e}");
            let method = name.split([' ', '(']).next().unwrap();
            assert!(
                e.to_string().contains(&format!("the method `{method}`"))
                    && e.to_string().contains(remedy),
                "{e}"
            );
        }
    }
    // These methods do not balance anyway.
    partition_graph(&g, &config(2, custom).with_balance_ntypes(false)).unwrap();
}

/// Random parts have equal shares of every class if requested, and so do parts of a graph without edges.
#[test]
fn random_deals_classes_out() {
    let g = with_features();
    let mask: Vec<bool> = (0..60).map(|i| i % 5 == 0).collect();
    let shares = |parts: &PartitionedGraph, chosen: &dyn Fn(usize) -> bool| {
        let mut count = vec![0; parts.book().num_parts()];
        parts
            .assignment(0)
            .iter()
            .enumerate()
            .filter(|(i, _)| chosen(*i))
            .for_each(|(_, &p)| count[p as usize] += 1);
        count
    };
    let random = config(4, PartitionMethod::Random);
    let parts = partition_graph(&g, &random.clone().with_balance_mask("a", &mask)).unwrap();
    assert_eq!(
        (shares(&parts, &|i| mask[i]), shares(&parts, &|i| !mask[i])),
        (vec![3; 4], vec![12; 4])
    );
    check(&g, &parts);
    let parts = partition_graph(&g, &random.clone().with_balance_ntypes(true)).unwrap();
    assert_eq!(shares(&parts, &|_| true), [15; 4]);
    // In a random order given by the seed.
    let other =
        partition_graph(&g, &random.clone().with_balance_ntypes(true).with_seed(99)).unwrap();
    assert_ne!(parts.assignment(0), other.assignment(0));
    let plain = partition_graph(&g, &random).unwrap();
    assert_ne!(shares(&plain, &|_| true), [15; 4]);

    let unlinked = Graph::builder().nodes("x", 12).build().unwrap();
    for method in [PartitionMethod::Metis, LDG] {
        let first: Vec<bool> = (0..12).map(|i| i < 4).collect();
        let parts =
            partition_graph(&unlinked, &config(2, method).with_balance_mask("x", &first)).unwrap();
        assert_eq!(
            (shares(&parts, &|i| first[i]), shares(&parts, &|i| !first[i])),
            (vec![2; 2], vec![4; 2])
        );
    }
}
