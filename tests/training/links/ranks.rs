//! Models of events and of knowledge graphs on 1, 2 and 4 ranks give the results of one machine.

use burn::tensor::Device;
use burn_gnn::data::{EventSplit, EventStream, KnowledgeGraph, Triple};
use burn_gnn::dist::run_ranks;
use burn_gnn::links::{
    DyGFormerConfig, EventFitConfig, EventHistory, EventModel, EventTask, FittedEvents,
    GraphMixerConfig, KgeConfig, KgeKind, KgeOptimizer, KgeTraining, LinkLoss, TgatConfig,
    TgnConfig, TrainedKge, fit_events, fit_events_on_ranks, train_kge,
};
use burn_gnn::models::{ModelError, seeded};
use burn_gnn::ops::Stream;
use burn_gnn::ranks::{RankSync, train_kge_on_ranks};
use burn_gnn_testutil::{assert_close, values};

/// Events with one feature; each node answers its last messages, so that there is something to learn.
fn events() -> EventStream {
    let s = Stream::new(3, "events", 0);
    let src: Vec<u32> = (0..240).map(|i| (s.uniform(i, 0) * 12.0) as u32).collect();
    let dst = src.iter().zip(0..).map(|(u, i)| (u * 5 + (s.uniform(i, 1) * 3.0) as u32) % 16);
    let time = (0..240).map(|i| i / 2).collect();
    let features = (0..240).map(|i| s.uniform(i, 2) as f32).collect();
    let events = EventStream::new(16, src.clone(), dst.collect(), time).unwrap();
    events.with_features(1, features).unwrap()
}

/// Losses, validation figures and seeds of a run with dropout. Batches of 7 events on 4 ranks are parts of different
/// sizes, and the last batch has fewer events than ranks.
fn same_on_ranks<M: EventModel + Send>(
    name: &str,
    lr: f64,
    model: impl Fn(&Device) -> Result<M, ModelError> + Sync,
) {
    let events = events();
    let history = EventHistory::new(&events);
    let split = EventSplit::from_ranges(&events, 0..170, 170..206, 206..240).unwrap();
    let (candidates, device) = (events.destinations(), Device::flex().autodiff());
    let val_negatives: Vec<u32> = split.val.clone().map(|e| (e * 7 % 16) as u32).collect();
    let task = || EventTask {
        history: &history,
        split: &split,
        candidates: &candidates,
        val_negatives: &val_negatives,
    };
    let config =
        EventFitConfig { epochs: 3, batch: 7, lr, dropout: 0.2, ..EventFitConfig::default() };
    let build = || seeded(5, || model(&device));
    let figures = |fitted: &FittedEvents<M>| -> Vec<f64> {
        let of = fitted.epochs.iter().flat_map(|e| [e.loss, e.val.ap, e.val.auc]);
        of.chain([fitted.best as f64]).collect()
    };
    let one = fit_events(build().unwrap(), task(), &config, |_, _| ()).unwrap();
    let later = one.epochs[1].loss.min(one.epochs[2].loss);
    assert!(later < one.epochs[0].loss, "{name}: {:?}", one.epochs);
    for ranks in [1, 2, 4] {
        let fitted = run_ranks(ranks, |comm| {
            let sync = RankSync::new(comm);
            let fitted = fit_events_on_ranks(build()?, task(), &config, &sync, |_, _| ())?;
            Ok::<_, ModelError>(figures(&fitted))
        });
        for (rank, found) in fitted.unwrap().iter().enumerate() {
            assert_close(&format!("{name}, rank {rank} of {ranks}"), found, &figures(&one), 2e-4);
        }
    }
}

#[test]
fn models_of_events_on_ranks() {
    same_on_ranks("TGN", 5e-3, |device| TgnConfig::new(8).init(1, device));
    same_on_ranks("TGAT", 5e-3, |device| TgatConfig::new(8).init(1, device));
    same_on_ranks("GraphMixer", 5e-3, |device| GraphMixerConfig::new(8).init(1, device));
    // With a larger rate the loss jumps at the start of an epoch, and such steps amplify rounding.
    same_on_ranks("DyGFormer", 5e-4, |device| DyGFormerConfig::new(8).init(1, device));
}

/// Entities on a ring: relation 0 leads to the next, relation 1 to the one after it.
fn ring() -> KnowledgeGraph {
    let step =
        |relation, by| (0..30).map(move |i| Triple { head: i, relation, tail: (i + by) % 30 });
    let mut train: Vec<Triple> = step(0, 1).chain(step(1, 2)).collect();
    let valid = train.split_off(52);
    KnowledgeGraph {
        entities: (0..30).map(|i| i.to_string()).collect(),
        relations: vec!["next".into(), "second".into()],
        train,
        valid,
        ..KnowledgeGraph::default()
    }
}

#[test]
fn knowledge_graphs_on_ranks() {
    let (kg, device) = (ring(), Device::flex());
    let self_adversarial = LinkLoss::SelfAdversarial { margin: 2.0, temperature: 1.0 };
    for (kind, loss, optimizer, reciprocal) in [
        (KgeKind::ComplEx, LinkLoss::SampledSoftmax, KgeOptimizer::Adagrad, true),
        (KgeKind::DistMult, LinkLoss::Bce, KgeOptimizer::Adam, false),
        (KgeKind::RotatE, self_adversarial, KgeOptimizer::Adam, false),
        (KgeKind::TransEL1, LinkLoss::Margin { margin: 1.0 }, KgeOptimizer::Adagrad, true),
    ] {
        let training =
            KgeTraining::Negatives { count: 6, loss, filtered: true, type_constrained: true };
        let config = KgeConfig {
            d: 8,
            epochs: 4,
            batch: 33,
            lr: 0.05,
            lr_decay: 0.9,
            eval_every: 2,
            entity_dropout: 0.1,
            query_dropout: 0.1,
            entity_regularization: 0.01,
            relation_regularization: 0.02,
            training,
            optimizer,
            reciprocal,
            ..KgeConfig::new(kind)
        };
        let figures = |trained: &TrainedKge| -> Vec<f64> {
            let losses = trained.history.iter().map(|e| e.loss);
            let ranks = trained.history.iter().filter_map(|e| Some(e.valid?.mrr));
            losses.chain(ranks).chain(values(&trained.model.entities.val())).collect()
        };
        let one = train_kge(&kg, &config, &device, |_| {}).unwrap();
        let start = KgeConfig { epochs: 1, lr: 1e-9, ..config.clone() };
        let start = train_kge(&kg, &start, &device, |_| {}).unwrap();
        let moved = values(&(one.model.entities.val() - start.model.entities.val()).abs().max());
        assert!(moved[0] > 0.05, "{kind:?}: {moved:?}");
        for ranks in [1, 2, 4] {
            let trained = run_ranks(ranks, |comm| {
                train_kge_on_ranks(&kg, &config, comm, &device, |_| {}).map(|t| figures(&t))
            });
            for (rank, found) in trained.unwrap().iter().enumerate() {
                let name = format!("{kind:?}, rank {rank} of {ranks}");
                assert_close(&name, found, &figures(&one), 1e-3);
            }
        }
    }
    let e = run_ranks(2, |comm| {
        train_kge_on_ranks(&kg, &KgeConfig::default(), comm, &device, |_| {}).map(|_| ())
    });
    let e = e.unwrap_err().to_string();
    assert!(e.contains("`training` must lie in `negatives` on ranks"), "{e}");
}
