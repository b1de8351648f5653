//! The same bits for any number of threads, in any order, under other numbers.

use burn_gnn_graph::{Graph, OriginalIds, Relabel, Subgraph};
use burn_gnn_sampling::{MiniBatch, NeighborSampler, SampleKey, Strategy};
use burn_gnn_testutil::apply_if;

use crate::common::{content, skewed, typed};

/// Where edges have times, before one that is later than all of them, around a few seeds, which have a tree each.
fn sample(s: &NeighborSampler, seeds: [(&str, &[u32]); 2], key: SampleKey) -> MiniBatch {
    match s.times_of(0) {
        None => s.sample(seeds, key),
        Some(_) => {
            let few = seeds.map(|(t, ids)| (t, &ids[..ids.len().min(40)]));
            s.sample_before(few.map(|(t, ids)| (t, ids, vec![11; ids.len()])), key)
        }
    }
    .unwrap()
}

fn on_threads<T: Send>(n: usize, f: impl Fn() -> T + Sync + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(f)
}

/// Samplers of every strategy on a graph with weights and times.
fn samplers(g: &Graph) -> Vec<NeighborSampler> {
    let new = || NeighborSampler::new(g, [10, -1, 5]).unwrap();
    let weigh = |mut s: NeighborSampler| {
        for (t, r) in g.relations().iter().enumerate() {
            let weights: Vec<f32> =
                r.src().iter().zip(r.dst()).map(|(u, v)| ((u * 7 + v) % 5) as f32).collect();
            s = s.with_weights(t, &weights).unwrap();
        }
        s
    };
    let timed = |mut s: NeighborSampler| {
        for (t, r) in g.relations().iter().enumerate() {
            let times: Vec<i64> =
                r.src().iter().zip(r.dst()).map(|(u, v)| i64::from((u + v * 3) % 11)).collect();
            s = s.with_times(t, &times).unwrap();
        }
        s
    };
    let strategy = |s| weigh(new()).with_strategy(s).unwrap();
    vec![
        new(),
        new().with_replacement().unwrap(),
        new().with_disjoint(),
        strategy(Strategy::Weighted),
        strategy(Strategy::Weighted).with_replacement().unwrap(),
        strategy(Strategy::TopK),
        timed(new()).with_strategy(Strategy::Latest).unwrap(),
        // Degrees do not go with times.
        new().with_strategy(Strategy::InDegree).unwrap(),
        strategy(Strategy::Labor { layer_dependent: false }),
    ]
}

#[test]
fn equal_for_one_and_many_threads() {
    let g = typed(3_000, 900, 8);
    let (papers, authors): (Vec<u32>, Vec<u32>) = ((0..900).collect(), (10..300).collect());
    let around = |s: &NeighborSampler, key| {
        content(&sample(s, [("paper", &papers), ("author", &authors)], key))
    };
    for (i, s) in samplers(&g).iter().enumerate() {
        let sample = |n, parallel: bool| {
            let s = apply_if(!parallel, s.clone(), NeighborSampler::with_one_thread);
            on_threads(n, || around(&s, SampleKey::new(5).at(1, 9)))
        };
        let one = sample(1, true);
        for (n, parallel) in [(2, true), (5, true), (4, false)] {
            assert!(one == sample(n, parallel), "sampler {i} differs on {n} threads");
        }
        // Other batches before and after change nothing.
        for step in 0..3 {
            around(s, SampleKey::new(5).at(0, step));
        }
        assert!(one == around(s, SampleKey::new(5).at(1, 9)), "sampler {i} remembers");
        for other in
            [SampleKey::new(6).at(1, 9), SampleKey::new(5).at(0, 9), SampleKey::new(5).at(1, 8)]
        {
            // Top-k, latest and full draws know no seed.
            let differs = one != around(s, other);
            assert_eq!(differs, ![5, 6].contains(&i), "sampler {i} under {other:?}");
        }
    }
}

/// Node `i` of the result is node `order[i]` of the graph; edges keep their order.
fn renumbered(g: &Graph, order: &[Vec<u32>]) -> Subgraph {
    let named = g.schema().ntypes().iter().zip(order);
    g.node_subgraph(named, Relabel::Yes).unwrap()
}

#[test]
fn equal_on_a_renumbered_graph() {
    let g = typed(500, 200, 2);
    // 7 and 11 have no factor in common with the numbers of nodes.
    let order: Vec<Vec<u32>> =
        vec![(0..200).map(|i| i * 7 % 200).collect(), (0..500).map(|i| i * 11 % 500).collect()];
    let new = renumbered(&g, &order);
    let seeds: [Vec<u32>; 2] = [vec![3, 77], (0..60).collect()];
    let find = |t: usize| -> Vec<u32> {
        seeds[t].iter().map(|s| order[t].iter().position(|v| v == s).unwrap() as u32).collect()
    };
    for (old, renumbered) in samplers(&g).iter().zip(samplers_like(&g, &new)) {
        let key = SampleKey::new(3).at(2, 40);
        let a = sample(old, [("author", &seeds[0]), ("paper", &seeds[1])], key);
        let b = sample(&renumbered, [("author", &find(0)), ("paper", &find(1))], key);
        assert_eq!(content(&a), content(&b));
    }
}

/// [`samplers`] of the renumbered graph with the weights and times of the graph before.
fn samplers_like(g: &Graph, new: &Subgraph) -> Vec<NeighborSampler> {
    let with = |mut s: NeighborSampler, timed: bool| {
        for (t, r) in g.relations().iter().enumerate() {
            let ids = new.edge_ids[t].to_vec();
            let of = |e: u32| (r.src()[e as usize], r.dst()[e as usize]);
            let weights: Vec<f32> =
                ids.iter().map(|&e| ((of(e).0 * 7 + of(e).1) % 5) as f32).collect();
            let times: Vec<i64> =
                ids.iter().map(|&e| i64::from((of(e).0 + of(e).1 * 3) % 11)).collect();
            s = s.with_weights(t, &weights).unwrap();
            if timed {
                s = s.with_times(t, &times).unwrap();
            }
        }
        s.with_original_ids(new).unwrap()
    };
    let untimed = || NeighborSampler::new(&new.graph, [10, -1, 5]).unwrap();
    let by_degree =
        untimed().with_original_ids(new).unwrap().with_strategy(Strategy::InDegree).unwrap();
    let latest = with(untimed(), true).with_strategy(Strategy::Latest).unwrap();
    let new = || with(untimed(), false);
    vec![
        new(),
        new().with_replacement().unwrap(),
        new().with_disjoint(),
        new().with_strategy(Strategy::Weighted).unwrap(),
        new().with_strategy(Strategy::Weighted).unwrap().with_replacement().unwrap(),
        new().with_strategy(Strategy::TopK).unwrap(),
        latest,
        by_degree,
        new().with_strategy(Strategy::Labor { layer_dependent: false }).unwrap(),
    ]
}

#[test]
fn rows_in_another_order_are_refused() {
    let g = skewed(20, 60, 1);
    let same = g.edge_subgraph([("_E", (0..60).collect::<Vec<u32>>())], Relabel::No).unwrap();
    assert!(NeighborSampler::new(&g, [1]).unwrap().with_original_ids(&same).is_ok());
    let reordered =
        g.edge_subgraph([("_E", (0..60).rev().collect::<Vec<u32>>())], Relabel::No).unwrap();
    let e = NeighborSampler::new(&reordered.graph, [1])
        .unwrap()
        .with_original_ids(&reordered)
        .unwrap_err()
        .to_string();
    assert!(
        e.starts_with("`original_ids`: expected the in-edges of each node of `_N:_E:_N` in ascending order of original ids"),
        "{e}"
    );
    let mut short = same;
    short.node_ids = vec![OriginalIds::clone(&reordered.edge_ids[0])];
    assert!(NeighborSampler::new(&g, [1]).unwrap().with_original_ids(&short).is_err());
}
