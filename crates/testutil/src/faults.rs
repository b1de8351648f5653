//! Kills processes while they write, and fills disks.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Number of kills of each writer: `BURN_GNN_KILLS`, 6 by default.
pub fn kills() -> u64 {
    std::env::var("BURN_GNN_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(6)
}

/// Returns a pseudo-random number in 0..1 as a function of `purpose` and `at`.
pub fn draw(purpose: &str, at: u64) -> f64 {
    // SplitMix64.
    let mut z = purpose.bytes().fold(at.wrapping_mul(0x9E37_79B9_7F4A_7C15), |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Returns the command that runs one test of this program in a separate process.
pub fn process(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).stdout(Stdio::null());
    command
}

/// Environment variable with the first version and the folder of a process that will be killed.
const WRITER: &str = "BURN_GNN_KILLED_WRITER";

/// Body of a test that [`killed`] starts: writes successive versions to a folder until the process
/// is killed. Does nothing if [`killed`] did not start the process.
pub fn write_until_killed(write: impl Fn(&Path, u64)) {
    let Ok(text) = std::env::var(WRITER) else { return };
    let (first, dir) = text.split_once(' ').unwrap();
    for version in first.parse::<u64>().unwrap().. {
        // The parent process has ended without killing this process.
        if writeln!(std::io::stderr(), "begin {version}").is_err() {
            return;
        }
        write(Path::new(dir), version);
        let _ = writeln!(std::io::stderr(), "end {version}");
    }
}

/// Kills processes that run `test`, whose body is [`write_until_killed`], at random moments.
/// `version` reads the version in the folder, which must be the last complete version or the
/// version that was being written.
pub fn killed(what: &str, test: &str, version: impl Fn(&Path) -> Option<u64>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (mut now, mut took) = (None, Duration::from_millis(2));
    let (mut old, mut new, mut between) = (0, 0, 0);
    for i in 0..kills() {
        let first = now.map_or(0, |v: u64| v + 1);
        let mut child = process(test)
            .env(WRITER, format!("{first} {}", dir.path().display()))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let reader = std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|l| drop(send.send(l)))
        });
        let mut seen = vec![wait_for(&mut child, &lines, "begin")];
        // Every fourth kill hits the first write of its process, the other kills a later write.
        if i % 4 != 0 {
            let start = Instant::now();
            seen.push(wait_for(&mut child, &lines, "end"));
            took = start.elapsed();
        }
        std::thread::sleep(took.mul_f64(1.5 * draw(what, i)));
        child.kill().unwrap();
        child.wait().unwrap();
        reader.join().unwrap();
        seen.extend(lines.try_iter());
        assert!(!seen.iter().any(|l| l.contains("panicked")), "{what}, kill {i}: {seen:?}");
        let last = |word: &str| {
            seen.iter().rev().find_map(|l| l.strip_prefix(word)?.trim().parse::<u64>().ok())
        };
        let (begun, ended) = (last("begin "), last("end ").or(now));
        let found = version(dir.path());
        assert!(
            found == ended || found == begun,
            "{what}, kill {i}: expected version {ended:?} or {begun:?}, found {found:?}"
        );
        match (begun > ended, found == begun) {
            (false, _) => between += 1,
            (true, true) => new += 1,
            (true, false) => old += 1,
        }
        now = found;
    }
    println!(
        "{what}: {} kills, {old} left the old version, {new} the new version, {between} hit no write; all versions were complete",
        kills()
    );
    dir
}

/// Returns the next line of the child that begins with `word`. Panics if the child ends.
fn wait_for(child: &mut Child, lines: &mpsc::Receiver<String>, word: &str) -> String {
    loop {
        match lines.recv_timeout(Duration::from_secs(120)) {
            Ok(line) if line.starts_with(word) => return line,
            // A warning of the library, or the message of a panic before the process ends.
            Ok(line) => println!("{line}"),
            Err(e) => {
                let _ = child.kill();
                panic!(
                    "expected the line `{word}` from the writing process, found {e}: {:?}",
                    child.wait()
                );
            }
        }
    }
}

/// Environment variable with the folder in which a small disk is mounted.
const DISK: &str = "BURN_GNN_SMALL_DISK";

/// Runs `test`, which calls this function, in a child process with a separate disk of `kib` KiB.
/// Returns the folder of the disk in the child and `None` in the parent. If no disk can be mounted,
/// prints this and returns `None`.
pub fn small_disk(test: &str, kib: u64) -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os(DISK) {
        return Some(dir.into());
    }
    let dir = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size={kib}k tmpfs \"$0\" && exec \"$@\"");
    let unshared = |command: &[&std::ffi::OsStr]| {
        // `-U` makes other users root in the namespace, so that they may mount.
        let mut unshare = Command::new("unshare");
        unshare
            .args(["-Urm", "sh", "-c", &mount])
            .arg(dir.path())
            .args(command)
            .env(DISK, dir.path());
        unshare.output()
    };
    match unshared(&["true".as_ref()]) {
        Ok(probe) if probe.status.success() => {}
        other => {
            let why = other.map_or_else(
                |e| e.to_string(),
                |o| String::from_utf8_lossy(&o.stderr).trim().to_owned(),
            );
            println!(
                "{test}: skipped, cannot mount a disk in a namespace (unshare -Urm, mount -t tmpfs): {why}"
            );
            return None;
        }
    }
    let exe = std::env::current_exe().unwrap();
    let run = unshared(&[exe.as_ref(), "--exact".as_ref(), test.as_ref(), "--nocapture".as_ref()])
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.contains("1 passed"), "{out}{err}");
    out.lines().filter(|l| l.contains("full disk")).for_each(|l| println!("{l}"));
    None
}

/// Runs a writer with 0, 4, 8 and more KiB of free space until it succeeds. `old` and `new` write
/// to a folder, `version` returns which of the two it contains. A failed write must return an error
/// that names the full disk and a file in the folder, keep the old version, and leave no additional
/// files.
pub fn full_disk(
    what: &str,
    disk: &Path,
    old: impl Fn(&Path),
    new: impl Fn(&Path) -> Result<(), String>,
    version: impl Fn(&Path) -> &'static str,
) {
    const PAGE: u64 = 4096;
    let (dir, filler) = (disk.join("folder"), disk.join("filler"));
    let mut failed = 0;
    for pages in 0.. {
        std::fs::create_dir(&dir).unwrap();
        old(&dir);
        let before = files(&dir);
        let mut fill = std::fs::File::create(&filler).unwrap();
        while fill.write_all(&[1; PAGE as usize]).is_ok() {}
        let all = fill.metadata().unwrap().len();
        assert!(
            pages * PAGE <= all,
            "{what}: expected a write to succeed on this disk, {failed} writes failed"
        );
        fill.set_len(all - pages * PAGE).unwrap();
        let written = new(&dir);
        match &written {
            Ok(()) => assert_eq!(version(&dir), "new", "{what}, {pages} pages free"),
            Err(e) => {
                failed += 1;
                assert!(
                    e.contains("No space left") && e.contains(dir.to_str().unwrap()),
                    "{what}, {pages} pages free: {e}"
                );
                assert_eq!(version(&dir), "old", "{what}, {pages} pages free: {e}");
                assert_eq!(files(&dir), before, "{what}, {pages} pages free: {e}");
            }
        }
        drop(fill);
        std::fs::remove_file(&filler).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        if written.is_ok() {
            break;
        }
    }
    assert!(failed > 0, "{what}: the disk was never full");
    println!(
        "{what}, full disk: {failed} writes without enough space failed and left the old version, the next write succeeded"
    );
}

/// Returns all files in a folder and its subfolders, sorted by path.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}
