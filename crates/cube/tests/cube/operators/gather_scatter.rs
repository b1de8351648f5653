//! Gathering and scattering of rows by index.

use burn_gnn_cube::{RowIndex, gather_rows, scatter_add_rows};

use crate::support::*;

#[test]
fn rows_are_gathered_and_added_back() {
    let Some(()) = adapter() else { return };
    let mut numbers = Numbers::new(1);
    for (rows, picks, features) in
        [(5, 12, vec![3]), (40, 7, vec![16]), (3, 900, vec![2, 2]), (4, 0, vec![5]), (6, 6, vec![])]
    {
        let index: Vec<u32> = (0..picks).map(|_| numbers.below(rows) as u32).collect();
        let width = size(&features);
        let (table, x) = (numbers.numbers(rows * width), numbers.numbers(picks * width));
        let at = RowIndex::new(&index, rows).unwrap();
        let got = gather_rows(tensor(&table, &dims(rows, &features)), &at);
        let want: Vec<f64> =
            index.iter().flat_map(|&r| table[r as usize * width..][..width].to_vec()).collect();
        assert_eq!((shape(&got), read(&got)), (dims(picks, &features), want));
        let mut sums = vec![0.0; rows * width];
        for (i, &r) in index.iter().enumerate() {
            for j in 0..width {
                sums[r as usize * width + j] += x[i * width + j];
            }
        }
        let run = || scatter_add_rows(tensor(&x, &dims(picks, &features)), &at);
        assert_eq!(shape(&run()), dims(rows, &features));
        close("sums", &run(), &sums, 1e-5);
        assert_eq!(bytes(&run()), bytes(&run()));
    }
}

#[test]
fn rows_out_of_range_are_errors() {
    let Some(()) = adapter() else { return };
    assert!(RowIndex::new(&[0, 3], 3).is_err());
    assert_eq!(RowIndex::new(&[0, 2], 3).unwrap().len(), 2);
}
