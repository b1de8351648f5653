//! Encoders of users and items equal plain dense computations, learn, and repeat on any number of threads.

use std::ops::Range;

use burn::module::Module;
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_data::InteractionPart;
use burn_gnn_links::{
    GraphFilterConfig, IdLists, InteractionGraph, ItemSpectrum, LightGcnConfig, PairEncoder,
    PairTrainingConfig, Popularity, RankingConfig, RatingModelConfig, TwoTowerConfig, fit_pairs,
    recommendations,
};
use burn_gnn_models::{ModelError, seeded};
use burn_gnn_ops::Stream;
use burn_gnn_testutil::{assert_close, assert_same_bits_on_threads, matrix, values};

use crate::differences::{drawn, gradients};

/// Interactions of users with items of their group, `u % 4 = i % 4`, and a few others; some items are more popular.
fn interactions(users: u32, items: u32) -> InteractionPart {
    let s = Stream::new(11, "interactions", 0);
    let wants = |u: u32, i: u32| {
        let share = if u % 4 == i % 4 { 0.6 } else { 0.05 };
        s.uniform(u.into(), i.into()) < share * (0.4 + 0.6 * f64::from(i % 3) / 2.0)
    };
    let pairs = (0..users).flat_map(|u| (0..items).map(move |i| (u, i)));
    let (users, items) = pairs.filter(|&(u, i)| wants(u, i)).unzip();
    InteractionPart { users, items, ..InteractionPart::default() }
}

fn graph_of(users: usize, items: usize, part: &InteractionPart) -> InteractionGraph {
    InteractionGraph::new(users, items, part.pairs()).unwrap()
}

#[test]
fn light_gcn_equals_products_of_the_normalised_adjacency() {
    let device = Device::flex().autodiff();
    // User 3 and item 4 have no interaction; the pair (0, 1) counts once.
    let pairs = [(0, 1), (0, 2), (1, 1), (2, 0), (2, 1), (2, 3), (0, 1)];
    let graph = InteractionGraph::new(4, 5, pairs).unwrap();
    let mut dense = [0.0; 4 * 5];
    for (user, item) in graph.seen_lists().pairs() {
        let (u, i) = (user as usize, item as usize);
        let degrees = graph.user_degrees()[u] * graph.item_degrees()[i];
        dense[u * 5 + i] = f64::from(degrees).sqrt().recip();
    }
    let dense = TensorData::new(dense.to_vec(), [4, 5]);
    let a = Tensor::<2>::from_data(dense, (&device, DType::F64));
    for layers in [0, 1, 3] {
        let config = LightGcnConfig::new(4, 5).with_d_embedding(3).with_num_layers(layers);
        let model = drawn(config.init(&Device::flex())).train();
        let (mut u, mut i) = (model.users.val(), model.items.val());
        let (mut users, mut items) = (u.clone(), i.clone());
        for _ in 0..layers {
            (u, i) = (a.clone().matmul(i), a.clone().transpose().matmul(u));
            (users, items) = (users + u.clone(), items + i.clone());
        }
        let (found_users, found_items) = model.embed(&graph);
        let share = 1.0 / (layers + 1) as f64;
        assert_close("users", &values(&found_users), &values(&(users * share)), 1e-12);
        assert_close("items", &values(&found_items), &values(&(items * share)), 1e-12);
        gradients(&format!("{layers} layers"), &model, &[], |model, _| {
            let (users, items) = model.embed(&graph);
            vec![users, items]
        });
    }
}

/// NDCG of held-out items among those that users have not seen.
fn ndcg(
    graph: &InteractionGraph,
    test: &InteractionPart,
    score: impl FnMut(&[usize], Range<usize>) -> Tensor<2>,
) -> f64 {
    let wanted = IdLists::from_pairs(graph.num_users(), test.pairs()).unwrap();
    let ranking = RankingConfig::new().with_competing_targets();
    let ranks = ranking.rank(graph.num_items(), &wanted, |u| graph.seen(u), score).unwrap();
    ranks.metrics(&[5]).at(5).ndcg
}

/// Trains, and returns the losses of the epochs and NDCG.
fn trained<M: PairEncoder + Module>(
    model: M,
    graph: &InteractionGraph,
    test: &InteractionPart,
    training: &PairTrainingConfig,
    valid: impl FnOnce(&M) -> M,
) -> (Vec<f64>, f64) {
    let mut losses = vec![];
    let model = fit_pairs(model, graph, training, |epoch, _| {
        losses.push(epoch.loss);
        assert_eq!(epoch.epoch, losses.len());
        true
    });
    let of = recommendations(&valid(&model.unwrap()), graph, training.temperature.is_some());
    let wanted = IdLists::from_pairs(graph.num_users(), test.pairs()).unwrap();
    (losses, of.unwrap().rank(&wanted).unwrap().metrics(&[5]).at(5).ndcg)
}

#[test]
fn training_lowers_the_loss_and_beats_popularity() {
    let (users, items) = (80, 60);
    let (train, test) = interactions(users as u32, items as u32).hold_out(0.2, 1).unwrap();
    let graph = graph_of(users, items, &train);
    let popular = ndcg(&graph, &test, Popularity::new(&graph).scores());
    let device = Device::flex().autodiff();
    let training =
        PairTrainingConfig::new().with_num_epochs(20).with_batch_size(64).with_num_negatives(32);
    let check = |name: &str, (losses, found): (Vec<f64>, f64)| {
        let (first, last) = (losses[0], losses[19]);
        assert!(last < 0.9 * first, "{name}: {losses:?}");
        assert!(found > popular + 0.1, "{name}: NDCG {found}, popularity {popular}");
    };
    for temperature in [None, Some(0.2)] {
        let training = training.clone().with_temperature(temperature);
        for layers in [0, 2] {
            let config =
                LightGcnConfig::new(users, items).with_d_embedding(8).with_num_layers(layers);
            let model = seeded(3, || config.init(&device));
            let found = trained(model, &graph, &test, &training, |m| m.valid());
            check(&format!("{layers} layers, {temperature:?}"), found);
        }
        // Users have no features but one that is constant, so that their learned rows decide.
        let groups: Vec<f32> = (0..items * 4).map(|k| f32::from(k / 4 % 4 == k % 4)).collect();
        let groups = TensorData::new(groups, [items, 4]);
        let features = Tensor::<2>::from_data(groups, &device);
        let config = TwoTowerConfig::new().with_d_embedding(8).with_d_hidden(16);
        let init = || config.init(Tensor::ones([users, 1], &device), features, &device);
        let model = seeded(3, init).unwrap();
        let found = trained(model, &graph, &test, &training, |m| m.valid());
        check(&format!("towers, {temperature:?}"), found);
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let (users, items) = (120, 90);
    let part = interactions(users as u32, items as u32);
    let graph = graph_of(users, items, &part);
    assert_same_bits_on_threads("training", || {
        let device = Device::flex().autodiff();
        let config = LightGcnConfig::new(users, items).with_d_embedding(8).with_num_layers(2);
        let training = PairTrainingConfig::new().with_num_epochs(2).with_batch_size(512);
        let model = seeded(1, || config.init(&device));
        let model = fit_pairs(model, &graph, &training, |_, _| true).unwrap();
        let (users, items) = model.embed(&graph);
        [values(&users), values(&items)].concat()
    });
    assert_same_bits_on_threads("filter", || {
        let config = GraphFilterConfig::new().with_rank(20);
        let filter = config.init(&graph, &Device::flex()).unwrap();
        values(&filter.scores()(&(0..users).collect::<Vec<_>>(), 0..items))
    });
    let rated = InteractionPart {
        ratings: Some(part.pairs().map(|(u, i)| 1.0 + ((u * 3 + i * 5) % 7) as f32).collect()),
        ..part
    };
    assert_same_bits_on_threads("ratings", || {
        let (rest, val) = rated.hold_out(0.2, 3).unwrap();
        let mut model = RatingModelConfig::default().fit(users, items, &rest).unwrap();
        let pairs: Vec<(u32, u32)> = val.pairs().collect();
        model.fit_weights(&pairs, val.ratings.as_ref().unwrap()).unwrap();
        model.predict(&pairs).unwrap()
    });
}

#[test]
fn errors_name_the_argument() {
    let device = Device::flex();
    let graph = InteractionGraph::new(2, 3, [(0, 2), (1, 0)]).unwrap();
    let model = |users| {
        LightGcnConfig::matrix_factorisation(users, 3)
            .with_d_embedding(2)
            .init(&device.clone().autodiff())
    };
    let fit = |users, graph: &InteractionGraph, config: PairTrainingConfig| {
        fit_pairs(model(users), graph, &config, |_, _| true).unwrap_err().to_string()
    };
    let config = PairTrainingConfig::new();
    assert_eq!(
        fit(4, &graph, config.clone()),
        "`users`: expected 2 (one row per user), got 4; give 2"
    );
    let none = InteractionGraph::new(2, 3, []).unwrap();
    assert_eq!(fit(2, &none, config.clone()), "`interactions` must lie in 1.., got 0");
    assert!(fit(2, &graph, config.with_penalty(f64::NAN)).contains("`penalty`"));
    let text = |e: ModelError| e.to_string();
    let filter = GraphFilterConfig::new();
    assert!(text(filter.init(&none, &device).unwrap_err()).contains("`interactions`"));
    let spectrum = ItemSpectrum::new(&graph, 2, 3, 0, &device).unwrap();
    let other = InteractionGraph::new(2, 4, [(0, 2)]).unwrap();
    assert_eq!(
        text(filter.with_spectrum(&other, &spectrum).unwrap_err()),
        "`spectrum`: expected 4 (one row per item), got 3; give 4"
    );
    let no_rank = filter.clone().with_rank(0).with_spectrum(&graph, &spectrum);
    assert_eq!(text(no_rank.unwrap_err()), "`rank` must lie in 1.., got 0");
    let features = |rows| matrix(&device, "features", rows, 2).cast(DType::F32);
    let towers = TwoTowerConfig::new().with_d_hidden(0).init(features(2), features(3), &device);
    assert_eq!(text(towers.unwrap_err()), "`d_hidden` must lie in 1.., got 0");
}
