//! Partitioning of graphs in files.

use std::sync::Arc;

use burn_gnn_store::*;
use burn_gnn_structure::EdgeReader;
use proptest::prelude::*;

type Edges = Vec<(u32, u32)>;

fn build(dir: &std::path::Path, n: usize, edges: &Edges) -> Arc<StoredCsc> {
    let path = dir.join("csc");
    CscBuild::new(&path, n, n).run(EdgeIter::new(edges.clone())).unwrap();
    StoredCsc::open(&path).unwrap()
}

/// A node by type and id.
type Node = (usize, u32);

/// LDG and Fennel by definition, with all edges at every node, for `counts` nodes of each type. Destinations have the
/// types `into`; nodes of all other types follow a majority vote.
fn by_definition(
    counts: &[usize],
    edges: &[(Node, Node)],
    into: &[bool],
    parts: usize,
    method: StreamMethod,
    passes: usize,
) -> Vec<Vec<u32>> {
    let range = |(t, v): Node| v as usize * parts / counts[t];
    let between = edges.iter().filter(|e| range(e.0) != range(e.1)).count() as f64;
    let local = between < 0.8 * (1.0 - 1.0 / parts as f64) * edges.len() as f64
        && counts.iter().any(|&n| n >= parts);
    let nodes = |t: usize| (0..counts[t] as u32).map(move |v| (t, v));
    let ranges: Vec<Vec<Option<usize>>> =
        (0..counts.len()).map(|t| nodes(t).map(|v| Some(range(v))).collect()).collect();
    let mut part: Vec<Vec<Option<usize>>> =
        if local { ranges.clone() } else { counts.iter().map(|&n| vec![None; n]).collect() };
    for _ in 0..passes {
        let mut sizes = vec![vec![0usize; parts]; counts.len()];
        let mut left: usize = counts.iter().sum();
        let mut choose = |t: usize, neighbours: &dyn Fn(usize) -> usize| {
            let mean = counts[t] as f64 / parts as f64;
            let most = ((mean * 1.05) as usize).max(counts[t].div_ceil(parts));
            let into = edges.iter().filter(|e| e.1.0 == t).count() as f64;
            let score = |p: usize| {
                let (fill, n) = (sizes[t][p] as f64 / mean, neighbours(p) as f64);
                let score = match method {
                    StreamMethod::Ldg => n * (1.0 - fill / 1.05).max(0.0),
                    _ => n - 0.75 * into / counts[t] as f64 * fill.sqrt(),
                };
                (score, -fill)
            };
            let better = |best: Option<usize>, p: usize| match best {
                Some(b) if score(p) <= score(b) => Some(b),
                _ => Some(p),
            };
            // The number of remaining nodes equals that of empty parts.
            let is_empty = |p: usize| sizes.iter().all(|of| of[p] == 0);
            let all_needed = (0..parts).filter(|&p| is_empty(p)).count() == left;
            let free = |&p: &usize| sizes[t][p] < most && (!all_needed || is_empty(p));
            let best = (0..parts).filter(free).fold(None, better).unwrap();
            sizes[t][best] += 1;
            left -= 1;
            best
        };
        for t in (0..counts.len()).filter(|&t| into[t]) {
            for v in nodes(t) {
                let of = |p: usize| {
                    let own = |e: &&(Node, Node)| {
                        e.1 == v && e.0 != v && part[e.0.0][e.0.1 as usize] == Some(p)
                    };
                    edges.iter().filter(own).count()
                };
                let p = choose(t, &of);
                part[t][v.1 as usize] = Some(p);
            }
        }
        for t in (0..counts.len()).filter(|&t| !into[t]) {
            for v in nodes(t) {
                // Destinations of its edges in the order of their assignment.
                let mut ends: Vec<Node> = edges.iter().filter(|e| e.0 == v).map(|e| e.1).collect();
                ends.sort_unstable();
                let (mut first, mut lead) = (0, 0);
                for (t, v) in ends {
                    let p = part[t][v as usize].unwrap();
                    match (lead, p == first) {
                        (0, _) => (first, lead) = (p, 1),
                        (_, true) => lead += 1,
                        (_, false) => lead -= 1,
                    }
                }
                let p = choose(t, &|p| if p == first { lead } else { 0 });
                part[t][v.1 as usize] = Some(p);
            }
        }
    }
    let cut =
        edges.iter().filter(|(u, v)| part[u.0][u.1 as usize] != part[v.0][v.1 as usize]).count()
            as f64;
    let found = if local && cut >= between { ranges } else { part };
    found.into_iter().map(|of| of.into_iter().map(|p| p.unwrap() as u32).collect()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn equals_the_definition(n in 1usize..60, edges in proptest::collection::vec((0u32..60, 0u32..60), 0..300), parts in 1usize..9, passes in 1usize..4) {
        let edges: Edges = edges.into_iter().filter(|e| (e.0 as usize) < n && (e.1 as usize) < n).collect();
        let typed: Vec<(Node, Node)> = edges.iter().map(|e| ((0, e.0), (0, e.1))).collect();
        let dir = tempfile::tempdir().unwrap();
        let csc = build(dir.path(), n, &edges);
        for method in [StreamMethod::Ldg, StreamMethod::Fennel] {
            let of = StreamCut::new(parts).with_method(method).with_passes(passes).assign(&csc).unwrap();
            prop_assert_eq!(of.part_of(..), &by_definition(&[n], &typed, &[true], parts, method, passes)[0]);
            prop_assert!(n < parts || !of.sizes(..).contains(&0), "an empty part: {:?}", of.sizes(..));
            let cut = edges.iter().filter(|e| of.part_of(..)[e.0 as usize] != of.part_of(..)[e.1 as usize]).count();
            prop_assert_eq!(of.cut(&csc).unwrap(), cut as f64 / edges.len().max(1) as f64);
            let written = of.write(&csc, dir.path().join("parts")).unwrap();
            written.verify(&csc).unwrap();
            let opened = StoredParts::open(dir.path().join("parts")).unwrap();
            prop_assert_eq!((opened.parts(), opened.bytes()), (parts, written.bytes()));
            let mut nodes: Vec<u32> = vec![];
            for p in 0..parts {
                nodes.extend(opened.part(p).unwrap().inner(..));
            }
            nodes.sort_unstable();
            prop_assert_eq!(nodes, (0..n as u32).collect::<Vec<_>>());
        }
    }
}

#[cfg(feature = "sampling")]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Several types: authors without in-edges, papers, and topics without edges.
    #[test]
    fn types_as_defined(
        cites in proptest::collection::vec((0u32..40, 0u32..40), 0..200), writes in proptest::collection::vec((0u32..25, 0u32..40), 0..200),
        about in proptest::collection::vec((0u32..40, 0u32..7), 0..60), parts in 1usize..9, passes in 1usize..4,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let relations = [("paper", "about", "topic", &about, (40, 7)), ("author", "writes", "paper", &writes, (25, 40)), ("paper", "cites", "paper", &cites, (40, 40))];
        for (_, name, _, edges, (src, dst)) in relations {
            CscBuild::new(dir.path().join(name), src, dst).run(EdgeIter::new(edges.clone())).unwrap();
        }
        let types = [("topic", 7), ("paper", 40), ("author", 25), ("venue", 3)];
        let stored = StoredGraph::create(dir.path(), types, relations.map(|(s, r, d, ..)| ((s, r, d), r))).unwrap();
        // Types by name: author, paper, topic, venue.
        let number = |name: &str| stored.graph().schema().ntype(name).unwrap();
        let mut edges: Vec<(Node, Node)> = vec![];
        for (s, _, d, of, _) in relations {
            edges.extend(of.iter().map(|e| ((number(s), e.0), (number(d), e.1))));
        }
        for method in [StreamMethod::Ldg, StreamMethod::Fennel] {
            let of = StreamCut::new(parts).with_method(method).with_passes(passes).assign(&stored).unwrap();
            let expected = by_definition(&[25, 40, 7, 3], &edges, &[false, true, true, false], parts, method, passes);
            let names = ["author", "paper", "topic", "venue"];
            prop_assert!((0..parts).all(|p| names.iter().any(|name| of.sizes(*name)[p] > 0)), "an empty part");
            for (t, name) in names.into_iter().enumerate() {
                prop_assert_eq!(of.part_of(name), &expected[t], "{}", name);
                prop_assert!(of.sizes(name).into_iter().all(|n| n <= ((expected[t].len() as f64 / parts as f64 * 1.05) as usize).max(expected[t].len().div_ceil(parts))));
            }
            let cut = edges.iter().filter(|((s, u), (d, v))| expected[*s][*u as usize] != expected[*d][*v as usize]).count();
            prop_assert_eq!(of.cut(&stored).unwrap(), cut as f64 / edges.len().max(1) as f64);
            let written = of.write(&stored, dir.path().join("parts")).unwrap();
            written.verify(&stored).unwrap();
            let opened = StoredParts::open(dir.path().join("parts")).unwrap();
            prop_assert_eq!((opened.parts(), opened.bytes()), (parts, written.bytes()));
            // A part's edges by original ids, of all relations.
            let mut found: Vec<(Node, Node)> = vec![];
            for p in 0..parts {
                let part = opened.part(p).unwrap();
                for (s, relation, d, ..) in relations {
                    let csc = part.csc(relation);
                    let (r, src, dst) = (csc.relation().unwrap(), part.nodes(s), part.inner(d));
                    found.extend(r.src().iter().zip(r.dst()).map(|(&u, &v)| ((number(s), src[u as usize]), (number(d), dst[v as usize]))));
                }
            }
            found.sort_unstable();
            let mut all = edges.clone();
            all.sort_unstable();
            prop_assert_eq!(found, all);
        }
    }
}

/// Parts of another graph, or of another partitioning, of several types.
#[cfg(feature = "sampling")]
#[test]
fn wrong_parts_of_types() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let graph = |edges: u32, shift: u32| {
        for (name, nodes, step) in [("buys", (20, 9), 3), ("bought", (9, 20), 5)] {
            let (s, d) = nodes;
            let edges = (0..edges).map(|i| ((i * step + shift) % s, i % d));
            CscBuild::new(dir.join(name), s as usize, d as usize)
                .run(EdgeIter::new(edges))
                .unwrap();
        }
        let types = [("user", 20), ("item", 9)];
        let relations =
            [(("user", "buys", "item"), "buys"), (("item", "bought", "user"), "bought")];
        StoredGraph::create(dir, types, relations).unwrap()
    };
    let of = |moved: bool| {
        let users = (0..20).map(|v| u32::from(v % 2 == 1) ^ u32::from(moved && v == 4)).collect();
        Assignment::of_types([("user", users), ("item", vec![0, 0, 1, 1, 0, 1, 0, 1, 0])], 2)
            .unwrap()
    };
    let (stored, parts) = (graph(90, 0), dir.join("parts"));
    let written = of(false).write(&stored, &parts).unwrap();
    written.verify(&stored).unwrap();
    let e = written.verify(&graph(90, 1)).unwrap_err().to_string();
    assert!(e.contains("expected the in-edges of the graph"), "{e}");
    let stored = graph(90, 0);
    written.verify(&stored).unwrap();
    let csc = build(dir, 20, &vec![(0, 1)]);
    let e = written.verify(&csc).unwrap_err().to_string();
    assert!(
        e.contains("expected node types _N with edges _N:_E:_N, found node types item, user"),
        "{e}"
    );
    let e = of(false).write(&csc, &parts).unwrap_err().to_string();
    assert!(e.contains("the parts of the node types [\"_N\"]") && e.contains("item"), "{e}");
    // A rejected write has removed nothing.
    written.verify(&stored).unwrap();
    let e = Assignment::of_types([("user", vec![0; 20]), ("item", vec![0; 8])], 2).unwrap();
    let e = e.cut(&stored).unwrap_err().to_string();
    assert!(e.contains("the parts of 9 nodes of type `item`") && e.contains("those of 8"), "{e}");
    assert!(Assignment::of_types([("user", vec![0]), ("user", vec![0])], 2).is_err());
    let e = Assignment::of_types([("user", vec![2])], 2).unwrap_err().to_string();
    assert!(e.contains("user") && e.contains("part_of"), "{e}");
    // The file of one relation is from another partitioning.
    let file = parts.join("part-00000.1.csc");
    let save = std::fs::read(&file).unwrap();
    of(true).write(&stored, &parts).unwrap();
    std::fs::write(&file, save).unwrap();
    let e = StoredPart::open(&parts, 0).unwrap_err().to_string();
    assert!(e.contains("part-00000.1.csc") && e.contains("one partitioning"), "{e}");
    std::fs::remove_file(&file).unwrap();
    assert!(StoredPart::open(&parts, 0).unwrap_err().to_string().contains("part-00000.1.csc"));
    assert!(StoredPart::open(&parts, 1).is_ok());
}

/// With a third as many parts as nodes, assignment by score alone leaves parts empty.
#[test]
fn no_part_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let edges: Edges = (0..3000u32).map(|i| (i * i * 31 % 400, i * 7 % 400)).collect();
    let csc = build(dir.path(), 400, &edges);
    for (method, passes) in
        [(StreamMethod::Ldg, 1), (StreamMethod::Ldg, 5), (StreamMethod::Fennel, 2)]
    {
        let of = StreamCut::new(128).with_method(method).with_passes(passes).assign(&csc).unwrap();
        let sizes = of.sizes(..);
        assert!(sizes.iter().all(|s| (1..=4).contains(s)), "{method:?}, {passes}: {sizes:?}");
    }
}

/// Communities are detected: far fewer cut edges than for a random assignment, within the bound on sizes.
#[test]
fn communities() {
    let dir = tempfile::tempdir().unwrap();
    let (n, of) = (8000u32, 8);
    let hash = |x: u32| (x.wrapping_mul(2_654_435_761) ^ 0x9e37).wrapping_mul(0x85eb_ca6b) >> 8;
    // Communities as ranges of ids, and interleaved.
    for (dealt, most) in [(false, 0.2), (true, 0.8)] {
        let edges: Edges = (0..n * 12)
            .map(|i| {
                let (v, any) = (i % n, hash(i + 7));
                let inside = if dealt {
                    any % (n / of) * of + v % of
                } else {
                    v / (n / of) * (n / of) + any % (n / of)
                };
                (if hash(i) % 10 < 9 { inside } else { hash(i + 13) % n }, v)
            })
            .collect();
        let csc = build(dir.path(), n as usize, &edges);
        for method in [StreamMethod::Ldg, StreamMethod::Fennel] {
            let parts = StreamCut::new(4).with_method(method).with_passes(5).assign(&csc).unwrap();
            let (cut, random) = (parts.cut(&csc).unwrap(), 0.75);
            println!("{method:?}, dealt {dealt}: {cut}");
            assert!(cut < most * random, "{method:?}, dealt {dealt}: {cut}");
            assert!(parts.sizes(..).iter().all(|&s| s <= 2100), "{:?}", parts.sizes(..));
        }
    }
}

/// `verify` detects an edge of another node, a node in two parts, and a changed byte.
#[test]
fn wrong_parts() {
    let dir = tempfile::tempdir().unwrap();
    let edges: Edges = (0..400u32).map(|i| (i * 7 % 50, i % 50)).collect();
    let csc = build(dir.path(), 50, &edges);
    let parts = dir.path().join("parts");
    let of = |second: bool| {
        Assignment::new(
            (0..50).map(|v| u32::from(v % 2 == 1) ^ u32::from(second && v == 7)).collect(),
            2,
        )
        .unwrap()
    };
    let written = of(false).write(&csc, &parts).unwrap();
    written.verify(&csc).unwrap();
    // The parts of another graph.
    let other: Edges = (0..400u32).map(|i| (i * 3 % 50, i % 50)).collect();
    let path = dir.path().join("other");
    CscBuild::new(&path, 50, 50).run(EdgeIter::new(other)).unwrap();
    let e = written.verify(&StoredCsc::open(&path).unwrap()).unwrap_err();
    assert!(e.to_string().contains("expected the in-edges of the graph"), "{e}");
    // Part 1 of another partitioning: node 7 is in both parts.
    let save = ["nodes", "0.csc"].map(|f| {
        (
            parts.join(format!("part-00000.{f}")),
            std::fs::read(parts.join(format!("part-00000.{f}"))).unwrap(),
        )
    });
    of(true).write(&csc, &parts).unwrap();
    written.verify(&csc).unwrap();
    save.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    let e = written.verify(&csc).unwrap_err();
    assert!(e.to_string().contains("one partitioning"), "{e}");
    of(false).write(&csc, &parts).unwrap();
    let file = parts.join("part-00001.nodes");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[4096 + 3] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert!(matches!(written.verify(&csc), Err(StoreError::Damaged { .. })));
    assert!(StreamCut::new(0).assign(&csc).is_err() && Assignment::new(vec![2], 2).is_err());
    assert!(csc.num_edges() == 400);
}

/// Parts of an older partitioning in the folder are removed, and both files of a part must belong to one partitioning.
#[test]
fn parts_of_two_cuts_are_not_mixed() {
    let dir = tempfile::tempdir().unwrap();
    let csc = build(dir.path(), 6, &vec![(0, 1), (2, 3), (4, 5), (1, 0)]);
    let parts = dir.path().join("parts");
    Assignment::new(vec![0, 1, 2, 3, 0, 1], 4).unwrap().write(&csc, &parts).unwrap();
    let old = std::fs::read(parts.join("part-00001.nodes")).unwrap();
    std::fs::write(parts.join("part-list.csc"), "not a part").unwrap();
    Assignment::new(vec![0, 1, 0, 1, 0, 1], 2).unwrap().write(&csc, &parts).unwrap();
    assert!(StoredPart::open(&parts, 1).is_ok() && StoredPart::open(&parts, 2).is_err());
    assert_eq!(std::fs::read_dir(&parts).unwrap().count(), 5);
    std::fs::write(parts.join("part-00001.nodes"), old).unwrap();
    let e = StoredPart::open(&parts, 1).unwrap_err().to_string();
    assert!(e.contains("one partitioning"), "{e}");
}

#[test]
fn assignments_that_do_not_match_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bipartite");
    CscBuild::new(&path, 100, 10).run(EdgeIter::new([(99, 3)])).unwrap();
    let bipartite = StoredCsc::open(&path).unwrap();
    let of = Assignment::new(vec![0; 10], 1).unwrap();
    assert!(
        of.write(&bipartite, dir.path().join("parts"))
            .unwrap_err()
            .to_string()
            .contains("one node type")
    );
    assert!(of.cut(&bipartite).is_err());
    let csc = build(dir.path(), 4, &vec![(0, 1)]);
    assert!(of.cut(&csc).unwrap_err().to_string().contains("the parts of 4 nodes"));
}

/// Files with right checksums that are not a valid part.
#[test]
fn invalid_parts_with_right_checksums_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let csc = build(dir.path(), 6, &vec![(0, 1), (2, 3), (4, 5), (1, 0)]);
    let parts = dir.path().join("parts");
    let of = |part_of: [u32; 6]| Assignment::new(part_of.to_vec(), 2).unwrap();
    let written = of([0, 1, 0, 1, 0, 1]).write(&csc, &parts).unwrap();
    written.verify(&csc).unwrap();
    // Parts of a graph with more nodes and the same edges.
    let more = dir.path().join("more");
    std::fs::create_dir(&more).unwrap();
    let wide = build(&more, 7, &vec![(0, 1), (2, 3), (4, 5), (1, 0)]);
    let e = written.verify(&wide).unwrap_err().to_string();
    assert!(e.contains("`_N`: expected 7 nodes, found 6"), "{e}");
    // One part of each of two partitionings.
    let saved = ["nodes", "0.csc"].map(|ending| {
        let path = parts.join(format!("part-00000.{ending}"));
        (path.clone(), std::fs::read(path).unwrap())
    });
    of([0, 0, 0, 1, 1, 1]).write(&csc, &parts).unwrap();
    saved.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    let e = written.verify(&csc).unwrap_err().to_string();
    assert!(e.contains("one partitioning"), "{e}");
}
