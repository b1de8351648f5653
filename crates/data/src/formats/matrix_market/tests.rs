//! Tests of Matrix Market files.

use super::*;

fn load(text: &str) -> Result<Graph, DataError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.mtx");
    std::fs::write(&path, text).unwrap();
    load_matrix_market(&path, &Device::flex())
}

fn weights(g: &Graph) -> Vec<f32> {
    let column = g.edges(..).unwrap().get::<1>(WEIGHT).unwrap();
    column.into_data().try_to_vec().unwrap()
}

#[test]
fn entries_are_edges() {
    let text = "%%MatrixMarket matrix coordinate real general\n% made by hand\n\n4 4 3\n1 2 1.5\n% between\n4 4 -2\n 2\t1 3e0 \n";
    let g = load(text).unwrap();
    let r = g.relation(..).unwrap();
    assert_eq!((g.node_counts(), r.src(), r.dst()), (&[4][..], &[0, 3, 1][..], &[1, 3, 0][..]));
    assert_eq!(weights(&g), [1.5, -2.0, 3.0]);
    // A pattern matrix has no weights. Letters may be upper or lower case.
    let g = load("%%matrixmarket MATRIX Coordinate Pattern General\n2 2 1\n2 1\n").unwrap();
    assert!(g.edges(..).unwrap().column(WEIGHT).is_err());
    assert_eq!(g.relation(..).unwrap().src(), [1]);
    let marked = load("\u{feff}%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1\n");
    assert_eq!(marked.unwrap().relation(..).unwrap().src(), [1]);
    assert_eq!(
        load("%%MatrixMarket matrix coordinate real general\n0 0 0\n").unwrap().node_counts(),
        [0]
    );
}

#[test]
fn symmetric_matrices_store_one_triangle() {
    for (kind, sign) in [("symmetric", 1.0), ("skew-symmetric", -1.0)] {
        let text =
            format!("%%MatrixMarket matrix coordinate integer {kind}\n3 3 2\n2 1 7\n3 2 5\n");
        let g = load(&text).unwrap();
        let r = g.relation(..).unwrap();
        assert_eq!((r.src(), r.dst()), (&[1, 2, 0, 1][..], &[0, 1, 1, 2][..]));
        assert_eq!(weights(&g), [7.0, 5.0, 7.0 * sign, 5.0 * sign]);
    }
    // Diagonal entries are not duplicated.
    let g = load("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n").unwrap();
    assert_eq!(g.relation(..).unwrap().num_edges(), 3);
}

/// Files that SciPy 1.17 wrote (`scipy.io.mmwrite`).
#[test]
fn files_of_scipy() {
    let head = "%%MatrixMarket matrix coordinate";
    for (text, src, weights_of) in [
        (
            format!("{head} unsigned-integer general\n%\n3 3 3\n1 2 1\n2 1 2\n3 3 3\n"),
            &[0, 1, 2][..],
            &[1.0, 2.0, 3.0][..],
        ),
        (
            format!("{head} real symmetric\n%\n3 3 2\n1 1 1.5\n3 2 2.5\n"),
            &[0, 2, 1],
            &[1.5, 2.5, 2.5],
        ),
        (
            format!("{head} real skew-symmetric\n%hi\n%there\n3 3 1\n3 2 -2.50e+00\n"),
            &[2, 1],
            &[-2.5, 2.5],
        ),
        (format!("{head} real symmetric\n%\n3 3 0\n"), &[], &[]),
    ] {
        let g = load(&text).unwrap();
        assert_eq!((g.relation(..).unwrap().src(), &weights(&g)[..]), (src, weights_of), "{text}");
    }
    // The pattern of a skew-symmetric matrix is symmetric.
    let g = load(&format!("{head} pattern skew-symmetric\n%\n3 3 1\n3 2\n")).unwrap();
    assert_eq!(g.relation(..).unwrap().src(), [2, 1]);
    assert!(g.edges(..).unwrap().column(WEIGHT).is_err());
}

/// Values that f32 cannot represent are an error, or rounded, or read as f64, by option.
#[test]
fn values_beyond_f32() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.mtx");
    let head = "%%MatrixMarket matrix coordinate real general\n%\n3 3 3\n1 2 1.5\n";
    for value in ["1E-60", "1e300", "1.6777217E7", "-16777217"] {
        std::fs::write(&path, format!("{head}2 1 {value}\n3 3 0.1\n")).unwrap();
        let e = load_matrix_market(&path, &Device::flex()).unwrap_err().to_string();
        let part = format!(
            "m.mtx:5:3: expected a number that f32 can represent, got {value:?}; use `MatrixMarketOptions::"
        );
        assert!(e.contains(&part), "{e}");
        let read = |options: MatrixMarketOptions| {
            load_matrix_market_with(&path, &options, &Device::flex()).unwrap()
        };
        let wide: f64 = value.parse().unwrap();
        let rounding = MatrixMarketOptions::new().round_values();
        assert_eq!(weights(&read(rounding.clone())), [1.5, wide as f32, 0.1]);
        assert_eq!(rounding.rounded.get(), 1);
        let column = read(MatrixMarketOptions::new().with_f64_values());
        let column = column.edges(..).unwrap().column(WEIGHT).unwrap().to_data();
        assert_eq!(column.try_to_vec::<f64>().unwrap(), [1.5, wide, 0.1]);
    }
}

/// Several blocks, with entries in the common form and in other forms, and an error in the last line.
#[test]
fn entries_of_many_blocks() {
    let n = 300_000;
    let entry = |i: usize| match i % 7 {
        0 => format!(" {i}\t{}  {i}.5 \r\n", n + 1 - i),
        1 => format!("% {i}\n\n{i} {} {i}.5\n", n + 1 - i),
        2 => format!("{i:012} {} +{i}.5\n", n + 1 - i),
        _ => format!("{i} {} {i}.5\n", n + 1 - i),
    };
    let body: String = (1..=n).map(entry).collect();
    let head =
        |entries| format!("%%MatrixMarket matrix coordinate real general\n{n} {n} {entries}\n");
    let g = load(&(head(n) + body.trim_end())).unwrap();
    let r = g.relation(..).unwrap();
    assert!((0..n).all(|i| r.src()[i] as usize == i && r.dst()[i] as usize == n - 1 - i));
    assert!(weights(&g).iter().enumerate().all(|(i, &w)| w == i as f32 + 1.5));
    let lines = 2 + body.lines().count();
    let e = load(&format!("{}{body}1 {} 1\n", head(n + 1), n + 1)).unwrap_err().to_string();
    let part =
        format!(":{}:2: expected a column in 1..={n} (entry {} of the matrix)", lines + 1, n + 1);
    assert!(e.contains(&part), "{e}");
    for announced in [n - 1, n + 1] {
        let e = load(&(head(announced) + &body)).unwrap_err().to_string();
        assert!(e.contains(&format!("expected {announced} entries as declared, found")), "{e}");
    }
}

#[test]
fn a_rectangular_matrix_has_two_node_types() {
    let g = load("%%MatrixMarket matrix coordinate pattern general\n2 5 1\n2 5\n").unwrap();
    assert_eq!((g.num_nodes("row").unwrap(), g.num_nodes("column").unwrap()), (2, 5));
    let r = g.relation("_E").unwrap();
    assert_eq!((r.src(), r.dst()), (&[1][..], &[4][..]));
}

#[test]
fn errors_name_line_and_expected_content() {
    let head = "%%MatrixMarket matrix coordinate real";
    let refused = |text: &str, part: &str| {
        let e = load(text).unwrap_err().to_string();
        assert!(e.contains("m.mtx") && e.contains(part), "expected {part:?} in {e}");
    };
    refused("", "found the end");
    refused("*Vertices 2\n", "found a Pajek file; not supported");
    refused("<graphml>\n", "found GraphML; read it with `load_graphml`");
    refused("1 1 1\n1 1 1\n", "expected `%%MatrixMarket matrix coordinate`");
    refused(
        "%%MatrixMarket matrix array real general\n1 1\n1\n",
        "then real, integer, unsigned-integer or pattern",
    );
    refused("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "found");
    refused("%%MatrixMarket matrix coordinate pattern hermitian\n1 1 0\n", "found");
    refused(&format!("{head} general\n"), "found the end");
    refused(&format!("{head} general\n2 x 1\n"), ":2: expected rows, columns and entries");
    refused(&format!("{head} symmetric\n2 3 0\n"), "expected a square matrix, found 2 x 3");
    refused(&format!("{head} general\n2 2 2\n1 1 1\n"), "expected 2 entries as declared, found 1");
    refused(
        &format!("{head} general\n2 2 1\n1 3 1\n"),
        ":3:2: expected a column in 1..=2 (entry 1",
    );
    refused(&format!("{head} general\n2 2 1\n0 1 1\n"), ":3:1: expected a row in 1..=2");
    let between = format!("{head} general\n2 2 2\n1 1 1\n\n% more\n 3 1 1\n");
    refused(&between, ":6:1: expected a row in 1..=2 (entry 2");
    let e = load(&format!("{head} general\n2 2 1\nx 1 1\n")).unwrap_err().to_string();
    assert!(e.ends_with(":3:1: expected an int64, got \"x\""), "no remedy for edge lists: {e}");
    refused(&format!("{head} general\n2 2 1\n1 1\n"), ":3: expected 3 fields");
    refused(&format!("{head} general\n9999999999 1 0\n"), "each in 0..=");
}
