//! Constructs k-nearest-neighbour and radius graphs of points.

use burn::tensor::{Tensor, TensorData};
use rayon::prelude::*;

use crate::graph::Graph;
use crate::graph::ONE_RELATION;
use burn_gnn_structure::GraphError;
use burn_gnn_structure::internal::{check_len, check_limit, reserve, setting};

/// Largest norm of a point under [`Metric::Cosine`]: products of two norms and all partial sums of `a·b` stay finite.
const LARGEST_NORM: f64 = 1e150;

/// The distance between two points, computed in f64; infinite on overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Metric {
    /// `sqrt(Σ (aᵢ - bᵢ)²)`.
    #[default]
    Euclidean,
    /// `(Σ |aᵢ - bᵢ|ᵖ)^(1/p)` with `p ≥ 1`; for infinite `p`, the largest difference.
    Minkowski(f64),
    /// `1 - a·b / (|a| |b|)`; 1 if a norm is 0. Norms may be at most `1e150`.
    Cosine,
}

/// Settings of [`knn_graph`] and [`radius_graph`]: metric, self loops, segments, distances, and a bound on neighbours.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointOptions {
    metric: Metric,
    self_loops: bool,
    segments: Option<Vec<usize>>,
    distances: Option<String>,
    most: Option<usize>,
}

impl PointOptions {
    /// Euclidean metric, no self loops, one set of points, no distance column, no bound on neighbours.
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the metric.
    #[must_use]
    pub fn with_metric(mut self, metric: Metric) -> Self {
        self.metric = metric;
        self
    }
    /// Makes every point a neighbour of itself, as DGL's `knn_graph` does without `exclude_self`.
    #[must_use]
    pub fn with_self_loops(mut self) -> Self {
        self.self_loops = true;
        self
    }
    /// Sets the sizes of several sets of points, whose rows are concatenated. No edge connects two sets (DGL:
    /// `segmented_knn_graph`; PyG: `batch`).
    #[must_use]
    pub fn with_segments(mut self, segments: impl Into<Vec<usize>>) -> Self {
        self.segments = Some(segments.into());
        self
    }
    /// Limits the number of neighbours of each point to the nearest `most`, with smaller ids first among equal distances.
    /// It bounds the edges of dense point sets in [`radius_graph`]; [`knn_graph`] uses the smaller of it and `k`. (PyG's
    /// `max_num_neighbors` has the default 32 and keeps arbitrary neighbours.)
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::{PointOptions, radius_graph};
    /// let x = Tensor::<2>::from_data([[0.0], [1.0], [3.0]], &Device::flex());
    /// let g = radius_graph(x, 5.0, &PointOptions::new().with_max_num_neighbors(1))?;
    /// assert_eq!((g.relation("_E")?.src(), g.relation("_E")?.dst()), (&[1, 0, 1][..], &[0, 1, 2][..]));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    #[must_use]
    pub fn with_max_num_neighbors(mut self, most: usize) -> Self {
        self.most = Some(most);
        self
    }
    /// Stores the distance along each edge in an edge column `[edges, 1]` of this name, with the dtype and device of the
    /// points. No gradient flows through it.
    #[must_use]
    pub fn with_distances(mut self, column: impl Into<String>) -> Self {
        self.distances = Some(column.into());
        self
    }
}

/// Constructs the k-nearest-neighbour graph of points `[points, dimensions]`: an edge to each point from its `k` nearest
/// points. Among equal distances, smaller ids are preferred. In a set of at most `k` points, every other point is a
/// neighbour. Edges are sorted by destination, then by distance, so that CSC needs no permutation. As DGL's `knn_graph`, and
/// PyG's with its defaults (`loop=False`, `flow="source_to_target"`).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::{PointOptions, knn_graph};
/// let x = Tensor::<2>::from_data([[0.0, 0.0], [0.0, 1.0], [5.0, 0.0], [0.0, 3.0]], &Device::flex());
/// let g = knn_graph(x, 2, &PointOptions::new().with_distances("d"))?;
/// let r = g.relation("_E")?;
/// assert_eq!((r.src(), r.dst()), (&[1, 3, 0, 3, 0, 1, 1, 0][..], &[0, 0, 1, 1, 2, 2, 3, 3][..]));
/// assert_eq!(g.edges("_E")?.get::<2>("d")?.into_data().try_to_vec::<f32>().unwrap()[..3], [1.0, 3.0, 1.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Errors
/// `k` is 0; segments whose sum is not the number of points; an infinite or NaN coordinate; a norm above `1e150` under
/// [`Metric::Cosine`]; a `p` below 1; [`GraphError::TooLarge`] for more than `u32::MAX - 1` edges;
/// [`GraphError::OutOfMemory`].
///
/// # Cost
/// `O(n² · dimensions + n · k · log k)` in f64, on all threads: every pair of points of a set is compared. Points are copied
/// to the CPU. Memory for points, edges, 16 bytes per point of a set and thread, and at most 64 MiB in addition.
pub fn knn_graph(x: Tensor<2>, k: usize, options: &PointOptions) -> Result<Graph, GraphError> {
    if k == 0 {
        return Err(setting("k", "at least one neighbour", "0"));
    }
    let k = options.most.map_or(k, |most| most.min(k));
    let nearest = |found: &mut Vec<(f64, u32)>| {
        keep_nearest(found, k);
        found.sort_unstable_by(closer);
    };
    neighbors(x, options, f64::INFINITY, k, nearest)
}

/// Constructs the radius graph of points `[points, dimensions]`: edges in both directions between any two points whose
/// distance is at most `r`. Edges are sorted by destination, then by source. As DGL's `radius_graph` (its `p` is
/// [`Metric::Minkowski`]) and PyG's (its `max_num_neighbors` is
/// [`with_max_num_neighbors`](PointOptions::with_max_num_neighbors), which may keep only one direction of an edge).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::{PointOptions, radius_graph};
/// let x = Tensor::<2>::from_data([[0.0, 0.0], [0.0, 1.0], [5.0, 0.0], [0.0, 3.0]], &Device::flex());
/// let g = radius_graph(x, 2.0, &PointOptions::new())?;
/// assert_eq!((g.relation("_E")?.src(), g.relation("_E")?.dst()), (&[1, 0, 3, 1][..], &[0, 1, 1, 3][..]));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Errors
/// As [`knn_graph`]; a radius that is negative or NaN.
///
/// # Cost
/// `O(n² · dimensions)`; memory as for [`knn_graph`].
pub fn radius_graph(x: Tensor<2>, r: f64, options: &PointOptions) -> Result<Graph, GraphError> {
    if r.is_nan() || r < 0.0 {
        return Err(setting("r", "a radius of at least 0", &r.to_string()));
    }
    let most = options.most.unwrap_or(usize::MAX);
    let some = |found: &mut Vec<(f64, u32)>| {
        keep_nearest(found, most);
        found.sort_unstable_by_key(|n| n.1);
    };
    match options.most {
        None => neighbors(x, options, r, most, |_| ()),
        Some(_) => neighbors(x, options, r, most, some),
    }
}

/// Selects the nearest of some points, in any order.
fn keep_nearest(found: &mut Vec<(f64, u32)>, most: usize) {
    if most < found.len() {
        found.select_nth_unstable_by(most, closer);
        found.truncate(most);
    }
}

/// Order by distance, then by id.
fn closer(a: &(f64, u32), b: &(f64, u32)) -> std::cmp::Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}

/// Pairs of points in memory at a time, in addition to the edges.
const PAIRS: usize = 1 << 22;

/// Builds a graph: `choose` selects the neighbours of a point, at most `most`, from the points of its set within `radius`,
/// which it gets with their distances in ascending order of ids.
fn neighbors(
    x: Tensor<2>,
    options: &PointOptions,
    radius: f64,
    most: usize,
    choose: impl Fn(&mut Vec<(f64, u32)>) + Sync,
) -> Result<Graph, GraphError> {
    let ([count, width], dtype, device) = (x.dims(), x.dtype(), x.device());
    if let Metric::Minkowski(p) = options.metric
        && (p.is_nan() || p < 1.0)
    {
        return Err(setting("p", "at least 1", &p.to_string()));
    }
    let check_count =
        |what, count| check_limit(what, count as u64).map_err(|e| e.in_relation("points"));
    check_count("nodes", count)?;
    let whole = [count];
    let segments = options.segments.as_deref().unwrap_or(&whole);
    let sum = segments.iter().fold(0usize, |sum, &n| sum.saturating_add(n));
    check_len("sum of segments", "number of points", count, sum).map_err(|e| e.in_relation(""))?;
    let values: Vec<f64> = x.into_data().iter::<f64>().collect();
    if let Some(at) = values.iter().position(|v| !v.is_finite()) {
        let found = format!("{} in row {}, column {}", values[at], at / width, at % width);
        return Err(setting("x", "finite coordinates", &found));
    }
    let point = |i: usize| &values[i * width..][..width];
    let norm = |i: usize| point(i).iter().map(|a| a * a).sum::<f64>().sqrt();
    let norms: Vec<f64> =
        if options.metric == Metric::Cosine { (0..count).map(norm).collect() } else { vec![] };
    if let Some(row) = norms.iter().position(|&norm| norm > LARGEST_NORM) {
        let expected =
            format!("points of norm at most {LARGEST_NORM:e} for `Metric::Cosine` (scale them)");
        return Err(setting("x", &expected, &format!("a norm of {:e} in row {row}", norms[row])));
    }
    let distance = |i: usize, j: usize| {
        let pairs = point(i).iter().zip(point(j));
        match options.metric {
            Metric::Euclidean => pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt(),
            Metric::Minkowski(p) if p.is_infinite() => {
                pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
            }
            Metric::Minkowski(p) => {
                pairs.map(|(a, b)| (a - b).abs().powf(p)).sum::<f64>().powf(p.recip())
            }
            Metric::Cosine if norms[i] == 0.0 || norms[j] == 0.0 => 1.0,
            Metric::Cosine => 1.0 - pairs.map(|(a, b)| a * b).sum::<f64>() / (norms[i] * norms[j]),
        }
    };
    let (mut src, mut dst, mut distances) = (vec![], vec![], vec![]);
    let mut start = 0;
    for &len in segments {
        let set = start..start + len;
        start = set.end;
        // Points per chunk: the fewer, the more neighbours each can have.
        let chunk = (PAIRS / most.min(len).max(1)).min(1 << 12).max(rayon::current_num_threads());
        for from in set.clone().step_by(chunk) {
            let of = |found: &mut Vec<(f64, u32)>, j: usize| {
                let others = set.clone().filter(|&i| i != j || options.self_loops);
                found.clear();
                found.extend(others.map(|i| (distance(i, j), i as u32)).filter(|n| n.0 <= radius));
                choose(found);
                found.as_slice().to_vec()
            };
            let points: Vec<Vec<(f64, u32)>> =
                (from..set.end.min(from + chunk)).into_par_iter().map_init(Vec::new, of).collect();
            let more = points.iter().map(Vec::len).sum::<usize>();
            let edges = src.len() + more;
            let what = || format!("a graph of at least {edges} edges between points");
            check_count("edges", edges)?;
            let remedy = "choose a smaller `k` or radius, or fewer points";
            reserve(&mut src, more, what, remedy)?;
            reserve(&mut dst, more, what, remedy)?;
            if options.distances.is_some() {
                reserve(&mut distances, more, what, remedy)?;
                distances.extend(points.iter().flatten().map(|n| n.0));
            }
            for (j, found) in points.into_iter().enumerate() {
                dst.resize(dst.len() + found.len(), (from + j) as u32);
                src.extend(found.iter().map(|n| n.1));
            }
        }
    }
    let edges = src.len();
    let mut g = Graph::homogeneous(count, src, dst)?;
    if let Some(name) = &options.distances {
        let column =
            Tensor::<2>::from_data(TensorData::new(distances, [edges, 1]), (&device, dtype));
        g.edges_mut(ONE_RELATION)?.insert(name, column)?;
    }
    Ok(g)
}

#[cfg(test)]
mod tests {
    use burn::tensor::{DType, Device};
    use proptest::prelude::*;

    use super::*;

    fn points(values: &[f64], width: usize) -> Tensor<2> {
        let data = TensorData::new(values.to_vec(), [values.len() / width, width]);
        Tensor::from_data(data, (&Device::flex(), DType::F64))
    }

    fn edges(g: &Graph) -> Vec<(u32, u32)> {
        let r = g.relation("_E").unwrap();
        r.src().iter().copied().zip(r.dst().iter().copied()).collect()
    }

    /// A whole number per coordinate, so that ties are common and distances exact.
    fn between(metric: Metric, a: &[i32], b: &[i32]) -> f64 {
        let differences = || a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs()));
        let dot =
            |a: &[i32], b: &[i32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        match metric {
            Metric::Euclidean => differences().map(|d| d * d).sum::<f64>().sqrt(),
            Metric::Minkowski(1.0) => differences().sum(),
            Metric::Minkowski(_) => differences().fold(0.0, f64::max),
            Metric::Cosine if dot(a, a) == 0.0 || dot(b, b) == 0.0 => 1.0,
            Metric::Cosine => 1.0 - dot(a, b) / (dot(a, a).sqrt() * dot(b, b).sqrt()),
        }
    }

    proptest! {
        #[test]
        fn as_by_sorting_all_pairs(
            raw in prop::collection::vec(prop::collection::vec(-3i32..4, 2), 1..14),
            cut in 0usize..14,
            k in 1usize..6,
            r in 0u32..5,
            self_loops in any::<bool>(),
            metric in prop::sample::select(vec![Metric::Euclidean, Metric::Minkowski(1.0), Metric::Minkowski(f64::INFINITY), Metric::Cosine]),
        ) {
            let (n, cut) = (raw.len(), cut.min(raw.len()));
            let x = points(&raw.concat().into_iter().map(f64::from).collect::<Vec<_>>(), 2);
            let mut options = PointOptions::new().with_metric(metric).with_segments([cut, n - cut]);
            options.self_loops = self_loops;
            let (mut nearest, mut within) = (vec![], vec![]);
            for j in 0..n {
                let others = (0..n).filter(|&i| (i < cut) == (j < cut) && (i != j || self_loops));
                let mut found: Vec<(f64, u32)> = others.map(|i| (between(metric, &raw[i], &raw[j]), i as u32)).collect();
                within.extend(found.iter().filter(|n| n.0 <= f64::from(r)).map(|n| (n.1, j as u32)));
                found.sort_by(|a, b| a.partial_cmp(b).unwrap());
                nearest.extend(found.iter().take(k).map(|n| (n.1, j as u32)));
            }
            let g = knn_graph(x.clone(), k, &options.clone().with_distances("d")).unwrap();
            prop_assert_eq!(&edges(&g), &nearest);
            prop_assert_eq!(g.relation("_E").unwrap().csc().edge_ids(), None);
            let d: Vec<f64> = g.edges("_E").unwrap().get::<2>("d").unwrap().into_data().iter::<f64>().collect();
            for ((i, j), d) in edges(&g).into_iter().zip(d) {
                prop_assert!((d - between(metric, &raw[i as usize], &raw[j as usize])).abs() < 1e-12);
            }
            prop_assert_eq!(&edges(&radius_graph(x.clone(), f64::from(r), &options).unwrap()), &within);
            // The nearest of those within the radius, by id.
            let capped = options.with_max_num_neighbors(k);
            let mut few: Vec<(u32, u32)> =
                nearest.iter().copied().filter(|edge| within.contains(edge)).collect();
            few.sort_by_key(|edge| (edge.1, edge.0));
            prop_assert_eq!(edges(&radius_graph(x.clone(), f64::from(r), &capped).unwrap()), few);
            prop_assert_eq!(edges(&knn_graph(x, k + 3, &capped).unwrap()), nearest);
        }
    }

    #[test]
    fn no_points_and_what_is_refused() {
        let plain = PointOptions::new();
        assert_eq!(knn_graph(points(&[], 3), 2, &plain).unwrap().total_nodes(), 0);
        let kept = knn_graph(points(&[1.0], 1), 2, &plain.clone().with_distances("d")).unwrap();
        assert_eq!(kept.edges("_E").unwrap().get::<2>("d").unwrap().dims(), [0, 1]);
        let x = || points(&[0.0, 1.0, 2.0, f64::NAN], 2);
        let text = |r: Result<Graph, GraphError>| r.unwrap_err().to_string();
        assert_eq!(
            text(knn_graph(x(), 1, &plain)),
            "`x`: expected finite coordinates, got NaN in row 1, column 1"
        );
        assert_eq!(text(knn_graph(x(), 0, &plain)), "`k`: expected at least one neighbour, got 0");
        assert_eq!(
            text(radius_graph(x(), -1.0, &plain)),
            "`r`: expected a radius of at least 0, got -1"
        );
        let short = plain.clone().with_segments([1]);
        assert_eq!(
            text(radius_graph(x(), 1.0, &short)),
            "`sum of segments`: expected length 2 (number of points), got 1; give 2 entries"
        );
        let far = || points(&[1.0, 1.0, 1e160, 0.0, -1e160, 1e160], 2);
        assert_eq!(
            text(knn_graph(far(), 1, &plain.clone().with_metric(Metric::Cosine))),
            "`x`: expected points of norm at most 1e150 for `Metric::Cosine` (scale them), got a norm of inf in row 1"
        );
        // Their distances are infinite: of equals the smaller id.
        assert_eq!(edges(&knn_graph(far(), 1, &plain).unwrap()), [(1, 0), (0, 1), (0, 2)]);
        assert_eq!(edges(&radius_graph(far(), 1e200, &plain).unwrap()), []);
        let p = plain.with_metric(Metric::Minkowski(0.5));
        assert_eq!(text(radius_graph(x(), 1.0, &p)), "`p`: expected at least 1, got 0.5");
    }
}
