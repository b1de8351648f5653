//! Reads edge ids of a relation in a file.

use burn_gnn_graph::internal::setting;
use burn_gnn_graph::{EdgeReader, GraphError};

/// Original ids of edges, given by positions within the rows of `dst`; `indptr` holds the offset of each row in `places`.
pub(crate) fn edge_ids(
    reader: &dyn EdgeReader,
    dst: &[u32],
    indptr: &[u32],
    places: &[u32],
) -> Result<Vec<u64>, GraphError> {
    let mut rows = Vec::with_capacity(dst.len());
    reader.rows(dst, &mut rows)?;
    for ((row, w), &v) in rows.iter().zip(indptr.windows(2)).zip(dst) {
        let places = &places[w[0] as usize..w[1] as usize];
        if let Some(place) = places.iter().find(|place| **place >= row.1) {
            let expected = format!("places below {}, the in-edges of node {v}", row.1);
            return Err(setting("positions", &expected, &place.to_string()));
        }
    }
    let row_of = rows
        .iter()
        .zip(indptr.windows(2))
        .flat_map(|(row, w)| std::iter::repeat_n(row.0, (w[1] - w[0]) as usize));
    let positions: Vec<u64> =
        row_of.zip(places).map(|(start, &place)| start + u64::from(place)).collect();
    let mut ids = vec![0; positions.len()];
    reader.edge_ids(&positions, &mut ids)?;
    Ok(ids)
}

/// Id in the graph of the edge with original id `id`; `None` if there is no such edge or its id does not fit `u32`.
/// `original` is the result of [`Relation::original_edge_ids`](burn_gnn_graph::Relation::original_edge_ids).
pub(crate) fn edge_of(original: Option<&[u64]>, id: u64) -> Option<u32> {
    match original {
        None => u32::try_from(id).ok(),
        Some(all) => all.binary_search(&id).ok().map(|edge| edge as u32),
    }
}
