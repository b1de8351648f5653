//! NBFNet on graphs with a rule, among entities that it has not seen.

use burn::tensor::Device;
use burn_gnn_data::{EntityNegatives, KnowledgeGraph, Triple};
use burn_gnn_links::{
    FactGraph, NbfnetConfig, NbfnetTraining, PathAggregation, candidate_queries, candidate_ranks,
    nearness_scores, train_nbfnet,
};
use burn_gnn_models::ModelError;
use burn_gnn_testutil::assert_same_bits_on_threads;

const PARENT: u32 = 0;
const GRANDPARENT: u32 = 1;

fn fact(head: u32, relation: u32, tail: u32) -> Triple {
    Triple { head, relation, tail }
}

/// Families of seven: one grandparent, two parents, and two children of each. The last `removed` grandparent facts are not in
/// the graph, but the second result.
fn families(count: u32, removed: usize) -> (KnowledgeGraph, Vec<Triple>) {
    let (mut parents, mut grandparents) = (vec![], vec![]);
    for first in (0..count).map(|f| 7 * f) {
        for parent in [first + 1, first + 2] {
            parents.push(fact(first, PARENT, parent));
            for child in [2 * parent - first + 1, 2 * parent - first + 2] {
                parents.push(fact(parent, PARENT, child));
                grandparents.push(fact(first, GRANDPARENT, child));
            }
        }
    }
    let rest = grandparents.split_off(grandparents.len() - removed);
    parents.extend(grandparents);
    let kg = KnowledgeGraph {
        entities: (0..7 * count).map(|i| i.to_string()).collect(),
        relations: vec!["parent of".into(), "grandparent of".into()],
        train: parents,
        ..KnowledgeGraph::default()
    };
    (kg, rest)
}

/// For each fact, the five other members of the family of its head, and five members of other families.
fn others(facts: &[Triple], people: u32) -> EntityNegatives {
    let (mut heads, mut tails) = (vec![], vec![]);
    for (i, t) in (0..).zip(facts) {
        let family = t.head / 7 * 7;
        let far = (0..5).map(|k| (family + 7 + 3 * k + i) % people);
        let far: Vec<u32> =
            far.map(|v| if v / 7 == family / 7 { (v + 7) % people } else { v }).collect();
        heads.extend((family..family + 7).filter(|&v| v != t.head && v != t.tail));
        heads.extend(&far);
        // Other grandchildren are true tails.
        tails.extend([family + 1, family + 2, family + 1, family + 2, t.head]);
        tails.extend(far);
    }
    EntityNegatives { per_triple: 10, heads, tails }
}

fn config(aggregation: PathAggregation) -> NbfnetTraining {
    let model = NbfnetConfig::new(2).with_dim(8).with_num_layers(2).with_aggregation(aggregation);
    NbfnetTraining::new(model).with_epochs(8).with_negatives(16).with_lr(0.01).with_lr_decay(0.9)
}

#[test]
fn a_rule_holds_for_people_that_the_model_has_not_seen() {
    let (known, valid) = families(20, 8);
    let known = KnowledgeGraph { valid, ..known };
    let (unseen, removed) = families(6, 6);
    let graph = FactGraph::of_training(&unseen).unwrap();
    let negatives = others(&removed, unseen.entities.len() as u32);
    for aggregation in [PathAggregation::Sum, PathAggregation::Pna] {
        let trained =
            train_nbfnet(&config(aggregation), &known, &known, &Device::flex(), |_, _, _| {})
                .unwrap();
        let ranks = trained.rank(&graph, &removed, &negatives).unwrap();
        assert!(trained.losses[7] < trained.losses[0] / 2.0, "{:?}", trained.losses);
        assert!(ranks.mrr > 0.9, "{aggregation:?}: {ranks:?}");
        // Parents are nearer than grandchildren.
        let queries = candidate_queries(&removed, 2, &negatives).unwrap();
        let nearness = candidate_ranks(&queries, &nearness_scores(&graph, &queries)).unwrap();
        assert!(nearness.mrr < ranks.mrr, "{nearness:?}");
    }
}

#[test]
fn a_loss_that_is_not_finite_ends_training() {
    let (known, valid) = families(3, 3);
    let known = KnowledgeGraph { valid, ..known };
    let train = |config: NbfnetTraining| {
        train_nbfnet(&config, &known, &known, &Device::flex(), |_, _, _| {}).unwrap_err()
    };
    let e = train(config(PathAggregation::Sum).with_lr(1e38));
    assert!(matches!(e, ModelError::Diverged { .. }), "{e}");
    let e = train(config(PathAggregation::Sum).with_lr(f64::NAN)).to_string();
    assert!(e.contains("`lr` must lie in numbers above 0"), "{e}");
}

#[test]
fn training_does_not_depend_on_threads() {
    let (known, valid) = families(6, 4);
    let known = KnowledgeGraph { valid, ..known };
    let (unseen, removed) = families(3, 3);
    let graph = FactGraph::of_training(&unseen).unwrap();
    let queries = candidate_queries(&removed, 2, &others(&removed, 21)).unwrap();
    assert_same_bits_on_threads("scores", || {
        let config = config(PathAggregation::Sum).with_epochs(2);
        let trained = train_nbfnet(&config, &known, &known, &Device::flex(), |_, _, _| {}).unwrap();
        let scores = trained.model.score(&graph, &queries, burn_gnn_links::HiddenFacts::Answer);
        scores.unwrap().into_data().iter::<f64>().collect()
    });
}
