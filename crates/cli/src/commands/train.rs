//! `burn-gnn train`: trains a model of a task.

use std::time::Instant;

use burn_gnn::data::{Database, Targets, TaskType};
use burn_gnn::dist::launch;
use burn_gnn::models::{
    MeasuredOptions, ModelError, RelationalOptions, TrainedDatabase, search_options, train_best,
    train_database_on_ranks,
};
use burn_gnn::ranks::RankSync;

use super::figures::{Figures, described};
use super::{classify, recommend};
use crate::args::Train;
use crate::failure::{Failure, Kind};
use crate::opened::Opened;
use crate::output::Output;
use crate::writable;

pub(crate) fn run(args: &Train, out: &Output, start: Instant) -> Result<(), Failure> {
    if let Some(data) = classify::data_set(&args.of.source.folder)? {
        return classify::train(data, args, out, start);
    }
    args.out.as_deref().map_or(Ok(()), writable::folder)?;
    args.checkpoint.as_deref().map_or(Ok(()), writable::file)?;
    let (opened, task, protocol) = Opened::with_task(&args.of, out)?;
    if opened.db.task(&task)?.task_type == TaskType::Recommendation {
        return recommend::train(args, &opened, (&task, protocol), out, start);
    }
    let Opened { db, config } = opened;
    let candidates = if config.has_model() {
        vec![RelationalOptions::for_task(&db, &task, protocol)?]
    } else {
        RelationalOptions::candidates(&db, &task, protocol)?
    };
    let of_run = |base: RelationalOptions| -> Result<RelationalOptions, Failure> {
        let mut options = RelationalOptions {
            protocol,
            progress: out.progress(),
            checkpoint: args.checkpoint.clone(),
            test: !args.no_test,
            ..config.options(base)?
        };
        options.seed = args.seed.unwrap_or(options.seed);
        options.epochs = args.epochs.unwrap_or(options.epochs);
        Ok(options)
    };
    let candidates = candidates.into_iter().map(of_run).collect::<Result<Vec<_>, _>>()?;
    let of = db.task(&task)?;
    out.note(described(of, "of", protocol, args.seed.unwrap_or(config.seed)));
    if let Targets::Classes(labels) = &of.train.targets {
        let mut known = labels.iter().filter(|class| **class >= 0);
        if let Some(first) = known.next().filter(|first| known.all(|class| class == *first)) {
            out.note(format!(
                "{task}: all training labels are {first}; check the aggregate, the filter and the entities of the task"
            ));
        }
    }
    if candidates.len() > 1 && !of.val.is_empty() {
        out.note(format!(
            "{task}: training {} models to choose one by the validation rows; `kind` of [model] in the settings chooses without",
            candidates.len()
        ));
    }
    // The process of rank 0 writes and prints.
    let Some((trained, options)) = train_first(args, &db, &task, candidates, out)? else {
        return Ok(());
    };
    if let Some(folder) = &args.out {
        trained.save(folder)?;
        out.note(format!("wrote the model to {}", folder.display()));
    }
    let scores = [trained.spec.val.as_ref(), trained.spec.test.as_ref()];
    let run = (task.as_str(), options.protocol.name(), options.seed);
    let figures = Figures::new(run, of.metric(), scores, start);
    out.result(&figures, || figures.text())
}

/// Trains the candidate that is best on validation rows, and returns it with its options; `None` in a process without
/// rank 0.
fn train_first(
    args: &Train,
    db: &Database,
    task: &str,
    candidates: Vec<RelationalOptions>,
    out: &Output,
) -> Result<Option<(TrainedDatabase, RelationalOptions)>, Failure> {
    let (trained, measured) = match args.ranks {
        None => {
            let (trained, measured) = train_best(db, task, candidates)?;
            (Some(trained), measured)
        }
        Some(_) => (None, search_options(db, task, candidates)?),
    };
    for MeasuredOptions { options, val } in &measured {
        if let Some(val) = val {
            let model = &options.model;
            out.note(format!(
                "{task}: {:?}, hidden {}: validation {val}",
                model.kind, model.hidden
            ));
        }
    }
    let Some(MeasuredOptions { options, .. }) = measured.into_iter().next() else {
        return Err(Failure::new(Kind::Internal, "no options to train with"));
    };
    let trained = match (trained, args.ranks) {
        (None, Some(ranks)) => on_ranks(ranks.into(), db, task, &options)?,
        (trained, _) => trained,
    };
    Ok(trained.map(|trained| (trained, options)))
}

/// Trains on ranks; `None` in a process without rank 0.
fn on_ranks(
    ranks: usize,
    db: &Database,
    task: &str,
    options: &RelationalOptions,
) -> Result<Option<TrainedDatabase>, Failure> {
    let trained = launch(ranks, |comm| {
        let is_first = comm.rank() == 0;
        let trained = train_database_on_ranks(db, task, options, &RankSync::new(comm))?;
        Ok::<_, ModelError>(is_first.then_some(trained))
    });
    let trained = trained.map_err(|e| Failure::new(Kind::Model, e.to_string()))?;
    Ok(trained.into_iter().flatten().next())
}
