//! Rows in memory, in mapped files, and in both.

use burn::tensor::{Device, Tensor};
use burn_gnn_graph::{
    FeatureSource, Graph, GraphError, MappedRows, MemoryRows, RowType, TieredRows, hot_order, in_degree_hotness, presampled_hotness,
    write_rows,
};

use crate::common::{skewed, typed};

fn values(rows: usize, width: usize) -> Vec<f32> {
    (0..rows * width).map(|i| (i % 251) as f32 - 125.0).collect()
}

#[test]
fn every_source_gives_the_same_rows() {
    let (rows, width) = (5_000, 7);
    let all = values(rows, width);
    let ids: Vec<u32> = (0..20_000u32).map(|i| i * 7919 % rows as u32).collect();
    let expected: Vec<f32> = ids.iter().flat_map(|&i| all[i as usize * width..][..width].to_vec()).collect();
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
            let tiered = TieredRows::with_ratio(MappedRows::open(&path).unwrap(), &order, ratio).unwrap();
            assert_eq!(tiered.gather(&ids).unwrap(), expected, "{kept:?} {ratio}");
            let hot = ids.iter().filter(|&&i| i as usize >= rows - (ratio * rows as f64).round() as usize).count();
            assert_eq!((tiered.hits().hot, tiered.hits().cold), (hot as u64, (ids.len() - hot) as u64));
        }
        let tiered = TieredRows::with_budget(MappedRows::open(&path).unwrap(), &order, 100 * width * 4 + 3).unwrap();
        assert_eq!(tiered.hot_bytes(), 100 * width * 4);
    }
    let tensor = Tensor::<2>::from_data([[1.0f32, 2.0], [3.0, 4.0]], &Device::flex());
    let back = MemoryRows::from_tensor(tensor).gather_tensor(&[1], &Device::flex()).unwrap();
    assert_eq!(back.into_data().try_to_vec::<f32>().unwrap(), [3.0, 4.0]);
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
    assert_eq!(MemoryRows::new(&[1e9, -1e9], 1, RowType::I8 { scale: 0.5 }).unwrap().gather(&[0, 1]).unwrap(), [63.5, -63.5]);
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
    let g = Graph::builder().edges(("p", "r", "q"), vec![0], vec![0]).edges(("p", "s", "o"), vec![0], vec![0]).build().unwrap();
    let p = presampled_hotness(&g, [1], [("q", [0])]).unwrap();
    let (paper, p2) = (g.schema().ntype("p").unwrap(), 1.0 - 0.995f64 * 0.995);
    let expected = 1.0 - (1.002f64 - 1.0).sqrt() * (1.002 - p2).sqrt();
    assert!((p[paper][0] - expected).abs() < 1e-12, "{p:?} {expected}");
    assert_eq!(in_degree_hotness(&g, "p").unwrap(), [2.0]);
    assert_eq!(hot_order(&[0.5, 2.0, 0.5, 3.0]), [3, 1, 0, 2]);
    let g = typed(50, 20, 1);
    let p = presampled_hotness(&g, [3, 3], [("paper", [1, 2])]).unwrap();
    assert!(p.iter().flatten().all(|p| (0.0..=1.0).contains(p)));
}

#[test]
fn hot_rows_are_hit_more_often() {
    let g = skewed(1_000, 20_000, 9);
    let rows = MemoryRows::new(&values(1_000, 2), 2, RowType::F32).unwrap();
    let order = hot_order(&presampled_hotness(&g, [5, 5], [("_N", (0..100).collect::<Vec<u32>>())]).unwrap()[0]);
    let tiered = TieredRows::with_ratio(rows, &order, 0.2).unwrap();
    let s = burn_gnn_graph::NeighborSampler::new(&g, [5, 5]).unwrap();
    for step in 0..20 {
        let key = burn_gnn_graph::SampleKey::new(1).at(0, step);
        let seeds: Vec<u32> = (step as u32 * 5..step as u32 * 5 + 5).collect();
        let batch = s.sample([("_N", &seeds)], key).unwrap();
        tiered.gather(batch.input_nodes(0)).unwrap();
    }
    assert!(tiered.hits().rate() > 0.6, "{}", tiered.hits());
}

#[test]
fn what_is_refused() {
    let all = || MemoryRows::new(&[1.0, 2.0], 1, RowType::F32).unwrap();
    assert_eq!(all().gather(&[0, 2]).unwrap_err().to_string(), "`ids` of the features, position 1: id 2 is out of range 0..2");
    assert!(matches!(MemoryRows::new(&[1.0], 2, RowType::F32), Err(GraphError::Length { .. })));
    assert!(matches!(MemoryRows::new(&[1.0], 1, RowType::I8 { scale: 0.0 }), Err(GraphError::Setting { .. })));
    assert!(matches!(TieredRows::with_ratio(all(), &[0, 1], 1.5), Err(GraphError::Setting { .. })));
    assert!(matches!(TieredRows::with_ratio(all(), &[0], 1.0), Err(GraphError::Setting { .. })));
    assert!(matches!(TieredRows::with_ratio(all(), &[1, 1], 1.0), Err(GraphError::RepeatedId { .. })));
    assert!(matches!(TieredRows::with_ratio(all(), &[2], 0.5), Err(GraphError::IdOutOfRange { .. })));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    assert!(matches!(MappedRows::open(&path), Err(GraphError::Io { .. })));
    for content in [&b""[..], b"not a file of rows", &[8, 0, 0, 0, 0, 0, 0, 0, b'{', b'}', 0]] {
        std::fs::write(&path, content).unwrap();
        assert!(matches!(MappedRows::open(&path), Err(GraphError::Format { .. })), "{content:?}");
    }
    write_rows(&path, &all(), RowType::F32).unwrap();
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(matches!(MappedRows::open(&path), Err(GraphError::Format { .. })), "cut off");
}
