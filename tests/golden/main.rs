//! Golden vectors: values and gradients that a correct implementation must reproduce, read from `tests/golden/vectors`
//! (`BURN_GNN_GOLDEN` names another folder) and computed on every CPU backend, and on wgpu where the system has an
//! adapter, if only software Vulkan.
//!
//! The folder's `manifest.json` lists cases of several families; a family that nothing here computes yet
//! is counted by name, one that nobody here has heard of is a failure. A new family is one more line in
//! [`FAMILIES`] and one function.
//!
//! This binary has no test harness, so that its summary lines are seen under a plain `cargo test`.
// Burn has deprecated its ndarray backend; people still use it.
#![allow(deprecated)]

#[path = "../../examples/common/mod.rs"]
mod common;

mod edges;
mod hetero;
mod layers;
mod segments;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use burn::tensor::{DType, Device, Gradients, Tensor, TensorData};
use burn_gnn::graph::Relation;
use burn_gnn::ops::{BinaryOp, Reduce, gspmm};
use burn_gnn_testutil::{Kind, NO_ADAPTER, NO_WGPU, golden, skip};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

/// Computes one case on a device with autodiff; `Err` says where it differs.
type Run = fn(&Case<'_>, &Device) -> Result<(), String>;

/// Families that are computed in 16 bits too, on Flex: their operands are rounded, and so are their results.
const HALVES: [&str; 5] = ["gspmm", "gsddmm", "edge_softmax", "segment_reduce", "typed_mm"];

/// Every family that a manifest may name; `None` where nothing computes it yet.
const FAMILIES: [(&str, Option<Run>); 7] = [
    ("gspmm", Some(run_gspmm)),
    ("gsddmm", Some(edges::run_gsddmm)),
    ("edge_softmax", Some(edges::run_edge_softmax)),
    ("segment_reduce", Some(segments::run_reduce)),
    ("typed_mm", Some(segments::run_typed_mm)),
    ("hetero", Some(hetero::run)),
    ("layers", Some(layers::run_layers)),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|a| a == "--list") {
        println!("golden: test");
        return ExitCode::SUCCESS;
    }
    check_selection();
    if !selected(&args) {
        println!("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out");
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(None) => {
            println!("test result: ok. 0 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
            ExitCode::SUCCESS
        }
        Ok(Some(0)) => {
            println!("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
            ExitCode::SUCCESS
        }
        Ok(Some(failed)) => {
            println!("test result: FAILED. {failed} cases failed");
            ExitCode::FAILURE
        }
        Err(message) => {
            println!("golden: {message}");
            println!("test result: FAILED. the folder could not be used");
            ExitCode::FAILURE
        }
    }
}

/// Whether the arguments of a test binary ask for the test `golden`: `cargo test NAME` gives its filter,
/// and whatever stands behind `--`, to every binary.
fn selected(args: &[String]) -> bool {
    const WITH_VALUE: [&str; 7] = ["--test-threads", "--skip", "--color", "--format", "--logfile", "--shuffle-seed", "-Z"];
    let exact = args.iter().any(|a| a == "--exact");
    let matches = |filter: &str| if exact { filter == "golden" } else { "golden".contains(filter) };
    let (mut filters, mut wanted) = (false, false);
    let mut rest = args.iter().map(String::as_str);
    while let Some(arg) = rest.next() {
        let skip = if WITH_VALUE.contains(&arg) { rest.next().filter(|_| arg == "--skip") } else { arg.strip_prefix("--skip=") };
        if skip.is_some_and(matches) {
            return false;
        }
        if !arg.starts_with('-') {
            filters = true;
            wanted |= matches(arg);
        }
    }
    wanted || !filters
}

/// This binary has no harness that would run a `#[test]`.
fn check_selection() {
    for (line, want) in [
        ("", true),
        ("golden", true),
        ("old", true),
        ("other", false),
        ("other gold", true),
        ("--test-threads 1", true),
        ("--test-threads=1", true),
        ("--color always --nocapture", true),
        ("--format terse -Z unstable-options", true),
        ("--skip x", true),
        ("--skip=x", true),
        ("--skip gold", false),
        ("--skip=golden", false),
        ("golden --skip x --test-threads 1", true),
        ("other --color always", false),
        ("--exact gold", false),
        ("golden --exact --skip old", true),
    ] {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(selected(&args), want, "arguments {line:?}");
    }
}

/// Number of failures over all backends; `None` if there is nothing to read.
fn run() -> Result<Option<usize>, String> {
    let Some(folder) = golden() else { return Ok(None) };
    let manifest: Value = serde_json::from_slice(&read(&folder, "manifest.json")?).map_err(|e| format!("manifest.json: {e}"))?;
    check_strictness(&folder, &manifest)?;
    let mut failed = 0;
    let wgpu = common::wgpu();
    if wgpu.is_none() {
        skip(Kind::Gpu, if cfg!(feature = "wgpu") { NO_ADAPTER } else { NO_WGPU });
    }
    let whole = [("flex", Device::flex()), ("ndarray", Device::ndarray())].into_iter().chain(wgpu.map(|d| ("wgpu", d)));
    let halves = [("flex in f16", DType::F16), ("flex in bf16", DType::BF16)].map(|(name, dtype)| (name, Device::flex(), Some(dtype)));
    for (backend, device, rounded) in whole.map(|(name, device)| (name, device, None)).chain(halves) {
        let report = check_all(&folder, &manifest, &device.autodiff(), rounded)?;
        let names: Vec<String> = report.unsupported.iter().map(|(n, c)| format!("{n} {c}")).collect();
        let tail = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        let unsupported = report.unsupported.values().sum::<usize>();
        let (passed, failures) = (report.passed, report.failures);
        let total = passed + failures.len() + unsupported;
        println!("golden: {total} cases, {passed} passed, {} failed, {unsupported} unsupported ({backend}){tail}", failures.len());
        for f in &failures {
            println!("  {f}");
        }
        failed += failures.len();
    }
    Ok(Some(failed))
}

/// Manifests that must not pass: the first case of a supported family, damaged in several ways.
fn check_strictness(folder: &Path, manifest: &Value) -> Result<(), String> {
    let check = |case: Option<Value>| {
        let mut manifest = manifest.clone();
        manifest["cases"] = Value::Array(case.into_iter().collect());
        check_all(folder, &manifest, &Device::flex().autodiff(), None)
    };
    assert!(check(None).is_err(), "an empty list of cases passes");
    let Some(good) = manifest["cases"].as_array().and_then(|cases| cases.iter().find(|c| c["family"] == "gspmm" && c["dtype"] == "f32"))
    else {
        return Ok(());
    };
    type Damage = fn(&mut Value);
    let without: [(&str, Damage); 4] = [
        ("`grads.", |c| drop(c["grads"].as_object_mut().and_then(|g| g.keys().next().cloned().and_then(|k| g.remove(&k))))),
        ("unknown family", |c| c["family"] = "no such family".into()),
        ("unknown dtype", |c| c["dtype"] = "f8".into()),
        ("no `grad_outputs.out`", |c| c["grad_outputs"] = Value::Null),
    ];
    for (want, damage) in without {
        let mut case = good.clone();
        damage(&mut case);
        let failures = check(Some(case))?.failures;
        assert!(failures.len() == 1 && failures[0].contains(want), "{want}: {failures:?}");
    }
    // A case of a kind that has no gradient at all.
    let mut case = good.clone();
    (case["grads"], case["grad_outputs"]) = (Value::Null, Value::Null);
    assert_eq!(check(Some(case))?.failures, Vec::<String>::new(), "a case without any gradient");
    let bytes = (read(folder, "graphs.safetensors")?, read(folder, "gspmm.safetensors")?);
    let parse = |b| SafeTensors::deserialize(b).map_err(|e| e.to_string());
    let case = Case { json: good, manifest, edges: &parse(&bytes.0)?, tensors: &parse(&bytes.1)?, rounded: None };
    let wrong = Tensor::<1>::zeros([1], (&Device::flex(), DType::F64));
    let error = case.compare("outputs", "out", Some(wrong)).expect_err("a result of another element type passes");
    assert!(error.contains("element type"), "{error}");
    Ok(())
}

#[derive(Default)]
struct Report {
    passed: usize,
    failures: Vec<String>,
    /// Cases of families that nothing here computes and of element types that the device has not, by name.
    unsupported: BTreeMap<String, usize>,
}

fn read(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    std::fs::read(folder.join(name)).map_err(|e| format!("{}: {e}", folder.join(name).display()))
}

/// Every case of a manifest on one device; in another element type than the case's, if one is named, those of [`HALVES`].
fn check_all(folder: &Path, manifest: &Value, device: &Device, rounded: Option<DType>) -> Result<Report, String> {
    let cases = manifest["cases"].as_array().ok_or("manifest.json: `cases` is no list")?;
    if cases.is_empty() {
        return Err("manifest.json: `cases` is empty, so nothing would be checked".to_owned());
    }
    let graph_bytes = read(folder, "graphs.safetensors")?;
    let edges = SafeTensors::deserialize(&graph_bytes).map_err(|e| format!("graphs.safetensors: {e}"))?;
    let mut bytes = BTreeMap::new();
    for (name, run) in FAMILIES {
        // A family without cases needs no file.
        if run.is_some() && cases.iter().any(|c| c["family"] == name) {
            bytes.insert(name, read(folder, &format!("{name}.safetensors"))?);
        }
    }
    let mut tensors = BTreeMap::new();
    for (name, bytes) in &bytes {
        tensors.insert(*name, SafeTensors::deserialize(bytes).map_err(|e| format!("{name}.safetensors: {e}"))?);
    }
    let mut report = Report::default();
    for case in cases {
        let (id, family) = (text(case, "id")?, text(case, "family")?);
        if rounded.is_some() && !HALVES.contains(&family) {
            continue;
        }
        match FAMILIES.iter().find(|f| f.0 == family) {
            None => report.failures.push(format!("{id}: unknown family `{family}`; this test knows {:?}", FAMILIES.map(|f| f.0))),
            Some((_, None)) => *report.unsupported.entry(family.to_owned()).or_default() += 1,
            Some((name, Some(run))) => {
                let case = Case { json: case, manifest, edges: &edges, tensors: &tensors[name], rounded };
                // An unknown element type is a failure of the case.
                if let Some(dtype) = case.dtype().ok().filter(|&dtype| !holds(device, dtype)) {
                    *report.unsupported.entry(format!("{dtype:?}")).or_default() += 1;
                    continue;
                }
                match run(&case, device) {
                    Ok(()) => report.passed += 1,
                    Err(e) => report.failures.push(format!("{id}: {e}")),
                }
            }
        }
    }
    Ok(report)
}

/// Whether a device computes in an element type. WGSL has no f64, whatever extensions of it some drivers offer.
fn holds(device: &Device, dtype: DType) -> bool {
    let cpu = [Device::flex(), Device::ndarray()].contains(device);
    cpu || dtype != DType::F64
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("`{key}` is missing or no string in {value}"))
}

/// One line of the manifest with what it refers to.
struct Case<'a> {
    json: &'a Value,
    manifest: &'a Value,
    edges: &'a SafeTensors<'a>,
    tensors: &'a SafeTensors<'a>,
    /// The element type to compute in, instead of the case's own.
    rounded: Option<DType>,
}

impl Case<'_> {
    fn dtype(&self) -> Result<DType, String> {
        let own = match text(self.json, "dtype")? {
            "f32" => DType::F32,
            "f64" => DType::F64,
            other => return Err(format!("unknown dtype `{other}`")),
        };
        Ok(self.rounded.unwrap_or(own))
    }

    /// Relative to 1 + |expected|: sums of up to a few hundred terms in any order, `exp` of any library. In 16 bits operands and
    /// results are rounded, to 11 and 8 bits, and a quotient or a product carries both errors.
    fn tolerance(&self) -> Result<f64, String> {
        Ok(match self.dtype()? {
            DType::F64 => 1e-10,
            DType::F16 => 5e-3,
            DType::BF16 => 4e-2,
            _ => 2e-5,
        })
    }

    /// The tensor that `group[role]` names, if it does.
    fn data(&self, group: &str, role: &str) -> Result<Option<TensorData>, String> {
        let Some(name) = self.json[group][role].as_str() else { return Ok(None) };
        let view = self.tensors.tensor(name).map_err(|e| format!("tensor `{name}`: {e}"))?;
        let (values, shape) = (view.data(), view.shape().to_vec());
        Ok(Some(match view.dtype() {
            Dtype::F32 => TensorData::new(values.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(), shape),
            Dtype::F64 => TensorData::new(values.chunks_exact(8).map(f64_le).collect(), shape),
            other => return Err(format!("tensor `{name}`: unexpected dtype {other:?}")),
        }))
    }

    fn rank(&self, group: &str, role: &str) -> Result<usize, String> {
        Ok(self.data(group, role)?.map_or(0, |d| d.shape().num_dims()))
    }

    /// A tensor of the case; tracked if it is an input.
    fn tensor<const D: usize>(&self, group: &str, role: &str, device: &Device) -> Result<Tensor<D>, String> {
        let data = self.data(group, role)?.ok_or_else(|| format!("no `{group}.{role}`"))?;
        let tensor = Tensor::from_data(data, (device, self.dtype()?));
        Ok(if group == "inputs" { tensor.require_grad() } else { tensor })
    }

    /// The relation of a graph that has only one.
    fn relation(&self) -> Result<Relation, String> {
        let graph = &self.manifest["graphs"][text(self.json, "graph")?];
        let r = &graph["relations"][0];
        let nodes = |end| text(r, end).map(|t| graph["num_nodes"][t].as_u64().unwrap_or(0) as usize);
        let ids = |end| -> Result<Vec<i64>, String> {
            let view = self.edges.tensor(text(r, end)?).map_err(|e| e.to_string())?;
            Ok(view.data().chunks_exact(8).map(|b| f64_le(b).to_bits() as i64).collect())
        };
        Relation::from_coo_i64(nodes("src_type")?, nodes("dst_type")?, &ids("src")?, &ids("dst")?).map_err(|e| e.to_string())
    }

    /// Whether the manifest names any gradient; a case without is one of values only.
    fn has_gradients(&self) -> bool {
        self.json["grads"].as_object().is_some_and(|g| !g.is_empty()) || self.data("grad_outputs", "out").is_ok_and(|d| d.is_some())
    }

    /// Compares with the tensor that `group[role]` names, which must be there.
    fn compare<const D: usize>(&self, group: &str, role: &str, got: Option<Tensor<D>>) -> Result<(), String> {
        let want = self.data(group, role)?.ok_or_else(|| format!("the manifest has no `{group}.{role}` to compare with"))?;
        let place = format!("{group}.{role}");
        let got = got.ok_or_else(|| format!("{place}: nothing came out"))?;
        if got.dtype() != self.dtype()? {
            return Err(format!("{place}: element type {:?}, expected {:?}", got.dtype(), self.dtype()?));
        }
        let got = got.into_data();
        if got.shape() != want.shape() {
            return Err(format!("{place}: shape {:?}, expected {:?}", got.shape(), want.shape()));
        }
        let tolerance = self.tolerance()?;
        let f64s = |d: TensorData| d.convert_dtype(DType::F64).try_into_vec::<f64>().map_err(|e| format!("{place}: {e:?}"));
        for (i, (a, b)) in f64s(got)?.into_iter().zip(f64s(want)?).enumerate() {
            // Written so that a NaN fails.
            let near = (a - b).abs() <= tolerance * (1.0 + b.abs());
            if !near {
                return Err(format!("{place}: element {i} is {a}, expected {b}"));
            }
        }
        Ok(())
    }

    /// Differentiates the sum of `out` times its cotangent.
    fn backward<const D: usize>(&self, out: Tensor<D>, device: &Device) -> Result<Gradients, String> {
        Ok((out * self.tensor("grad_outputs", "out", device)?).sum().backward())
    }
}

fn f64_le(b: &[u8]) -> f64 {
    f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])
}

fn run_gspmm(case: &Case<'_>, device: &Device) -> Result<(), String> {
    let op = match text(case.json, "op")? {
        "add" => BinaryOp::Add,
        "sub" => BinaryOp::Sub,
        "mul" => BinaryOp::Mul,
        "div" => BinaryOp::Div,
        "copy_lhs" => BinaryOp::CopyLhs,
        "copy_rhs" => BinaryOp::CopyRhs,
        other => return Err(format!("unknown op `{other}`")),
    };
    let reduce = match text(case.json, "reduce")? {
        "sum" => Reduce::Sum,
        "mean" => Reduce::Mean,
        "max" => Reduce::Max,
        "min" => Reduce::Min,
        other => return Err(format!("unknown reduce `{other}`")),
    };
    let rel = case.relation()?;
    let ranks = (case.rank("inputs", "lhs")?, case.rank("inputs", "rhs")?, case.rank("outputs", "out")?);
    match ranks {
        (1, 1, 1) => gspmm_case::<1, 1, 1>(case, device, &rel, op, reduce),
        (2, 2, 2) => gspmm_case::<2, 2, 2>(case, device, &rel, op, reduce),
        (3, 2, 3) => gspmm_case::<3, 2, 3>(case, device, &rel, op, reduce),
        (2, 3, 3) => gspmm_case::<2, 3, 3>(case, device, &rel, op, reduce),
        (3, 3, 3) => gspmm_case::<3, 3, 3>(case, device, &rel, op, reduce),
        (2, 0, 2) | (0, 2, 2) => gspmm_case::<2, 2, 2>(case, device, &rel, op, reduce),
        (3, 0, 3) | (0, 3, 3) => gspmm_case::<3, 3, 3>(case, device, &rel, op, reduce),
        other => Err(format!("ranks {other:?} are not covered; add them to this match")),
    }
}

fn gspmm_case<const L: usize, const R: usize, const O: usize>(
    case: &Case<'_>,
    device: &Device,
    rel: &Relation,
    op: BinaryOp,
    reduce: Reduce,
) -> Result<(), String> {
    // A copy has one operand; the other place is filled with something it must not look at.
    let lhs: Tensor<L> = if op.uses_lhs() { case.tensor("inputs", "lhs", device)? } else { Tensor::zeros([0; L], device) };
    let rhs: Tensor<R> = if op.uses_rhs() { case.tensor("inputs", "rhs", device)? } else { Tensor::zeros([0; R], device) };
    let out: Tensor<O> = gspmm(rel, op, reduce, lhs.clone(), rhs.clone());
    case.compare("outputs", "out", Some(out.clone()))?;
    // Among rounded operands another message may be the largest, by no more than was compared, and take the gradient.
    if !case.has_gradients() || (reduce.selects() && case.rounded.is_some()) {
        return Ok(());
    }
    let grads = case.backward(out, device)?;
    if op.uses_lhs() {
        case.compare("grads", "lhs", lhs.grad(&grads))?;
    }
    if op.uses_rhs() {
        case.compare("grads", "rhs", rhs.grad(&grads))?;
    }
    Ok(())
}
