//! Corrupted triples are no known facts where another candidate exists, and follow the chosen distribution.

use burn_gnn_data::Triple;
use burn_gnn_links::{
    CorruptedSide, CorruptedTriples, Corruption, FactFilter, IdLists, NegativeDistribution,
    in_batch_corrections,
};
use burn_gnn_sampling::SampleKey;
use proptest::prelude::*;

fn triple(head: u32, relation: u32, tail: u32) -> Triple {
    Triple { head, relation, tail }
}

fn draw(c: &Corruption, triples: &[Triple], per: usize, seed: u64) -> CorruptedTriples {
    let ids: Vec<u64> = (0..triples.len() as u64).collect();
    c.draw(triples, &ids, None, per, SampleKey::new(seed)).unwrap()
}

proptest! {
    #[test]
    fn negatives_are_strict_where_possible(
        facts in prop::collection::vec((0u32..5, 0u32..2, 0u32..5), 1..40),
        seed: u64,
        side in prop_oneof![Just(CorruptedSide::Heads), Just(CorruptedSide::Tails), Just(CorruptedSide::Both)],
        weighted: bool,
    ) {
        let facts: Vec<Triple> = facts.into_iter().map(|(h, r, t)| triple(h, r, t)).collect();
        let distribution = if weighted {
            NegativeDistribution::popularity(&[1, 1, 9, 0, 3], 0.75).unwrap()
        } else {
            NegativeDistribution::uniform()
        };
        let c = Corruption::new(5, side, distribution).unwrap();
        let c = c.with_filter(FactFilter::new(facts.clone()));
        let drawn = draw(&c, &facts, 4, seed);
        prop_assert_eq!(drawn.triples.len(), 4 * facts.len());
        for (i, (t, &strict)) in drawn.triples.iter().zip(&drawn.is_strict).enumerate() {
            let of = facts[i / 4];
            let heads = side == CorruptedSide::Heads || (side == CorruptedSide::Both && i % 2 == 1);
            let kept = if heads { t.tail == of.tail } else { t.head == of.head };
            prop_assert!(t.relation == of.relation && kept);
            let candidate = |e: u32| {
                let c = if heads { triple(e, of.relation, of.tail) } else { triple(of.head, of.relation, e) };
                !(facts.contains(&c) || weighted && e == 3)
            };
            prop_assert_eq!(strict, (0..5).any(candidate));
            let drawn = if heads { t.head } else { t.tail };
            prop_assert!(!strict || candidate(drawn));
        }
        // A triple's draws do not depend on the others of the batch.
        let last = facts.len() - 1;
        let alone = c.draw(&facts[last..], &[last as u64], None, 4, SampleKey::new(seed)).unwrap();
        prop_assert_eq!(&alone.triples[..], &drawn.triples[4 * last..]);
    }
}

#[test]
fn frequencies_follow_the_counts() {
    let counts = [0, 1, 16];
    let by = NegativeDistribution::popularity(&counts, 0.5).unwrap();
    let c = Corruption::new(3, CorruptedSide::Tails, by).unwrap();
    let drawn = draw(&c, &[triple(1, 0, 0)], 20_000, 1);
    let ones = drawn.triples.iter().filter(|t| t.tail == 1).count() as f64 / 20_000.0;
    // Weights 1 and 4; five standard deviations are 0.015.
    assert!((ones - 0.2).abs() < 0.015, "{ones}");
}

#[test]
fn inductive_hard_and_historical_negatives() {
    let key = SampleKey::new(3);
    let by = NegativeDistribution::among(vec![7, 8]).unwrap();
    let c = Corruption::new(9, CorruptedSide::Tails, by).unwrap();
    let drawn = draw(&c, &[triple(0, 0, 7)], 9, 1);
    assert!(drawn.triples.iter().all(|t| t.tail == 8), "the true tail is no negative");

    let lists = IdLists::from_pairs(2, [(0, 1), (1, 4), (1, 5)]).unwrap();
    let c = Corruption::new(9, CorruptedSide::Tails, NegativeDistribution::lists(lists)).unwrap();
    let drawn = draw(&c, &[triple(0, 0, 2), triple(0, 0, 4)], 3, 1);
    let tails: Vec<u32> = drawn.triples.iter().map(|t| t.tail).collect();
    assert_eq!(tails, [1, 1, 1, 5, 5, 5]);
    let no_list = c.draw(&[triple(0, 0, 2)], &[u64::MAX], None, 1, key).unwrap();
    assert_eq!(no_list.is_strict, [false]);

    let facts =
        [(triple(0, 0, 1), 5), (triple(0, 0, 2), 6), (triple(0, 0, 3), 7), (triple(0, 0, 1), 7)];
    let c = Corruption::new(9, CorruptedSide::Tails, NegativeDistribution::past()).unwrap();
    let filtered = c.clone().with_filter(FactFilter::timed(facts));
    // At time 7 both 1 and 3 are true; only 2 was true before and is not now.
    let drawn = filtered.draw(&[facts[2].0], &[0], Some(&[7]), 5, key).unwrap();
    assert!(drawn.triples.iter().all(|t| t.tail == 2) && drawn.is_strict == [true; 5]);
    let drawn = filtered.draw(&[facts[0].0], &[0], Some(&[5]), 5, key).unwrap();
    assert_eq!(drawn.is_strict, [false; 5], "nothing was true before");
    // Later facts change nothing.
    let fewer = c.clone().with_filter(FactFilter::timed(facts[..2].to_vec()));
    let at_6 = |c: &Corruption| c.draw(&[facts[1].0], &[0], Some(&[6]), 5, key).unwrap();
    assert_eq!(at_6(&filtered), at_6(&fewer));
    let e = c.draw(&[facts[0].0], &[0], Some(&[5]), 1, key).unwrap_err().to_string();
    assert_eq!(e, "`filter` must lie in facts with times for historical negatives, got none");
    let e = filtered.draw(&[facts[0].0], &[0], None, 1, key).unwrap_err().to_string();
    assert!(e.contains("`times`"), "{e}");
}

#[test]
fn answers_of_a_batch_are_no_negatives() {
    let known = IdLists::from_pairs(2, [(0, 1)]).unwrap();
    let device = burn::tensor::Device::flex();
    let c = in_batch_corrections(&[0, 1, 5], &[0, 0, 1], &known, &[1, 3], &device).unwrap();
    let c = c.into_data().try_to_vec::<f32>().unwrap();
    // Destination 0 is expected 3 / 4 times in a batch of three, destination 1 9 / 4 times.
    let (zero, one) = (-(0.75f32.ln()), -(2.25f32.ln()));
    let none = f32::NEG_INFINITY;
    assert_eq!(c, [zero, none, none, none, zero, one, zero, zero, one]);
    let e = in_batch_corrections(&[0], &[2], &known, &[1, 3], &device).unwrap_err().to_string();
    assert!(e.contains("`dst`") && e.contains("got 2"), "{e}");
}
