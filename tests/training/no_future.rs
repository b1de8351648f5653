//! No batch of a database depends on rows after the time of its seed, nor on the order of rows: in memory, in files and on
//! ranks.

use std::collections::HashMap;

use burn::tensor::Device;
use burn_gnn::data::{
    ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseGraph, DatabaseTable, NEVER,
};
use burn_gnn::dist::{
    DistError, DistGraph, DistSampler, PartitionConfig, partition_graph, run_ranks,
};
use burn_gnn::graph::KHop;
use burn_gnn::ops::Stream;
use burn_gnn::sampling::{
    Block, Loader, LoaderState, MiniBatch, NeighborSampler, SampleKey, Seeds, ShadowSampler,
    Strategy, Traversal,
};
use burn_gnn::store::StoredDatabase;

/// Tables in the order of their names; `users` have no times, `notes` no primary key.
const TABLES: [&str; 4] = ["items", "notes", "orders", "users"];
const ITEMS: usize = 0;
const NOTES: usize = 1;
const ORDERS: usize = 2;
const USERS: usize = 3;
/// Foreign keys: table, column, and the table to which it refers.
const KEYS: [(usize, &str, usize); 4] = [
    (NOTES, "order", ORDERS),
    (ORDERS, "user", USERS),
    (ORDERS, "item", ITEMS),
    (ORDERS, "previous", ORDERS),
];
/// Times of the first rows are below.
const END: i64 = 12;

/// A row. `refs` has an entry for each foreign key of its table; it may refer to no row, or be missing.
#[derive(Clone, Debug)]
struct Row {
    key: i64,
    time: Option<i64>,
    refs: Vec<Option<i64>>,
    value: i64,
}

type Tables = [Vec<Row>; 4];

/// Draws of a test.
struct Random(Stream, u64);

impl Random {
    fn new(seed: u64, purpose: &str) -> Self {
        Self(Stream::new(seed, purpose, 0), 0)
    }
    fn below(&mut self, n: usize) -> usize {
        self.1 += 1;
        (self.0.uniform(self.1, 0) * n as f64) as usize
    }
    fn shuffle<T>(&mut self, of: &mut [T]) {
        (1..of.len()).rev().for_each(|i| of.swap(i, self.below(i + 1)));
    }
}

/// A row with random references, of which some are missing and some refer to no row.
fn drawn_row(random: &mut Random, t: usize, key: i64, time: Option<i64>, tables: &Tables) -> Row {
    let mut to = |parent: usize| match random.below(10) {
        0 => None,
        1 => Some(-1),
        _ if tables[parent].is_empty() => Some(-2),
        // Skewed, so that some rows have more references than any fan-out.
        _ => {
            let n = tables[parent].len();
            Some(tables[parent][random.below(n).min(random.below(n))].key)
        }
    };
    let refs = KEYS.iter().filter(|key| key.0 == t).map(|key| to(key.2)).collect();
    Row { key, time, refs, value: random.below(100) as i64 }
}

fn drawn(seed: u64) -> Tables {
    let mut random = Random::new(seed, "tables");
    let mut tables: Tables = std::array::from_fn(|_| vec![]);
    // Keys in an order that has nothing to do with times.
    let mut keys: Vec<i64> = (0..400).collect();
    random.shuffle(&mut keys);
    for t in [USERS, ITEMS, ORDERS, NOTES] {
        let rows = [10, 60, 90, 6][t] - random.below(5);
        for _ in 0..rows {
            let time = match t {
                USERS => None,
                _ => (random.below(25) > 0).then(|| random.below(END as usize) as i64),
            };
            let key = keys.pop().unwrap();
            let row = drawn_row(&mut random, t, key, time, &tables);
            tables[t].push(row);
        }
    }
    tables
}

/// Whether a row is after a time. A row whose time is missing is after every time.
fn is_later(t: usize, row: &Row, time: i64) -> bool {
    t != USERS && row.time.unwrap_or(NEVER) > time
}

/// Deletes the rows after a time.
fn deleted(tables: &Tables, time: i64) -> Tables {
    std::array::from_fn(|t| {
        tables[t].iter().filter(|row| !is_later(t, row, time)).cloned().collect()
    })
}

/// Changes every column of the rows after a time, also their keys, and adds such rows between the others.
fn changed(tables: &Tables, time: i64, seed: u64) -> Tables {
    let mut random = Random::new(seed, "changes");
    let mut new = tables.clone();
    let mut key = 1000;
    for t in [ITEMS, ORDERS, NOTES] {
        for i in 0..new[t].len() {
            if is_later(t, &new[t][i], time) {
                key += 1;
                let later = (random.below(3) > 0).then(|| time + 1 + random.below(3) as i64);
                // Some keep their key, so that references to them stay.
                let same = random.below(2) == 0;
                let own = if same { new[t][i].key } else { key };
                new[t][i] = drawn_row(&mut random, t, own, later, tables);
            }
        }
        for _ in 0..random.below(20) {
            key += 1;
            // Smaller and larger keys than those of the rows that exist.
            let own = if random.below(2) == 0 { key } else { -key };
            let row = drawn_row(&mut random, t, own, Some(time + 1), tables);
            let at = random.below(new[t].len() + 1);
            new[t].insert(at, row);
        }
    }
    new
}

/// The rows of all tables in another order.
fn permuted(tables: &Tables, seed: u64) -> Tables {
    let mut random = Random::new(seed, "order");
    let mut new = tables.clone();
    new.iter_mut().for_each(|rows| random.shuffle(rows));
    new
}

fn database(tables: &Tables) -> Database {
    let column = |name: &str, kind, values| DatabaseColumn::new(name, kind, values).unwrap();
    // Keys of users are texts.
    let keys = |name: &str, t: usize, keys: Vec<i64>| match t {
        USERS => {
            let texts = keys.iter().map(|key| format!("u{key}")).collect();
            column(name, ColumnKind::Key, ColumnValues::Texts(texts))
        }
        _ => column(name, ColumnKind::Key, ColumnValues::Ints(keys)),
    };
    let of = |t: usize| {
        let rows = &tables[t];
        let mut columns = vec![
            keys("id", t, rows.iter().map(|row| row.key).collect()),
            column(
                "value",
                ColumnKind::Number,
                ColumnValues::Ints(rows.iter().map(|row| row.value).collect()),
            ),
        ];
        if t != USERS {
            let times = rows.iter().map(|row| row.time.unwrap_or(0)).collect();
            let missing = rows.iter().map(|row| row.time.is_none()).collect();
            let times = column("date", ColumnKind::Time, ColumnValues::Times(times));
            columns.push(times.with_missing(missing).unwrap());
        }
        let own = KEYS.iter().filter(|key| key.0 == t);
        for (i, (_, name, parent)) in own.clone().enumerate() {
            let values = rows.iter().map(|row| row.refs[i].unwrap_or(0)).collect();
            let missing = rows.iter().map(|row| row.refs[i].is_none()).collect();
            columns.push(keys(name, *parent, values).with_missing(missing).unwrap());
        }
        let mut table = DatabaseTable::new(TABLES[t], columns).unwrap();
        if t != NOTES {
            table = table.with_primary_key(["id"]).unwrap();
        }
        if t != USERS {
            table = table.with_time_column("date").unwrap();
        }
        own.fold(table, |table, (_, name, parent)| {
            table.with_foreign_key([*name], TABLES[*parent]).unwrap()
        })
    };
    Database::new("shop", (0..4).map(of)).unwrap()
}

/// A database with its graph, and the key of each row.
struct Case {
    db: Database,
    graph: DatabaseGraph,
    keys: [Vec<i64>; 4],
}

impl Case {
    fn new(tables: &Tables) -> Self {
        Self::of(database(tables))
    }
    /// With the rows in the order of their times.
    fn sorted(tables: &Tables) -> Self {
        Self::of(database(tables).in_time_order())
    }
    fn of(db: Database) -> Self {
        let keys = |t: usize| match db.table(TABLES[t]).unwrap().column("id").unwrap().values() {
            ColumnValues::Ints(keys) => keys.clone(),
            ColumnValues::Texts(texts) => {
                texts.iter().map(|key| key[1..].parse().unwrap()).collect()
            }
            other => panic!("{other:?}"),
        };
        let keys = std::array::from_fn(keys);
        Self { graph: db.to_graph().unwrap(), keys, db }
    }
    fn row(&self, t: usize, key: i64) -> u32 {
        self.keys[t].iter().position(|&k| k == key).unwrap() as u32
    }
    fn sampler(&self, how: How) -> NeighborSampler {
        how.of(self.graph.sampler([how.fanout, 3, 2]).unwrap())
    }
    /// Seeds of both types, in the order of the types.
    fn seeds(&self, seeds: &[Seed]) -> [(&'static str, Vec<u32>, Vec<i64>); 2] {
        [ORDERS, USERS].map(|t| {
            let of = seeds.iter().filter(|seed| seed.table == t);
            let (rows, times) = of.map(|seed| (self.row(t, seed.key), seed.time)).unzip();
            (TABLES[t], rows, times)
        })
    }
    fn batch(&self, how: How, seeds: &[Seed], key: SampleKey) -> MiniBatch {
        self.sampler(how).sample_before(self.seeds(seeds), key).unwrap()
    }
    fn row_key(&self) -> impl Fn(usize, u64) -> i64 + '_ {
        |t, row| self.keys[t][row as usize]
    }
}

#[derive(Clone, Copy, Debug)]
struct Seed {
    table: usize,
    key: i64,
    time: i64,
}

/// Users at any time, also twice, then orders that are visible at their time.
fn seeds(tables: &Tables, seed: u64) -> Vec<Seed> {
    let mut random = Random::new(seed, "seeds");
    let mut seeds: Vec<Seed> = vec![];
    for _ in 0..3 {
        let row = &tables[ORDERS][random.below(tables[ORDERS].len())];
        if let Some(from) = row.time {
            let time = from + random.below(3) as i64;
            seeds.push(Seed { table: ORDERS, key: row.key, time });
        }
    }
    for _ in 0..5 {
        let key = tables[USERS][random.below(tables[USERS].len())].key;
        seeds.push(Seed { table: USERS, key, time: random.below(END as usize + 2) as i64 - 1 });
    }
    seeds
}

/// How a sampler chooses edges.
#[derive(Clone, Copy, Debug)]
struct How {
    strategy: Strategy,
    replace: bool,
    fanout: i64,
}

impl How {
    fn all() -> [Self; 6] {
        let how = |strategy, replace, fanout| Self { strategy, replace, fanout };
        [
            how(Strategy::Uniform, false, 3),
            how(Strategy::Uniform, true, 2),
            how(Strategy::Uniform, false, -1),
            how(Strategy::Latest, false, 2),
            how(Strategy::Labor { layer_dependent: false }, false, 2),
            how(Strategy::Labor { layer_dependent: true }, false, 3),
        ]
    }
    fn of(self, sampler: NeighborSampler) -> NeighborSampler {
        let sampler = if self.replace { sampler.with_replacement().unwrap() } else { sampler };
        sampler.with_strategy(self.strategy).unwrap()
    }
}

/// A batch, or one tree of it, with keys of rows instead of numbers: nodes, edges and degrees of each block, in order.
fn content(
    batch: &MiniBatch,
    tree: Option<u32>,
    ids: impl Fn(&Block, usize) -> Vec<u64>,
    key: impl Fn(usize, u64) -> i64,
) -> Vec<Vec<i64>> {
    let roots = batch.roots.as_ref().expect("seeds with times have trees");
    let mut all = vec![];
    for block in &batch.blocks {
        let inside = |t: usize, row: usize| tree.is_none_or(|tree| roots[t][row] == tree);
        let nodes: Vec<Vec<u64>> = (0..TABLES.len()).map(|t| ids(block, t)).collect();
        for (t, nodes) in nodes.iter().enumerate() {
            let rows =
                |n: usize| (0..n).filter(|&row| inside(t, row)).map(|row| key(t, nodes[row]));
            all.extend([rows(nodes.len()).collect(), rows(block.dst_nodes(t).len()).collect()]);
        }
        for (e, relation) in block.relations().iter().enumerate() {
            let (s, d) = block.schema().endpoints(e);
            let edges = relation.src().iter().zip(relation.dst());
            let edges = edges.filter(|(_, v)| inside(d, **v as usize));
            let ends = |(u, v): (&u32, &u32)| {
                [key(s, nodes[s][*u as usize]), key(d, nodes[d][*v as usize])]
            };
            all.push(edges.flat_map(ends).collect());
            let mut degrees = |t: usize, of: Vec<u32>| {
                let of = of.iter().enumerate().filter(|(row, _)| inside(t, *row));
                all.push(of.map(|(_, &n)| n.into()).collect());
            };
            degrees(d, block.in_degrees(e));
            degrees(s, block.out_degrees(e));
            if let Some(of) = block.src_in_degrees(e) {
                degrees(s, of);
            }
        }
    }
    all
}

fn rows(block: &Block, t: usize) -> Vec<u64> {
    block.src_nodes(t).iter().map(|&row| row.into()).collect()
}

/// Changes after a time, one by one and together.
fn changes(tables: &Tables, time: i64, seed: u64) -> [Tables; 4] {
    [
        permuted(tables, seed),
        deleted(tables, time),
        changed(tables, time, seed),
        permuted(&changed(tables, time, seed ^ 1), seed ^ 2),
    ]
}

const CASES: u64 = 8;

#[test]
fn batches_do_not_depend_on_later_rows() {
    let mut edges = 0;
    for seed in 0..CASES {
        let tables = drawn(seed);
        let case = Case::new(&tables);
        let (seeds, key) = (seeds(&tables, seed), SampleKey::new(seed).at(1, 7));
        // Deletions keep the rows of all seeds.
        let (users, last) = (seeds.iter().filter(|s| s.table == USERS), &seeds[seeds.len() - 1]);
        let users: Vec<Seed> = users.copied().collect();
        for how in How::all() {
            let whole = case.batch(how, &users, key);
            let before: Vec<_> = seeds
                .iter()
                .map(|&s| content(&case.batch(how, &[s], key), None, rows, case.row_key()))
                .collect();
            edges += whole.total_edges();
            for (i, s) in seeds.iter().enumerate() {
                for (change, new) in changes(&tables, s.time, seed).iter().enumerate() {
                    let new = Case::new(new);
                    let after = content(&new.batch(how, &[*s], key), None, rows, new.row_key());
                    assert_eq!(before[i], after, "seed {seed}, {how:?}, {s:?}, change {change}");
                }
            }
            // Among seeds of other times.
            let tree = users.len() as u32 - 1;
            let before = content(&whole, Some(tree), rows, case.row_key());
            for (change, new) in changes(&tables, last.time, seed).iter().enumerate() {
                let new = Case::new(new);
                let after = content(&new.batch(how, &users, key), Some(tree), rows, new.row_key());
                assert_eq!(before, after, "seed {seed}, {how:?}, tree {tree}, change {change}");
            }
        }
    }
    assert!(edges > 1000, "{edges} edges");
}

/// A row at exactly the time of a seed is visible, one after it is not, and the time of an edge is that of its later row.
#[test]
fn rows_are_visible_from_their_time_on() {
    let row = |key, time, refs: &[i64]| Row {
        key,
        time,
        refs: refs.iter().map(|&r| Some(r)).collect(),
        value: 0,
    };
    let mut tables: Tables = std::array::from_fn(|_| vec![]);
    tables[USERS] = vec![row(1, None, &[])];
    tables[ITEMS] = vec![row(1, Some(10), &[]), row(2, Some(30), &[])];
    // The second order refers to an item that is later; the time of the last is missing.
    tables[ORDERS] =
        vec![row(1, Some(20), &[1, 1, -1]), row(2, Some(20), &[1, 2, 1]), row(3, None, &[1, 1, 2])];
    let case = Case::new(&tables);
    let seen = |t: usize, key: i64, time: i64, of: usize| -> Vec<i64> {
        let seed = Seed { table: t, key, time };
        let how = How { strategy: Strategy::Latest, replace: false, fanout: -1 };
        let batch = case.batch(how, &[seed], SampleKey::new(0));
        let nodes = batch.blocks[batch.blocks.len() - 1].src_nodes(of).to_vec();
        let mut keys: Vec<i64> = nodes.iter().map(|&v| case.keys[of][v as usize]).collect();
        keys.sort_unstable();
        keys
    };
    assert_eq!(seen(USERS, 1, 19, ORDERS), [0; 0]);
    assert_eq!(seen(USERS, 1, 20, ORDERS), [1, 2]);
    assert_eq!(seen(USERS, 1, i64::MAX, ORDERS), [1, 2]);
    assert_eq!(seen(ORDERS, 2, 29, ITEMS), [0; 0]);
    assert_eq!(seen(ORDERS, 2, 30, ITEMS), [2]);
    let counts: Vec<_> =
        case.graph.keys().iter().map(|k| (&*k.columns, k.edges, k.missing, k.dangling)).collect();
    assert_eq!(
        counts,
        [("order", 0, 0, 0), ("item", 3, 0, 0), ("previous", 2, 0, 1), ("user", 3, 0, 0)]
    );
    let times = case.graph.edge_times(("orders", "item", "items")).unwrap();
    assert_eq!(times, [20, 30, NEVER]);
    assert_eq!(times, case.graph.edge_times(("items", "rev_item", "orders")).unwrap());
}

/// A subgraph with keys of rows.
fn subgraph(k: &KHop, key: impl Fn(usize, u64) -> i64) -> Vec<Vec<i64>> {
    let of = &k.subgraph;
    let nodes =
        |t: usize| -> Vec<i64> { of.node_ids[t].iter().map(|v| key(t, v.into())).collect() };
    let nodes: Vec<Vec<i64>> = (0..TABLES.len()).map(nodes).collect();
    let edges = of.graph.relations().iter().enumerate().map(|(e, r)| {
        let (s, d) = of.graph.schema().endpoints(e);
        let ends = r.src().iter().zip(r.dst());
        let mut ends: Vec<[i64; 2]> =
            ends.map(|(&u, &v)| [nodes[s][u as usize], nodes[d][v as usize]]).collect();
        // The order of edges is that of rows.
        ends.sort_unstable();
        ends.concat()
    });
    let edges: Vec<Vec<i64>> = edges.collect();
    nodes.iter().cloned().chain(edges).collect()
}

#[test]
fn subgraphs_do_not_depend_on_later_rows() {
    let none: [(usize, &[u32]); 0] = [];
    let mut edges = 0;
    for seed in 0..CASES {
        let tables = drawn(seed);
        let (seeds, key, how) = (seeds(&tables, seed), SampleKey::new(seed), How::all()[0]);
        for s in seeds {
            let of = |tables: &Tables| {
                let case = Case::new(tables);
                let (sampler, [orders, users]) = (case.sampler(how), case.seeds(&[s]));
                let shadow = sampler.shadow_before([orders.clone(), users.clone()], key).unwrap();
                let nodes = [(orders.0, &orders.1), (users.0, &users.1)];
                let induced = sampler.induced_before(nodes, s.time, none, key).unwrap();
                let loaded = Seeds::nodes_before(case.graph.graph(), [orders, users]).unwrap();
                let loader = Loader::new(ShadowSampler::new(sampler), loaded, 1).unwrap();
                let loader = loader.with_traversal(Traversal::ByOrder).with_workers(0).with_seed(3);
                let first = loader.resume(LoaderState { epoch: 0, batch: 0 }).next();
                let loaded = first.unwrap().unwrap().batch;
                [&shadow, &induced, &loaded].map(|k| subgraph(k, case.row_key()))
            };
            let before = of(&tables);
            edges += before.iter().flatten().skip(4).map(Vec::len).sum::<usize>();
            for (change, new) in changes(&tables, s.time, seed).iter().enumerate() {
                assert_eq!(before, of(new), "seed {seed}, {s:?}, change {change}");
            }
        }
    }
    assert!(edges > 1000, "{edges} edges");
}

/// Batches of the graph in files are those of memory, for rows in any order.
#[test]
fn batches_of_files() {
    for seed in 0..4 {
        let tables = drawn(seed);
        let (memory, sorted) = (Case::new(&tables), Case::sorted(&tables));
        let dir = tempfile::tempdir().unwrap();
        let files = StoredDatabase::write(&sorted.db, dir.path()).unwrap();
        assert_eq!(files.keys(), sorted.graph.keys());
        let (seeds, key) = (seeds(&tables, seed), SampleKey::new(seed).at(0, 3));
        for how in How::all() {
            let sampler = how.of(files.sampler([how.fanout, 3, 2]).unwrap());
            let batch = sampler.sample_before(sorted.seeds(&seeds), key).unwrap();
            let of_files = content(&batch, None, rows, sorted.row_key());
            let of_memory = content(&memory.batch(how, &seeds, key), None, rows, memory.row_key());
            assert_eq!(of_files, of_memory, "seed {seed}, {how:?}");
            assert_eq!(
                of_files,
                content(&sorted.batch(how, &seeds, key), None, rows, sorted.row_key())
            );
            // The same batch again from its bytes.
            let again = sampler.batch_from_bytes(&batch.to_bytes().unwrap()).unwrap();
            assert_eq!(of_files, content(&again, None, rows, sorted.row_key()));
        }
        for (change, new) in changes(&tables, seeds[0].time, seed).iter().enumerate() {
            let (dir, new) = (tempfile::tempdir().unwrap(), Case::sorted(new));
            let changed = StoredDatabase::write(&new.db, dir.path()).unwrap();
            let of = |files: &StoredDatabase, case: &Case| {
                let sampler = files.sampler([3, 3, 2]).unwrap();
                let batch = sampler.sample_before(case.seeds(&seeds[..1]), key).unwrap();
                content(&batch, None, rows, case.row_key())
            };
            assert_eq!(of(&files, &sorted), of(&changed, &new), "change {change}");
        }
    }
}

/// Batches on ranks are those of one machine, and do not depend on later rows.
#[test]
fn batches_on_ranks() {
    let device = Device::flex();
    for seed in 0..3 {
        let tables = drawn(seed);
        let case = Case::new(&tables);
        let (seeds, key) = (seeds(&tables, seed), SampleKey::new(seed).at(0, 3));
        for (ranks, how) in [(1, How::all()[0]), (2, How::all()[3]), (3, How::all()[0])] {
            let on_ranks = |tables: &Tables, seeds: &[Seed]| {
                let sorted = Case::sorted(tables);
                let graph = sorted.graph.with_time_columns(&device).unwrap();
                let parts = partition_graph(&graph, &PartitionConfig::new("shop", ranks)).unwrap();
                let found = run_ranks(ranks, |comm| {
                    let g = DistGraph::from_partition(parts.part(comm.rank())?, comm)?;
                    let mut sampler = DistSampler::new(&g, [how.fanout, 3, 2])?;
                    for e in 0..graph.relations().len() {
                        sampler = sampler.with_times(e, "time")?;
                    }
                    let sampler = sampler.with_strategy(how.strategy)?.with_edges_at_seed_time()?;
                    let find = |(name, rows, times): (&'static str, Vec<u32>, Vec<i64>)| {
                        let rows: Vec<u64> = rows.iter().map(|&row| row.into()).collect();
                        Ok((name, g.find_nodes(name, &rows)?, times))
                    };
                    let seeds = sorted.seeds(seeds).map(find).into_iter();
                    let seeds = seeds.collect::<Result<Vec<_>, DistError>>()?;
                    let batch = sampler.sample_before(seeds, key)?;
                    let ids = |block: &Block, t: usize| block.original_ids(t).to_vec();
                    Ok::<_, DistError>(content(&batch.mini, None, ids, sorted.row_key()))
                });
                found.unwrap()
            };
            let alone = content(&case.batch(how, &seeds, key), None, rows, case.row_key());
            for found in on_ranks(&tables, &seeds) {
                assert_eq!(alone, found, "seed {seed}, {ranks} ranks");
            }
            let (first, time) = (&seeds[..1], seeds[0].time);
            let alone = content(&case.batch(how, first, key), None, rows, case.row_key());
            for new in changes(&tables, time, seed) {
                for found in on_ranks(&new, first) {
                    assert_eq!(alone, found, "seed {seed}, {ranks} ranks, after a change");
                }
            }
        }
    }
}

/// The property is about something: changes up to the time of a seed show.
#[test]
fn earlier_rows_show() {
    let mut differ = HashMap::new();
    for seed in 0..CASES {
        let tables = drawn(seed);
        let s = Seed { table: USERS, key: tables[USERS][0].key, time: 8 };
        let of = |tables: &Tables| {
            let case = Case::new(tables);
            content(&case.batch(How::all()[0], &[s], SampleKey::new(1)), None, rows, case.row_key())
        };
        let before = of(&tables);
        for (change, new) in changes(&tables, s.time - 4, seed).iter().enumerate() {
            *differ.entry(change).or_insert(0) += usize::from(before != of(new));
        }
    }
    // A permutation never shows.
    assert_eq!(differ[&0], 0);
    assert!((1..4).all(|change| differ[&change] > 2), "{differ:?}");
}
