//! `burn-gnn train`: trains a model of a task.

use std::time::Instant;

use burn_gnn::models::{RelationalOptions, train_database};

use super::classify;
use super::figures::Figures;
use crate::args::Train;
use crate::failure::Failure;
use crate::opened::Opened;
use crate::output::Output;

pub(crate) fn run(args: &Train, out: &Output, start: Instant) -> Result<(), Failure> {
    if let Some(data) = classify::data_set(&args.source.folder)? {
        return classify::train(data, args, out, start);
    }
    let opened = Opened::new(&args.source, out)?;
    let task = opened.task(args.task.as_deref())?;
    let mut options = RelationalOptions {
        protocol: opened.protocol(args.protocol),
        progress: out.progress(),
        checkpoint: args.checkpoint.clone(),
        ..opened.config.options()?
    };
    options.seed = args.seed.unwrap_or(options.seed);
    options.epochs = args.epochs.unwrap_or(options.epochs);
    let of = opened.db.task(&task)?;
    out.note(format!(
        "{task}: {} of rows of `{}`, {} training, {} validation and {} test rows, protocol {}, seed {}",
        of.task_type,
        of.entity_table,
        of.train.len(),
        of.val.len(),
        of.test.len(),
        options.protocol,
        options.seed
    ));
    let trained = train_database(&opened.db, &task, &options)?;
    if let Some(folder) = &args.out {
        trained.save(folder)?;
        out.note(format!("wrote the model to {}", folder.display()));
    }
    // Without both classes the area under the ROC curve is not defined, and the loss takes its place.
    let has_loss = trained.history.last().is_some_and(|epoch| epoch.metric == "loss");
    let metric = if has_loss { "loss" } else { of.metric() };
    let scores = [trained.spec.val, trained.spec.test];
    let run = (task.as_str(), options.protocol.name(), options.seed);
    let figures = Figures::new(run, metric, scores, start);
    out.result(&figures, || figures.text())
}
