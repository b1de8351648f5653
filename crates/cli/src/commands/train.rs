//! `burn-gnn train`: trains a model of a task.

use std::time::Instant;

use burn_gnn::data::Targets;
use burn_gnn::models::{MeasuredOptions, RelationalOptions, search_options, train_database};

use super::classify;
use super::figures::Figures;
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
    let (Opened { db, config }, task, protocol) = Opened::with_task(&args.of, out)?;
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
    out.note(format!(
        "{task}: {} of rows of `{}`, {} training, {} validation and {} test rows, protocol {}, seed {}",
        of.task_type,
        of.entity_table,
        of.train.len(),
        of.val.len(),
        of.test.len(),
        protocol,
        args.seed.unwrap_or(config.seed)
    ));
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
    let measured = search_options(&db, &task, candidates)?;
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
    let trained = train_database(&db, &task, &options)?;
    if let Some(folder) = &args.out {
        trained.save(folder)?;
        out.note(format!("wrote the model to {}", folder.display()));
    }
    let scores = [trained.spec.val.as_ref(), trained.spec.test.as_ref()];
    let run = (task.as_str(), options.protocol.name(), options.seed);
    let figures = Figures::new(run, of.metric(), scores, start);
    out.result(&figures, || figures.text())
}
