//! `burn-gnn train` on a data set of a graph: classifies its nodes.

use std::path::Path;
use std::time::Instant;

use burn::tensor::Device;
use burn_gnn::data::{Dataset, crates_graph, karate_club, load_dataset};
use burn_gnn::models::{
    FitConfig, GcnConfig, NodeTask, RgcnConfig, TaskScore, evaluate, fit, save_weights, seeded,
};

use super::figures::Figures;
use crate::args::Train;
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::writable;

/// The data set of a folder that is no database, or of one of the names `karate` and `crates`.
pub(super) fn data_set(folder: &Path) -> Result<Option<Dataset>, Failure> {
    if !folder.exists() {
        return Ok(match folder.to_str() {
            Some("karate") => Some(karate_club()),
            Some("crates") => Some(crates_graph()),
            _ => None,
        });
    }
    let has = |names: [&str; 2]| names.iter().any(|name| folder.join(name).exists());
    if has(["schema.json", "manifest.yaml"]) || !has(["metadata.json", "tables.json"]) {
        return Ok(None);
    }
    Ok(Some(load_dataset(folder)?))
}

/// Trains a GCN, on a graph of several types an R-GCN, by the first split.
pub(super) fn train(
    mut data: Dataset,
    args: &Train,
    out: &Output,
    start: Instant,
) -> Result<(), Failure> {
    let of = &args.of;
    if of.task.is_some() || of.protocol.is_some() || of.source.config.is_some() {
        let why = "--task, --protocol and --config: expected a database, found a data set, whose nodes are classified; \
                   leave them out";
        return Err(Failure::new(Kind::Usage, why));
    }
    if args.ranks.is_some() {
        let why = "--ranks: expected a database, found a data set; the library trains it on ranks (`ranks::fit_parts`)";
        return Err(Failure::new(Kind::Usage, why));
    }
    for file in [&args.out, &args.checkpoint].into_iter().flatten() {
        writable::file(file)?;
    }
    let Some(split) = data.splits.keys().next().cloned() else {
        let why = format!("data set `{}`: expected a split, found none", data.name);
        return Err(Failure::new(Kind::Data, why));
    };
    // The masks of a single split have the names that the task reads.
    data.splits.retain(|name, _| *name == split);
    let (seed, device) = (args.seed.unwrap_or(0), Device::flex());
    let mut settings = FitConfig::new()
        .with_epochs(args.epochs.unwrap_or(200))
        .with_weight_decay(5e-4)
        .with_seed(seed)
        .with_progress(out.progress());
    if let Some(file) = &args.checkpoint {
        settings = settings.with_checkpoint(file).with_resume(true);
    }
    let (g, target) = (data.to_graph(&device)?, data.target.as_str());
    let training = device.clone().autodiff();
    let types = (g.schema().ntypes().len(), g.schema().etypes().len());
    macro_rules! run {
        ($graph:expr, |$g:ident, $task:ident| $model:expr) => {{
            let $g = $graph;
            let $task = NodeTask::from_columns(&$g, target)?;
            let model = seeded(seed, || $model)?;
            let trained = fit(model, &$task, &$task.train, &$task.val, &settings)?;
            if let Some(file) = &args.out {
                save_weights(&trained.model, file)?;
                out.note(format!("wrote the weights to {}", file.display()));
            }
            let val = trained.history.get(trained.kept_epoch).and_then(|epoch| epoch.val_score);
            let test = match $task.test.total {
                0 => None,
                _ if args.no_test => None,
                _ => Some(evaluate(&trained.model, &$task, &$task.test)?.accuracy()),
            };
            [val, test]
        }};
    }
    let classes = data.num_classes;
    let scores = if types == (1, 1) && data.features.contains_key(target) {
        run!(g.add_self_loops(..)?, |g, task| {
            let config = GcnConfig::new(task.features[target].dims()[1], classes);
            config.with_hidden(16).with_dropout(0.5).try_init(&training)
        })
    } else {
        let inverse = !data.inverse_edges_stored;
        run!(if inverse { g.with_inverse_relations("-inv")? } else { g }, |g, task| {
            let config = RgcnConfig::new(classes).with_hidden(32).with_dropout(0.5);
            config.try_init(&g, task.inputs(), &training)
        })
    };
    let accuracy = |value| TaskScore { metric: "accuracy".into(), value };
    let scores = scores.map(|value: Option<f64>| value.map(accuracy));
    let scores = scores.each_ref().map(Option::as_ref);
    let figures = Figures::new((&data.name, &split, seed), "accuracy", scores, start);
    out.result(&figures, || figures.text())
}
