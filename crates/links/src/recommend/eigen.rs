//! Computes eigenvalues and eigenvectors of small symmetric matrices.

/// Eigenvalues, descending, and eigenvectors of a symmetric matrix of `n` rows: vector `k` is column `k` of the result,
/// row-major.
///
/// Householder tridiagonalisation and the implicit QL iteration (Martin, Reinsch, Wilkinson, Numerische Mathematik 1968;
/// EISPACK `tred2`, `tql2`): `O(n³)`, in f64.
pub(super) fn symmetric(mut a: Vec<f64>, n: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut d, mut e) = (vec![0.0; n], vec![0.0; n]);
    tridiagonalise(&mut a, n, &mut d, &mut e);
    // Rotations act on columns; rows of the transpose are contiguous.
    let mut rows = transposed(&a, n);
    iterate(&mut rows, n, &mut d, &mut e);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| d[j].total_cmp(&d[i]));
    let mut vectors = vec![0.0; n * n];
    for (k, &from) in order.iter().enumerate() {
        for i in 0..n {
            vectors[i * n + k] = rows[from * n + i];
        }
    }
    (order.iter().map(|&k| d[k]).collect(), vectors)
}

fn transposed(a: &[f64], n: usize) -> Vec<f64> {
    (0..n * n).map(|i| a[(i % n) * n + i / n]).collect()
}

fn tridiagonalise(a: &mut [f64], n: usize, d: &mut [f64], e: &mut [f64]) {
    for i in (1..n).rev() {
        let (mut h, mut scale) = (0.0, 0.0);
        if i > 1 {
            scale = (0..i).map(|k| a[i * n + k].abs()).sum();
        }
        if scale == 0.0 {
            e[i] = a[i * n + i - 1];
        } else {
            for k in 0..i {
                a[i * n + k] /= scale;
                h += a[i * n + k] * a[i * n + k];
            }
            let f = a[i * n + i - 1];
            let g = if f >= 0.0 { -f64::sqrt(h) } else { f64::sqrt(h) };
            e[i] = scale * g;
            h -= f * g;
            a[i * n + i - 1] = f - g;
            let mut sum = 0.0;
            for j in 0..i {
                a[j * n + i] = a[i * n + j] / h;
                let mut g = 0.0;
                for k in 0..=j {
                    g += a[j * n + k] * a[i * n + k];
                }
                for k in j + 1..i {
                    g += a[k * n + j] * a[i * n + k];
                }
                e[j] = g / h;
                sum += e[j] * a[i * n + j];
            }
            let hh = sum / (h + h);
            for j in 0..i {
                let f = a[i * n + j];
                let g = e[j] - hh * f;
                e[j] = g;
                for k in 0..=j {
                    a[j * n + k] -= f * e[k] + g * a[i * n + k];
                }
            }
        }
        d[i] = h;
    }
    if n > 0 {
        d[0] = 0.0;
        e[0] = 0.0;
    }
    for i in 0..n {
        if d[i] != 0.0 {
            let mut g = vec![0.0; i];
            for k in 0..i {
                let f = a[i * n + k];
                for (j, g) in g.iter_mut().enumerate() {
                    *g += f * a[k * n + j];
                }
            }
            for k in 0..i {
                let f = a[k * n + i];
                for (j, g) in g.iter().enumerate() {
                    a[k * n + j] -= g * f;
                }
            }
        }
        d[i] = a[i * n + i];
        a[i * n + i] = 1.0;
        for j in 0..i {
            a[j * n + i] = 0.0;
            a[i * n + j] = 0.0;
        }
    }
}

/// `rows` has the columns of the accumulated transformation as rows.
fn iterate(rows: &mut [f64], n: usize, d: &mut [f64], e: &mut [f64]) {
    for i in 1..n {
        e[i - 1] = e[i];
    }
    if n > 0 {
        e[n - 1] = 0.0;
    }
    for l in 0..n {
        // A matrix of numbers converges in a few steps; one with NaN ends by this bound.
        for _ in 0..200 {
            let small = |m: &usize| {
                let dd = d[*m].abs() + d[*m + 1].abs();
                e[*m].abs() <= f64::EPSILON * dd
            };
            let m = (l..n - 1).find(small).unwrap_or(n - 1);
            if m == l {
                break;
            }
            let mut g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let mut r = g.hypot(1.0);
            g = d[m] - d[l] + e[l] / (g + r.copysign(g));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut early = false;
            for i in (l..m).rev() {
                let f = s * e[i];
                let b = c * e[i];
                r = f.hypot(g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    early = true;
                    break;
                }
                s = f / r;
                c = g / r;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                let (low, high) = rows.split_at_mut((i + 1) * n);
                for (x, y) in low[i * n..].iter_mut().zip(&mut high[..n]) {
                    let f = *y;
                    *y = s * *x + c * f;
                    *x = c * *x - s * f;
                }
            }
            if early {
                continue;
            }
            d[l] -= p;
            e[l] = g;
            e[m] = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_gnn_ops::Stream;

    #[test]
    fn vectors_diagonalise_the_matrix() {
        for n in [1, 2, 3, 7, 40] {
            let s = Stream::new(1, "matrix", n as u64);
            let at = |i: usize, j: usize| s.normal(i.min(j) as u64, i.max(j) as u64);
            let a: Vec<f64> = (0..n * n).map(|k| at(k / n, k % n)).collect();
            let (values, vectors) = symmetric(a.clone(), n);
            assert!(values.windows(2).all(|w| w[0] >= w[1]));
            for k in 0..n {
                for i in 0..n {
                    let image: f64 = (0..n).map(|j| a[i * n + j] * vectors[j * n + k]).sum();
                    let expected = values[k] * vectors[i * n + k];
                    assert!(
                        (image - expected).abs() < 1e-10,
                        "n {n}, vector {k}: {image} {expected}"
                    );
                }
                for other in 0..n {
                    let dot: f64 =
                        (0..n).map(|i| vectors[i * n + k] * vectors[i * n + other]).sum();
                    assert!((dot - f64::from(u8::from(k == other))).abs() < 1e-10);
                }
            }
        }
    }
}
