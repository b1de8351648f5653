//! Recommendation: items ranked for users, and ratings.
//!
//! Options are chosen on the validation part, or on a tenth of the training part where a set has none. Then models of items
//! are fitted to all training and validation interactions, those of ratings to the training part, and the test is read once
//! per seed. Weights of neighbours are fitted to the validation ratings, whose error is therefore no estimate for new
//! ratings; the row reports that of the test part.

use std::time::Instant;

use anyhow::Result;
use burn::module::Module;
use burn::tensor::Device;
use burn_gnn::data::{InteractionPart, Interactions, load_interactions};
use burn_gnn::models::seeded;
use burn_gnn_links::{
    GraphFilterConfig, IdLists, InteractionGraph, ItemSpectrum, LightGcnConfig, PairTrainingConfig,
    Popularity, RankingConfig, Ranks, RatingModel, RatingModelConfig, fit_pairs, recommendations,
};

use super::Args;
use super::row::Row;
use super::sets::Sets;

/// Length of lists.
const K: usize = 20;
/// Users of validation.
const USERS: usize = 1500;

/// Published figures by set, model and metric.
fn published(set: &str, metric: &str) -> Option<f64> {
    Some(match (set, metric) {
        ("gowalla", "recall@20") => 0.1824,
        ("gowalla", "ndcg@20") => 0.1547,
        ("douban", "rmse") => 0.721,
        _ => return None,
    })
}

pub(crate) fn rows(args: &Args, sets: &Sets, emit: &mut dyn FnMut(Row)) -> Result<()> {
    for set in sets.of_layout("interactions") {
        if !args.wants_set(&set.name) {
            continue;
        }
        let data = load_interactions(&set.folder)?;
        if data.train.ratings.is_some() {
            ratings(args, &data, emit)?;
        } else {
            items(args, &data, emit)?;
        }
    }
    Ok(())
}

/// Interactions to choose options by, and those to test.
struct Split {
    part: InteractionGraph,
    wanted: IdLists,
    whole: InteractionGraph,
    test: IdLists,
}

/// Training and validation interactions.
fn held_out(data: &Interactions) -> Result<(InteractionPart, InteractionPart)> {
    Ok(match &data.val {
        Some(val) => (data.train.clone(), val.clone()),
        None => data.train.hold_out(0.1, 0)?,
    })
}

impl Split {
    fn new(data: &Interactions) -> Result<Self> {
        let (train, val) = held_out(data)?;
        let (users, items) = (data.num_users, data.num_items);
        let graph = |parts: &[&InteractionPart]| {
            InteractionGraph::new(users, items, parts.iter().flat_map(|p| p.pairs()))
        };
        let step = users.div_ceil(USERS) as u32;
        let wanted = val.pairs().filter(|p| p.0 % step == 0);
        let all: Vec<&InteractionPart> = match &data.val {
            Some(val) => vec![&data.train, val],
            None => vec![&data.train],
        };
        Ok(Self {
            part: graph(&[&train])?,
            wanted: IdLists::from_pairs(users, wanted)?,
            whole: graph(&all)?,
            test: IdLists::from_pairs(users, data.test.pairs())?,
        })
    }
}

fn rank(
    graph: &InteractionGraph,
    wanted: &IdLists,
    score: impl FnMut(&[usize], std::ops::Range<usize>) -> burn::tensor::Tensor<2>,
) -> Result<Ranks> {
    let ranking = RankingConfig::new().with_competing_targets();
    Ok(ranking.rank(graph.num_items(), wanted, |user| graph.seen(user), score)?)
}

/// Recall and NDCG.
fn figures(ranks: &Ranks) -> [f64; 2] {
    let at = ranks.metrics(&[K]).at(K);
    [at.recall, at.ndcg]
}

fn items(args: &Args, data: &Interactions, emit: &mut dyn FnMut(Row)) -> Result<()> {
    let models = ["popularity", "graph_filter", "factorisation", "light_gcn"];
    if !models.iter().any(|model| args.wants(&data.name, model)) {
        return Ok(());
    }
    let split = Split::new(data)?;
    let device = Device::flex();
    let (start, whole, test) = (Instant::now(), &split.whole, &split.test);
    let popular = figures(&rank(whole, test, Popularity::new(whole).scores())?);
    let popular_seconds = start.elapsed().as_secs_f64();
    let linear = GraphFilterConfig::new().with_rank(1).with_ideal(0.0).with_sharpen(0.0);
    let linear = figures(&rank(whole, test, linear.init(whole, &device)?.scores())?);
    args.note(format!("popularity {popular:?}, linear filter {linear:?}"));
    let mut report = |model: &str, baseline: [f64; 2], ours: &[[f64; 2]], seconds: f64| {
        for (i, metric) in ["recall@20", "ndcg@20"].into_iter().enumerate() {
            emit(Row {
                set: data.name.clone(),
                model: model.into(),
                protocol: "all items, known items left out, mean over users; options by validation"
                    .into(),
                metric: metric.into(),
                published: published(&data.name, metric),
                baseline: Some(baseline[i]),
                ours: ours.iter().map(|o| o[i]).collect(),
                seconds,
            });
        }
    };
    if args.wants(&data.name, "popularity") {
        report("popularity", popular, &[popular], popular_seconds);
    }
    if args.wants(&data.name, "graph_filter") {
        let start = Instant::now();
        let ours = graph_filter(args, &split, &device)?;
        report("graph_filter", linear, &ours, start.elapsed().as_secs_f64());
    }
    for (model, layers) in [("factorisation", 0), ("light_gcn", 3)] {
        if args.wants(&data.name, model) {
            let start = Instant::now();
            let ours = trained(args, &split, layers, &device)?;
            report(model, linear, &ours, start.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

/// The filter whose weights are the best on validation.
fn graph_filter(args: &Args, split: &Split, device: &Device) -> Result<Vec<[f64; 2]>> {
    let rank_of = 384.min(split.part.num_items() / 4).max(1);
    let spectrum = ItemSpectrum::new(&split.part, rank_of, 6, 0, device)?;
    let config = GraphFilterConfig::new().with_rank(rank_of);
    let mut best = (0.0, config.clone());
    let try_out = |config: GraphFilterConfig, best: &mut (f64, GraphFilterConfig)| -> Result<()> {
        let filter = config.with_spectrum(&split.part, &spectrum)?;
        let at = figures(&rank(&split.part, &split.wanted, filter.scores())?);
        args.note(format!("ideal {}, sharpen {}: {at:?}", config.ideal, config.sharpen));
        if at[1] > best.0 {
            *best = (at[1], config);
        }
        Ok(())
    };
    for sharpen in [0.0, 1.0, 2.0, 2.5, 3.0] {
        try_out(config.clone().with_sharpen(sharpen), &mut best)?;
    }
    for ideal in [0.15, 0.2, 0.45] {
        let config = best.1.clone().with_ideal(ideal);
        try_out(config, &mut best)?;
    }
    let seeds = 0..args.seeds;
    seeds
        .map(|seed| {
            let filter = best.1.clone().with_seed(seed).init(&split.whole, device)?;
            Ok(figures(&rank(&split.whole, &split.test, filter.scores())?))
        })
        .collect()
}

/// LightGCN, or matrix factorisation without layers: the number of epochs is the best on validation.
fn trained(args: &Args, split: &Split, layers: usize, device: &Device) -> Result<Vec<[f64; 2]>> {
    let (users, items) = (split.part.num_users(), split.part.num_items());
    let encoder = LightGcnConfig::new(users, items).with_num_layers(layers);
    let training = PairTrainingConfig::new().with_temperature(Some(0.1)).with_num_epochs(30);
    let init = |seed| seeded(seed, || encoder.init(&device.clone().autodiff()));
    let (mut best, mut failed, start) = ((0.0, 0), None, Instant::now());
    fit_pairs(init(0), &split.part, &training, |epoch, model| {
        if epoch.epoch % 5 != 0 {
            return true;
        }
        let of =
            recommendations(&model.valid(), &split.part, true).and_then(|r| r.rank(&split.wanted));
        let at = match of {
            Ok(ranks) => figures(&ranks),
            Err(e) => {
                failed = Some(e);
                return false;
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        args.note(format!("epoch {}: loss {:.4}, {at:?}, {seconds:.0} s", epoch.epoch, epoch.loss));
        let better = at[1] > best.0;
        if better {
            best = (at[1], epoch.epoch);
        }
        better
    })?;
    if let Some(e) = failed {
        return Err(e.into());
    }
    (0..args.seeds)
        .map(|seed| {
            let training = training.clone().with_seed(seed);
            let last = best.1;
            let model =
                fit_pairs(init(seed), &split.whole, &training, |epoch, _| epoch.epoch < last)?;
            let trained = recommendations(&model.valid(), &split.whole, true)?;
            Ok(figures(&trained.rank(&split.test)?))
        })
        .collect()
}

/// Biases and neighbours: settings are the best on validation, weights by least squares there.
fn ratings(args: &Args, data: &Interactions, emit: &mut dyn FnMut(Row)) -> Result<()> {
    if !args.wants(&data.name, "neighbours") {
        return Ok(());
    }
    let start = Instant::now();
    let (users, items) = (data.num_users, data.num_items);
    let (train, val) = held_out(data)?;
    let error = |model: &RatingModel, part: &InteractionPart| -> Result<f64> {
        let predicted = model.predict(&part.pairs().collect::<Vec<_>>())?;
        let ratings = part.ratings.iter().flatten();
        let squares = predicted.iter().zip(ratings).map(|(p, &r)| (p - f64::from(r)).powi(2));
        Ok((squares.sum::<f64>() / predicted.len().max(1) as f64).sqrt())
    };
    let mut best: Option<(f64, RatingModelConfig)> = None;
    for user_shrinkage in [1.0, 2.0, 4.0, 8.0] {
        for item_shrinkage in [0.5, 1.0, 2.0, 4.0, 8.0] {
            let config = RatingModelConfig { user_shrinkage, item_shrinkage, neighbours: vec![] };
            let at = error(&config.fit(users, items, &train)?, &val)?;
            if best.as_ref().is_none_or(|b| at < b.0) {
                best = Some((at, config));
            }
        }
    }
    let Some((at, biases)) = best else { return Ok(()) };
    args.note(format!("{} on validation: biases {at:.4} {biases:?}", data.name));
    let with =
        RatingModelConfig { neighbours: RatingModelConfig::default().neighbours, ..biases.clone() };
    let mut model = with.fit(users, items, &train)?;
    let pairs: Vec<(u32, u32)> = val.pairs().collect();
    if let Some(ratings) = &val.ratings {
        model.fit_weights(&pairs, ratings)?;
    }
    args.note(format!(
        "with neighbours, weights fitted to the same ratings: {:.4} {:?}",
        error(&model, &val)?,
        model.config()
    ));
    let baseline = error(&biases.fit(users, items, &data.train)?, &data.test)?;
    let ours = error(&model.config().fit(users, items, &data.train)?, &data.test)?;
    emit(Row {
        set: data.name.clone(),
        model: "neighbours".into(),
        protocol: "ratings of the test part; shrinkages and weights by validation".into(),
        metric: "rmse".into(),
        published: published(&data.name, "rmse"),
        baseline: Some(baseline),
        // Nothing is drawn.
        ours: vec![ours],
        seconds: start.elapsed().as_secs_f64(),
    });
    Ok(())
}
