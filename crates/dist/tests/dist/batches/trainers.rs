//! Several trainers per part: owned nodes, reads and writes. Tests of training are in `minibatch`.

use burn_gnn_dist::{
    DistBatch, DistError, DistGraph, DistSampler, DistTensor, LocalPartition, SplitBy, SplitOf,
    partition_graph, run_ranks,
};
use burn_gnn_graph::{Graph, HomoId};
use burn_gnn_sampling::{SampleKey, Strategy};

use crate::dist_graph::agrees;
use crate::graphs::{Sizes, anywhere, random};
use crate::ranks;

const SOME: Sizes = Sizes { nodes: [40, 12, 5], edges: [60, 80, 150, 30, 8] };

/// Parts with `n` trainers in total.
fn shares(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (1..n).filter(move |parts| n.is_multiple_of(*parts)).map(move |parts| (parts, n / parts))
}

/// Every trainer reads the whole graph.
pub(crate) fn every_trainer_reads_the_graph(n: usize) {
    let g = random(7, Sizes { nodes: [40, 12, 5], edges: [60, 40, 30, 10, 8] });
    for (parts, trainers) in shares(n) {
        for reshuffle in [true, false] {
            let cut =
                partition_graph(&g, &anywhere(&g, parts, trainers, 5).with_reshuffle(reshuffle))
                    .unwrap();
            agrees(&g, &cut, n, 5);
        }
    }
}

/// `trainer_id` is node and edge data, and assigns each seed to the rank that owns it.
pub(crate) fn trainer_ids_are_data_and_split_seeds(n: usize) {
    let g = random(5, SOME);
    for (parts, trainers) in shares(n) {
        let cut = partition_graph(&g, &anywhere(&g, parts, trainers, 5)).unwrap();
        let dir = ranks::shared_dir();
        let json = ranks::written(&cut, &dir);
        let seeds = ranks::run(n, |comm| {
            let d = DistGraph::open("g", &json, comm)?;
            let rank = d.comm().rank();
            assert_eq!(d.local_partition().part(), rank / trainers);
            let all: Vec<u64> = (0..40).collect();
            let ids = d
                .nodes("a")
                .data("trainer_id")
                .gather_int::<1>(&all)?
                .into_data()
                .iter::<i64>()
                .collect::<Vec<_>>();
            assert!(all.iter().zip(&ids).all(|(&id, &t)| t
                == i64::from(cut.trainer_ids(0)[cut.original_nids(0)[id as usize] as usize])));
            let own = d.own_nodes("a")?;
            assert!(
                own.iter()
                    .copied()
                    .eq(all.iter().copied().filter(|&id| ids[id as usize] == rank as i64))
            );
            let by_id = d.node_split("a", SplitOf::All, SplitBy::Trainer("trainer_id"))?;
            assert_eq!((&by_id.ids, by_id.counts[rank]), (&own, own.len() as u64));
            assert_eq!(d.node_split("a", SplitOf::All, SplitBy::Owner)?, by_id);
            let even = d.node_split("a", SplitOf::Mask("label"), SplitBy::Even)?;
            assert!(even.counts.iter().max().unwrap() - even.counts.iter().min().unwrap() <= 1);
            // An edge has the trainer of its destination.
            let edges = d.own_edges("self")?;
            let (_, dst) = d.find_edges("self", &edges)?;
            assert!(dst.iter().all(|id| own.contains(id)));
            assert_eq!(
                d.edge_split("self", SplitOf::All, SplitBy::Trainer("trainer_id"))?.ids,
                edges
            );
            // A seed of another trainer of the same part is not an own seed.
            let not_own: Vec<u64> =
                all.iter().copied().filter(|id| !own.contains(id)).take(1).collect();
            assert!(d.node_split("a", SplitOf::Own(&not_own), SplitBy::Owner).is_err());
            Ok::<_, DistError>((own, edges))
        });
        let sorted = |mut all: Vec<u64>| {
            all.sort_unstable();
            all
        };
        let (nodes, edges): (Vec<_>, Vec<_>) = seeds.into_iter().unzip();
        assert_eq!(sorted(nodes.concat()), (0..40).collect::<Vec<_>>());
        assert_eq!(sorted(edges.concat()), (0..150).collect::<Vec<_>>());
    }
}

/// A mutable row has one holder among the trainers.
pub(crate) fn trainers_write_one_tensor(n: usize) {
    let g = random(5, SOME);
    for (parts, trainers) in shares(n) {
        for reshuffle in [true, false] {
            let cut =
                partition_graph(&g, &anywhere(&g, parts, trainers, 5).with_reshuffle(reshuffle))
                    .unwrap();
            let own = ranks::run(n, |comm| {
                let d = DistGraph::from_partition(cut.part(comm.rank() / trainers)?, comm)?;
                let all: Vec<u64> = (0..40).collect();
                let t = DistTensor::<i64>::new(&d, "t", &[40], None, |id, _| 100 * id as i64)?;
                t.add(&all, &vec![d.comm().rank() as i64 + 1; 40])?;
                let sum = (n * (n + 1) / 2) as i64;
                let expected: Vec<i64> = all
                    .iter()
                    .map(|&id| 100 * i64::from(cut.original_nids(0)[id as usize]) + sum)
                    .collect();
                assert_eq!(t.get(&all)?, expected);
                d.nodes("a").insert("t", &t)?;
                let column = d
                    .nodes("a")
                    .data("t")
                    .gather_int::<1>(&all)?
                    .into_data()
                    .iter::<i64>()
                    .collect::<Vec<_>>();
                assert_eq!(column, expected);
                Ok::<_, DistError>(t.own_rows().len() as u64)
            });
            assert_eq!(own.iter().sum::<u64>(), 40);
            // The rows of a part are divided evenly.
            for of_part in own.chunks(trainers) {
                assert!(
                    of_part.iter().max().unwrap() - of_part.iter().min().unwrap() <= 1,
                    "{own:?}"
                );
            }
        }
    }
}

/// Inserted tensors serve as masks, weights and times like stored columns: samplers get the rows of the whole part,
/// although each trainer holds a share of them.
pub(crate) fn tensors_are_masks_weights_and_times(n: usize) {
    let g = random(5, SOME);
    for (parts, trainers) in shares(n).chain([(n, 1)]) {
        let cut = partition_graph(&g, &anywhere(&g, parts, trainers, 5)).unwrap();
        let own_type = g.schema().etype("self").unwrap();
        ranks::run(n, |comm| {
            let d = DistGraph::from_partition(cut.part(comm.rank() / trainers)?, comm)?;
            let node = |id: u64| u64::from(cut.original_nids(0)[id as usize]);
            let edge = |id: u64| u64::from(cut.original_eids(own_type)[id as usize]);
            let split = || d.node_split("a", SplitOf::Mask("train"), SplitBy::Owner);
            assert!(split().unwrap_err().to_string().contains("no column `train`"));

            let mask =
                DistTensor::<i64>::new(&d, "mask", &[40], None, |id, _| i64::from(id % 3 == 0))?;
            d.nodes("a").insert("train", &mask)?;
            let third = split()?;
            let want: Vec<u64> =
                d.own_nodes("a")?.into_iter().filter(|&id| node(id).is_multiple_of(3)).collect();
            assert_eq!((&third.ids, third.total()), (&want, 14));
            // The values at the time of the call, not of the insertion.
            let (all, rank) = ((0..40).collect::<Vec<u64>>(), d.comm().rank());
            let ids = if rank == 0 { &all[..] } else { &[] };
            mask.set(ids, &vec![1; ids.len()])?;
            assert_eq!(split()?.ids, d.own_nodes("a")?);
            let by = DistTensor::<i64>::new(&d, "by", &[40], None, |id, _| id as i64 % n as i64)?;
            d.nodes("a").insert("rank", &by)?;
            let dealt = d.node_split("a", SplitOf::All, SplitBy::Trainer("rank"))?;
            assert!(dealt.ids.iter().all(|&id| node(id) as usize % n == rank));

            let policy = Some(d.policy("edge~a:self:a")?);
            let odd = |id: u64, _: usize| (id % 2) as f32;
            let weights = DistTensor::<f32>::new(&d, "odd", &[150], policy, odd)?;
            let times = DistTensor::<i64>::new(&d, "ids", &[150], policy, |id, _| id as i64)?;
            d.edges("self").insert("odd", &weights)?;
            d.edges("self").insert("time", &times)?;
            let seeds = d.own_nodes("a")?;
            let found = |batch: DistBatch| -> Vec<u64> {
                batch.edge_ids(0, "self").iter().map(|&id| edge(id)).collect()
            };
            let key = SampleKey::new(1);
            let sampler = DistSampler::new(&d, [-1])?;
            let masked = sampler.clone().with_mask("self", "odd")?.sample([("a", &seeds)], key)?;
            let mut weighted = sampler.clone().with_weights("self", "odd")?;
            for e in (0..g.relations().len()).filter(|&e| e != own_type) {
                let shape = [g.relations()[e].num_edges()];
                let policy = Some(d.edge_policy(e)?);
                let ones =
                    DistTensor::<f32>::new(&d, &format!("ones {e}"), &shape, policy, |_, _| 1.0)?;
                d.edges(e).insert("ones", &ones)?;
                weighted = weighted.with_weights(e, "ones")?;
            }
            let weighted =
                weighted.with_strategy(Strategy::Weighted)?.sample([("a", &seeds)], key)?;
            for batch in [masked, weighted] {
                let ids = found(batch);
                assert!(ids.iter().all(|id| id % 2 == 1), "{ids:?}");
                let sums = &mut [ids.len() as f64];
                d.comm().all_reduce("edges found", sums)?;
                assert_eq!(sums[0], 75.0, "every odd edge");
            }
            let before = sampler
                .with_times("self", "time")?
                .sample_before([("a", &seeds, vec![60; seeds.len()])], key)?;
            let ids = found(before);
            assert!(ids.iter().all(|&id| id < 60), "{ids:?}");
            let sums = &mut [ids.len() as f64];
            d.comm().all_reduce("edges found", sums)?;
            assert_eq!(sums[0], 60.0, "every edge before");

            // One value each.
            let wide = DistTensor::<f32>::zeros(&d, "wide", &[150, 2], policy)?;
            d.edges("self").insert("wide", &wide)?;
            let e = DistSampler::new(&d, [-1])?.with_weights("self", "wide").unwrap_err();
            assert!(e.to_string().contains("one value per edge"), "{e}");
            Ok::<_, DistError>(())
        });
    }
}

/// A graph for several trainers per part also opens with one rank per part. Other numbers of ranks, and full-graph
/// training on such parts, are errors.
#[test]
fn ranks_that_are_no_trainers() {
    let g = random(5, SOME);
    let cut = partition_graph(&g, &anywhere(&g, 2, 3, 5)).unwrap();
    let own = run_ranks(2, |comm| {
        DistGraph::from_partition(cut.part(comm.rank())?, comm)?.own_nodes("a")
    })
    .unwrap();
    assert_eq!(own.iter().map(Vec::len).sum::<usize>(), 40);
    let e =
        run_ranks(4, |comm| DistGraph::from_partition(cut.part(comm.rank() / 2)?, comm).map(drop))
            .unwrap_err()
            .to_string();
    assert!(
        e.contains("of 4 cannot take part") && e.contains("part `i / 3` of `num_parts · 3` ranks"),
        "{e}"
    );
    let e =
        run_ranks(6, |comm| DistGraph::from_partition(cut.part(comm.rank() % 2)?, comm).map(drop))
            .unwrap_err()
            .to_string();
    assert!(e.contains("of 6 cannot take part"), "{e}");
    let device = burn::tensor::Device::flex();
    let e = run_ranks(6, |comm| {
        LocalPartition::new(&cut.part(comm.rank() / 3)?, comm, &device).map(drop)
    })
    .unwrap_err()
    .to_string();
    assert!(e.contains("of 6 cannot take part"), "{e}");
    // Trainers that are threads share one part in memory.
    let shared: Vec<_> = (0..2).map(|p| std::sync::Arc::new(cut.part(p).unwrap())).collect();
    run_ranks(6, |comm| DistGraph::from_partition(shared[comm.rank() / 3].clone(), comm).map(drop))
        .unwrap();
}

/// Trainers on the graph that a part is.
#[test]
fn a_local_graph_names_trainers() {
    let g: Graph = random(5, SOME);
    let cut = partition_graph(&g, &anywhere(&g, 2, 3, 5)).unwrap();
    let part = cut.part(1).unwrap();
    let local = part.to_graph(&burn::tensor::Device::flex()).unwrap();
    let ids = local
        .nodes("a")
        .unwrap()
        .get_int::<1>("trainer_id")
        .unwrap()
        .into_data()
        .iter::<i64>()
        .collect::<Vec<_>>();
    let nodes = part
        .global_nids()
        .iter()
        .enumerate()
        .filter(|(_, id)| part.book().global_to_node(HomoId(**id)).unwrap().ty == 0);
    let expected: Vec<i64> = nodes
        .map(|(i, _)| part.trainer_ids().unwrap().get(i).map_or(-1, |&t| i64::from(t)))
        .collect();
    assert_eq!(ids, expected);
}
