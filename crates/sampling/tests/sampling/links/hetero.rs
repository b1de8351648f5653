//! Batches of edges of several types: the pairs are those of samplers of one type, and the edges that a type leaves out
//! pass no messages for any.

use std::collections::{BTreeMap, HashSet};

use burn::tensor::Device;
use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_sampling::RowType;
use burn_gnn_sampling::{
    Block, GraphFeatures, HeteroLinkBatch, HeteroLinkSampler, LinkExclusion, LinkRows, LinkSampler,
    Loader, MemoryRows, MiniBatch, NegativePairs, NeighborSampler, SampleKey, Seeds, Traversal,
};
use burn_gnn_testutil::apply_if;

use crate::common::{content, typed};

type Pairs = Vec<(u32, u32)>;

/// Pairs of rows as pairs of nodes.
fn nodes(batch: &MiniBatch, etype: usize, rows: &LinkRows) -> Pairs {
    let (s, d) = batch.blocks[0].schema().endpoints(etype);
    let node = |t: usize, row: u32| batch.output_nodes(t)[row as usize];
    rows.src.iter().zip(&rows.dst).map(|(&u, &v)| (node(s, u), node(d, v))).collect()
}

/// Ids of the edges of a type into each destination row that has some, ascending.
fn edges_into(block: &Block, etype: usize) -> BTreeMap<u32, Vec<u32>> {
    let mut into: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (&row, &edge) in block.relations()[etype].dst().iter().zip(block.edge_ids(etype)) {
        into.entry(row).or_default().push(edge);
    }
    into.values_mut().for_each(|edges| edges.sort_unstable());
    into
}

fn etypes(g: &Graph) -> [usize; 3] {
    ["writes", "cites", "written"].map(|name| g.schema().etype(name).unwrap())
}

/// Papers cite papers: edge `e` against edge `last - e`.
fn backwards(g: &Graph) -> Vec<u32> {
    (0..g.num_edges("cites").unwrap() as u32).rev().collect()
}

fn describe(g: &Graph, etype: usize, links: LinkSampler) -> Result<LinkSampler, GraphError> {
    let [writes, cites, written] = etypes(g);
    match etype {
        t if t == writes => links
            .with_negatives(NegativePairs::PerEndpoint(2))
            .with_exclusion(LinkExclusion::reverse_type(g.schema().etypes()[written].clone())),
        t if t == cites => links
            .with_negatives(NegativePairs::PerSource(3))
            .with_exclusion(LinkExclusion::Reverse(backwards(g))),
        _ => links.with_negatives(NegativePairs::Global(1)).with_exclusion(LinkExclusion::Nothing),
    }
}

fn hetero(g: &Graph, sampler: &NeighborSampler) -> HeteroLinkSampler {
    let with = |links: HeteroLinkSampler, t: usize| {
        links.with_type(t, |links| describe(g, t, links)).unwrap()
    };
    // In any order.
    etypes(g).into_iter().fold(HeteroLinkSampler::new(sampler.clone()), with)
}

fn seeds(g: &Graph) -> [(usize, Vec<u32>); 3] {
    let [writes, cites, written] = etypes(g);
    [(writes, (0..20).collect()), (cites, vec![7, 3, 90, 7]), (written, vec![100, 5, 41])]
}

fn batch(g: &Graph, sampler: &NeighborSampler) -> HeteroLinkBatch {
    hetero(g, sampler).sample(seeds(g), SampleKey::new(3)).unwrap()
}

/// Edges that the batch leaves out, per edge type: by pair of nodes, unless edges have times.
fn left_out(g: &Graph, timed: bool) -> Vec<HashSet<u32>> {
    let [writes, cites, written] = etypes(g);
    let (mut out, last) = (vec![HashSet::new(); 3], g.num_edges("cites").unwrap() as u32 - 1);
    for (t, edges) in seeds(g) {
        if t == writes {
            out[writes].extend(&edges);
            out[written].extend(&edges);
        } else if t == cites {
            out[cites].extend(edges.iter().flat_map(|&e| [e, last - e]));
        }
    }
    for (r, out) in g.relations().iter().zip(&mut out).filter(|_| !timed) {
        let pair = |e: u32| (r.src()[e as usize], r.dst()[e as usize]);
        let pairs: HashSet<(u32, u32)> = out.iter().map(|&e| pair(e)).collect();
        out.extend((0..r.num_edges() as u32).filter(|&e| pairs.contains(&pair(e))));
    }
    out
}

#[test]
fn one_type_gives_the_batch_of_its_sampler() {
    let g = typed(60, 30, 5);
    for (etype, edges) in seeds(&g) {
        for disjoint in [false, true] {
            let sampler = NeighborSampler::new(&g, [3, 2]).unwrap();
            let sampler = apply_if(disjoint, sampler, NeighborSampler::with_disjoint);
            let want =
                describe(&g, etype, LinkSampler::new(sampler.clone(), etype).unwrap()).unwrap();
            let want = want.sample(&edges, SampleKey::new(1)).unwrap();
            let links = HeteroLinkSampler::new(sampler)
                .with_type(etype, |links| describe(&g, etype, links))
                .unwrap();
            let got = links.sample([(etype, &edges)], SampleKey::new(1)).unwrap();
            assert_eq!(content(&got.batch), content(&want.batch));
            let of = &got.links[etype];
            assert_eq!(
                (&of.edges, &of.positive, &of.negative, &of.is_strict),
                (&want.edges, &want.positive, &want.negative, &want.is_strict)
            );
            assert_eq!(of.labels(), want.labels());
            assert!((0..3).all(|t| t == etype || got.links[t].labels().is_empty()));
        }
    }
}

#[test]
fn pairs_of_several_types_are_those_of_samplers_of_one() {
    let g = typed(60, 30, 5);
    for disjoint in [false, true] {
        let sampler = NeighborSampler::new(&g, [2]).unwrap();
        let sampler = apply_if(disjoint, sampler, NeighborSampler::with_disjoint);
        let all = batch(&g, &sampler);
        for (t, edges) in seeds(&g) {
            let one = describe(&g, t, LinkSampler::new(sampler.clone(), t).unwrap())
                .unwrap()
                .sample(&edges, SampleKey::new(3))
                .unwrap();
            let of = &all.links[t];
            let r = &g.relations()[t];
            let positive: Pairs =
                edges.iter().map(|&e| (r.src()[e as usize], r.dst()[e as usize])).collect();
            assert_eq!((&of.edges, nodes(&all.batch, t, &of.positive)), (&edges, positive));
            assert_eq!(nodes(&all.batch, t, &of.negative), nodes(&one.batch, t, &one.negative));
            assert_eq!((&of.is_strict, of.labels()), (&one.is_strict, one.labels()));
        }
    }
}

/// One hop of all neighbours: every node that is computed has all its edges but those that are left out, of whichever
/// type.
#[test]
fn seeds_of_all_types_pass_no_messages() {
    let g = typed(60, 30, 5);
    let all = batch(&g, &NeighborSampler::new(&g, [-1]).unwrap());
    let (block, excluded) = (&all.batch.blocks[0], left_out(&g, false));
    for (t, r) in g.relations().iter().enumerate() {
        let (_, d) = g.schema().endpoints(t);
        let got = edges_into(block, t);
        let mut missed = 0;
        for (row, &v) in (0..).zip(all.batch.output_nodes(d)) {
            let of_graph: Vec<u32> =
                (0..r.num_edges() as u32).filter(|&e| r.dst()[e as usize] == v).collect();
            let want: Vec<u32> =
                of_graph.iter().copied().filter(|e| !excluded[t].contains(e)).collect();
            missed += of_graph.len() - want.len();
            assert_eq!(
                got.get(&row).cloned().unwrap_or_default(),
                want,
                "edge type {t} into node {v}"
            );
        }
        assert!(missed > 0 && got.values().any(|edges| !edges.is_empty()), "edge type {t}");
    }
}

/// What is drawn for a node does not depend on the seeds of other types.
#[test]
fn draws_are_those_of_samplers_of_one_type() {
    let g = typed(60, 30, 5);
    let sampler = NeighborSampler::new(&g, [2]).unwrap();
    let bare = |links: LinkSampler| links.with_exclusion(LinkExclusion::Nothing);
    let all = etypes(&g)
        .into_iter()
        .fold(HeteroLinkSampler::new(sampler.clone()), |all, t| all.with_type(t, bare).unwrap());
    let all = all.sample(seeds(&g), SampleKey::new(3)).unwrap().batch;
    for (t, edges) in seeds(&g) {
        let one = bare(LinkSampler::new(sampler.clone(), t).unwrap())
            .unwrap()
            .sample(&edges, SampleKey::new(3))
            .unwrap()
            .batch;
        for etype in 0..3 {
            let (_, d) = g.schema().endpoints(etype);
            let (of_one, of_all) =
                (edges_into(&one.blocks[0], etype), edges_into(&all.blocks[0], etype));
            for (row, v) in (0..).zip(one.output_nodes(d)) {
                let place = all.output_nodes(d).iter().position(|u| u == v).unwrap() as u32;
                assert_eq!(of_one.get(&row), of_all.get(&place), "edge type {etype} into node {v}");
            }
        }
    }
}

/// Every pair sees the edges before the time of its own seed edge, whatever the type.
#[test]
fn pairs_of_every_type_have_the_time_of_their_edge() {
    let g = typed(60, 30, 5);
    let times: Vec<Vec<i64>> = g
        .relations()
        .iter()
        .map(|r| (0..r.num_edges() as i64).map(|e| e * 37 % 50).collect())
        .collect();
    let timed = |sampler: NeighborSampler, t: usize| sampler.with_times(t, &times[t]).unwrap();
    let sampler = (0..3).fold(NeighborSampler::new(&g, [-1]).unwrap(), timed);
    let (all, excluded) = (batch(&g, &sampler), left_out(&g, true));
    let mut met = 0;
    for (t, edges) in seeds(&g) {
        let (s, d) = g.schema().endpoints(t);
        let links = &all.links[t];
        let per_seed = links.negative.src.len() / edges.len();
        let of_negatives = (0..links.negative.src.len())
            .map(|j| (j / per_seed, links.negative.src[j], links.negative.dst[j]));
        let of_positives =
            (0..edges.len()).map(|i| (i, links.positive.src[i], links.positive.dst[i]));
        for (seed, src, dst) in of_positives.chain(of_negatives) {
            let before = times[t][edges[seed] as usize];
            for (ntype, row) in [(s, src), (d, dst)] {
                let v = all.batch.output_nodes(ntype)[row as usize];
                for etype in g.schema().etypes_into(ntype) {
                    let r = &g.relations()[etype];
                    let seen = |e: &u32| {
                        r.dst()[*e as usize] == v
                            && times[etype][*e as usize] < before
                            && !excluded[etype].contains(e)
                    };
                    let want: Vec<u32> = (0..r.num_edges() as u32).filter(seen).collect();
                    met += want.len();
                    let got =
                        edges_into(&all.batch.blocks[0], etype).remove(&row).unwrap_or_default();
                    assert_eq!(got, want, "edge type {etype} into node {v} before {before}");
                }
            }
        }
    }
    assert!(met > 100, "{met} edges");
    let some = timed(NeighborSampler::new(&g, [-1]).unwrap(), 0);
    let two = HeteroLinkSampler::new(some).with_type(0, Ok).unwrap().with_type(1, Ok).unwrap();
    assert!(two.sample([(0, [0])], SampleKey::new(0)).is_ok());
    assert!(matches!(
        two.sample([(1, [0])], SampleKey::new(0)),
        Err(GraphError::MissingRelation { arg: "times", .. })
    ));
}

#[test]
fn links_of_several_types_are_loaded() {
    let g = typed(60, 30, 5);
    let [writes, cites, written] = etypes(&g);
    let sampler = NeighborSampler::new(&g, [3, 2]).unwrap();
    let given =
        [(writes, (0..90).map(|e| e * 2).collect::<Vec<u32>>()), (cites, (10..70).collect())];
    let classes: Vec<i64> = (0..360).map(|e| e % 7).collect();
    let seeds = Seeds::edges(&g, given.clone()).unwrap();
    let new = |seeds: Seeds, size| Loader::new(hetero(&g, &sampler), seeds, size).unwrap();
    let features = || {
        let features = GraphFeatures::new(&g, &Device::flex());
        let rows = MemoryRows::new(&(0..60).map(|v| v as f32).collect::<Vec<_>>(), 1, RowType::F32)
            .unwrap();
        let weights =
            MemoryRows::new(&(0..360).map(|e| e as f32).collect::<Vec<_>>(), 1, RowType::F32)
                .unwrap();
        let features =
            features.with_nodes("paper", rows).unwrap().with_edges("cites", weights).unwrap();
        features.with_edge_labels("cites", &classes).unwrap()
    };
    let (mut met, mut mixed) = (vec![vec![]; 3], 0);
    let paper = g.schema().ntype("paper").unwrap();
    let floats = |x: &Option<burn::tensor::Tensor<2>>| {
        x.clone().unwrap().into_data().try_to_vec::<f32>().unwrap()
    };
    for b in new(seeds.clone(), 32).with_features(features()).with_workers(2).epoch(1) {
        let b = b.unwrap();
        mixed += usize::from(
            !b.seed_edges(writes).unwrap().is_empty() && !b.seed_edges(cites).unwrap().is_empty(),
        );
        for ((links, seeds), met) in b.batch.links.iter().zip(b.own_seeds().ids()).zip(&mut met) {
            assert_eq!(&links.edges, seeds);
            met.extend_from_slice(seeds);
        }
        let labels: Vec<i64> = b.edge_labels(cites).unwrap().into_data().iter::<i64>().collect();
        assert_eq!(
            labels,
            b.seed_edges(cites).unwrap().iter().map(|&e| classes[e as usize]).collect::<Vec<_>>()
        );
        assert!(b.edge_labels(writes).is_err());
        assert_eq!(
            floats(&b.x(paper).ok()),
            b.batch.batch.input_nodes(paper).iter().map(|&v| v as f32).collect::<Vec<_>>()
        );
        assert_eq!(
            floats(&b.seed_x(cites).ok()),
            b.seed_edges(cites).unwrap().iter().map(|&e| e as f32).collect::<Vec<_>>()
        );
        assert!(b.seed_x(writes).is_err());
        for (block, x) in b.batch.batch.blocks.iter().zip(&b.rows().edge_x) {
            assert_eq!(
                floats(&x[cites]),
                block.edge_ids(cites).iter().map(|&e| e as f32).collect::<Vec<_>>()
            );
        }
    }
    met.iter_mut().for_each(|ids| ids.sort_unstable());
    assert!(mixed > 1);
    assert_eq!(
        (&met[writes], &met[cites], met[written].len()),
        (&given[0].1, &given[1].1, 0),
        "each seed once an epoch"
    );
    // Seeds are numbered type after type: the last two of `writes` and the first of `cites`.
    let part = new(seeds.slice(88, 91), 9).with_traversal(Traversal::ByOrder);
    let first = part.epoch(0).next().unwrap().unwrap().own_seeds().ids().to_vec();
    assert_eq!((&first[writes][..], &first[cites][..]), (&[176, 178][..], &[10][..]));
}

#[test]
fn what_is_refused() {
    let g = typed(6, 4, 1);
    let sampler = || NeighborSampler::new(&g, [1]).unwrap();
    let links = || HeteroLinkSampler::new(sampler()).with_type("writes", Ok).unwrap();
    assert!(matches!(links().with_type("reads", Ok), Err(GraphError::UnknownEdgeType { .. })));
    assert!(matches!(
        links().with_type("writes", Ok),
        Err(GraphError::Duplicate { what: "edge type", .. })
    ));
    let other = |_: LinkSampler| LinkSampler::new(sampler(), "cites");
    assert!(matches!(
        links().with_type("cites", other),
        Err(GraphError::Setting { arg: "describe", .. })
    ));
    let key = SampleKey::new(0);
    let e = links().sample([("cites", [0])], key).unwrap_err().to_string();
    assert_eq!(
        e,
        "`edges`: expected edges of types that the sampler has (add one by `with_type`), got edges of `paper:cites:paper`"
    );
    assert!(links().sample([("writes", [99])], key).is_err());
    assert!(matches!(
        links().sample([("writes", [0]), ("writes", [1])], key),
        Err(GraphError::Duplicate { .. })
    ));
    assert!(
        links()
            .sample([("cites", [0u32; 0])], key)
            .unwrap()
            .links
            .iter()
            .all(|links| links.edges.is_empty())
    );
    let load = |etype: &str| Loader::new(links(), Seeds::edges(&g, [(etype, [0])]).unwrap(), 1);
    assert!(load("cites").is_err() && load("writes").is_ok());
    assert!(GraphFeatures::new(&g, &Device::flex()).with_edge_labels("writes", &[0]).is_err());
}
