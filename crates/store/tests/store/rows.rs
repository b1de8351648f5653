//! Feature files and their caches return the written rows for any cache content.

use std::sync::{Arc, Mutex};

use burn_gnn_store::*;
use proptest::prelude::*;

const FORMATS: [RowFormat; 5] =
    [RowFormat::F32, RowFormat::F16, RowFormat::Bf16, RowFormat::Int8, RowFormat::Int4];

fn value(row: usize, column: usize) -> f32 {
    ((row * 31 + column * 7) % 257) as f32 - 128.0
}

fn write(path: &std::path::Path, rows: usize, width: usize, format: RowFormat) -> StoredRows {
    let mut out = RowWriter::create(path, rows, width, format).unwrap();
    let numbers: Vec<f32> = (0..rows).flat_map(|r| (0..width).map(move |c| value(r, c))).collect();
    // In chunks of other sizes than blocks.
    numbers.chunks((width * 777).max(1)).for_each(|part| out.put(part).unwrap());
    out.finish().unwrap();
    StoredRows::open(path).unwrap()
}

#[test]
fn every_format_and_width() {
    let dir = tempfile::tempdir().unwrap();
    for format in FORMATS {
        for (rows, width) in [(0, 3), (1, 1), (3000, 5), (2000, 100), (50, 5000), (3, 0)] {
            let path = dir.path().join("rows");
            let stored = write(&path, rows, width, format);
            stored.verify().unwrap();
            assert_eq!((stored.num_rows(), stored.width(), stored.format()), (rows, width, format));
            let ids: Vec<u32> =
                (0..rows as u32).rev().step_by(7).chain((0..rows as u32).step_by(13)).collect();
            let got = stored.gather(&ids).unwrap();
            for (i, &id) in ids.iter().enumerate() {
                let row: Vec<f32> = (0..width).map(|c| value(id as usize, c)).collect();
                let most = row.iter().fold(0f32, |m, x| m.max(x.abs()));
                let bound = match format {
                    RowFormat::Int8 => most / 253.0,
                    RowFormat::Int4 => most / 13.9,
                    // Whole numbers up to 128 are exact in the others.
                    _ => 0.0,
                };
                assert!(
                    row.iter().zip(&got[i * width..]).all(|(x, y)| (x - y).abs() <= bound),
                    "{format:?}, row {id}"
                );
            }
        }
    }
}

#[test]
fn errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows");
    let mut out = RowWriter::create(&path, 2, 3, RowFormat::Int8).unwrap();
    assert!(out.put(&[1.0; 4]).is_err() && out.put(&[1.0; 9]).is_err());
    let e = out.put(&[0.0, 1.0, f32::NAN]).unwrap_err();
    assert!(
        e.to_string().contains("row 0, column 2: expected a finite number for Int8, found NaN"),
        "{e}"
    );
    assert!(out.finish().is_err() && !path.exists());
    let stored = write(&path, 2000, 30, RowFormat::F32);
    assert!(stored.gather(&[2000]).is_err());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096 + 70_000] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let e = StoredRows::open(&path).unwrap().verify().unwrap_err();
    assert!(
        matches!(&e, StoreError::Damaged { section, block: 1, .. } if section == "rows"),
        "{e}"
    );
    std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
    assert!(matches!(StoredRows::open(&path), Err(StoreError::Truncated { .. })));
    assert!(matches!(StoredCsc::open(&path), Err(StoreError::Data(_))), "another kind of file");
}

fn batches() -> impl Strategy<Value = Vec<Vec<u32>>> {
    let batch = proptest::collection::hash_set(prop_oneof![0u32..500, 0u32..20], 0..120);
    proptest::collection::vec(batch.prop_map(|b| b.into_iter().collect()), 0..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Rows equal those of the file for every budget, window and policy; an optimal cache does not read more than an
    /// LRU cache.
    #[test]
    fn rows_through_caches(batches in batches(), budget in 0u64..20_000, window in 1usize..40) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows");
        let stored = Arc::new(write(&path, 500, 9, RowFormat::F16));
        let lru = CachedRows::new(StoredRows::open(&path).unwrap(), budget);
        let all: Vec<Result<(usize, Vec<u32>), StoreError>> = batches.iter().cloned().enumerate().map(Ok).collect();
        let mut planned = PlannedRows::new(stored.clone(), budget, window, all);
        for (step, ids) in batches.iter().enumerate() {
            let want = stored.gather(ids).unwrap();
            let batch = planned.next().unwrap().unwrap();
            prop_assert_eq!((batch.batch, &batch.rows), (step, &want));
            prop_assert_eq!(lru.gather_rows(ids).unwrap(), want);
            let twice: Vec<u32> = ids.iter().chain(ids.iter().take(3)).copied().collect();
            prop_assert_eq!(lru.gather_rows(&twice).unwrap(), stored.gather(&twice).unwrap());
        }
        prop_assert!(planned.next().is_none());
        let packed = PackedRows::write(dir.path().join("packed"), &stored, budget, || batches.iter().cloned().map(Ok)).unwrap();
        packed.verify().unwrap();
        prop_assert_eq!(packed.batches(), batches.len());
        for (step, ids) in batches.iter().enumerate().rev() {
            prop_assert_eq!(packed.gather(step, ids).unwrap(), stored.gather(ids).unwrap());
            prop_assert!(packed.gather(step + 1, &[499, 3]).is_err());
        }
        prop_assert!(packed.read_bytes() <= 18 * batches.iter().map(Vec::len).sum::<usize>() as u64);
        let (stats, reads) = (planned.stats(), batches.iter().map(Vec::len).sum::<usize>() as u64);
        prop_assert_eq!(stats.hits + stats.misses, reads);
    }
}

/// With frequent and rare rows, planning saves a large share of reads with the same memory.
#[test]
fn planning_saves_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows");
    let stored = Arc::new(write(&path, 20_000, 256, RowFormat::F32));
    let hash = |x: u32| (x.wrapping_mul(2_654_435_761) ^ 0x51ed).wrapping_mul(0x85eb_ca6b) >> 7;
    let batches: Vec<Vec<u32>> = (0..60u32)
        .map(|b| {
            let draw = |i: u32| {
                let x = f64::from(hash(b * 10_000 + i) % 65_536) / 65_536.0;
                ((x * x * 20_000.0) as u32).min(19_999)
            };
            let mut ids: Vec<u32> = (0..1500).map(draw).collect();
            ids.sort_unstable();
            ids.dedup();
            ids
        })
        .collect();
    // The same number of rows in memory: a quarter of the budget of planned batches is the plan.
    let rows = 3000 * (1024 + 32);
    let lru = CachedRows::new(StoredRows::open(&path).unwrap(), rows);
    for ids in &batches {
        lru.gather_rows(ids).unwrap();
    }
    let mut planned = PlannedRows::new(
        stored,
        rows / 3 * 4,
        1000,
        batches.clone().into_iter().map(|ids| Ok(((), ids))),
    );
    for batch in planned.by_ref() {
        batch.unwrap();
    }
    let (lru, belady) = (lru.stats(), planned.stats());
    assert_eq!(lru.hits + lru.misses, belady.hits + belady.misses);
    assert!(belady.hits * 2 > lru.hits * 3, "{belady} against {lru}");
    assert!(belady.bytes_read < lru.bytes_read && lru.bytes_read > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// A plan from batch `k` on returns the batches from `k` on, and neither samples nor reads earlier ones.
    #[test]
    fn plans_begin_anywhere(batches in batches(), budget in 0u64..20_000, window in 1usize..40, at in 0.0..1.0) {
        let dir = tempfile::tempdir().unwrap();
        let stored = Arc::new(write(&dir.path().join("rows"), 500, 9, RowFormat::F16));
        let (first, end) = ((at * batches.len() as f64) as u64, batches.len() as u64);
        let made = Arc::new(Mutex::new(vec![]));
        let (of, note) = (batches.clone(), made.clone());
        let make = move |step: u64| {
            note.lock().unwrap().push(step);
            Ok((step, of[step as usize].clone()))
        };
        let mut planned = PlannedRows::of_steps(stored.clone(), budget, window, first..end, make);
        for step in first..end {
            prop_assert_eq!(planned.next_step(), step);
            let batch = planned.next().unwrap().unwrap();
            prop_assert_eq!((batch.batch, batch.rows), (step, stored.gather(&batches[step as usize]).unwrap()));
        }
        prop_assert!(planned.next().is_none());
        prop_assert_eq!(planned.next_step(), end);
        let (stats, reads) = (planned.stats(), batches[first as usize..].iter().map(Vec::len).sum::<usize>());
        prop_assert_eq!(stats.hits + stats.misses, reads as u64);
        prop_assert_eq!(&*made.lock().unwrap(), &(first..end).collect::<Vec<_>>());
    }
}

/// An error of a batch ends the iteration after all previous batches; dropping the iterator early ends the threads.
#[test]
fn errors_and_early_ends() {
    let dir = tempfile::tempdir().unwrap();
    let stored = Arc::new(write(&dir.path().join("rows"), 10, 2, RowFormat::F32));
    let failing =
        [Ok((0, vec![1])), Ok((1, vec![2])), Err(StoreError::source("no more")), Ok((3, vec![3]))];
    let mut planned = PlannedRows::new(stored.clone(), 1000, 8, failing);
    assert_eq!(planned.next().unwrap().unwrap().batch, 0);
    assert_eq!(planned.next().unwrap().unwrap().rows, [value(2, 0), value(2, 1)]);
    assert_eq!(planned.next().unwrap().unwrap_err().to_string(), "no more");
    assert!(planned.next().is_none());
    let mut far = PlannedRows::new(stored.clone(), 1000, 8, [Ok(((), vec![10]))]);
    assert!(far.next().unwrap().unwrap_err().to_string().contains("10"));
    let mut endless = PlannedRows::new(stored, 1000, 8, (0u32..).map(|i| Ok((i, vec![i % 10]))));
    assert_eq!(endless.next().unwrap().unwrap().batch, 0);
    drop(endless);
}

/// A failed read leaves no invalid row in the cache: the next read is right.
#[test]
fn a_cache_is_right_after_a_failed_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows");
    let rows = write(&path, 3000, 64, RowFormat::F32);
    let bytes = std::fs::read(&path).unwrap();
    let cache = CachedRows::new(rows, 1 << 20);
    cache.gather_rows(&[1, 2]).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(8192).unwrap();
    assert!(cache.gather_rows(&[2, 2900, 2800]).is_err());
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
    let found = cache.gather_rows(&[2800, 1, 2900]).unwrap();
    for (row, id) in found.chunks_exact(64).zip([2800, 1, 2900]) {
        assert_eq!(row, (0..64).map(|c| value(id, c)).collect::<Vec<_>>());
    }
}

/// Rows equal those of the file for every budget: one pass in many reads, and many passes.
#[test]
fn packed_in_many_reads() {
    let dir = tempfile::tempdir().unwrap();
    let rows = write(&dir.path().join("rows"), 60_000, 8, RowFormat::F16);
    let batches: Vec<Vec<u32>> = (0..20u64)
        .map(|b| (0..60_000).filter(move |&r| (u64::from(r) * 7_919 + b * 104_729) % 9 == 0).rev())
        .map(Iterator::collect)
        .collect();
    for budget in [0, 200_000, 1 << 21, u64::MAX] {
        let path = dir.path().join("packed");
        PackedRows::write(&path, &rows, budget, || batches.iter().cloned().map(Ok)).unwrap();
        let packed = PackedRows::open(&path).unwrap();
        packed.verify().unwrap();
        for (step, ids) in batches.iter().enumerate() {
            assert!(packed.gather(step, ids).unwrap() == rows.gather(ids).unwrap(), "{budget}");
        }
    }
}

/// Planned ids must be distinct inside a batch.
#[test]
fn a_repeated_row_of_a_batch_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let rows = Arc::new(write(&dir.path().join("rows"), 10, 2, RowFormat::F32));
    let mut planned =
        PlannedRows::new(rows.clone(), 1 << 20, 4, [Ok(((), vec![1, 2])), Ok(((), vec![3, 3]))]);
    assert!(planned.next().unwrap().is_ok());
    assert!(planned.next().unwrap().unwrap_err().to_string().contains("row 3 twice"));
    let packed = PackedRows::write(dir.path().join("packed"), &rows, 1 << 20, || {
        [Ok(vec![4, 5, 4])].into_iter()
    });
    assert!(packed.unwrap_err().to_string().contains("row 4 twice"));
}

/// An unfinished file is removed, and more rows than ids can number are an error before any write.
#[test]
fn unfinished_files_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows");
    let mut out = RowWriter::create(&path, 10, 2, RowFormat::Int8).unwrap();
    out.put(&[1.0, 2.0]).unwrap();
    assert!(out.put(&[f32::NAN, 2.0]).is_err());
    drop(out);
    assert!(RowWriter::create(&path, u32::MAX as usize + 1, 2, RowFormat::Int8).is_err());
    assert!(RowWriter::create(&path, 1, (1 << 28) + 1, RowFormat::Int8).is_err());
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
}

/// The largest finite numbers stay finite.
#[test]
fn large_numbers_stay_finite() {
    let dir = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let path = dir.path().join("rows");
        let mut out = RowWriter::create(&path, 1, 2, format).unwrap();
        out.put(&[f32::MAX, f32::MIN]).unwrap();
        out.finish().unwrap();
        let found = StoredRows::open(&path).unwrap().gather(&[0]).unwrap();
        assert!(
            found[0].is_finite() && found[0] >= 65_504.0 && found[1] == -found[0],
            "{format:?}: {found:?}"
        );
    }
}

/// Rows of 256 bytes or 2 KiB share sectors, and each sector is read once if all rows fit into the cache. Larger rows
/// are read one by one.
#[test]
fn rows_of_a_sector_are_read_once() {
    let dir = tempfile::tempdir().unwrap();
    for (width, per_sector) in [(64, 16), (512, 2), (513, 1)] {
        let rows = 512;
        let stored = Arc::new(write(&dir.path().join("rows"), rows, width, RowFormat::F32));
        // Each row once, with the rows of a sector in sixteen batches.
        let batches =
            (0..16u32).map(|step| Ok((step, (0..32).map(|i| 16 * i + step).collect::<Vec<u32>>())));
        let mut planned = PlannedRows::new(stored, 64 << 20, 1000, batches);
        for batch in &mut planned {
            let batch = batch.unwrap();
            for (i, row) in batch.rows.chunks_exact(width).enumerate() {
                assert!(
                    row.iter()
                        .enumerate()
                        .all(|(c, &x)| x == value(16 * i + batch.batch as usize, c)),
                    "row {i} of {}",
                    batch.batch
                );
            }
        }
        let stats = planned.stats();
        if !stats.bytes_read.is_multiple_of(4096) {
            println!(
                "skipped: the file system of temporary files does not support reads past the page cache"
            );
            return;
        }
        assert_eq!(
            (stats.misses, stats.hits + stats.misses),
            ((rows / per_sector) as u64, rows as u64),
            "{width} numbers"
        );
    }
}
