//! `burn-gnn evaluate`: measures a trained model.

use std::time::Instant;

use burn_gnn::data::{Part, Protocol};

use super::figures::{Figures, validation};
use super::recommend;
use crate::args::Evaluate;
use crate::failure::Failure;
use crate::opened::{Model, Opened};
use crate::output::Output;

pub(crate) fn run(args: &Evaluate, out: &Output, start: Instant) -> Result<(), Failure> {
    let (db, model) = Opened::with_model(&args.of, out)?;
    let mut trained = match model {
        Model::Values(trained) => trained,
        Model::Lists(trained) => return recommend::evaluate(args, &db, trained, out, start),
    };
    let measured = trained.spec.protocol;
    if let Some(protocol) = args.protocol {
        trained.spec.protocol = Protocol::from(protocol);
    }
    let spec = &trained.spec;
    let part = |part| trained.evaluate(&db, &spec.task, part);
    let protocols = (spec.protocol, measured);
    let val = validation(out, protocols, spec.refit, spec.val.as_ref(), || part(Part::Val))?;
    let scores = [val, part(Part::Test)?];
    let metric = db.task(&spec.task)?.metric();
    let run = (spec.task.as_str(), spec.protocol.name(), spec.seed);
    let figures = Figures::new(run, metric, scores.each_ref().map(Option::as_ref), start);
    out.result(&figures, || figures.text())
}
