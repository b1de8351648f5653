//! Facts in time: what will be true at the next step, by the recurrence of facts.
//!
//! The number of epochs and the weight of squares are the best on validation facts. Nothing is drawn at random, so there is
//! one figure.

use std::time::Instant;

use anyhow::{Context, Result};
use burn_gnn::data::{TemporalKnowledgeGraph, TimedTriple, load_temporal_triples};
use burn_gnn_links::{FactRecurrence, RecurrenceConfig, fit_recurrence};

use super::Args;
use super::row::Row;
use super::sets::Sets;

const PROTOCOL: &str = "raw ranks of heads and tails, single step: facts of all earlier steps are read; mean of ties; options chosen on validation facts; baseline: recent and frequent answers, then popularity";

/// Published raw MRR (RE-GCN; Gastinger et al., ECML PKDD 2023).
const PUBLISHED: [(&str, f64); 1] = [("icews14", 0.413)];

pub(super) fn rows(args: &Args, sets: &Sets, emit: &mut dyn FnMut(Row)) -> Result<()> {
    const MODEL: &str = "recurrence";
    for set in sets.of_layout("temporal_triples").filter(|set| args.wants(&set.name, MODEL)) {
        let kg = load_temporal_triples(&set.folder)
            .with_context(|| format!("loading {}", set.folder.display()))?;
        let start = Instant::now();
        let model = best(args, &kg)?;
        let (past, facts) = ranked(args, &kg);
        let ours = model.ranks(&past, facts)?.metrics();
        let seconds = start.elapsed().as_secs_f64();
        args.note(format_args!("{}: {ours}", set.name));
        let last = kg.train.last().map_or(0, |f| f.time);
        let simple =
            FactRecurrence::recent_and_frequent(kg.entities.len(), kg.relations.len(), last);
        emit(Row {
            set: set.name.clone(),
            model: MODEL.into(),
            protocol: PROTOCOL.into(),
            metric: if args.tune { "valid raw MRR" } else { "raw MRR" }.into(),
            published: PUBLISHED.iter().find(|p| p.0 == set.name).map(|p| p.1),
            baseline: Some(simple.ranks(&past, facts)?.metrics().mrr),
            ours: vec![ours.mrr],
            seconds,
        });
    }
    Ok(())
}

/// Facts of the figure, those of test or with `--tune` those of validation, and the facts before them.
fn ranked<'a>(
    args: &Args,
    kg: &'a TemporalKnowledgeGraph,
) -> (Vec<TimedTriple>, &'a [TimedTriple]) {
    match args.tune {
        true => (kg.train.clone(), &kg.valid),
        false => ([&kg.train[..], &kg.valid].concat(), &kg.test),
    }
}

/// The model of the best weight of squares.
fn best(args: &Args, kg: &TemporalKnowledgeGraph) -> Result<FactRecurrence> {
    let mut best: Option<(f64, FactRecurrence)> = None;
    for decay in [1e-3, 1e-2] {
        let config = RecurrenceConfig { decay, ..RecurrenceConfig::default() };
        let mut mrr: f64 = 0.0;
        let model = fit_recurrence(kg, &config, |e| {
            let valid = e.valid.map_or_else(String::new, |m| format!("  valid {m}"));
            let (epoch, loss, seconds) = (e.epoch, e.loss, e.seconds);
            args.note(format!(
                "decay {decay}  epoch {epoch}  loss {loss:.4}  {seconds:.1} s{valid}"
            ));
            mrr = mrr.max(e.valid.map_or(0.0, |m| m.mrr));
        })?;
        if best.as_ref().is_none_or(|b| mrr > b.0) {
            best = Some((mrr, model));
        }
    }
    best.map(|b| b.1).context("no setting was tried")
}
