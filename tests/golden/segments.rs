//! Families `segment_reduce` and `typed_mm`.

use burn::tensor::{Device, Tensor};
use burn_gnn::ops::{SegmentReduce, Segments, TypeIndex, gather_mm, segment_mm, segment_reduce, segment_softmax};

use crate::{Case, f64_le, text};

/// A list of whole numbers of the case.
fn whole(case: &Case<'_>, role: &str) -> Result<Vec<usize>, String> {
    let name = text(&case.json["ints"], role)?;
    let view = case.tensors.tensor(name).map_err(|e| format!("tensor `{name}`: {e}"))?;
    let number = |b: &[u8]| usize::try_from(f64_le(b).to_bits() as i64).map_err(|e| format!("tensor `{name}`: {e}"));
    view.data().chunks_exact(8).map(number).collect()
}

pub(crate) fn run_reduce(case: &Case<'_>, device: &Device) -> Result<(), String> {
    match case.rank("inputs", "value")? {
        1 => reduce::<1>(case, device),
        2 => reduce::<2>(case, device),
        3 => reduce::<3>(case, device),
        other => Err(format!("rank {other} is not covered; add it to this match")),
    }
}

fn reduce<const D: usize>(case: &Case<'_>, device: &Device) -> Result<(), String> {
    let segments = Segments::try_from_lengths(&whole(case, "seglen")?).map_err(|e| e.to_string())?;
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
    case.compare("outputs", "out", Some(out.clone()))?;
    let grads = case.backward(out, device)?;
    case.compare("grads", "value", x.grad(&grads))
}

pub(crate) fn run_typed_mm(case: &Case<'_>, device: &Device) -> Result<(), String> {
    let a: Tensor<2> = case.tensor("inputs", "a", device)?;
    let b: Tensor<3> = case.tensor("inputs", "b", device)?;
    let out = match text(case.json, "op")? {
        "segment_mm" => {
            let segments = Segments::try_from_lengths(&whole(case, "seglen")?).map_err(|e| e.to_string())?;
            segment_mm(a.clone(), b.clone(), &segments)
        }
        "gather_mm" => {
            let types: Vec<u32> = whole(case, "idx_b")?.into_iter().map(|t| t as u32).collect();
            let index = TypeIndex::try_new(&types, b.dims()[0]).map_err(|e| e.to_string())?;
            gather_mm(a.clone(), b.clone(), &index)
        }
        other => return Err(format!("unknown op `{other}`")),
    };
    case.compare("outputs", "out", Some(out.clone()))?;
    let grads = case.backward(out, device)?;
    case.compare("grads", "a", a.grad(&grads))?;
    case.compare("grads", "b", b.grad(&grads))
}
