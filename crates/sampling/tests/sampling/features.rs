//! Rows in memory, in mapped files, and in both.

use std::sync::Arc;

use burn::tensor::{Device, Tensor};
use burn_gnn_files::{DataError, NpyHead};
use burn_gnn_graph::{Graph, GraphError, Relation};
use burn_gnn_sampling::RowType;
use burn_gnn_sampling::{
    DeviceRows, FeatureSource, GraphFeatures, MappedRows, MemoryRows, NO_ROW, TieredRows,
    hot_order, in_degree_hotness, out_degree_hotness, presampled_hotness, write_rows,
};

use crate::common::{skewed, typed};

fn values(rows: usize, width: usize) -> Vec<f32> {
    (0..rows * width).map(|i| (i % 251) as f32 - 125.0).collect()
}

/// A source that has what the trait gives it.
struct Plain(MemoryRows);

impl FeatureSource for Plain {
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }
    fn width(&self) -> usize {
        self.0.width()
    }
    fn read_rows(&self, ids: &[u32], out: &mut [f32]) -> Result<(), GraphError> {
        self.0.read_rows(ids, out)
    }
}

/// Sums of rows, in the order of edges, divided by their number; the same bits on all sources, with hubs of more edges
/// than are read at a time, nodes without edges and parallel edges.
#[test]
fn means_are_those_of_gathered_rows() {
    let dir = tempfile::tempdir().unwrap();
    for (nodes, edges, width) in [(1, 0, 3), (3, 5, 0), (40, 300, 5), (2_000, 30_000, 9)] {
        let mut g = skewed(nodes, edges, 7).relation("_E").unwrap().clone();
        if nodes == 2_000 {
            let hub = |g: &Relation, add: &[u32]| [g.dst(), add].concat();
            let dst = hub(&g, &[3; 5_000]);
            let src = [g.src(), &(0..5_000).map(|u| u % 2_000).collect::<Vec<_>>()[..]].concat();
            g = Relation::from_coo(nodes, nodes, src, dst).unwrap();
        }
        let table = 3 * nodes + 1;
        let ids: Vec<u32> = (0..nodes as u32).map(|u| u * 7919 % table as u32).collect();
        let values: Vec<f32> =
            values(table, width.max(1)).into_iter().take(table * width).collect();
        for kept in [RowType::F32, RowType::F16, RowType::BF16, RowType::I8 { scale: 1.0 }] {
            let Ok(memory) = MemoryRows::new(&values, width, kept) else { unreachable!() };
            if width == 0 {
                let none = Relation::from_coo(0, 2, vec![], vec![]).unwrap();
                assert_eq!(memory.gather_mean(&none, &[]).unwrap(), [0.0; 0]);
                continue;
            }
            let mut want = vec![];
            for v in 0..nodes as u32 {
                let of: Vec<usize> = (0..g.num_edges()).filter(|&e| g.dst()[e] == v).collect();
                for j in 0..width {
                    let x = |e: &usize| values[ids[g.src()[*e] as usize] as usize * width + j];
                    let sum = of.iter().map(x).fold(0.0f32, |sum, x| sum + x);
                    want.push(sum / of.len().max(1) as f32);
                }
            }
            let path = dir.path().join("rows.safetensors");
            write_rows(&path, &memory, kept).unwrap();
            assert_eq!(memory.gather_mean(&g, &ids).unwrap(), want, "{kept:?}, {nodes} nodes");
            let mapped = MappedRows::open(&path).unwrap();
            assert_eq!(Arc::new(mapped).gather_mean(&g, &ids).unwrap(), want, "{kept:?}, mapped");
            assert_eq!(
                Plain(memory.clone()).gather_mean(&g, &ids).unwrap(),
                want,
                "{kept:?}, read"
            );
            for source in [&memory as &dyn FeatureSource, &Plain(memory.clone())] {
                let e = source.gather_mean(&g, &ids[1..]).unwrap_err().to_string();
                assert!(e.contains("one per source of the relation"), "{e}");
                let far = vec![table as u32; nodes];
                assert!(source.gather_mean(&g, &far).unwrap_err().to_string().contains("`ids`"));
            }
        }
    }
}

#[test]
fn every_source_gives_the_same_rows() {
    let (rows, width) = (5_000, 7);
    let all = values(rows, width);
    let ids: Vec<u32> = (0..20_000u32).map(|i| i * 7919 % rows as u32).collect();
    let expected: Vec<f32> =
        ids.iter().flat_map(|&i| all[i as usize * width..][..width].to_vec()).collect();
    let dir = tempfile::tempdir().unwrap();
    // Integers up to 125 are exact in all types.
    for kept in [RowType::F32, RowType::F16, RowType::BF16, RowType::I8 { scale: 1.0 }] {
        let memory = MemoryRows::new(&all, width, kept).unwrap();
        assert_eq!(memory.gather(&ids).unwrap(), expected, "{kept:?}");
        assert_eq!(memory.bytes(), rows * width * kept.bytes());
        let path = dir.path().join("rows.safetensors");
        write_rows(&path, &memory, kept).unwrap();
        let mapped = MappedRows::open(&path).unwrap();
        assert_eq!((mapped.num_rows(), mapped.width(), mapped.row_type()), (rows, width, kept));
        assert_eq!(mapped.gather(&ids).unwrap(), expected, "{kept:?}");
        let order: Vec<u32> = (0..rows as u32).rev().collect();
        for ratio in [0.0, 0.3, 1.0] {
            let tiered =
                TieredRows::with_ratio(MappedRows::open(&path).unwrap(), &order, ratio).unwrap();
            assert_eq!(tiered.gather(&ids).unwrap(), expected, "{kept:?} {ratio}");
            let hot = ids
                .iter()
                .filter(|&&i| i as usize >= rows - (ratio * rows as f64).round() as usize)
                .count();
            assert_eq!(
                (tiered.hits().hot, tiered.hits().cold),
                (hot as u64, (ids.len() - hot) as u64)
            );
        }
        // Raw ids to rows, on every source: rows of the source, each twice.
        let id2index: Vec<u32> = (0..2 * rows as u32).map(|i| rows as u32 - 1 - i / 2).collect();
        let raw: Vec<u32> = ids.iter().map(|&i| 2 * (rows as u32 - 1 - i) + i % 2).collect();
        let tiered = TieredRows::with_ratio(MappedRows::open(&path).unwrap(), &order, 0.3).unwrap();
        let on_device = DeviceRows::with_ratio(
            MappedRows::open(&path).unwrap(),
            &order,
            0.3,
            &[vec![Device::flex()]],
        )
        .unwrap();
        let sources: [Box<dyn FeatureSource>; 4] = [
            Box::new(memory.clone().with_id2index(id2index.clone()).unwrap()),
            Box::new(mapped.with_id2index(id2index.clone()).unwrap()),
            Box::new(tiered.with_id2index(id2index.clone()).unwrap()),
            Box::new(on_device.with_id2index(id2index).unwrap()),
        ];
        for source in &sources {
            assert_eq!(
                (source.num_rows(), source.gather(&raw).unwrap()),
                (2 * rows, expected.clone()),
                "{kept:?}"
            );
            let x = source.gather_tensor(&raw[..50], &Device::flex()).unwrap();
            assert_eq!(
                x.into_data().try_to_vec::<f32>().unwrap(),
                expected[..50 * width],
                "{kept:?}"
            );
        }
        let tiered =
            TieredRows::with_budget(MappedRows::open(&path).unwrap(), &order, 100 * width * 4 + 3)
                .unwrap();
        assert_eq!(tiered.hot_bytes(), 100 * width * 4);
    }
    let tensor = Tensor::<2>::from_data([[1.0f32, 2.0], [3.0, 4.0]], &Device::flex());
    let back = MemoryRows::from_tensor(tensor).gather_tensor(&[1], &Device::flex()).unwrap();
    assert_eq!(back.into_data().try_to_vec::<f32>().unwrap(), [3.0, 4.0]);
}

/// Stores whose type is known at run time only are read by other ids, and go with batches, as any.
#[test]
fn stores_behind_pointers() {
    let shared: Arc<dyn FeatureSource> =
        Arc::new(MemoryRows::new(&[1.0, 2.0, 3.0], 1, RowType::F32).unwrap());
    let boxed: Box<dyn FeatureSource> = Box::new(shared.clone());
    assert_eq!((boxed.num_rows(), boxed.width()), (3, 1));
    let id2index = vec![2, NO_ROW, 0];
    let (shared_rows, boxed_rows) = (
        shared.clone().with_id2index(id2index.clone()).unwrap(),
        boxed.with_id2index(id2index).unwrap(),
    );
    for rows in [&shared_rows as &dyn FeatureSource, &boxed_rows] {
        assert_eq!(rows.gather(&[2, 0, 2]).unwrap(), [1.0, 3.0, 1.0]);
        let x = rows.gather_tensor(&[0], &Device::flex()).unwrap();
        assert_eq!(x.into_data().try_to_vec::<f32>().unwrap(), [3.0]);
        assert!(matches!(rows.gather(&[0, 1]), Err(GraphError::UnknownId { position: 1, id: 1 })));
    }
    let g = Graph::homogeneous(3, vec![1, 2], vec![0, 0]).unwrap();
    assert!(GraphFeatures::new(&g, &Device::flex()).with_nodes("_N", shared).is_ok());
}

#[test]
fn narrow_rows_are_rounded_once() {
    let close = |kept, tolerance: f32| {
        let x = [0.1f32, -3.7, 12.34, 0.0];
        let got = MemoryRows::new(&x, 4, kept).unwrap().gather(&[0]).unwrap();
        assert!(x.iter().zip(&got).all(|(a, b)| (a - b).abs() <= tolerance), "{kept:?}: {got:?}");
        assert_ne!(x[..], got[..]);
    };
    close(RowType::F16, 12.34 / 2048.0);
    close(RowType::BF16, 12.34 / 256.0);
    close(RowType::I8 { scale: 0.1 }, 0.0501);
}

/// What a type does not hold is an error that names the place, or clipped and counted where that was asked for.
#[test]
fn numbers_outside_the_range_of_a_type() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows");
    let bf16 = 3.389_531_4e38;
    let i8 = RowType::I8 { scale: 0.5 };
    for (kept, fits, outside, largest) in [
        (RowType::F16, 65_519.0, 65_520.0, 65_504.0),
        (RowType::BF16, bf16, f32::MAX, bf16),
        (i8, 63.7, 63.8, 63.5),
    ] {
        assert_eq!(kept.largest(), largest);
        let values = [0.0, fits, -fits, outside, 1.0, -outside];
        let all = MemoryRows::new(&values, 2, RowType::F32).unwrap();
        for refused in [
            MemoryRows::new(&values, 2, kept).map(|r| r.clipped()).map_err(DataError::from),
            write_rows(&path, &all, kept),
        ] {
            let e = refused.unwrap_err();
            let DataError::Graph(GraphError::RowRange {
                row: 1, column: 1, value, row_type, ..
            }) = &e
            else {
                panic!("{e}")
            };
            assert_eq!((*value, row_type), (outside, &format!("{kept:?}")));
            assert!(e.to_string().contains("RowType::saturating"), "{e}");
        }
        assert!(!path.exists());
        let expected = [0.0, largest, -largest, largest, 1.0, -largest];
        let memory = MemoryRows::new(&values, 2, kept.saturating()).unwrap();
        assert_eq!(
            (memory.gather(&[0, 1, 2]).unwrap(), memory.clipped()),
            (expected.to_vec(), 2),
            "{kept:?}"
        );
        assert_eq!(write_rows(&path, &all, kept.saturating()).unwrap(), 2);
        assert_eq!(
            MappedRows::open(&path).unwrap().gather(&[0, 1, 2]).unwrap(),
            expected,
            "{kept:?}"
        );
        assert_eq!(MemoryRows::new(&values[..3], 1, kept).unwrap().clipped(), 0);
        std::fs::remove_file(&path).unwrap();
    }
    // Floats have infinities and NaN; integers have neither, and nothing is near NaN.
    let odd = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    for kept in [RowType::F32, RowType::F16, RowType::BF16] {
        let rows = MemoryRows::new(&odd, 1, kept.saturating()).unwrap();
        let got = rows.gather(&[0, 1, 2]).unwrap();
        assert!(
            got[..2] == odd[..2] && got[2].is_nan() && rows.clipped() == 0,
            "{kept:?}: {got:?}"
        );
    }
    assert_eq!(
        MemoryRows::new(&odd[..2], 1, i8.saturating()).unwrap().gather(&[0, 1]).unwrap(),
        [63.5, -63.5]
    );
    let e = MemoryRows::new(&odd, 1, i8.saturating()).unwrap_err();
    assert!(
        matches!(e, GraphError::RowRange { row: 2, column: 0, .. })
            && e.to_string().ends_with("replace it"),
        "{e}"
    );
    // A row beyond those that are in memory at a time.
    let mut many = vec![1.0; 3 * 5_000];
    many[3 * 4_500 + 2] = 1e6;
    let e = write_rows(&path, &MemoryRows::new(&many, 3, RowType::F32).unwrap(), RowType::F16)
        .unwrap_err();
    assert!(
        matches!(e, DataError::Graph(GraphError::RowRange { row: 4_500, column: 2, .. })),
        "{e}"
    );
}

#[test]
fn npy_files_are_mapped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.npy");
    let open = |head: Vec<u8>, data: Vec<u8>| {
        std::fs::write(&path, [head, data].concat()).unwrap();
        MappedRows::open(&path)
    };
    let numbers = values(300, 7);
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mapped = open(NpyHead::bytes("<f4", &[300, 7]), bytes.clone()).unwrap();
    assert_eq!((mapped.num_rows(), mapped.width(), mapped.row_type()), (300, 7, RowType::F32));
    let ids: Vec<u32> = (0..300).rev().collect();
    let expected: Vec<f32> = numbers.chunks(7).rev().flatten().copied().collect();
    assert_eq!(mapped.gather(&ids).unwrap(), expected);
    // 1, 2 and -2 in half precision.
    let half = [0x3c00u16, 0x4000, 0xc000].map(u16::to_le_bytes).concat();
    let mapped = open(NpyHead::bytes("<f2", &[3, 1]), half).unwrap();
    assert_eq!(
        (mapped.gather(&[2, 0, 1]).unwrap(), mapped.row_type()),
        (vec![-2.0, 1.0, 2.0], RowType::F16)
    );
    assert_eq!(open(NpyHead::bytes("<f4", &[0, 5]), vec![]).unwrap().num_rows(), 0);
    for (head, data, found) in [
        (NpyHead::bytes("<f8", &[300, 7]), bytes.clone(), "'<f8'"),
        (
            NpyHead::bytes("<f4", &[300, 7]),
            bytes[4..].to_vec(),
            "expected 8400 bytes of data, found 8396",
        ),
        (NpyHead::bytes("<f4", &[2100]), bytes.clone(), "rank 2"),
        (NpyHead::bytes("<f4", &[1 << 40, 1 << 23]), bytes.clone(), "too many"),
        (b"\x93NUMPY\x01".to_vec(), vec![], "end of the file"),
    ] {
        let e = open(head, data).unwrap_err();
        assert!(matches!(e, DataError::Format { .. }) && e.to_string().contains(found), "{e}");
    }
}

#[test]
fn hotness_is_the_chance_to_be_in_a_batch() {
    // 1 -> 0, 2 -> 0, 3 -> 0 with fan-out 2 and seed 0.
    let g = Graph::homogeneous(5, vec![1, 2, 3], vec![0, 0, 0]).unwrap();
    let p = presampled_hotness(&g, [2], [("_N", [0])]).unwrap();
    let drawn = 1.0 - (1.0 - 0.01) * (1.0 - 1.0 + 1.0 / 3.0);
    let expected = [1.0, drawn, drawn, drawn, 0.01];
    assert!(p[0].iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{p:?}");
    // Two relations out of `paper`: their chances p1 = 1 - .995 · (1 - 1) and p2 = 1 - .995 · .995 come together.
    let g = Graph::builder()
        .edges(("p", "r", "q"), vec![0], vec![0])
        .edges(("p", "s", "o"), vec![0], vec![0])
        .build()
        .unwrap();
    let p = presampled_hotness(&g, [1], [("q", [0])]).unwrap();
    let (paper, p2) = (g.schema().ntype("p").unwrap(), 1.0 - 0.995f64 * 0.995);
    let expected = 1.0 - (1.002f64 - 1.0).sqrt() * (1.002 - p2).sqrt();
    assert!((p[paper][0] - expected).abs() < 1e-12, "{p:?} {expected}");
    assert_eq!(out_degree_hotness(&g, "p").unwrap(), [2.0]);
    assert_eq!(in_degree_hotness(&g, "p").unwrap(), [0.0]);
    assert_eq!(in_degree_hotness(&g, "q").unwrap(), [1.0]);
    let g = Graph::homogeneous(5, vec![0, 0, 1, 2, 3, 4], vec![1, 2, 2, 4, 4, 4]).unwrap();
    assert_eq!(in_degree_hotness(&g, ..).unwrap(), [0., 1., 2., 0., 3.]);
    assert_eq!(out_degree_hotness(&g, ..).unwrap(), [2., 1., 1., 1., 1.]);
    assert_eq!(hot_order(&[0.5, 2.0, 0.5, 3.0]), [3, 1, 0, 2]);
    let g = typed(50, 20, 1);
    let p = presampled_hotness(&g, [3, 3], [("paper", [1, 2])]).unwrap();
    assert!(p.iter().flatten().all(|p| (0.0..=1.0).contains(p)));
}

/// Each order by degree is for samplers of one direction, where it hits more often than the other one.
#[test]
fn orders_by_degree_are_hit_in_their_direction() {
    let in_edges = skewed(1_000, 20_000, 9); // out-degrees are skewed, in-degrees are not
    let out_edges = in_edges.reverse().unwrap();
    // The graph, what is sampled to follow its in-edges or its out-edges, and whether it is the former.
    for (g, sampled, follows_in) in [(&in_edges, &in_edges, true), (&out_edges, &in_edges, false)] {
        let rate = |hotness: Vec<f64>| {
            let rows = MemoryRows::new(&values(1_000, 2), 2, RowType::F32).unwrap();
            let tiered = TieredRows::with_ratio(rows, &hot_order(&hotness), 0.1).unwrap();
            let s = burn_gnn_sampling::NeighborSampler::new(sampled, [5, 5]).unwrap();
            for step in 0..20 {
                let key = burn_gnn_sampling::SampleKey::new(1).at(0, step);
                let seeds: Vec<u32> = (step as u32 * 50..step as u32 * 50 + 5).collect();
                let batch = s.sample([("_N", seeds)], key).unwrap();
                tiered.gather(batch.input_nodes(0)).unwrap();
            }
            tiered.hits().rate()
        };
        let by_in = rate(in_degree_hotness(g, ..).unwrap());
        let by_out = rate(out_degree_hotness(g, ..).unwrap());
        let (right, wrong) = if follows_in { (by_out, by_in) } else { (by_in, by_out) };
        assert!(right > 2.0 * wrong, "{right} and {wrong}");
    }
}

#[test]
fn hot_rows_are_hit_more_often() {
    let g = skewed(1_000, 20_000, 9);
    let rows = MemoryRows::new(&values(1_000, 2), 2, RowType::F32).unwrap();
    let order = hot_order(
        &presampled_hotness(&g, [5, 5], [("_N", (0..100).collect::<Vec<u32>>())]).unwrap()[0],
    );
    let tiered = TieredRows::with_ratio(rows, &order, 0.2).unwrap();
    let s = burn_gnn_sampling::NeighborSampler::new(&g, [5, 5]).unwrap();
    for step in 0..20 {
        let key = burn_gnn_sampling::SampleKey::new(1).at(0, step);
        let seeds: Vec<u32> = (step as u32 * 5..step as u32 * 5 + 5).collect();
        let batch = s.sample([("_N", &seeds)], key).unwrap();
        tiered.gather(batch.input_nodes(0)).unwrap();
    }
    assert!(tiered.hits().rate() > 0.6, "{}", tiered.hits());
}

#[test]
fn what_is_refused() {
    let all = || MemoryRows::new(&[1.0, 2.0], 1, RowType::F32).unwrap();
    assert_eq!(
        all().gather(&[0, 2]).unwrap_err().to_string(),
        "`ids` of the features, position 1: id 2 is out of range 0..2; give ids that are numbered from 0"
    );
    let indexed = all().with_id2index(vec![1, NO_ROW]).unwrap();
    assert_eq!(
        indexed.gather(&[0, 1]).unwrap_err().to_string(),
        "position 1: no row has the id 1; leave the id out, or give it a row"
    );
    assert!(matches!(indexed.gather(&[2]), Err(GraphError::IdOutOfRange { id: 2, .. })));
    let e = all().with_id2index(vec![0, 2]).unwrap_err();
    assert_eq!(
        e.to_string(),
        "`id2index`, position 1: row id 2 is out of range 0..2; give ids that are numbered from 0"
    );
    let e = MemoryRows::new(&[1.0], 2, RowType::F32).unwrap_err().to_string();
    assert!(e.contains("`values`") && e.contains("whole rows of 2"), "{e}");
    assert!(matches!(
        MemoryRows::new(&[1.0], 1, RowType::I8 { scale: 0.0 }),
        Err(GraphError::Setting { .. })
    ));
    assert!(matches!(TieredRows::with_ratio(all(), &[0, 1], 1.5), Err(GraphError::Setting { .. })));
    assert!(matches!(TieredRows::with_ratio(all(), &[0], 1.0), Err(GraphError::Setting { .. })));
    assert!(matches!(
        TieredRows::with_ratio(all(), &[1, 1], 1.0),
        Err(GraphError::RepeatedId { .. })
    ));
    assert!(matches!(
        TieredRows::with_ratio(all(), &[2], 0.5),
        Err(GraphError::IdOutOfRange { .. })
    ));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    assert!(matches!(MappedRows::open(&path), Err(DataError::Io { .. })));
    for content in [&b""[..], b"not a file of rows", &[8, 0, 0, 0, 0, 0, 0, 0, b'{', b'}', 0]] {
        std::fs::write(&path, content).unwrap();
        assert!(matches!(MappedRows::open(&path), Err(DataError::Format { .. })), "{content:?}");
    }
    write_rows(&path, &all(), RowType::F32).unwrap();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(matches!(MappedRows::open(&path), Err(DataError::Format { .. })), "cut off");
}
