//! Sparse embedding tables and their optimizer.

use super::*;

/// A bag that grows, a large table of buckets, a small one, a number.
fn partly_sparse() -> (Decoder, [&'static str; 4]) {
    let d = decoder(
        [
            AttrType::multi_string(None),
            AttrType::string_buckets(40),
            AttrType::hashed_int(3),
            Float,
        ],
        &[2, 3, 2, 0],
    );
    (d, ["x,y:a:0:1", "y,z,y:b:1:2", "x:a:2:3", "w:c:1:4"])
}

#[test]
fn sparse_tables_give_the_same_rows_and_gradients_of_named_rows_alone() {
    for device in devices() {
        let (d, rows) = partly_sparse();
        let g = graph(&d, &rows, &device);
        let f = g.nodes("a").unwrap();
        let config =
            FeatureEncoderConfig::new(d).learn_keys(f).unwrap().with_combiner(Reduce::Mean);
        let init = |c: FeatureEncoderConfig| {
            to_dtype(seeded(0, || c.try_init(&device.clone().autodiff())).unwrap(), FloatDType::F64)
        };
        let (dense, sparse) = (init(config.clone()), init(config.with_sparse_from(Some(40))));
        for ids in [vec![1, 2, 1], vec![0, 1, 2, 3], vec![3], vec![]] {
            let input = sparse.input_rows(f, &ids).unwrap();
            let (y, read) = sparse.forward_rows(&input);
            let whole = dense.forward(&dense.input_rows(f, &ids).unwrap());
            assert_eq!(values(&y), values(&whole));
            assert_eq!(values(&sparse.forward(&input)), values(&whole));
            if ids.is_empty() {
                continue;
            }
            let (part, all) =
                ((y.clone() * y).sum().backward(), (whole.clone() * whole).sum().backward());
            assert_eq!(read.iter().map(|r| r.0).collect::<Vec<_>>(), [0, 1]);
            for (table, named, rows) in read.iter() {
                assert!(named.is_sorted() && named.len() <= 4 && rows.dims()[0] == named.len());
                let expected = values(&dense.tables[table].val().grad(&all).unwrap());
                let dim = rows.dims()[1];
                let got = values(&rows.grad(&part).unwrap());
                for (r, row) in expected.chunks_exact(dim).enumerate() {
                    match named.binary_search(&(r as u32)) {
                        Ok(k) => assert_eq!(&got[k * dim..][..dim], row),
                        Err(_) => assert!(row.iter().all(|&x| x == 0.0), "row {r} was not read"),
                    }
                }
                assert!(sparse.tables[table].val().grad(&part).is_none());
            }
            assert!(
                sparse.tables[2].val().grad(&part).is_some(),
                "the small table is trained as ever"
            );
        }
    }
}

#[test]
fn sparse_adam_is_adam_on_rows_that_were_read() {
    for device in devices() {
        let (d, rows) = partly_sparse();
        let g = graph(&d, &rows, &device);
        let f = g.nodes("a").unwrap();
        let config = FeatureEncoderConfig::new(d).learn_keys(f).unwrap();
        let init = |c: &FeatureEncoderConfig| {
            to_dtype(seeded(0, || c.try_init(&device.clone().autodiff())).unwrap(), FloatDType::F64)
        };
        let mut encoder = init(&config.clone().with_sparse_from(Some(40)));
        let first: Vec<Vec<f64>> = encoder.tables.iter().map(|t| values(&t.val())).collect();
        let mut optimizer = SparseAdamConfig::new().init(&encoder, &device);
        // Table, first and second moment by hand; `t` counts steps of the optimizer.
        let mut state: Vec<[Vec<f64>; 3]> = first[..2]
            .iter()
            .map(|w| [w.clone(), vec![0.0; w.len()], vec![0.0; w.len()]])
            .collect();
        for (t, ids) in [vec![0, 2], vec![1], vec![3, 0], vec![1, 1]].into_iter().enumerate() {
            let (y, read) = encoder.forward_rows(&encoder.input_rows(f, &ids).unwrap());
            let grads = (y.clone() * y).sum().backward();
            for (table, named, rows) in read.iter() {
                let (dim, g) = (rows.dims()[1], values(&rows.grad(&grads).unwrap()));
                let [w, m, v] = &mut state[table];
                for (k, &row) in named.iter().enumerate() {
                    for c in 0..dim {
                        let (i, g, t) = (row as usize * dim + c, g[k * dim + c], t as i32 + 1);
                        m[i] = 0.9 * m[i] + 0.1 * g;
                        v[i] = 0.999 * v[i] + 0.001 * g * g;
                        w[i] -= 0.05 * (m[i] / (1.0 - 0.9f64.powi(t)))
                            / ((v[i] / (1.0 - 0.999f64.powi(t))).sqrt() + 1e-8);
                    }
                }
            }
            encoder = optimizer.step(0.05, encoder, &read, &grads);
        }
        for (table, [w, ..]) in state.iter().enumerate() {
            close(&values(&encoder.tables[table].val()), w);
            assert_ne!(&first[table], w);
        }
        assert_eq!(values(&encoder.tables[2].val()), first[2]);
        // Rows that no batch read keep their initial bits: 40 rows, of which three were read.
        let (now, dim) = (values(&encoder.tables[1].val()), 3);
        let same =
            now.chunks_exact(dim).zip(first[1].chunks_exact(dim)).filter(|(a, b)| a == b).count();
        assert_eq!(same, 37);
        // Saved and loaded, the next step is the same.
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("o.bpk");
        optimizer.clone().into_record().save(&file).unwrap();
        let back = to_dtype(SparseAdamConfig::new().init(&encoder, &device), FloatDType::F64);
        let mut back = back.load_record(ModuleRecord::load(&file).unwrap());
        let (y, read) = encoder.forward_rows(&encoder.input(f).unwrap());
        let grads = y.sum().backward();
        let (a, b) = (
            optimizer.step(0.1, encoder.clone(), &read, &grads),
            back.step(0.1, encoder.clone(), &read, &grads),
        );
        for (a, b) in a.tables.iter().zip(&b.tables) {
            assert_eq!(values(&a.val()), values(&b.val()));
        }
        // A table that grows: moments of new rows are 0.
        let more = graph(&partly_sparse().0, &["v,x:a:0:1"], &device);
        let more = more.nodes("a").unwrap();
        let config = a.config().clone().learn_keys(more).unwrap();
        let grown = to_dtype(a.grow(&config, &device.clone().autodiff()).unwrap(), FloatDType::F64);
        let (y, read) = grown.forward_rows(&grown.input(more).unwrap());
        let grads = y.sum().backward();
        let before = values(&grown.tables[0].val());
        let grown = optimizer.step(0.1, grown, &read, &grads);
        let after = values(&grown.tables[0].val());
        assert_eq!((before.len(), after.len()), (10, 10));
        assert_ne!(before[8..], after[8..]);
    }
}

/// The update in PyTorch's formulation: moments by lerp, `ε` added to the root of the second moment before the bias correction.
/// Nodes 0 and 2 name one row, a batch may name a node twice, and rows rest between steps.
#[test]
fn sparse_adam_against_torchs_update() {
    const LR: f64 = 0.05;
    const EPSILON: f64 = 0.01; // large enough to show where it is added
    let steps: [(&[u32], &[f64]); 4] =
        [(&[0, 2, 1], &[1.0, 0.5, -2.0]), (&[3], &[0.25]), (&[1], &[1.0]), (&[0, 0], &[1.0, -3.0])];
    // Of each step: rows with the sum of what its batch weighs them by.
    let sums: [&[(usize, f64)]; 4] =
        [&[(3, 1.5), (7, -2.0)], &[(5, 0.25)], &[(7, 1.0)], &[(3, -2.0)]];
    let identity =
        AttrType::IntBuckets { buckets: 10, by: IntBuckets::Identity, missing_row: false };
    let d = decoder([identity], &[2]);
    for device in devices() {
        let g = graph(&d, &["3", "7", "3", "5"], &device);
        let f = g.nodes("a").unwrap();
        let config = FeatureEncoderConfig::new(d.clone()).with_sparse_from(Some(10));
        let mut encoder = to_dtype(
            seeded(0, || config.try_init(&device.clone().autodiff())).unwrap(),
            FloatDType::F64,
        );
        let mut optimizer =
            SparseAdamConfig::new().with_epsilon(EPSILON as f32).init(&encoder, &device);
        let first = values(&encoder.tables[0].val());
        let (mut w, mut m, mut v) = (first.clone(), vec![0.0; 20], vec![0.0; 20]);
        for (t, ((ids, weights), sums)) in (1..).zip(steps.into_iter().zip(sums)) {
            let (y, read) = encoder.forward_rows(&encoder.input_rows(f, ids).unwrap());
            // The second column counts twice.
            let weights: Vec<f64> = weights.iter().flat_map(|c| [*c, 2.0 * c]).collect();
            let weights = Tensor::<2>::from_data(
                TensorData::new(weights, [ids.len(), 2]),
                (&y.device(), DType::F64),
            );
            let grads = (y * weights).sum().backward();
            encoder = optimizer.step(LR, encoder, &read, &grads);
            let (correct_1, correct_2) = (1.0 - 0.9f64.powi(t), 1.0 - 0.999f64.powi(t));
            let epsilon = EPSILON * correct_2.sqrt(); // torch's for the one given here
            for &(row, sum) in sums {
                for (i, g) in [(2 * row, sum), (2 * row + 1, 2.0 * sum)] {
                    m[i] += (g - m[i]) * 0.1;
                    v[i] += (g * g - v[i]) * 0.001;
                    w[i] -= LR * correct_2.sqrt() / correct_1 * m[i] / (v[i].sqrt() + epsilon);
                }
            }
            close(&values(&encoder.tables[0].val()), &w);
        }
        let (now, named) = (values(&encoder.tables[0].val()), [3, 5, 7]);
        for row in 0..10 {
            let at = 2 * row..2 * row + 2;
            assert_eq!(now[at.clone()] == first[at], !named.contains(&row), "row {row}");
        }
    }
}
