//! Compares the predicted bytes of a step with those that the communicator counts.

use std::sync::Arc;

use burn::tensor::{DType, Device, Tensor};
use burn_gnn_dist::{
    Communicator, DistError, LocalPartition, Metered, PartitionConfig, PartitionMethod,
    PartitionedGraph, StepTraffic, partition_graph,
};
use burn_gnn_graph::Graph;
use burn_gnn_ops::GraphView;

use crate::graphs::{scattered, typed};
use crate::ranks::run;

/// Feature sizes of two exchanges by node type; only the second sends gradients back.
fn widths(g: &Graph) -> [Vec<(String, usize)>; 2] {
    [5, 3]
        .map(|w| g.schema().ntypes().iter().enumerate().map(|(t, n)| (n.clone(), w + t)).collect())
}

/// For each rank, the bytes that it sends in a step with two exchanges and sums of 100 and 2 numbers, and its inner
/// nodes and its halo.
fn measured(g: &Graph, parts: &PartitionedGraph) -> Vec<Vec<Vec<u64>>> {
    let widths = widths(g);
    run(parts.book().num_parts(), |comm| {
        let comm = Arc::new(Metered::new(comm));
        let device = Device::flex().autodiff();
        let part = LocalPartition::new(&parts.part(comm.rank())?, comm.clone(), &device)?;
        let before = comm.traffic().bytes_sent;
        let rows = |w: &[(String, usize)]| -> Vec<Tensor<2>> {
            w.iter()
                .map(|(ntype, width)| {
                    Tensor::ones([part.num_inner(ntype), *width], (&device, DType::F32))
                })
                .collect()
        };
        part.src_rows("features", rows(&widths[0]));
        let x: Vec<Tensor<2>> = rows(&widths[1]).into_iter().map(Tensor::require_grad).collect();
        let loss = part
            .src_rows("hidden", x)
            .into_iter()
            .fold(Tensor::<1>::zeros([1], &device), |sum, x| sum + x.sum());
        loss.backward();
        comm.all_reduce("gradients", &mut [0.0; 100])?;
        comm.all_reduce("loss", &mut [0.0; 2])?;
        let names = part.book().ntypes().to_vec();
        let halo = names.iter().map(|n| part.halo_nodes(n).len() as u64).collect();
        let inner = names.iter().map(|n| part.num_inner(n) as u64).collect();
        Ok::<_, DistError>(vec![vec![comm.traffic().bytes_sent - before], inner, halo])
    })
}

fn check(what: &str, g: &Graph, parts: &PartitionedGraph) {
    let [features, hidden] = widths(g);
    let step =
        StepTraffic::new().exchange(features, false).exchange(hidden, true).parameters(100).sum(2);
    let plan = parts.plan_step(&step).unwrap();
    for (rank, (counted, planned)) in measured(g, parts).iter().zip(&plan.ranks).enumerate() {
        assert_eq!(
            [&planned.inner_nodes, &planned.halo_nodes],
            [&counted[1], &counted[2]],
            "{what}, rank {rank}"
        );
        assert_eq!(planned.bytes_sent, counted[0][0], "{what}, rank {rank}: {plan}");
    }
}

pub(crate) fn a_step_sends_what_is_predicted(n: usize) {
    for seed in 0..3 {
        let g = typed(seed, true);
        check("scattered", &g, &scattered(&g, n, seed));
        for (hops, reshuffle) in [(0, true), (1, false), (2, true)] {
            let config = PartitionConfig::new("g", n)
                .with_method(PartitionMethod::Random)
                .with_num_hops(hops)
                .with_reshuffle(reshuffle);
            check("random", &g, &partition_graph(&g, &config).unwrap());
        }
    }
    // Without edges between parts there is no exchange.
    let alone = Graph::homogeneous(2 * n, (0..2 * n as u32).collect(), (0..2 * n as u32).collect())
        .unwrap();
    check("self loops", &alone, &scattered(&alone, n, 1));
}

#[test]
fn plans_are_tables_and_know_their_types() {
    let ring = Graph::homogeneous(6, vec![0, 1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5, 0]).unwrap();
    let method = PartitionMethod::custom([("_N", vec![0, 0, 0, 1, 1, 1])]);
    let parts =
        partition_graph(&ring, &PartitionConfig::new("ring", 2).with_method(method)).unwrap();
    let plan =
        parts.plan_step(&StepTraffic::new().exchange([("_N", 8)], true).value_bytes(2)).unwrap();
    // The row of the last node, and the gradient of the halo node.
    assert_eq!(plan.bytes_sent(), 2 * 2 * (8 * 2 + 2));
    let lines: Vec<String> = plan.to_string().lines().map(str::to_owned).collect();
    assert_eq!(
        lines[1].split_whitespace().collect::<Vec<_>>(),
        ["0", "3", "1", "3", "1", "36", "B"]
    );
    assert!(lines[3].ends_with("72 B") && lines[3].len() == lines[1].len(), "{plan}");
    let e =
        parts.plan_step(&StepTraffic::new().exchange([("x", 8)], true)).unwrap_err().to_string();
    assert_eq!(e, "unknown node type `x`; the graph has [\"_N\"]: name one of these");
}
