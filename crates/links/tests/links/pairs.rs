//! Link prediction in one graph: heuristics, auto-encoders and SEAL, on the stored set USAir and on small graphs.

use burn::tensor::Device;
use burn_gnn_data::{LinkSet, NodePair, load_links};
use burn_gnn_graph::GraphError;
use burn_gnn_links::{
    GraphAutoEncoderConfig, LinkGraph, SealConfig, SealTraining, absent_pairs, adamic_adar,
    common_neighbors, katz, link_scores, preferential_attachment, resource_allocation, train_seal,
};
use burn_gnn_testutil::{assert_same_bits_on_threads, data};

/// Cliques of eight nodes, connected in a ring; every seventh link is held out.
fn cliques() -> LinkSet {
    let mut links: Vec<NodePair> = vec![];
    for c in 0..6u32 {
        let first = 8 * c;
        links.extend((first..first + 8).flat_map(|a| (a + 1..first + 8).map(move |b| [a, b])));
        let next = (first + 8) % 48;
        links.push([first.min(next), first.max(next)]);
    }
    let part = |i: usize| links.iter().copied().skip(i).step_by(7).collect::<Vec<_>>();
    let train = [1, 2, 3, 4, 5].into_iter().flat_map(part).collect();
    let all = LinkGraph::new(48, &links).unwrap();
    let absent = absent_pairs(&all, 50, 3);
    LinkSet {
        name: "cliques".into(),
        num_nodes: 48,
        train,
        val: part(0),
        test: part(6),
        val_negatives: absent[..25].to_vec(),
        test_negatives: absent[25..].to_vec(),
    }
}

fn test_auc(set: &LinkSet, score: impl Fn(&LinkGraph, &[NodePair]) -> Vec<f64>) -> f64 {
    let read = [&set.train[..], &set.val[..]].concat();
    let graph = LinkGraph::new(set.num_nodes, &read).unwrap();
    link_scores(&score(&graph, &set.test), &score(&graph, &set.test_negatives)).unwrap().auc
}

#[test]
fn heuristics_on_usair_have_the_figures_of_its_notes() {
    let Some(dir) = data("seal_usair") else { return };
    let set = load_links(dir).unwrap();
    type Heuristic = fn(&LinkGraph, &[NodePair]) -> Result<Vec<f64>, GraphError>;
    let heuristics: [(Heuristic, f64); 5] = [
        (common_neighbors, 0.9365),
        (adamic_adar, 0.9481),
        (resource_allocation, 0.9578),
        (preferential_attachment, 0.8943),
        (|graph, pairs| katz(graph, pairs, 0.001, 4), 0.9257),
    ];
    for (score, expected) in heuristics {
        let auc = test_auc(&set, |graph, pairs| score(graph, pairs).unwrap());
        assert!((auc - expected).abs() < 1e-4, "{auc} for {expected}");
    }
}

#[test]
fn auto_encoders_separate_cliques() {
    let set = cliques();
    let graph = LinkGraph::new(48, &set.train).unwrap();
    for variational in [false, true] {
        let config = GraphAutoEncoderConfig::new().with_variational(variational).with_steps(60);
        let valid = (&set.val[..], &set.val_negatives[..]);
        let trained = config.train(&graph, &set.train, None, valid, &Device::flex()).unwrap();
        let auc = test_auc(&set, |graph, pairs| trained.score(graph, pairs).unwrap());
        assert!(auc > 0.9, "variational {variational}: {auc}");
        let other = LinkGraph::new(47, &[]).unwrap();
        assert!(trained.score(&other, &[[0, 1]]).is_err());
    }
}

fn seal() -> SealTraining {
    SealTraining::new(SealConfig::new().with_dim(8).with_num_sorted(10))
        .with_batch(10)
        .with_lr(0.01)
}

#[test]
fn seal_separates_cliques() {
    let set = cliques();
    let graph = LinkGraph::new(48, &set.train).unwrap();
    let valid = (&set.val[..], &set.val_negatives[..]);
    let config = seal().with_epochs(6);
    let device = Device::flex();
    let trained = train_seal(&config, &graph, &set.train, valid, &device, |_, _, _| {}).unwrap();
    let auc = test_auc(&set, |graph, pairs| trained.score(graph, pairs).unwrap());
    assert!(auc > 0.9, "{auc}");
    assert!(trained.score(&graph, &[[0, 48]]).is_err());
    assert_eq!(trained.model.score(&[]).unwrap().dims(), [0]);
    // The score of a pair does not depend on other pairs.
    let all = trained.score(&graph, &set.test).unwrap();
    let one = trained.score(&graph, &set.test[3..4]).unwrap();
    assert!((all[3] - one[0]).abs() < 1e-5, "{} {}", all[3], one[0]);
}

#[test]
fn seal_does_not_depend_on_threads() {
    let set = cliques();
    let graph = LinkGraph::new(48, &set.train).unwrap();
    let valid = (&set.val[..], &set.val_negatives[..]);
    assert_same_bits_on_threads("scores", || {
        let config = seal().with_epochs(1);
        let device = Device::flex();
        let trained =
            train_seal(&config, &graph, &set.train, valid, &device, |_, _, _| {}).unwrap();
        trained.score(&graph, &set.test).unwrap()
    });
}
