//! Times entries and prints JSON lines, as the scripts of the other systems do.

use std::sync::OnceLock;
use std::time::Instant;

use burn::tensor::Device;
use serde_json::{Map, Value, json};

const SYSTEM: &str = "burn-gnn";
const MOST: usize = 25;

/// Read once from `BENCH_THREADS` (2), `BENCH_SECONDS` of measuring per entry (4), `BENCH_LEAST`
/// repetitions (3) and `BENCH_ONLY`, a part of the entry's description (all).
pub(crate) struct Settings {
    pub(crate) threads: usize,
    seconds: f64,
    least: usize,
    only: String,
}

#[expect(
    clippy::disallowed_methods,
    reason = "a constant of the process, read without other threads"
)]
pub(crate) fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| Settings {
        threads: number("BENCH_THREADS", 2),
        seconds: number("BENCH_SECONDS", 4.0),
        least: number("BENCH_LEAST", 3),
        only: std::env::var("BENCH_ONLY").unwrap_or_default(),
    })
}

fn number<T: std::str::FromStr>(name: &str, default: T) -> T {
    match std::env::var(name) {
        Ok(text) => {
            text.parse().unwrap_or_else(|_| panic!("{name}: expected a number, got `{text}`"))
        }
        Err(_) => default,
    }
}

/// Repetitions of one entry, in milliseconds.
#[derive(Default)]
pub(crate) struct Times {
    wall: Vec<f64>,
    cpu: Vec<f64>,
}

impl Times {
    /// A single measurement of wall time in seconds.
    pub(crate) fn once(seconds: f64) -> Self {
        Self { wall: vec![seconds * 1e3], cpu: vec![] }
    }
    /// Adds seconds of wall and of CPU time.
    pub(crate) fn put(&mut self, wall: f64, cpu: f64) {
        self.wall.push(wall * 1e3);
        self.cpu.push(cpu * 1e3);
    }
    /// One run of `f`.
    pub(crate) fn one(f: impl FnOnce()) -> Self {
        let (cpu, wall) = (cpu_time(), Instant::now());
        f();
        settle();
        Self { wall: vec![wall.elapsed().as_secs_f64() * 1e3], cpu: vec![(cpu_time() - cpu) * 1e3] }
    }
    /// The times of a run that did something `count` times.
    pub(crate) fn add(&mut self, run: &Self, count: usize) {
        self.wall.extend(run.wall.iter().map(|ms| ms / count as f64));
        self.cpu.extend(run.cpu.iter().map(|ms| ms / count as f64));
    }
    /// The shortest wall time.
    pub(crate) fn least_ms(&self) -> f64 {
        self.wall.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    let half = v.len() / 2;
    if v.len() % 2 == 1 { v[half] } else { (v[half - 1] + v[half]) / 2.0 }
}

/// CPU time of all threads so far, in seconds.
pub(crate) fn cpu_time() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec`, which outlives it.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut t) };
    assert!(code == 0, "the clock of processor time cannot be read");
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// Returns the device of `BENCH_BACKEND` (flex by default); every call returns the same device.
#[expect(
    clippy::disallowed_methods,
    reason = "a constant of the process, made without other threads"
)]
pub(crate) fn device() -> Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    let make = || match std::env::var("BENCH_BACKEND").as_deref() {
        Err(_) | Ok("flex") => Device::flex(),
        #[cfg(feature = "wgpu")]
        Ok("wgpu") => Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
        #[cfg(feature = "vulkan")]
        Ok("vulkan") => Device::vulkan(burn::tensor::DeviceKind::DefaultDevice),
        #[cfg(feature = "metal")]
        Ok("metal") => Device::metal(burn::tensor::DeviceKind::DefaultDevice),
        #[cfg(feature = "rocm")]
        Ok("rocm") => Device::rocm(0),
        #[cfg(feature = "cuda")]
        Ok("cuda") => Device::cuda(0),
        Ok(other) => panic!("BENCH_BACKEND: `{other}` is no backend that was compiled in"),
    };
    DEVICE.get_or_init(make).clone()
}

/// Waits until the device has finished its queue.
pub(crate) fn settle() {
    if device() != Device::flex() {
        device().sync().unwrap_or_else(|e| panic!("the device failed: {e:?}"));
    }
}

/// Runs once to warm up, then at least `least` and at most 25 times within the time limit.
pub(crate) fn measure(mut f: impl FnMut()) -> Times {
    let mut f = || {
        f();
        settle();
    };
    f();
    let (begin, mut times) = (Instant::now(), Times::default());
    while times.wall.len() < settings().least
        || (times.wall.len() < MOST && begin.elapsed().as_secs_f64() < settings().seconds)
    {
        let (cpu, wall) = (cpu_time(), Instant::now());
        f();
        times.wall.push(wall.elapsed().as_secs_f64() * 1e3);
        times.cpu.push((cpu_time() - cpu) * 1e3);
    }
    times
}

/// Group and graph of an entry.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) group: &'a str,
    pub(crate) graph: &'a str,
    pub(crate) op: &'a str,
}

/// Measures `f` and prints its line if the entry is selected. `more` are further fields.
pub(crate) fn bench(entry: Entry<'_>, more: &[(&str, Value)], f: impl FnMut()) {
    if wanted(entry.op, more) {
        emit(entry, Some(&measure(f)), more);
    }
}

/// Whether `BENCH_ONLY` selects an entry.
pub(crate) fn wanted(op: &str, more: &[(&str, Value)]) -> bool {
    let field = |name| more.iter().find(|m| m.0 == name).map_or(String::new(), |m| m.1.to_string());
    format!("{SYSTEM} {op}  D{}.", field("dim")).contains(&settings().only)
}

pub(crate) fn emit(entry: Entry<'_>, times: Option<&Times>, more: &[(&str, Value)]) {
    let round = |x: f64| (x * 1e3).round() / 1e3;
    let mut line = Map::new();
    let mut put = |name: &str, value: Value| {
        line.insert(name.to_owned(), value);
    };
    put("system", json!(SYSTEM));
    put("group", json!(entry.group));
    put("graph", json!(entry.graph));
    put("op", json!(entry.op));
    if let Some(t) = times {
        put("median_ms", json!(round(median(&t.wall))));
        put("min_ms", json!(round(t.least_ms())));
        put("max_ms", json!(round(t.wall.iter().copied().fold(0.0, f64::max))));
        put("n", json!(t.wall.len()));
        if !t.cpu.is_empty() {
            put("cpu_ms", json!(round(median(&t.cpu))));
        }
    }
    for (name, value) in more {
        put(name, value.clone());
    }
    put("threads", json!(settings().threads));
    put("load1", json!((load1() * 10.0).round() / 10.0));
    put("allocator", json!(crate::alloc::name()));
    if let Ok(backend) = std::env::var("BENCH_BACKEND") {
        put("backend", json!(backend));
    }
    println!("{}", Value::Object(line));
}

fn load1() -> f64 {
    let mut averages = [0.0; 1];
    // SAFETY: the call writes at most one number.
    let n = unsafe { libc::getloadavg(averages.as_mut_ptr(), 1) };
    if n == 1 { averages[0] } else { 0.0 }
}

/// Resident memory now and at its peak, in MiB.
pub(crate) fn memory_mb() -> (f64, f64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find(|l| l.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kb| kb / 1024.0)
    };
    (of("VmRSS:").unwrap_or(f64::NAN), of("VmHWM:").unwrap_or(f64::NAN))
}
