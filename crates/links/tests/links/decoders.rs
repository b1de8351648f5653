//! Decoders against formulas written as loops over numbers.

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_gnn_links::*;
use burn_gnn_models::{Framework, StateDict};
use burn_gnn_testutil::{assert_close, devices, matrix, panic_text, values};

use crate::differences::{drawn, gradients};

const D: usize = 4;

fn ids(device: &Device, ids: &[i64]) -> Tensor<1, Int> {
    let device = device.clone().without_autodiff();
    Tensor::from_data(TensorData::new(ids.to_vec(), [ids.len()]), &device)
}

/// Score of a triple by the formula of a decoder: embeddings of head and tail, and the relation.
type Formula = Box<dyn Fn(&[f64], usize, &[f64]) -> f64>;

fn complex_product(h: &[f64], r: &[f64], k: usize) -> (f64, f64) {
    let half = h.len() / 2;
    let (a, b, c, d) = (h[k], h[k + half], r[k], r[k + half]);
    (a * c - b * d, a * d + b * c)
}

/// Runs values, both sides and gradients of a decoder.
fn check<M: Decoder>(
    name: &str,
    device: &Device,
    decoder: M,
    relations: Option<&[i64]>,
    formula: Formula,
) {
    let decoder = &decoder;
    let (h, t) = (matrix(device, "h", 3, D), matrix(device, "t", 3, D));
    let candidates = matrix(device, "c", 5, D);
    let r = || relations.map(|r| ids(device, r));
    let of = |i: usize| relations.map_or(0, |r| r[i] as usize);
    let rows =
        |x: &Tensor<2>| -> Vec<Vec<f64>> { values(x).chunks(D).map(<[f64]>::to_vec).collect() };
    let (hv, tv, cv) = (rows(&h), rows(&t), rows(&candidates));
    let want: Vec<f64> = (0..3).map(|i| formula(&hv[i], of(i), &tv[i])).collect();
    let got = values(&decoder.score(h.clone(), r(), t.clone()));
    assert_close(&format!("{name}, pairs"), &got, &want, 1e-11);
    let all = |given: &Tensor<2>, candidates: &Tensor<2>, side| {
        let queries = decoder.query(given.clone(), r(), side);
        decoder.score_all(queries, candidates.clone(), side)
    };
    let want: Vec<f64> = (0..15).map(|k| formula(&hv[k / 5], of(k / 5), &cv[k % 5])).collect();
    assert_close(
        &format!("{name}, tails"),
        &values(&all(&h, &candidates, Side::Tail)),
        &want,
        1e-9,
    );
    let want: Vec<f64> = (0..15).map(|k| formula(&cv[k % 5], of(k / 5), &tv[k / 5])).collect();
    assert_close(
        &format!("{name}, heads"),
        &values(&all(&t, &candidates, Side::Head)),
        &want,
        1e-9,
    );
    // Without rows, shapes hold.
    let none = || matrix(device, "none", 0, D);
    let no_ids = relations.map(|_| ids(device, &[]));
    let queries = decoder.query(none(), no_ids, Side::Tail);
    assert_eq!(decoder.score_all(queries, candidates.clone(), Side::Tail).dims(), [0, 5], "{name}");
    assert_eq!(all(&h, &none(), Side::Tail).dims(), [3, 0], "{name}");

    let d = &device.clone().autodiff();
    let x = [matrix(d, "h", 3, D), matrix(d, "t", 3, D), matrix(d, "c", 5, D)];
    let on = decoder.clone().train();
    gradients(name, &on, &x, |decoder, x| {
        let r = || relations.map(|r| ids(device, r));
        let all = |given: &Tensor<2>, side| {
            decoder.score_all(decoder.query(given.clone(), r(), side), x[2].clone(), side)
        };
        vec![
            decoder.score(x[0].clone(), r(), x[1].clone()).unsqueeze_dim(1),
            all(&x[0], Side::Tail),
            all(&x[1], Side::Head),
        ]
    });
}

#[test]
fn decoders_without_relations_equal_their_formulas() {
    for device in &devices() {
        let dot = |h: &[f64], _: usize, t: &[f64]| h.iter().zip(t).map(|(a, b)| a * b).sum();
        check("dot", device, Dot::new(), None, Box::new(dot));
        let bilinear = drawn(BilinearConfig::new(D, D).init(device));
        let w = values(&bilinear.weight.val());
        let form = move |h: &[f64], _: usize, t: &[f64]| {
            (0..D * D).map(|k| h[k / D] * w[k] * t[k % D]).sum()
        };
        check("bilinear", device, bilinear, None, Box::new(form));
        for relations in [None, Some(&[1i64, 0, 1][..])] {
            let count = if relations.is_some() { 2 } else { 0 };
            let config = MlpDecoderConfig::new(D, vec![5, 3]).with_num_relations(count);
            let mlp = drawn(config.init(device));
            let (src, dst) = (values(&mlp.src.val()), values(&mlp.dst.val()));
            let r = mlp.relations.as_ref().map_or(vec![0.0; 5], |r| values(&r.val()));
            let bias = values(&mlp.bias.val());
            let layers: Vec<_> = mlp
                .rest
                .layers
                .iter()
                .map(|l| (values(&l.weight.val()), values(&l.bias.as_ref().unwrap().val())))
                .collect();
            let form = move |h: &[f64], rel: usize, t: &[f64]| {
                let first = |o: usize| {
                    let products: f64 =
                        (0..D).map(|i| h[i] * src[i * 5 + o] + t[i] * dst[i * 5 + o]).sum();
                    (products + bias[o] + r[rel * 5 + o]).max(0.0)
                };
                let x: Vec<f64> = (0..5).map(first).collect();
                let second = |o: usize| {
                    let sum: f64 = (0..5).map(|i| x[i] * layers[0].0[i * 3 + o]).sum();
                    (sum + layers[0].1[o]).max(0.0)
                };
                (0..3).map(|i| second(i) * layers[1].0[i]).sum::<f64>() + layers[1].1[0]
            };
            check("mlp_decoder", device, mlp, relations, Box::new(form));
        }
    }
}

#[test]
fn decoders_of_triples_equal_their_formulas() {
    let r = Some(&[1i64, 0, 1][..]);
    for device in &devices() {
        let decoder = drawn(DistMultConfig::new(2, D).init(device));
        let w = values(&decoder.relations.val());
        let form =
            move |h: &[f64], r: usize, t: &[f64]| (0..D).map(|k| h[k] * w[r * D + k] * t[k]).sum();
        check("dist_mult", device, decoder, r, Box::new(form));

        let decoder = drawn(ComplExConfig::new(2, D).init(device));
        let w = values(&decoder.relations.val());
        let form = move |h: &[f64], r: usize, t: &[f64]| {
            let term = |k: usize| {
                let (re, im) = complex_product(h, &w[r * D..][..D], k);
                re * t[k] + im * t[k + D / 2]
            };
            (0..D / 2).map(term).sum()
        };
        check("compl_ex", device, decoder, r, Box::new(form));

        for norm in [RotatENorm::Moduli, RotatENorm::L2] {
            let decoder = drawn(RotatEConfig::new(2, D).with_norm(norm).init(device));
            let w = values(&decoder.phases.val());
            let form = move |h: &[f64], r: usize, t: &[f64]| {
                let square = |k: usize| {
                    let phase = w[r * D / 2 + k];
                    let (c, s) = (phase.cos(), phase.sin());
                    let re = h[k] * c - h[k + D / 2] * s - t[k];
                    let im = h[k] * s + h[k + D / 2] * c - t[k + D / 2];
                    re * re + im * im
                };
                match norm {
                    RotatENorm::Moduli => {
                        -(0..D / 2).map(|k| (square(k) + 1e-12).sqrt()).sum::<f64>()
                    }
                    RotatENorm::L2 => -((0..D / 2).map(square).sum::<f64>() + 1e-12).sqrt(),
                }
            };
            check(&format!("rotat_e {norm:?}"), device, decoder, r, Box::new(form));
        }

        for norm in [TransENorm::L1, TransENorm::L2] {
            let decoder = drawn(TransEConfig::new(2, D).with_norm(norm).init(device));
            let w = values(&decoder.relations.val());
            let form = move |h: &[f64], r: usize, t: &[f64]| {
                let difference = |k: usize| h[k] + w[r * D + k] - t[k];
                match norm {
                    TransENorm::L1 => -(0..D).map(|k| difference(k).abs()).sum::<f64>(),
                    TransENorm::L2 => {
                        -((0..D).map(|k| difference(k).powi(2)).sum::<f64>() + 1e-12).sqrt()
                    }
                }
            };
            check(&format!("trans_e {norm:?}"), device, decoder, r, Box::new(form));
        }

        let decoder = drawn(RescalConfig::new(2, D).init(device));
        let w = values(&decoder.relations.val());
        let form = move |h: &[f64], r: usize, t: &[f64]| {
            (0..D * D).map(|k| h[k / D] * w[r * D * D + k] * t[k % D]).sum()
        };
        check("rescal", device, decoder, r, Box::new(form));

        let decoder = drawn(TuckErConfig::new(2, D, 3).init(device));
        let (w, core) = (values(&decoder.relations.val()), values(&decoder.core.val()));
        let form = move |h: &[f64], r: usize, t: &[f64]| {
            let of = |k: usize| (0..3).map(|j| w[r * 3 + j] * core[j * D * D + k]).sum::<f64>();
            (0..D * D).map(|k| h[k / D] * of(k) * t[k % D]).sum()
        };
        check("tuck_er", device, decoder, r, Box::new(form));
    }
}

/// Blocks of candidates do not change scores.
#[test]
fn distances_in_blocks_equal_distances_of_pairs() {
    let device = &Device::flex();
    // 600 queries of 64 numbers: blocks of 27 candidates.
    let (queries, candidates) = (matrix(device, "q", 600, 64), matrix(device, "c", 101, 64));
    for comparison in [Comparison::L1, Comparison::Modulus, Comparison::L2] {
        let all = values(&comparison.all(queries.clone(), candidates.clone()));
        for at in [0, 26, 27, 54, 100] {
            let one = candidates.clone().slice_dim(0, at..at + 1).repeat_dim(0, 600);
            let want = values(&comparison.pairs(queries.clone(), one));
            let got: Vec<f64> = (0..600).map(|i| all[i * 101 + at]).collect();
            assert_close(&format!("{comparison:?}, candidate {at}"), &got, &want, 1e-10);
        }
    }
}

#[test]
fn decoders_reject_wrong_arguments() {
    let d = &Device::flex();
    let (h, narrow, short) = (matrix(d, "h", 3, 4), matrix(d, "t", 3, 2), matrix(d, "t", 2, 4));
    fn rejects<M: Decoder>(
        name: &str,
        decoder: M,
        [h, narrow, short]: [&Tensor<2>; 3],
        d: &Device,
    ) {
        let decoder = &drawn(decoder);
        let score = |h: &Tensor<2>, r: Option<&[i64]>, t: &Tensor<2>| {
            panic_text(|| decoder.score(h.clone(), r.map(|r| ids(d, r)), t.clone()))
        };
        assert_eq!(
            score(h, Some(&[0, 5, 9]), h),
            format!("{name}: `relations[1]` must lie in 0..2, got 5")
        );
        assert_eq!(
            score(h, Some(&[0, 1, -1]), h),
            format!("{name}: `relations[2]` must lie in 0..2, got -1")
        );
        assert_eq!(
            score(h, Some(&[0, 1]), h),
            format!("{name}: `relations`: expected 3 (one per row), got 2; give 3")
        );
        assert_eq!(
            score(h, None, h),
            format!("{name}: `relations` must lie in ids of relations, got None")
        );
        assert_eq!(
            score(narrow, Some(&[0, 1, 1]), narrow),
            format!(
                "{name}: `feature size of the embeddings`: expected 4 (that of the decoder), got 2; give 4"
            )
        );
        assert!(
            score(h, Some(&[0, 1, 1]), short)
                .ends_with("`rows of dst`: expected 3 (one per row of src), got 2; give 3")
        );
    }
    let x = [&h, &narrow, &short];
    rejects("dist_mult", DistMultConfig::new(2, 4).init(d), x, d);
    rejects("compl_ex", ComplExConfig::new(2, 4).init(d), x, d);
    rejects("rotat_e", RotatEConfig::new(2, 4).init(d), x, d);
    rejects("trans_e", TransEConfig::new(2, 4).init(d), x, d);
    rejects("rescal", RescalConfig::new(2, 4).init(d), x, d);
    rejects("tuck_er", TuckErConfig::new(2, 4, 3).init(d), x, d);
    let mlp = MlpDecoderConfig::new(4, vec![3]).with_num_relations(2);
    rejects("mlp_decoder", mlp.init(d), x, d);
    let text = panic_text(|| Dot::new().query(h.clone(), Some(ids(d, &[0, 0, 0])), Side::Tail));
    assert_eq!(text, "dot: `number of relations` must lie in 0..1 (give `None`), got 3");
    let text = panic_text(|| BilinearConfig::new(4, 2).init(d).query(h.clone(), None, Side::Head));
    assert!(text.starts_with("bilinear: `feature size of the embeddings`: expected 2"), "{text}");
    let e = ComplExConfig::new(2, 3).try_init(d).unwrap_err().to_string();
    assert!(e.contains("must divide d = 3"), "{e}");
    assert!(RotatEConfig::new(2, 3).try_init(d).is_err());
    assert!(TuckErConfig::new(2, 3, 0).try_init(d).is_err());
    assert!(MlpDecoderConfig::new(2, vec![]).try_init(d).is_err());
    let odd = matrix(d, "odd", 3, 3);
    for text in [
        panic_text(|| Comparison::Modulus.pairs(odd.clone(), odd.clone())),
        panic_text(|| Comparison::Modulus.all(odd.clone(), odd.clone())),
    ] {
        assert!(text.contains("must divide feature size of queries = 3"), "{text}");
    }
}

/// A head that a relation maps to its tail has a distance of 0 and no gradient.
#[test]
fn distances_of_0_have_no_gradient() {
    for device in &devices() {
        let d = &device.clone().autodiff();
        let x = matrix(d, "x", 3, 4).require_grad();
        for comparison in [Comparison::L1, Comparison::L2, Comparison::Modulus] {
            let score = comparison.pairs(x.clone(), x.clone().detach()).sum();
            let grad = x.grad(&score.backward()).unwrap();
            assert!(values(&grad).iter().all(|&g| g == 0.0), "{comparison:?}");
        }
    }
}

/// A distance changes by no more than its points move.
#[test]
fn distances_between_equal_points_have_small_gradients() {
    for device in &devices() {
        let d = &device.clone().autodiff();
        let rows = [[0.3, 0.1, 0.7], [0.9, -0.2, 0.4], [0.1, 0.8, -0.6], [1.1, 1.3, 0.2]];
        let (heads, tails) =
            (Tensor::<2>::from_data(rows, d).require_grad(), Tensor::<2>::from_data(rows, d));
        let all = Comparison::L2.all(heads.clone(), tails.clone()).sum();
        let pairs = Comparison::L2.pairs(heads.clone(), tails).sum();
        for loss in [all, pairs] {
            // Three other tails, each of slope 1.
            let got = values(&heads.grad(&loss.backward()).unwrap());
            assert!(got.iter().all(|v| v.abs() <= 3.0), "{device:?}: {got:?}");
        }
    }
}

#[test]
fn decoders_load_the_weights_of_pyg() {
    let d = &Device::flex();
    let names = |state: StateDict| state.tensors().map(|(n, _)| n.to_owned()).collect::<Vec<_>>();
    let of = Framework::Pyg;
    let complex = drawn(ComplExConfig::new(2, 4).init(d));
    let state = StateDict::of(&complex, of);
    let rows = values(&complex.relations.val());
    for ((name, data), at) in state.tensors().zip([0, 2]) {
        let got: Vec<f64> = data.iter().collect();
        assert_eq!(got, [rows[at], rows[at + 1], rows[at + 4], rows[at + 5]], "{name}");
    }
    let loaded = state.load(drawn(ComplExConfig::new(2, 4).init(d)), of).unwrap();
    assert_eq!(values(&loaded.relations.val()), rows);
    assert_eq!(names(StateDict::of(&complex, of)), ["rel_emb.weight", "rel_emb_im.weight"]);
    // One half alone is rejected by name.
    let half = state.without("rel_emb.").load(ComplExConfig::new(2, 4).init(d), of);
    let text = half.unwrap_err().to_string();
    assert!(text.contains("expected parameter `relations` under `rel_emb.weight`"), "{text}");
    assert_eq!(names(StateDict::of(&DistMultConfig::new(2, 4).init(d), of)), ["rel_emb.weight"]);
    assert_eq!(names(StateDict::of(&TransEConfig::new(2, 4).init(d), of)), ["rel_emb.weight"]);
    assert_eq!(names(StateDict::of(&RotatEConfig::new(2, 4).init(d), of)), ["rel_emb.weight"]);
}
