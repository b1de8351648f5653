//! Tests golden vectors: values and gradients that a correct implementation must reproduce. They
//! are read from `tests/golden/vectors` (or the folder `BURN_GNN_GOLDEN`) and computed on every CPU
//! backend, and on a GPU or software Vulkan if an adapter is found.
//!
//! `manifest.json` lists the cases of several families, with the names of types, shapes and ranks
//! (up to 5). A case that cannot be computed, or of which an output or gradient was not compared,
//! is a failure. A new family needs a line in [`FAMILIES`] and a function. [`generated`] creates
//! cases of further types and ranks.
//!
//! This binary has no test harness, so that `cargo test` shows its summary.

#[path = "../../examples/reproduce/src/common/mod.rs"]
mod common;

/// `$body` with the constant `$D` set to a rank.
macro_rules! ranked {
    ($rank:expr, $D:ident => $body:expr) => {
        match $rank {
            1 => ranked!(@ $D, 1, $body),
            2 => ranked!(@ $D, 2, $body),
            3 => ranked!(@ $D, 3, $body),
            4 => ranked!(@ $D, 4, $body),
            5 => ranked!(@ $D, 5, $body),
            other => Err(format!("a tensor of rank {other}; ranks 1 to 5 are computed")),
        }
    };
    (@ $D:ident, $rank:literal, $body:expr) => {{
        const $D: usize = $rank;
        $body
    }};
}

mod edges;
mod generated;
mod hetero;
mod layers;
mod segments;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use burn::tensor::{DType, Device, Gradients, Tensor, TensorData};
use burn_gnn::graph::{Graph, Relation};
use burn_gnn::ops::{BinaryOp, Reduce, gspmm};
use burn_gnn_testutil::{Kind, NO_ADAPTER, NO_GPU_BACKEND, golden, skip};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

/// Computes one case on a device with autodiff; `Err` describes the difference.
type Run = fn(&Case<'_>, &Device) -> Result<(), String>;

/// Families that are also computed in 16 bits, on Flex: operands and results are rounded.
const HALVES: [&str; 5] = ["gspmm", "gsddmm", "edge_softmax", "segment_reduce", "typed_mm"];

/// Every family that a manifest may name.
const FAMILIES: [(&str, Run); 7] = [
    ("gspmm", run_gspmm),
    ("gsddmm", edges::run_gsddmm),
    ("edge_softmax", edges::run_edge_softmax),
    ("segment_reduce", segments::run_reduce),
    ("typed_mm", segments::run_typed_mm),
    ("hetero", hetero::run),
    ("layers", layers::run_layers),
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

/// Whether the arguments of the test binary select the test `golden`: `cargo test NAME` passes its
/// filter, and the arguments after `--`, to every binary.
fn selected(args: &[String]) -> bool {
    const WITH_VALUE: [&str; 7] =
        ["--test-threads", "--skip", "--color", "--format", "--logfile", "--shuffle-seed", "-Z"];
    let exact = args.iter().any(|a| a == "--exact");
    let matches = |filter: &str| if exact { filter == "golden" } else { "golden".contains(filter) };
    let (mut filters, mut wanted) = (false, false);
    let mut rest = args.iter().map(String::as_str);
    while let Some(arg) = rest.next() {
        let skip = if WITH_VALUE.contains(&arg) {
            rest.next().filter(|_| arg == "--skip")
        } else {
            arg.strip_prefix("--skip=")
        };
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

/// Returns the number of failures over all backends; `None` if there are no vectors and the
/// generated cases pass.
fn run() -> Result<Option<usize>, String> {
    let mut failed = generated::run()?;
    let Some(folder) = golden() else { return Ok((failed > 0).then_some(failed)) };
    let manifest: Value = serde_json::from_slice(&read(&folder, "manifest.json")?)
        .map_err(|e| format!("manifest.json: {e}"))?;
    check_strictness(&folder, &manifest)?;
    let cuda = common::cuda().map(|device| ("cuda", device));
    let gpu = cuda.or_else(|| common::wgpu().map(|device| ("wgpu", device)));
    if gpu.is_none() {
        let built = cfg!(any(feature = "wgpu", feature = "cuda"));
        skip(Kind::Gpu, if built { NO_ADAPTER } else { NO_GPU_BACKEND });
    }
    let whole = burn_gnn_testutil::named_devices().into_iter().chain(gpu);
    let halves = [("flex in f16", DType::F16), ("flex in bf16", DType::BF16)]
        .map(|(name, dtype)| (name, Device::flex(), Some(dtype)));
    for (backend, device, rounded) in whole.map(|(name, device)| (name, device, None)).chain(halves)
    {
        let report = check_all(&folder, &manifest, &device.autodiff(), rounded)?;
        failed += report.print(backend);
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
    let Some(good) = manifest["cases"]
        .as_array()
        .and_then(|cases| cases.iter().find(|c| c["family"] == "gspmm" && c["dtype"] == "f32"))
    else {
        return Ok(());
    };
    type Damage = fn(&mut Value);
    let without: [(&str, Damage); 6] = [
        ("`grads.", |c| {
            drop(
                c["grads"]
                    .as_object_mut()
                    .and_then(|g| g.keys().next().cloned().and_then(|k| g.remove(&k))),
            )
        }),
        ("unknown family", |c| c["family"] = "no such family".into()),
        ("unknown dtype", |c| c["dtype"] = "f8".into()),
        ("no `grad_outputs.out`", |c| c["grad_outputs"] = Value::Null),
        ("outputs.other", |c| c["outputs"]["other"] = c["outputs"]["out"].clone()),
        ("grads.other", |c| c["grads"]["other"] = c["outputs"]["out"].clone()),
    ];
    for (want, damage) in without {
        let mut case = good.clone();
        damage(&mut case);
        let failures = check(Some(case))?.failures;
        assert!(failures.len() == 1 && failures[0].contains(want), "{want}: {failures:?}");
    }
    // A case without any gradient.
    let mut case = good.clone();
    (case["grads"], case["grad_outputs"]) = (Value::Null, Value::Null);
    assert_eq!(check(Some(case))?.failures, Vec::<String>::new(), "a case without any gradient");
    let bytes = (read(folder, "graphs.safetensors")?, read(folder, "gspmm.safetensors")?);
    let parse = |b| SafeTensors::deserialize(b).map_err(|e| e.to_string());
    let case = Case {
        json: good,
        manifest,
        edges: &parse(&bytes.0)?,
        tensors: &parse(&bytes.1)?,
        rounded: None,
        tensor_cores: false,
        compared: RefCell::default(),
    };
    let wrong = Tensor::<1>::zeros([1], (&Device::flex(), DType::F64));
    let error =
        case.compare("outputs", "out", wrong).expect_err("a result of another element type passes");
    assert!(error.contains("element type"), "{error}");
    Ok(())
}

#[derive(Default)]
struct Report {
    passed: usize,
    failures: Vec<String>,
    /// Names of cases whose element type the device does not support.
    unsupported: BTreeMap<String, usize>,
}

impl Report {
    /// Prints the summary and the failures of a backend; returns the number of failures.
    fn print(&self, backend: &str) -> usize {
        let names: Vec<String> = self.unsupported.iter().map(|(n, c)| format!("{n} {c}")).collect();
        let tail = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        let unsupported = self.unsupported.values().sum::<usize>();
        let (passed, failed) = (self.passed, self.failures.len());
        let total = passed + failed + unsupported;
        println!(
            "golden: {total} cases, {passed} passed, {failed} failed, {unsupported} unsupported ({backend}){tail}"
        );
        for f in &self.failures {
            println!("  {f}");
        }
        failed
    }
}

fn read(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    std::fs::read(folder.join(name)).map_err(|e| format!("{}: {e}", folder.join(name).display()))
}

/// Computes every case of a manifest on one device. If an element type is given, computes the
/// families [`HALVES`] in it instead of the type of the case.
fn check_all(
    folder: &Path,
    manifest: &Value,
    device: &Device,
    rounded: Option<DType>,
) -> Result<Report, String> {
    let cases = manifest["cases"].as_array().ok_or("manifest.json: `cases` is no list")?;
    if cases.is_empty() {
        return Err("manifest.json: `cases` is empty, so nothing would be checked".to_owned());
    }
    let graph_bytes = read(folder, "graphs.safetensors")?;
    let edges =
        SafeTensors::deserialize(&graph_bytes).map_err(|e| format!("graphs.safetensors: {e}"))?;
    let mut bytes = BTreeMap::new();
    for (name, _) in FAMILIES {
        // A family without cases needs no file.
        if cases.iter().any(|c| c["family"] == name) {
            bytes.insert(name, read(folder, &format!("{name}.safetensors"))?);
        }
    }
    let mut tensors = BTreeMap::new();
    for (name, bytes) in &bytes {
        tensors.insert(
            *name,
            SafeTensors::deserialize(bytes).map_err(|e| format!("{name}.safetensors: {e}"))?,
        );
    }
    let mut report = Report::default();
    for case in cases {
        let (id, family) = (text(case, "id")?, text(case, "family")?);
        if rounded.is_some() && !HALVES.contains(&family) {
            continue;
        }
        match FAMILIES.iter().find(|f| f.0 == family) {
            None => report.failures.push(format!(
                "{id}: unknown family `{family}`; this test knows {:?}",
                FAMILIES.map(|f| f.0)
            )),
            Some((name, run)) => {
                let case = Case {
                    json: case,
                    manifest,
                    edges: &edges,
                    tensors: &tensors[name],
                    rounded,
                    tensor_cores: common::cuda().is_some_and(|cuda| cuda.autodiff() == *device),
                    compared: RefCell::default(),
                };
                // An unknown element type is a failure of the case.
                if let Some(dtype) = case.dtype().ok().filter(|&dtype| !holds(device, dtype)) {
                    *report.unsupported.entry(format!("{dtype:?}")).or_default() += 1;
                    continue;
                }
                let outcome =
                    catch_unwind(AssertUnwindSafe(|| run(&case, device))).unwrap_or_else(|panic| {
                        let text = panic
                            .downcast_ref::<String>()
                            .map(String::as_str)
                            .or_else(|| panic.downcast_ref::<&str>().copied());
                        Err(format!("panicked: {}", text.unwrap_or("without a text")))
                    });
                match outcome.and_then(|()| case.check_complete()) {
                    Ok(()) => report.passed += 1,
                    Err(e) => report.failures.push(format!("{id}: {e}")),
                }
            }
        }
    }
    Ok(report)
}

/// Whether a device supports an element type. WGSL has no f64, even if the driver has an extension
/// for it.
fn holds(device: &Device, dtype: DType) -> bool {
    let cpu = burn_gnn_testutil::devices().contains(device);
    cpu || dtype != DType::F64
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("`{key}` is missing or no string in {value}"))
}

/// One case of the manifest, with its graph and tensors.
struct Case<'a> {
    json: &'a Value,
    manifest: &'a Value,
    edges: &'a SafeTensors<'a>,
    tensors: &'a SafeTensors<'a>,
    /// Element type of the computation, if it is not the type of the case.
    rounded: Option<DType>,
    /// Whether Burn multiplies f32 with weights in TF32, on tensor cores.
    tensor_cores: bool,
    /// Compared tensors, as `group.role`.
    compared: RefCell<BTreeSet<String>>,
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

    /// Relative to 1 + |expected|: sums of up to a few hundred terms in any order, `exp` of any library. In 16 bits
    /// operands and results are rounded, to 11 and 8 bits, and a quotient or a product carries both errors. TF32 has
    /// 11 bits too.
    fn tolerance(&self) -> Result<f64, String> {
        Ok(match self.dtype()? {
            DType::F64 => 1e-10,
            DType::F16 => 5e-3,
            DType::BF16 => 4e-2,
            _ if self.tensor_cores && self.json["family"] == "layers" => 5e-3,
            _ => 2e-5,
        })
    }

    /// Returns the tensor that `group[role]` names, if there is one.
    fn data(&self, group: &str, role: &str) -> Result<Option<TensorData>, String> {
        let Some(name) = self.json[group][role].as_str() else { return Ok(None) };
        let view = self.tensors.tensor(name).map_err(|e| format!("tensor `{name}`: {e}"))?;
        let (values, shape) = (view.data(), view.shape().to_vec());
        Ok(Some(match view.dtype() {
            Dtype::F32 => TensorData::new(
                values
                    .chunks_exact(4)
                    .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                    .collect(),
                shape,
            ),
            Dtype::F64 => TensorData::new(values.chunks_exact(8).map(f64_le).collect(), shape),
            other => return Err(format!("tensor `{name}`: unexpected dtype {other:?}")),
        }))
    }

    fn rank(&self, group: &str, role: &str) -> Result<usize, String> {
        Ok(self.data(group, role)?.map_or(0, |d| d.shape().num_dims()))
    }

    /// Returns a tensor of the case, tracked if it is an input.
    fn tensor<const D: usize>(
        &self,
        group: &str,
        role: &str,
        device: &Device,
    ) -> Result<Tensor<D>, String> {
        let data = self.data(group, role)?.ok_or_else(|| format!("no `{group}.{role}`"))?;
        let rank = data.shape().num_dims();
        if rank != D {
            return Err(format!("`{group}.{role}` has rank {rank}, where rank {D} is computed"));
        }
        let tensor = Tensor::from_data(data, (device, self.dtype()?));
        Ok(if group == "inputs" { tensor.require_grad() } else { tensor })
    }

    /// Returns the manifest's entry of the graph of the case, and its relations.
    fn graph_entry(&self) -> Result<(&Value, &[Value]), String> {
        let name = text(self.json, "graph")?;
        let graph =
            self.manifest["graphs"].get(name).ok_or_else(|| format!("no graph `{name}`"))?;
        Ok((
            graph,
            graph["relations"]
                .as_array()
                .ok_or_else(|| format!("graph `{name}`: `relations` is no list"))?,
        ))
    }

    /// Returns the integers of the tensor that `group[key]` names, in the file of graphs or of the
    /// family.
    fn ids(&self, group: &Value, key: &str) -> Result<Vec<i64>, String> {
        let name = text(group, key)?;
        let view = self
            .edges
            .tensor(name)
            .or_else(|_| self.tensors.tensor(name))
            .map_err(|e| format!("tensor `{name}`: {e}"))?;
        if view.dtype() != Dtype::I64 {
            return Err(format!("tensor `{name}`: dtype {:?}, expected I64", view.dtype()));
        }
        Ok(view.data().chunks_exact(8).map(|b| f64_le(b).to_bits() as i64).collect())
    }

    /// Creates the graph of the case with all its node types, including types without edges.
    fn graph(&self) -> Result<Graph, String> {
        let (graph, relations) = self.graph_entry()?;
        let mut builder = Graph::builder();
        for (ntype, count) in graph["num_nodes"].as_object().into_iter().flatten() {
            let count =
                count.as_u64().ok_or_else(|| format!("`num_nodes.{ntype}` is no number"))?;
            builder = builder.nodes(ntype.as_str(), count as usize);
        }
        for r in relations {
            let name = (text(r, "src_type")?, text(r, "rel")?, text(r, "dst_type")?);
            builder = builder.edges_i64(name, self.ids(r, "src")?, self.ids(r, "dst")?);
        }
        builder.build().map_err(|e| e.to_string())
    }

    /// The relation that the case names, or the only one of its graph.
    fn relation(&self) -> Result<Relation, String> {
        let g = self.graph()?;
        let found = match self.json["relation"].as_str() {
            Some(name) => g.relation(name),
            None => g.relation(..),
        };
        found.cloned().map_err(|e| e.to_string())
    }

    /// The roles of a group of tensors, if the case has that group.
    fn roles(&self, group: &str) -> impl Iterator<Item = &str> {
        self.json[group].as_object().into_iter().flatten().map(|(role, _)| role.as_str())
    }

    /// Returns an error if a tensor of the case was not compared, except gradients of rounded
    /// operands.
    fn check_complete(&self) -> Result<(), String> {
        let groups: &[&str] =
            if self.rounded.is_some() { &["outputs"] } else { &["outputs", "grads"] };
        let all = groups
            .iter()
            .flat_map(|&group| self.roles(group).map(move |role| format!("{group}.{role}")));
        let left: Vec<String> =
            all.filter(|place| !self.compared.borrow().contains(place)).collect();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("nothing was compared with {}", left.join(", ")))
        }
    }

    /// Whether the case has gradients; other cases compare only values.
    fn has_gradients(&self) -> bool {
        self.json["grads"].as_object().is_some_and(|g| !g.is_empty())
            || self.data("grad_outputs", "out").is_ok_and(|d| d.is_some())
    }

    /// Compares with the tensor that `group[role]` names, which must exist.
    fn compare<const D: usize>(
        &self,
        group: &str,
        role: &str,
        got: Tensor<D>,
    ) -> Result<(), String> {
        self.compare_data(group, role, got.into_data())
    }

    fn compare_data(&self, group: &str, role: &str, got: TensorData) -> Result<(), String> {
        let want = self
            .data(group, role)?
            .ok_or_else(|| format!("the manifest has no `{group}.{role}` to compare with"))?;
        let place = format!("{group}.{role}");
        if got.dtype() != self.dtype()? {
            return Err(format!(
                "{place}: element type {:?}, expected {:?}",
                got.dtype(),
                self.dtype()?
            ));
        }
        if got.shape() != want.shape() {
            return Err(format!("{place}: shape {:?}, expected {:?}", got.shape(), want.shape()));
        }
        let tolerance = self.tolerance()?;
        for (i, (a, b)) in f64s(got)?.into_iter().zip(f64s(want)?).enumerate() {
            // Written so that a NaN fails.
            let near = (a - b).abs() <= tolerance * (1.0 + b.abs());
            if !near {
                return Err(format!("{place}: element {i} is {a}, expected {b}"));
            }
        }
        self.compared.borrow_mut().insert(place);
        Ok(())
    }

    /// Compares the gradient of an input, which must be 0 if the manifest has no entry for it.
    fn compare_grad<const D: usize>(
        &self,
        role: &str,
        x: &Tensor<D>,
        grads: &Gradients,
    ) -> Result<(), String> {
        // A tensor that the loss does not depend on has gradient 0.
        let grad = x.grad(grads).unwrap_or_else(|| x.clone().without_autodiff().zeros_like());
        self.compare_grad_data(role, grad.into_data())
    }

    fn compare_grad_data(&self, role: &str, grad: TensorData) -> Result<(), String> {
        if self.json["grads"][role].is_string() {
            return self.compare_data("grads", role, grad);
        }
        match f64s(grad)?.into_iter().enumerate().find(|(_, a)| *a != 0.0) {
            Some((i, a)) => Err(format!(
                "the manifest has no `grads.{role}`, so it must be 0, and element {i} is {a}"
            )),
            None => Ok(()),
        }
    }

    /// Differentiates the sum of `out` times its cotangent.
    fn backward<const D: usize>(
        &self,
        out: Tensor<D>,
        device: &Device,
    ) -> Result<Gradients, String> {
        Ok((out * self.tensor("grad_outputs", "out", device)?).sum().backward())
    }
}

fn f64s(data: TensorData) -> Result<Vec<f64>, String> {
    data.convert_dtype(DType::F64).try_into_vec::<f64>().map_err(|e| format!("{e:?}"))
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
    match (case.rank("inputs", "lhs")?, case.rank("inputs", "rhs")?) {
        (l, 0) => ranked!(l, D => gspmm_case::<D, D, D>(case, device, &rel, op, reduce)),
        (0, r) => ranked!(r, D => gspmm_case::<D, D, D>(case, device, &rel, op, reduce)),
        (l, r) => ranked!(l, L => ranked!(r, R => {
            const O: usize = if L > R { L } else { R };
            gspmm_case::<L, R, O>(case, device, &rel, op, reduce)
        })),
    }
}

fn gspmm_case<const L: usize, const R: usize, const O: usize>(
    case: &Case<'_>,
    device: &Device,
    rel: &Relation,
    op: BinaryOp,
    reduce: Reduce,
) -> Result<(), String> {
    // A copy has one operand; the other argument is a tensor that it must not read.
    let lhs: Tensor<L> = if op.uses_lhs() {
        case.tensor("inputs", "lhs", device)?
    } else {
        Tensor::zeros([0; L], device)
    };
    let rhs: Tensor<R> = if op.uses_rhs() {
        case.tensor("inputs", "rhs", device)?
    } else {
        Tensor::zeros([0; R], device)
    };
    let out: Tensor<O> = gspmm(rel, op, reduce, lhs.clone(), rhs.clone());
    case.compare("outputs", "out", out.clone())?;
    // After rounding a different message may be the largest, within the tolerance, and receive the
    // gradient.
    if !case.has_gradients() || (reduce.selects() && case.rounded.is_some()) {
        return Ok(());
    }
    let grads = case.backward(out, device)?;
    if op.uses_lhs() {
        case.compare_grad("lhs", &lhs, &grads)?;
    }
    if op.uses_rhs() {
        case.compare_grad("rhs", &rhs, &grads)?;
    }
    Ok(())
}
