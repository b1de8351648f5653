//! Batches of edges over parts are those of one machine.

use burn_gnn_dist::{DistError, DistLinkSampler, DistSampler, SplitBy, SplitOf, partition_graph};
use burn_gnn_graph::{LinkExclusion, LinkSampler, NegativePairs, NeighborSampler, SampleKey};
use proptest::prelude::*;

use crate::dist_graph::on_ranks;
use crate::graphs::{Sizes, anywhere, kept, random, scattered, sizes};
use crate::sampling::content;

fn kinds() -> impl proptest::strategy::Strategy<Value = NegativePairs> {
    prop_oneof![
        1 => Just(NegativePairs::None),
        2 => (1usize..4).prop_map(NegativePairs::PerSource),
        2 => (1usize..4).prop_map(NegativePairs::PerDestination),
        2 => (1usize..4).prop_map(NegativePairs::PerEndpoint),
        3 => (0usize..4).prop_map(NegativePairs::Global),
    ]
}

/// Negative pairs of each seed edge.
fn pairs_of_each(pairs: NegativePairs) -> usize {
    match pairs {
        NegativePairs::Global(k) => k,
        _ => pairs.kept().iter().sum(),
    }
}

/// Whether source and destination of negative pair `j` of a seed edge were drawn.
fn drawn(pairs: NegativePairs, j: usize) -> [bool; 2] {
    match pairs {
        NegativePairs::Global(_) => [true; 2],
        _ => [j >= pairs.kept()[0], j < pairs.kept()[0]],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn shares_together_are_the_batch(sizes in sizes(), parts in 1usize..5, seed in 0u64..1_000_000, negatives in kinds(), etype in 0usize..5, how in 0usize..3, reshuffle: bool) {
        let g = random(seed, sizes);
        let parts = if reshuffle { scattered(&g, parts, seed) } else { kept(&g, parts, seed) };
        let m = g.relations()[etype].num_edges() as u32;
        let edges: Vec<u32> = (0..m).filter(|e| (u64::from(*e) + seed) % 3 == 0).rev().collect();
        let exclusion = match how {
            0 => LinkExclusion::Nothing,
            1 => LinkExclusion::Seeds,
            _ => LinkExclusion::Reverse((0..m).map(|e| (e + 1) % m.max(1)).collect()),
        };
        let key = SampleKey::new(seed).at(1, 5);
        let k = pairs_of_each(negatives);
        let near = || NeighborSampler::new(&g, [2, -1]).unwrap();
        let alone = LinkSampler::new(near(), etype).unwrap().with_negatives(negatives).with_exclusion(exclusion.clone()).unwrap();
        let whole = alone.sample(&edges, key).unwrap();
        let (s, d) = g.schema().ends(etype);
        let last = whole.batch.blocks.last().unwrap();
        let shares = on_ranks(&parts, |dg| {
            let sampler = DistLinkSampler::new(DistSampler::new(dg, [2, -1])?, etype)?.with_negatives(negatives)?.with_exclusion(exclusion.clone())?;
            let wide: Vec<u64> = edges.iter().map(|&e| u64::from(e)).collect();
            let share = sampler.sample(&wide, key)?;
            let ends = |t: usize, rows: &[u32]| {
                let nodes = share.batch.output_nodes(t);
                rows.iter().map(|&r| parts.original_nids(t)[nodes[r as usize] as usize]).collect::<Vec<_>>()
            };
            let (pos, neg) = (&share.positive, &share.negative);
            let pairs = [ends(s, &pos.src), ends(d, &pos.dst), ends(s, &neg.src), ends(d, &neg.dst)];
            // The same blocks as one machine makes around these ends without the edges of the whole batch.
            let mut seeds = vec![vec![]; 3];
            // Nodes that negatives keep are seeds once.
            let new = |side: usize| pairs[2 + side].iter().enumerate().filter(move |(j, _)| drawn(negatives, j % k)[side]).map(|(_, v)| v);
            seeds[s].extend(pairs[0].iter().chain(new(0)).copied());
            seeds[d].extend(pairs[1].iter().chain(new(1)).copied());
            let mut out = vec![vec![]; 5];
            if how > 0 {
                out[etype].extend(edges.iter().copied());
            }
            if let LinkExclusion::Reverse(of) = &exclusion {
                out[etype].extend(edges.iter().map(|&e| of[e as usize]));
            }
            let expected = near().sample_excluding(g.schema().ntypes().iter().zip(&seeds), out.iter().enumerate(), key).unwrap();
            assert_eq!(content(&share.batch.mini), content(&expected));
            Ok((share.edges, pairs, share.is_strict))
        });
        // Pair by pair what one machine drew.
        let mut seen = 0;
        for (ids, [u, v, nu, nv], strict) in shares {
            for (i, id) in ids.iter().enumerate() {
                let at = edges.iter().position(|e| u64::from(*e) == *id).unwrap();
                let node = |t: usize, rows: &[u32], i: usize| last.dst_nodes(t)[rows[i] as usize];
                prop_assert_eq!((u[i], v[i]), (node(s, &whole.positive.src, at), node(d, &whole.positive.dst, at)));
                for j in 0..k {
                    let (here, there) = (i * k + j, at * k + j);
                    prop_assert_eq!((nu[here], nv[here]), (node(s, &whole.negative.src, there), node(d, &whole.negative.dst, there)));
                    prop_assert_eq!(strict[here], whole.is_strict[there]);
                }
            }
            seen += ids.len();
        }
        prop_assert_eq!(seen, edges.len());
    }
}

const SOME: Sizes = Sizes { nodes: [21, 12, 5], edges: [60, 40, 90, 10, 8] };

pub(crate) fn refusals(n: usize) {
    let g = random(1, SOME);
    let parts = scattered(&g, n, 1);
    on_ranks(&parts, |d| {
        let new = || DistLinkSampler::new(DistSampler::new(d, [1])?, "self");
        // More pairs than memory holds.
        let many = new()?.with_negatives(NegativePairs::Global(usize::MAX))?;
        assert!(many.sample(&[0, 1, 2], SampleKey::new(0)).is_err());
        assert_eq!(many.sample(&[], SampleKey::new(0))?.negative.src, [0; 0]);
        assert!(new()?.with_exclusion(LinkExclusion::Reverse(vec![0])).is_err());
        assert!(new()?.with_exclusion(LinkExclusion::ReverseType(9)).is_err());
        let bad = if d.comm().rank() == 0 { 90 } else { 0 };
        assert!(new()?.sample(&[bad], SampleKey::new(0)).is_err());
        assert_eq!(new()?.sample(&[], SampleKey::new(0))?.edges, [0; 0]);
        Ok(())
    });
    // Owners of sources that do not hold their out-edges cannot tell which pairs have none.
    let bare = partition_graph(&g, &anywhere(&g, n, 1, 1).with_num_hops(0)).unwrap();
    on_ranks(&bare, |d| {
        let new = || DistLinkSampler::new(DistSampler::new(d, [1])?, "self");
        let e = new()?.with_negatives(NegativePairs::Global(1)).map(drop).unwrap_err().to_string();
        assert!(e.contains("parts hold all out-edges of their nodes"), "{e}");
        assert!(new()?.with_negatives(NegativePairs::PerDestination(1)).is_ok());
        Ok(())
    });
}

pub(crate) fn splits_cover_each_seed_once_with_as_many_steps_everywhere(n: usize) {
    let g = random(1, SOME);
    for parts in [scattered(&g, n, 1), kept(&g, n, 1)] {
        // Trainer numbers are 0 and 1.
        let by =
            if n == 1 { vec![SplitBy::Owner, SplitBy::Even] } else { vec![SplitBy::Owner, SplitBy::Even, SplitBy::Trainer("trainer")] };
        for by in by {
            for of in [SplitOf::All, SplitOf::Mask("label"), SplitOf::Own(&[])] {
                let splits = on_ranks(&parts, |d| {
                    let own: Vec<u64> = d.own_nodes("a")?.into_iter().filter(|i| i % 2 == 0).rev().collect();
                    let of = if matches!(of, SplitOf::Own(_)) { SplitOf::Own(&own) } else { of };
                    let split = d.node_split("a", of, by)?;
                    if by == SplitBy::Owner {
                        assert!(split.ids.iter().all(|id| d.own_nodes("a").unwrap().contains(id)));
                    }
                    if let SplitBy::Trainer(_) = by {
                        assert!(split.ids.iter().all(|&id| parts.original_nids(0)[id as usize] as usize % 2 == d.comm().rank()));
                    }
                    assert_eq!(split.counts[d.comm().rank()], split.ids.len() as u64);
                    Ok(split)
                });
                let label = |id: u64| parts.original_nids(0)[id as usize] * 7 % 5;
                let expected: Vec<u64> = match of {
                    SplitOf::All => (0..21).collect(),
                    SplitOf::Mask(_) => (0..21).filter(|&i| label(i) != 0).collect(),
                    SplitOf::Own(_) => (0..21).filter(|i| i % 2 == 0).collect(),
                };
                let mut all: Vec<u64> = splits.iter().flat_map(|s| s.ids.clone()).collect();
                if by == SplitBy::Even {
                    // Kept ids are ascending inside of each rank's.
                    assert!(all.is_sorted() || !parts.book().is_reshuffled() && splits.iter().all(|s| s.ids.is_sorted()));
                    let (least, most) = (splits[0].counts.iter().min().unwrap(), splits[0].counts.iter().max().unwrap());
                    assert!(most - least <= 1, "{:?}", splits[0].counts);
                }
                all.sort_unstable();
                assert_eq!(all, expected);
                let steps = splits[0].steps(4);
                assert!(splits.iter().all(|s| s.counts == splits[0].counts && s.steps(4) == steps && s.ids.len() as u64 <= 4 * steps));
                assert_eq!(splits[0].total(), expected.len() as u64);
            }
        }
        on_ranks(&parts, |d| {
            let split = d.edge_split("self", SplitOf::Mask("m"), SplitBy::Even)?;
            assert!(split.total() > 0 && split.total() < 90);
            let bad = [if d.comm().rank() == 0 { 21 } else { d.own_nodes("a")?[0] }];
            assert!(d.node_split("a", SplitOf::Own(&bad), SplitBy::Owner).is_err());
            let one = d.own_nodes("a")?[0];
            let twice = [one, one];
            assert!(d.node_split("a", SplitOf::Own(&twice), SplitBy::Owner).is_err());
            // Labels go up to 4: no rank has that number.
            assert!(d.node_split("a", SplitOf::All, SplitBy::Trainer("label")).is_err());
            assert!(d.node_split("a", SplitOf::Mask("feat"), SplitBy::Owner).is_err());
            d.comm().barrier("still in step").map_err(DistError::from)
        });
    }
}
