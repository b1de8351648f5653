//! Validates the arguments of decoders.

use burn::module::Param;
use burn::tensor::{Int, Tensor};
use burn_gnn_models::ModelError;

/// Panics with the name of the decoder.
#[track_caller]
pub(super) fn accept<T>(decoder: &str, result: Result<T, ModelError>) -> T {
    match result {
        Ok(value) => value,
        Err(e) => panic!("{decoder}: {e}"),
    }
}

/// Checks the feature size of embeddings.
pub(super) fn check_size(arg: &str, expected: usize, x: &Tensor<2>) -> Result<(), ModelError> {
    ModelError::check_length(
        &format!("feature size of {arg}"),
        "that of the decoder",
        expected,
        x.dims()[1],
    )
}

/// Checks that there is no relation.
pub(super) fn check_no_relations(relations: Option<&Tensor<1, Int>>) -> Result<(), ModelError> {
    let n = relations.map_or(0, |r| r.dims()[0]);
    ModelError::check_range("number of relations", "0..1 (give `None`)", n, relations.is_none())
}

/// Returns relation ids, one per row and each below `count`. They are copied to the host, because some backends do not
/// check the index of a `select` and would read other memory.
pub(super) fn relation_ids(
    relations: Option<&Tensor<1, Int>>,
    rows: usize,
    count: usize,
) -> Result<Vec<u32>, ModelError> {
    let Some(relations) = relations else {
        return Err(ModelError::out_of_range("relations", "ids of relations", "None"));
    };
    ModelError::check_length("relations", "one per row", rows, relations.dims()[0])?;
    let ids = relations.to_data();
    let id = |(at, id): (usize, i64)| match usize::try_from(id) {
        Ok(row) if row < count => Ok(row as u32),
        _ => Err(ModelError::out_of_range(format!("relations[{at}]"), format!("0..{count}"), id)),
    };
    ids.iter::<i64>().enumerate().map(id).collect()
}

/// Checks embeddings and relations of a query, and returns both.
#[track_caller]
pub(super) fn accept_query(
    decoder: &str,
    d: usize,
    count: usize,
    given: &Tensor<2>,
    relations: Option<Tensor<1, Int>>,
) -> (Tensor<1, Int>, Vec<u32>) {
    let ids = check_size("the embeddings", d, given)
        .and_then(|()| relation_ids(relations.as_ref(), given.dims()[0], count));
    let ids = accept(decoder, ids);
    let Some(relations) = relations else { unreachable!("`relation_ids` rejects `None`") };
    (relations, ids)
}

/// Checks embeddings and relations of a query, and returns the row of `table` of each relation.
#[track_caller]
pub(super) fn relation_rows(
    decoder: &str,
    d: usize,
    table: &Param<Tensor<2>>,
    given: &Tensor<2>,
    relations: Option<Tensor<1, Int>>,
) -> Tensor<2> {
    let (relations, _) = accept_query(decoder, d, table.dims()[0], given, relations);
    table.val().select(0, relations)
}

/// Implements `init` of a config, which panics with the name of the decoder if `try_init` returns an error.
macro_rules! panicking_init {
    ($config:ident => $decoder:ident, $name:literal) => {
        impl $config {
            /// As [`try_init`](Self::try_init), but panics.
            ///
            /// # Panics
            /// [`try_init`](Self::try_init) returns an error.
            #[track_caller]
            pub fn init(&self, device: &Device) -> $decoder {
                $crate::decoders::check::accept($name, self.try_init(device))
            }
        }
    };
}

pub(super) use panicking_init;

/// Checks that pairs have as many sources as destinations.
#[track_caller]
pub(super) fn accept_pairs(decoder: &str, src: &Tensor<2>, dst: &Tensor<2>) {
    let [rows, expected] = [dst, src].map(|x| x.dims()[0]);
    accept(decoder, ModelError::check_length("rows of dst", "one per row of src", expected, rows));
}
