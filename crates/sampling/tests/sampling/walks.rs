//! Random walks, node2vec and PinSAGE.

use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_sampling::{NO_NODE, NegativeSampler, Node2Vec, PinSage, RandomWalk, SampleKey};

use crate::common::{chi_square, limit, skewed, typed};

#[test]
fn walks_follow_edges_of_the_metapath() {
    let g = typed(80, 30, 4);
    let path = ["writes", "written", "writes", "cites"];
    let walk = RandomWalk::new(&g, &path).unwrap();
    let walks = walk.walk(&[0, 5, 29], 20, SampleKey::new(3)).unwrap();
    assert_eq!((walks.len(), walks.length), (60, 4));
    for i in 0..60 {
        let nodes = walks.walk(i);
        assert_eq!(nodes[0], [0, 5, 29][i / 20]);
        for (step, w) in nodes.windows(2).enumerate() {
            let (r, e) = (g.relation(path[step]).unwrap(), walks.edges[i * 4 + step] as usize);
            assert_eq!((r.src()[e], r.dst()[e]), (w[0], w[1]));
        }
        assert!(walks.nodes[i * 5 + nodes.len()..(i + 1) * 5].iter().all(|&v| v == NO_NODE));
    }
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(walks, pool.install(|| walk.walk(&[0, 5, 29], 20, SampleKey::new(3)).unwrap()));
    }
    assert_ne!(walks, walk.walk(&[0, 5, 29], 20, SampleKey::new(4)).unwrap());
}

#[test]
fn a_star_is_walked_over_all_its_leaves() {
    // More leaves than a cut-off at 100 would leave.
    let leaves = 200;
    let g = Graph::homogeneous(leaves + 1, vec![0; leaves], (1..=leaves as u32).collect()).unwrap();
    let count = |w: RandomWalk| {
        let mut counts = vec![0.0; leaves];
        w.walk(&[0], 40_000, SampleKey::new(1))
            .unwrap()
            .nodes
            .iter()
            .skip(1)
            .step_by(2)
            .for_each(|&v| counts[v as usize - 1] += 1.0);
        counts
    };
    let walk = || RandomWalk::new(&g, &["_E"]).unwrap();
    assert!(chi_square(&count(walk()), &vec![200.0; leaves]) < limit(leaves - 1));
    let weights: Vec<f32> = (0..leaves).map(|i| [1.0, 3.0][i % 2]).collect();
    let expected: Vec<f64> = (0..leaves).map(|i| [100.0, 300.0][i % 2]).collect();
    assert!(
        chi_square(&count(walk().with_weights("_E", &weights).unwrap()), &expected)
            < limit(leaves - 1)
    );
}

#[test]
fn walks_stop_as_often_as_asked() {
    let ring = Graph::homogeneous(3, vec![0, 1, 2], vec![1, 2, 0]).unwrap();
    let walk = RandomWalk::new(&ring, &["_E"; 3]).unwrap().with_stop_probability(0.25).unwrap();
    let walks = walk.walk(&[0], 16_000, SampleKey::new(2)).unwrap();
    let mut lengths = [0.0; 4];
    (0..walks.len()).for_each(|i| lengths[walks.walk(i).len() - 1] += 1.0);
    let expected = [0.25, 0.1875, 0.140625, 0.421875].map(|p| p * 16_000.0);
    assert!(chi_square(&lengths, &expected) < limit(3), "{lengths:?}");
}

#[test]
fn node2vec_weighs_by_the_node_before() {
    // From 0 by way of 1: back to 0 (1/p), on to 2, which leads to 0 (1), or to 3, which does not (1/q), though 0 leads
    // to it.
    let g = Graph::homogeneous(4, vec![0, 0, 1, 1, 1, 2], vec![1, 3, 0, 2, 3, 0]).unwrap();
    let walk = Node2Vec::new(&g, "_E", 4.0, 0.5).unwrap();
    let walks = walk.walk(&[0], 60_000, 2, SampleKey::new(5)).unwrap();
    let mut counts = [0.0; 4];
    let by_way: Vec<&[u32]> =
        (0..walks.len()).map(|i| walks.walk(i)).filter(|w| w.len() == 3 && w[1] == 1).collect();
    by_way.iter().for_each(|w| counts[w[2] as usize] += 1.0);
    let (total, n) = (0.25 + 1.0 + 2.0, by_way.len() as f64);
    assert!(
        chi_square(&[counts[0], counts[2], counts[3]], &[0.25, 1.0, 2.0].map(|a| a / total * n))
            < limit(2),
        "{counts:?}"
    );
    assert_eq!(counts[1], 0.0);
    let first = (0..walks.len()).filter(|&i| walks.walk(i)[1] == 1).count() as f64;
    assert!(
        chi_square(&[first, 60_000.0 - first], &[30_000.0; 2]) < limit(1),
        "the first step has no bias"
    );
    let weighted = Node2Vec::new(&g, "_E", 4.0, 0.5)
        .unwrap()
        .with_weights(&[1.0, 0.0, 2.0, 0.0, 1.0, 1.0])
        .unwrap();
    let walks = weighted.walk(&[0], 30_000, 2, SampleKey::new(5)).unwrap();
    let back = (0..walks.len()).filter(|&i| walks.walk(i) == [0, 1, 0]).count() as f64;
    let expected = 30_000.0 * 0.5 / 2.5; // 2 · 1/4 against 1 · 2
    assert!(
        chi_square(&[back, 30_000.0 - back], &[expected, 30_000.0 - expected]) < limit(1),
        "{back}"
    );
}

/// Runs `f` on a thread; one that does not end fails the test.
fn endpoints<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(f()));
    receive.recv_timeout(std::time::Duration::from_secs(60)).expect("still walking after a minute")
}

#[test]
fn node2vec_ends_for_any_parameters() {
    let near_0 = f64::MIN_POSITIVE / 8.0;
    for (p, q) in [
        (1e12, 1.0),
        (1e300, 1e-300),
        (1e-310, 1.0),
        (1.0, 1e-310),
        (1e-310, 1e300),
        (f64::MAX, near_0),
        (near_0, f64::MAX),
    ] {
        // A leaf leads nowhere but back.
        let pair = Graph::homogeneous(2, vec![0, 1], vec![1, 0]).unwrap();
        for weight in [None, Some(0.5)] {
            let mut walk = Node2Vec::new(&pair, "_E", p, q).unwrap();
            if let Some(w) = weight {
                walk = walk.with_weights(&[w; 2]).unwrap();
            }
            let walks = endpoints(move || walk.walk(&[0], 4, 6, SampleKey::new(3)).unwrap());
            assert!((0..4).all(|i| walks.walk(i) == [0, 1, 0, 1, 0, 1, 0]), "p {p}, q {q}");
        }
    }
}

#[test]
fn node2vec_weighs_neighbours_as_it_draws_them() {
    // From 0 by way of 1: back with 1/p, to 2, 3 or 4 with 1/q, all far below what 0's other neighbours would have: no
    // draw is accepted.
    let g = Graph::homogeneous(5, vec![0, 1, 1, 1, 1], vec![1, 0, 2, 3, 4]).unwrap();
    let weights = [1.0, 1.0, 2.0, 0.0, 3.0];
    for (weights, shares) in
        [(None, [1.0, 0.0, 3.0, 3.0, 3.0]), (Some(weights), [1.0, 0.0, 6.0, 0.0, 9.0])]
    {
        let mut walk = Node2Vec::new(&g, "_E", 3e15, 1e15).unwrap();
        if let Some(weights) = weights {
            walk = walk.with_weights(&weights).unwrap();
        }
        let walks = endpoints(move || walk.walk(&[0], 20_000, 2, SampleKey::new(11)).unwrap());
        let mut counts = [0.0; 5];
        (0..20_000).for_each(|i| counts[walks.walk(i)[2] as usize] += 1.0);
        let (total, possible): (f64, Vec<usize>) =
            (shares.iter().sum(), (0..5).filter(|&v| shares[v] > 0.0).collect());
        let expected: Vec<f64> = possible.iter().map(|&v| shares[v] / total * 20_000.0).collect();
        let found: Vec<f64> = possible.iter().map(|&v| counts[v]).collect();
        assert!(chi_square(&found, &expected) < limit(possible.len() - 1), "{counts:?}");
        assert_eq!(found.iter().sum::<f64>(), 20_000.0);
    }
}

#[test]
fn more_walks_than_memory_holds() {
    let g = typed(5, 4, 1);
    let many =
        |e: GraphError| matches!(e, GraphError::OutOfMemory { bytes, .. } if bytes > 1 << 44);
    let (walk, cites) =
        (RandomWalk::new(&g, &["writes"]).unwrap(), Node2Vec::new(&g, "cites", 1.0, 1.0).unwrap());
    let key = SampleKey::new(0);
    assert!(many(walk.walk(&[0; 4000], u32::MAX as usize, key).unwrap_err()));
    assert!(many(cites.walk(&[0], 1, usize::MAX, key).unwrap_err()));
    assert!(many(cites.walk(&[0], 1, usize::MAX - 1, key).unwrap_err()));
    // No walks need no room, of whatever length.
    for none in [
        cites.walk(&[], 1, usize::MAX, key),
        cites.walk(&[0], 0, usize::MAX, key),
        walk.walk(&[], 3, key),
    ] {
        let none = none.unwrap();
        assert_eq!((none.is_empty(), none.len()), (true, 0));
    }
    // Two walks of 2^63 each are none where their number wraps around.
    assert!(matches!(
        walk.walk(&[0, 1], 1 << 63, key),
        Err(GraphError::Setting { arg: "per_start", .. })
    ));
    assert!(many(PinSage::new(&g, &["written", "writes"], usize::MAX, 0.5).unwrap_err()));
    assert_eq!(walk.walk(&[0], 0, key).unwrap().len(), 0);
    let negatives = NegativeSampler::new(&g, "cites").unwrap();
    assert!(many(negatives.per_source(&[0], &[0], usize::MAX, key).unwrap_err()));
    assert!(many(negatives.global(usize::MAX, key).unwrap_err()));
}

#[test]
fn pinsage_counts_what_walks_meet() {
    let g = typed(60, 20, 9);
    let near = PinSage::new(&g, &["written", "writes"], 3, 0.3).unwrap();
    let seeds = [0, 7, 59];
    let visits = near.neighbors(&seeds, 200, 5, SampleKey::new(1)).unwrap();
    for &seed in &seeds {
        let of: Vec<(u32, u32)> = (0..visits.src.len())
            .filter(|&i| visits.dst[i] == seed)
            .map(|i| (visits.counts[i], visits.src[i]))
            .collect();
        assert!(
            of.len() <= 5
                && of.windows(2).all(|w| w[0].0 > w[1].0 || (w[0].0 == w[1].0 && w[0].1 < w[1].1)),
            "{of:?}"
        );
    }
    assert_eq!(visits.relation(near.num_nodes()).unwrap().num_edges(), visits.src.len());
    // One item and one user: every round comes back, the first always, the second in 7 of 10 walks, the third in 49
    // of 100.
    let pair = Graph::builder()
        .edges(("i", "to", "u"), vec![0], vec![0])
        .edges(("u", "from", "i"), vec![0], vec![0])
        .build()
        .unwrap();
    let visits = PinSage::new(&pair, &["to", "from"], 3, 0.3)
        .unwrap()
        .neighbors(&[0], 20_000, 1, SampleKey::new(1))
        .unwrap();
    let mean = f64::from(visits.counts[0]) / 20_000.0;
    assert!((mean - 2.19).abs() < 0.03, "{mean}");
}

#[test]
fn what_is_refused() {
    let g = typed(5, 4, 1);
    assert!(matches!(
        RandomWalk::new(&g, &["writes", "writes"]),
        Err(GraphError::Metapath { position: 1, .. })
    ));
    assert!(matches!(RandomWalk::new::<&str>(&g, &[]), Err(GraphError::Empty { .. })));
    let w = || RandomWalk::new(&g, &["writes"]).unwrap();
    assert!(matches!(w().walk(&[4], 1, SampleKey::new(0)), Err(GraphError::NodeOutOfRange { .. })));
    assert!(
        w().with_stop_probability(f64::NAN).is_err()
            && w().with_weights("writes", &[f32::NAN; 15]).is_err()
    );
    assert!(matches!(Node2Vec::new(&g, "writes", 1.0, 1.0), Err(GraphError::Bipartite { .. })));
    assert!(matches!(
        Node2Vec::new(&g, "cites", 0.0, 1.0),
        Err(GraphError::Setting { arg: "p", .. })
    ));
    assert!(
        Node2Vec::new(&g, "cites", 1.0, 1.0).unwrap().walk(&[0], 1, 0, SampleKey::new(0)).is_err()
    );
    assert!(matches!(
        PinSage::new(&g, &["writes"], 1, 0.5),
        Err(GraphError::Setting { arg: "metapath", .. })
    ));
    let isolated = skewed(3, 0, 1);
    let walks = Node2Vec::new(&isolated, "_E", 1.0, 1.0)
        .unwrap()
        .walk(&[2], 1, 3, SampleKey::new(0))
        .unwrap();
    assert_eq!(walks.walk(0), [2]);
}
