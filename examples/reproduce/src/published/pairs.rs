//! Rows of link prediction in one graph: heuristics, graph auto-encoders, and SEAL.

use std::time::Instant;

use anyhow::{Context, Result};
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn::data::{LinkSet, NodePair, RandomLinkSplit, load_dataset, load_links};
use burn_gnn::graph::GraphError;
use burn_gnn_links::{
    GraphAutoEncoderConfig, LinkGraph, SealConfig, SealTraining, adamic_adar, common_neighbors,
    katz, link_scores, preferential_attachment, resource_allocation, train_seal,
};

use super::Args;
use super::row::Row;
use super::sets::{Set, Sets};

const STORED: &str = "stored test links against as many stored absent pairs; test scores use train and validation links; baseline: best of five heuristics on test pairs; hops and epoch chosen on validation pairs";
const RANDOM: &str = "5 % validation and 10 % test links at random by seed, against as many absent pairs; test scores use train and validation links; baseline: best of five heuristics on test pairs; hops and epoch chosen on validation pairs of each seed";

/// Published areas under the ROC curve: SEAL (Zhang and Chen, NeurIPS 2018), over ten random splits; auto-encoders (Kipf
/// and Welling, 2016).
const PUBLISHED: [(&str, &str, f64); 10] = [
    ("seal_usair", "seal", 0.966),
    ("seal_ns", "seal", 0.989),
    ("seal_pb", "seal", 0.947),
    ("seal_yeast", "seal", 0.979),
    ("seal_power", "seal", 0.876),
    ("seal_ecoli", "seal", 0.976),
    ("cora", "gae", 0.910),
    ("cora", "vgae", 0.914),
    ("citeseer", "gae", 0.895),
    ("citeseer", "vgae", 0.908),
];

const MODELS: [&str; 3] = ["gae", "vgae", "seal"];

/// Epochs and links of the trainings that choose the size of subgraphs.
const TRIAL_EPOCHS: usize = 8;
const TRIAL_LINKS: usize = 1000;

/// A graph whose links are split, and features of its nodes.
struct Data {
    links: LinkSet,
    features: Option<Tensor<2>>,
}

pub(super) fn rows(args: &Args, sets: &Sets, emit: &mut dyn FnMut(Row)) -> Result<()> {
    let stored = sets.of_layout("links").map(|set| (set, &MODELS[..], STORED));
    let random = sets.of_layout("graph").filter(|set| ["cora", "citeseer"].contains(&&*set.name));
    let random = random.map(|set| (set, &MODELS[..], RANDOM));
    for (set, models, protocol) in stored.chain(random) {
        for model in models.iter().filter(|model| args.wants(&set.name, model)) {
            let (mut ours, mut seconds, mut baselines) = (vec![], 0.0, vec![]);
            let mut hops = 0;
            for seed in 0..args.seeds {
                let data = load(set, seed)?;
                // Stored parts are the same for all seeds. In random ones, a validation link of one seed may be a test link
                // of another.
                if seed == 0 || protocol == RANDOM {
                    baselines.push(best_heuristic(args, &data.links)?);
                    if *model == "seal" {
                        hops = best_hops(args, &data.links)?;
                    }
                }
                let started = Instant::now();
                ours.push(auc(args, model, data, hops, seed)?);
                seconds += started.elapsed().as_secs_f64();
            }
            emit(Row {
                set: set.name.clone(),
                model: (*model).into(),
                protocol: protocol.into(),
                metric: if args.tune { "valid auc" } else { "auc" }.into(),
                published: PUBLISHED.iter().find(|p| (p.0, p.1) == (&set.name, model)).map(|p| p.2),
                baseline: Some(baselines.iter().sum::<f64>() / baselines.len() as f64),
                ours,
                seconds,
            });
        }
    }
    Ok(())
}

fn load(set: &Set, seed: u64) -> Result<Data> {
    let context = || format!("loading {}", set.folder.display());
    if set.layout == "links" {
        let links = load_links(&set.folder).with_context(context)?;
        return Ok(Data { links, features: None });
    }
    let device = Device::flex();
    let dataset = load_dataset(&set.folder).with_context(context)?;
    let features = dataset.features.values().next().map(|f| {
        let f = f.row_normalized();
        let data = TensorData::new(f.try_to_dense()?, [f.rows(), f.cols()]);
        anyhow::Ok(Tensor::from_data(data, &device))
    });
    let graph = dataset.to_graph(&device)?;
    let split = RandomLinkSplit::new().with_val(0.05).with_test(0.1).undirected();
    let split = split.without_negative_train_samples().split(&graph, seed)?;
    let pairs = |src: &[u32], dst: &[u32]| -> Vec<NodePair> {
        src.iter().zip(dst).map(|(&a, &b)| [a.min(b), a.max(b)]).collect()
    };
    let [train, val, test] = [&split.train, &split.val, &split.test].map(|part| &part.links[0]);
    let links = LinkSet {
        name: set.name.clone(),
        num_nodes: graph.node_counts()[0],
        train: pairs(&train.src, &train.dst),
        val: pairs(&val.src, &val.dst),
        test: pairs(&test.src, &test.dst),
        val_negatives: pairs(&val.negative_src, &val.negative_dst),
        test_negatives: pairs(&test.negative_src, &test.negative_dst),
    };
    Ok(Data { links, features: features.transpose()? })
}

/// Graph of the train and validation links, for scores of test pairs.
fn observed(links: &LinkSet) -> Result<LinkGraph> {
    Ok(LinkGraph::new(links.num_nodes, &[&links.train[..], &links.val[..]].concat())?)
}

/// Largest area under the ROC curve of five heuristics on the test pairs, or with `--tune` on the validation pairs.
fn best_heuristic(args: &Args, links: &LinkSet) -> Result<f64> {
    let (graph, [linked, absent]) = if args.tune {
        let graph = LinkGraph::new(links.num_nodes, &links.train)?;
        (graph, [&links.val, &links.val_negatives])
    } else {
        (observed(links)?, [&links.test, &links.test_negatives])
    };
    type Heuristic<'a> = &'a dyn Fn(&[NodePair]) -> Result<Vec<f64>, GraphError>;
    let heuristics: [(&str, Heuristic<'_>); 5] = [
        ("common neighbours", &|pairs| common_neighbors(&graph, pairs)),
        ("Adamic-Adar", &|pairs| adamic_adar(&graph, pairs)),
        ("resource allocation", &|pairs| resource_allocation(&graph, pairs)),
        ("preferential attachment", &|pairs| preferential_attachment(&graph, pairs)),
        ("Katz", &|pairs| katz(&graph, pairs, 0.001, 4)),
    ];
    let mut best: f64 = 0.0;
    for (name, score) in heuristics {
        let found = link_scores(&score(linked)?, &score(absent)?)?;
        args.note(format_args!("{}: {name} {found:?}", links.name));
        best = best.max(found.auc);
    }
    Ok(best)
}

/// Area under the ROC curve of a model on the test pairs, or with `--tune` on the validation pairs.
fn auc(args: &Args, model: &str, data: Data, hops: usize, seed: u64) -> Result<f64> {
    let Data { links, features } = data;
    let (device, test_graph) = (Device::flex(), observed(&links)?);
    let graph = LinkGraph::new(links.num_nodes, &links.train)?;
    let valid = (&links.val[..], &links.val_negatives[..]);
    let [positive, negative] = if model == "seal" {
        let config = SealTraining::new(SealConfig::new()).with_seed(seed).with_hops(hops);
        let progress = |epoch, loss, found: &_| {
            args.note(format_args!("epoch {epoch}  loss {loss:.4}  valid {found:?}"));
        };
        let trained = train_seal(&config, &graph, &links.train, valid, &device, progress)?;
        args.note(format_args!("epoch {} in {:.1} s", trained.epoch, trained.seconds));
        if args.tune {
            return Ok(trained.valid[trained.epoch - 1].auc);
        }
        [&links.test, &links.test_negatives].map(|pairs| trained.score(&test_graph, pairs))
    } else {
        let config =
            GraphAutoEncoderConfig::new().with_variational(model == "vgae").with_seed(seed);
        let trained = config.train(&graph, &links.train, features, valid, &device)?;
        args.note(format_args!("step {}  valid {:?}", trained.step, trained.valid));
        if args.tune {
            return Ok(trained.valid.auc);
        }
        [&links.test, &links.test_negatives].map(|pairs| trained.score(&test_graph, pairs))
    };
    let found = link_scores(&positive?, &negative?)?;
    args.note(format_args!("{} {model} seed {seed}: {found:?}", links.name));
    Ok(found.auc)
}

/// Chooses the size of subgraphs by a short training on a part of the links for each, on validation pairs.
fn best_hops(args: &Args, links: &LinkSet) -> Result<usize> {
    let graph = LinkGraph::new(links.num_nodes, &links.train)?;
    let mut best = (0.0, 1);
    for hops in 1..=3 {
        let config = SealTraining::new(SealConfig::new()).with_hops(hops);
        let trial = config.with_epochs(TRIAL_EPOCHS).with_max_links(TRIAL_LINKS);
        let valid = (&links.val[..], &links.val_negatives[..]);
        let device = Device::flex();
        let trained = train_seal(&trial, &graph, &links.train, valid, &device, |_, _, _| {})?;
        let auc = trained.valid[trained.epoch - 1].auc;
        args.note(format_args!("{hops} hops: valid {auc:.4}"));
        if auc > best.0 {
            best = (auc, hops);
        }
    }
    Ok(best.1)
}
