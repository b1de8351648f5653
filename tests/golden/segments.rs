//! Families `segment_reduce` and `typed_mm`.

use burn::tensor::{Device, Tensor};
use burn_gnn::ops::{
    SegmentReduce, Segments, TypeIndex, gather_mm, segment_mm, segment_reduce, segment_softmax,
};

use crate::{Case, text};

/// A list of whole numbers of the case.
fn whole(case: &Case<'_>, role: &str) -> Result<Vec<usize>, String> {
    let number = |n: i64| usize::try_from(n).map_err(|e| format!("`ints.{role}`: {e}"));
    case.ids(&case.json["ints"], role)?.into_iter().map(number).collect()
}

pub(crate) fn run_reduce(case: &Case<'_>, device: &Device) -> Result<(), String> {
    ranked!(case.rank("inputs", "value")?, D => reduce::<D>(case, device))
}

fn reduce<const D: usize>(case: &Case<'_>, device: &Device) -> Result<(), String> {
    let segments =
        Segments::try_from_lengths(&whole(case, "seglen")?).map_err(|e| e.to_string())?;
    let x: Tensor<D> = case.tensor("inputs", "value", device)?;
    let reduce = |how| segment_reduce(x.clone(), &segments, how);
    let out = match text(case.json, "reduce")? {
        "sum" => reduce(SegmentReduce::Sum),
        "mean" => reduce(SegmentReduce::Mean),
        "max" => reduce(SegmentReduce::Max),
        "min" => reduce(SegmentReduce::Min),
        "softmax" => segment_softmax(x.clone(), &segments),
        other => return Err(format!("unknown reduce `{other}`")),
    };
    case.compare("outputs", "out", out.clone())?;
    let grads = case.backward(out, device)?;
    case.compare_grad("value", &x, &grads)
}

pub(crate) fn run_typed_mm(case: &Case<'_>, device: &Device) -> Result<(), String> {
    let a: Tensor<2> = case.tensor("inputs", "a", device)?;
    let b: Tensor<3> = case.tensor("inputs", "b", device)?;
    let out = match text(case.json, "op")? {
        "segment_mm" => {
            let segments =
                Segments::try_from_lengths(&whole(case, "seglen")?).map_err(|e| e.to_string())?;
            segment_mm(a.clone(), b.clone(), &segments)
        }
        "gather_mm" => {
            let types: Vec<u32> = whole(case, "idx_b")?.into_iter().map(|t| t as u32).collect();
            let index = TypeIndex::try_new(&types, b.dims()[0]).map_err(|e| e.to_string())?;
            gather_mm(a.clone(), b.clone(), &index)
        }
        other => return Err(format!("unknown op `{other}`")),
    };
    case.compare("outputs", "out", out.clone())?;
    let grads = case.backward(out, device)?;
    case.compare_grad("a", &a, &grads)?;
    case.compare_grad("b", &b, &grads)
}
