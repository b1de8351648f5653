//! `burn-gnn evaluate`: measures a trained model.

use std::time::Instant;

use burn_gnn::data::{Part, Protocol};
use burn_gnn::models::{RelationalOptions, TrainedDatabase};

use super::figures::Figures;
use crate::args::Evaluate;
use crate::failure::Failure;
use crate::opened::Opened;
use crate::output::Output;

pub(crate) fn run(args: &Evaluate, out: &Output, start: Instant) -> Result<(), Failure> {
    let Opened { db, .. } = Opened::new(&args.source, out)?;
    let mut trained =
        TrainedDatabase::load(&args.model, &db, &RelationalOptions::default().device)?;
    if let Some(protocol) = args.protocol {
        trained.spec.protocol = Protocol::from(protocol);
    }
    let spec = &trained.spec;
    let part = |part| trained.evaluate(&db, &spec.task, part);
    let scores = [part(Part::Val)?, part(Part::Test)?];
    let metric = db.task(&spec.task)?.metric();
    let figures =
        Figures::new((&spec.task, spec.protocol.name(), spec.seed), metric, scores, start);
    out.result(&figures, || figures.text())
}
